// The sandbox wallet of a demo. Its key is generated in the page, cannot be exported and
// is worth nothing. The page uses it like any other wallet.
import { encode } from './base58.ts';
import type { Account, Wallet } from './standard.ts';
import { connectFeature, messageFeature, transactionFeature } from './standard.ts';
import { parse } from './transaction.ts';

export const sandboxName = 'Sandbox wallet';
const chain = 'solana:localnet';

/** store runs work on the key store. */
async function store<T>(mode: IDBTransactionMode, work: (s: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const done = <R>(request: IDBRequest<R>) => new Promise<R>((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error('the browser cannot store keys'));
  });
  const opening = indexedDB.open('sandbox-wallet', 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore('keys');
  const db = await done(opening);
  try {
    return await done(work(db.transaction('keys', mode).objectStore('keys')));
  } finally {
    db.close();
  }
}

// keyPair returns the stored key, or a new one.
async function keyPair(): Promise<CryptoKeyPair> {
  const kept = await store<CryptoKeyPair | undefined>('readonly', (s) => s.get('ed25519'));
  if (kept) return kept;
  const fresh = (await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify'])) as CryptoKeyPair;
  await store('readwrite', (s) => s.put(fresh, 'ed25519'));
  return fresh;
}

/** sandboxWallet returns the wallet. It throws if the browser has no ed25519. */
export async function sandboxWallet(): Promise<Wallet> {
  const keys = await keyPair();
  const publicKey = new Uint8Array(await crypto.subtle.exportKey('raw', keys.publicKey));
  const features = [messageFeature, transactionFeature];
  const account: Account = { address: encode(publicKey), publicKey, chains: [chain], features };
  const sign = async (bytes: Uint8Array) => new Uint8Array(await crypto.subtle.sign('Ed25519', keys.privateKey, new Uint8Array(bytes)));
  return {
    version: '1.0.0', name: sandboxName, icon: 'data:image/svg+xml;base64,', chains: [chain], accounts: [account],
    features: {
      [connectFeature]: { version: '1.0.0', connect: async () => ({ accounts: [account] }) },
      [messageFeature]: {
        version: '1.1.0',
        signMessage: (...inputs: { message: Uint8Array }[]) => Promise.all(inputs.map(async ({ message }) => ({ signedMessage: message, signature: await sign(message) }))),
      },
      [transactionFeature]: {
        version: '1.0.0', supportedTransactionVersions: [0],
        signTransaction: (...inputs: { transaction: Uint8Array }[]) => Promise.all(inputs.map(async ({ transaction }) => {
          const signed = new Uint8Array(transaction);
          const t = parse(signed);
          const slot = t.signatures[t.signers.indexOf(account.address)];
          if (!slot) throw new Error('the sandbox wallet is not a signer');
          slot.set(await sign(t.message)); // a view of signed
          return { signedTransaction: signed };
        })),
      },
    },
  };
}

/** Chain is the demo's local chain. */
export class Chain {
  constructor(readonly url: string) {}

  async #call<T>(method: string, params: unknown): Promise<T> {
    const answer = await fetch(this.url, {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), signal: AbortSignal.timeout(10_000),
    });
    const { result, error } = (await answer.json()) as { result: T; error?: { message: string } };
    if (error) throw new Error(`the demo's chain: ${error.message}`);
    return result;
  }

  /** fund gives a wallet SOL and USDC, in atoms. */
  async fund(wallet: string, lamports: number, usdc: string): Promise<void> {
    await this.#call('requestAirdrop', [wallet, lamports]);
    await this.#call('sandbox_fund', [{ wallet, symbol: 'USDC', amount: usdc }]);
  }

  /** balances returns a wallet's balances by mint; SOL has an empty mint. */
  async balances(wallet: string): Promise<Map<string, string>> {
    interface Listed { value: { account: { data: { parsed: { info: { mint: string; tokenAmount: { uiAmountString: string } } } } } }[] }
    const { value } = await this.#call<{ value: number }>('getBalance', [wallet]);
    const lamports = BigInt(value).toString().padStart(10, '0');
    const found = new Map([['', `${lamports.slice(0, -9)}.${lamports.slice(-9)}`]]);
    for (const programId of ['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb']) {
      const { value: accounts } = await this.#call<Listed>('getTokenAccountsByOwner', [wallet, { programId }, { encoding: 'jsonParsed' }]);
      for (const { account } of accounts) found.set(account.data.parsed.info.mint, account.data.parsed.info.tokenAmount.uiAmountString);
    }
    return found;
  }
}
