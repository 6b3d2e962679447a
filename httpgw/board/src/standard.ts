// The part of the Wallet Standard that the page needs: the registration of wallets and
// three features of Solana wallets.

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

/** feature returns a feature of a wallet that suits. */
export function feature<K extends keyof Features>(wallet: Wallet, name: K): Features[K] {
  return wallet.features[name] as Features[K];
}

/** suits reports whether a wallet has all features that the page needs. */
export function suits(wallet: Wallet): boolean {
  return [connectFeature, messageFeature, transactionFeature].every((name) => name in wallet.features);
}

interface Api {
  register(...wallets: Wallet[]): () => void;
}

/** maxWallets bounds the listed wallets. */
const maxWallets = 32;

/** wallets calls found for each wallet of the browser, whether it registers before or after the page. */
export function wallets(found: (wallet: Wallet) => void): void {
  const known = new Set<Wallet>();
  const api: Api = {
    register(...list) {
      for (const wallet of list) {
        if (known.has(wallet) || known.size >= maxWallets || !suits(wallet)) continue;
        known.add(wallet);
        found(wallet);
      }
      return () => undefined;
    },
  };
  window.addEventListener('wallet-standard:register-wallet', (event) => (event as CustomEvent<(api: Api) => void>).detail(api));
  window.dispatchEvent(new CustomEvent('wallet-standard:app-ready', { detail: api }));
}

/** offer registers a wallet, as a browser extension does. */
export function offer(wallet: Wallet): void {
  const register = (api: Api) => void api.register(wallet);
  window.dispatchEvent(new CustomEvent('wallet-standard:register-wallet', { detail: register }));
}
