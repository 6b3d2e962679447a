// Names of the network on which trades execute (execution_network).

const mainnet = 'solana-mainnet-beta';

const others: Readonly<Record<string, { words: string; chain: string }>> = {
  'solana-devnet': { words: "Solana's devnet, a test network", chain: 'solana:devnet' },
  'solana-testnet': { words: "Solana's testnet, a test network", chain: 'solana:testnet' },
  'solana-local': { words: 'a local chain', chain: 'solana:localnet' },
};

/** testNetwork returns the network in words where it is not mainnet; else ''. */
export const testNetwork = (name: string): string => (name === mainnet || name === '' ? '' : (others[name]?.words ?? name));

/** walletChain returns the name of the network in the Wallet Standard. */
export const walletChain = (name: string): string => others[name]?.chain ?? 'solana:mainnet';
