// The Wallet Standard, as far as the page needs it: how wallets make themselves
// known, and the three things that a Solana wallet does here.

export interface Account {
  readonly address: string;
  readonly publicKey: Uint8Array;
  readonly chains: readonly string[];
  readonly features: readonly string[];
}

interface Connect {
  connect(input?: { silent?: boolean }): Promise<{ accounts: readonly Account[] }>;
}

interface SignMessage {
  signMessage(...inputs: { account: Account; message: Uint8Array }[]): Promise<readonly { signedMessage: Uint8Array; signature: Uint8Array }[]>;
}

interface SignTransaction {
  signTransaction(...inputs: { account: Account; transaction: Uint8Array; chain?: string }[]): Promise<readonly { signedTransaction: Uint8Array }[]>;
}

export interface Wallet {
  readonly version: '1.0.0';
  readonly name: string;
  readonly icon: string;
  readonly chains: readonly string[];
  readonly features: Readonly<Record<string, unknown>>;
  readonly accounts: readonly Account[];
}

export const connectFeature = 'standard:connect';
export const messageFeature = 'solana:signMessage';
export const transactionFeature = 'solana:signTransaction';

interface Features {
  [connectFeature]: Connect;
  [messageFeature]: SignMessage;
  [transactionFeature]: SignTransaction;
}

/** feature is one of a wallet's; suits has looked that it is there. */
export function feature<K extends keyof Features>(wallet: Wallet, name: K): Features[K] {
  return wallet.features[name] as Features[K];
}

/** suits reports whether a wallet can do what the page needs. */
export function suits(wallet: Wallet): boolean {
  return [connectFeature, messageFeature, transactionFeature].every((name) => name in wallet.features);
}

interface Api {
  register(...wallets: Wallet[]): () => void;
}

/** mostWallets bounds those that are listed. */
const mostWallets = 32;

/** wallets tells of each wallet of the browser, whether it came before the page or comes later. */
export function wallets(found: (wallet: Wallet) => void): void {
  const known = new Set<Wallet>();
  const api: Api = {
    register(...list) {
      for (const wallet of list) {
        if (known.has(wallet) || known.size >= mostWallets || !suits(wallet)) continue;
        known.add(wallet);
        found(wallet);
      }
      return () => undefined;
    },
  };
  window.addEventListener('wallet-standard:register-wallet', (event) => (event as CustomEvent<(api: Api) => void>).detail(api));
  window.dispatchEvent(new CustomEvent('wallet-standard:app-ready', { detail: api }));
}

/** offer makes a wallet known, as a browser's extension does. */
export function offer(wallet: Wallet): void {
  const register = (api: Api) => void api.register(wallet);
  window.dispatchEvent(new CustomEvent('wallet-standard:register-wallet', { detail: register }));
}
