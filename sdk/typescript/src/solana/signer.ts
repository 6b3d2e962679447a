import {
  createKeyPairFromBytes, getAddressFromPublicKey, getPublicKeyFromAddress, getTransactionDecoder, getTransactionEncoder,
  partiallySignTransaction, signBytes, verifySignature, type SignatureBytes,
} from '@solana/kit';
import { BlockdeskError, VerificationError } from '../errors.js';
import { asAddress, decodeTransaction, equal, toBase58, type Transaction } from './transaction.js';

/** Signer is a key, or a wallet that has one. */
export interface Signer {
  /** base58. */
  readonly address: string;
  /** True: it signs without asking a person, so that claims may be proved with it. */
  readonly holdsKey?: boolean;
  /** signMessage returns the ed25519 signature of exactly these bytes, 64 bytes. */
  signMessage(message: Uint8Array): Promise<Uint8Array>;
  /** signTransaction returns the transaction with its signature in its slot. */
  signTransaction(wire: Uint8Array): Promise<Uint8Array>;
}

/** keypairSigner signs with a key in Solana's form: 64 bytes, secret and public. WebCrypto holds it. */
export async function keypairSigner(secret: Uint8Array): Promise<Signer> {
  const keys = await createKeyPairFromBytes(secret);
  return {
    address: await getAddressFromPublicKey(keys.publicKey),
    holdsKey: true,
    signMessage: (message) => signBytes(keys.privateKey, message),
    signTransaction: async (wire) => {
      const signed = await partiallySignTransaction([keys], getTransactionDecoder().decode(wire));
      return new Uint8Array(getTransactionEncoder().encode(signed));
    },
  };
}

/** parseKeypair reads the text of a keypair file: a JSON list of 64 numbers. */
export function parseKeypair(text: string): Uint8Array {
  const list: unknown = JSON.parse(text);
  const isByte = (n: unknown): boolean => Number.isInteger(n) && (n as number) >= 0 && (n as number) <= 255;
  if (!Array.isArray(list) || list.length !== 64 || !list.every(isByte)) throw new BlockdeskError('no keypair: 64 numbers were expected');
  return new Uint8Array(list as number[]);
}

/** StandardAccount is an account of a wallet of the Wallet Standard. */
export interface StandardAccount {
  readonly address: string;
}

/** StandardWallet is what is needed of such a wallet. */
export interface StandardWallet<A extends StandardAccount> {
  readonly features: {
    readonly 'solana:signMessage'?: {
      signMessage(input: { account: A; message: Uint8Array }): Promise<readonly { readonly signature: Uint8Array }[]>;
    };
    readonly 'solana:signTransaction'?: {
      signTransaction(input: { account: A; transaction: Uint8Array; chain?: `solana:${string}` }):
      Promise<readonly { readonly signedTransaction: Uint8Array }[]>;
    };
  };
}

/** walletSigner signs with an account of a browser's wallet. */
export function walletSigner<A extends StandardAccount>(wallet: StandardWallet<A>, account: A, chain?: `solana:${string}`): Signer {
  const only = <T>(list: readonly T[] | undefined, what: string): T => {
    if (list?.length !== 1) throw new BlockdeskError(`the wallet cannot ${what}, or does not answer`);
    return list[0]!;
  };
  return {
    address: account.address,
    signMessage: async (message) =>
      only(await wallet.features['solana:signMessage']?.signMessage({ account, message }), 'sign messages').signature,
    signTransaction: async (transaction) => only(await wallet.features['solana:signTransaction']?.signTransaction({
      account, transaction, ...(chain && { chain }),
    }), 'sign transactions').signedTransaction,
  };
}

/** Signed is a transaction with the signer's signature in it. */
export interface Signed {
  readonly wire: Uint8Array;
  /** The signer's, base58. */
  readonly signature: string;
}

/**
 * sign has a transaction signed, and holds the result to what was given: wallets
 * like to add instructions of their own, and the desk signs only what it built.
 * It throws VerificationError.
 */
export async function sign(t: Transaction, signer: Signer): Promise<Signed> {
  const signed = decodeTransaction(await signer.signTransaction(new Uint8Array(t.wire)));
  if (!equal(signed.message, t.message)) throw new VerificationError('the wallet has changed the transaction');
  const signature = signed.signatures.get(signer.address) ?? null;
  if (signature === null) throw new VerificationError(`${signer.address} has not signed`);
  for (const [other, slot] of t.signatures) {
    const now = signed.signatures.get(other) ?? null;
    if (other !== signer.address && !equal(now ?? [], slot ?? [])) throw new VerificationError(`the slot of ${other} has changed`);
  }
  const key = await getPublicKeyFromAddress(asAddress(signer.address));
  const valid = await verifySignature(key, signature as SignatureBytes, t.message);
  if (!valid) throw new VerificationError('the signature is not of this transaction');
  return { wire: signed.wire, signature: toBase58(signature) };
}
