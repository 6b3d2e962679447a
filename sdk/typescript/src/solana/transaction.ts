import {
  getBase58Decoder, getBase64Decoder, getBase64Encoder, getCompiledTransactionMessageDecoder, getCompiledTransactionMessageEncoder,
  getTransactionDecoder, getTransactionEncoder, type Address,
} from '@solana/kit';
import { VerificationError } from '../errors.js';

export const systemProgram = '11111111111111111111111111111111';
export const tokenPrograms: readonly string[] = [
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
];
export const associatedTokenProgram = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL';
const memoProgram = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr';
const computeBudgetProgram = 'ComputeBudget111111111111111111111111111111';

const maxTransaction = 1_232; // bytes

/**
 * Instruction is one that the desk's transactions have. Amounts are in atoms, SOL's
 * in lamports; `extra` are accounts beyond those that it needs.
 */
export type Instruction =
  | { readonly kind: 'compute_limit'; readonly units: bigint; readonly extra: readonly string[] }
  | { readonly kind: 'compute_price'; readonly microLamports: bigint; readonly extra: readonly string[] }
  | { readonly kind: 'transfer_sol'; readonly from: string; readonly to: string; readonly atoms: bigint; readonly extra: readonly string[] }
  | {
    readonly kind: 'transfer_token'; readonly program: string; readonly from: string; readonly mint: string; readonly to: string;
    readonly owner: string; readonly atoms: bigint; readonly decimals: number; readonly extra: readonly string[];
  }
  | {
    readonly kind: 'create_account'; readonly payer: string; readonly account: string; readonly owner: string; readonly mint: string;
    readonly system: string; readonly program: string; readonly extra: readonly string[];
  }
  | { readonly kind: 'memo'; readonly text: string; readonly extra: readonly string[] };

/** Transaction is one that was taken apart. */
export interface Transaction {
  /** Its bytes, as they were given. */
  readonly wire: Uint8Array;
  /** What signatures are over. */
  readonly message: Uint8Array;
  /** By signer, in the order of their slots; null is an empty one. The first signer pays the fee. */
  readonly signatures: ReadonlyMap<string, Uint8Array | null>;
  readonly writable: readonly string[];
  /** Every account, signers and programs included, each once. */
  readonly accounts: readonly string[];
  readonly blockhash: string;
  readonly instructions: readonly Instruction[];
}

/**
 * decodeTransaction takes a v0 transaction apart. It throws VerificationError for
 * any other, for bytes that are not its one encoding, for address tables, and for
 * an instruction that no transaction of the desk has: there is no list of what is
 * bad, only one of what is known.
 */
export function decodeTransaction(wire: Uint8Array): Transaction {
  if (wire.length > maxTransaction) throw new VerificationError(`a transaction of ${wire.length} bytes`);
  try {
    return decode(wire);
  } catch (error) {
    if (error instanceof VerificationError) throw error;
    throw new VerificationError('the bytes are no transaction', { cause: error });
  }
}

function decode(wire: Uint8Array): Transaction {
  const transaction = getTransactionDecoder().decode(wire);
  const compiled = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
  if (compiled.version !== 0) throw new VerificationError(`a transaction of version ${compiled.version}`);
  // Kit lets bytes after the message pass, and some counts in a longer form: what
  // it would write otherwise is refused, so that what is shown is all there is.
  const messageBytes = getCompiledTransactionMessageEncoder().encode(compiled);
  if (!equal(getTransactionEncoder().encode({ ...transaction, messageBytes } as typeof transaction), wire)) {
    throw new VerificationError('the bytes are not the one encoding of the transaction');
  }
  if ((compiled.addressTableLookups ?? []).length > 0) throw new VerificationError('a transaction with address tables');
  const { header, staticAccounts: accounts } = compiled;
  const at = (index: number): string => {
    const account = accounts[index];
    if (account === undefined) throw new VerificationError(`an instruction names account ${index} of ${accounts.length}`);
    return account;
  };
  const signers = header.numSignerAccounts;
  const writable = accounts.filter((_, i) => i < signers
    ? i < signers - header.numReadonlySignerAccounts : i < accounts.length - header.numReadonlyNonSignerAccounts);
  const used = new Set([0, ...compiled.instructions.flatMap((i) => [i.programAddressIndex, ...(i.accountIndices ?? [])])]);
  if (new Set(accounts).size !== accounts.length) throw new VerificationError('an account that appears twice');
  if (used.size !== accounts.length) throw new VerificationError('an account that nothing uses');
  return {
    wire: new Uint8Array(wire), message: new Uint8Array(messageBytes), accounts, writable, blockhash: compiled.lifetimeToken,
    signatures: new Map(Object.entries(transaction.signatures).map(([key, s]) => [key, s && new Uint8Array(s)])),
    instructions: compiled.instructions.map((i) => describe(
      at(i.programAddressIndex), (i.accountIndices ?? []).map(at), new Uint8Array(i.data ?? []),
    )),
  };
}

// describe names an instruction and its parts.
function describe(program: string, accounts: readonly string[], data: Uint8Array): Instruction {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const is = (of: string, size: number, least: number): boolean => program === of && data.length === size && accounts.length >= least;
  const account = (i: number): string => accounts[i]!;
  if (is(computeBudgetProgram, 5, 0) && data[0] === 2) {
    return { kind: 'compute_limit', units: BigInt(view.getUint32(1, true)), extra: accounts };
  }
  if (is(computeBudgetProgram, 9, 0) && data[0] === 3) {
    return { kind: 'compute_price', microLamports: view.getBigUint64(1, true), extra: accounts };
  }
  if (is(systemProgram, 12, 2) && view.getUint32(0, true) === 2) {
    return { kind: 'transfer_sol', from: account(0), to: account(1), atoms: view.getBigUint64(4, true), extra: accounts.slice(2) };
  }
  if (tokenPrograms.some((p) => is(p, 10, 4)) && data[0] === 12) {
    return {
      kind: 'transfer_token', program, from: account(0), mint: account(1), to: account(2), owner: account(3),
      atoms: view.getBigUint64(1, true), decimals: data[9]!, extra: accounts.slice(4),
    };
  }
  if (is(associatedTokenProgram, 1, 6) && data[0] === 1) {
    return {
      kind: 'create_account', payer: account(0), account: account(1), owner: account(2), mint: account(3), system: account(4),
      program: account(5), extra: accounts.slice(6),
    };
  }
  if (program === memoProgram) return { kind: 'memo', text: new TextDecoder('utf-8', { fatal: true }).decode(data), extra: accounts };
  throw new VerificationError(`an instruction that is not expected: ${program}, ${accounts.length} accounts, ${hex(data)}`);
}

/** equal reports whether two runs of bytes are the same. */
export function equal(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** hex writes bytes in hexadecimal. */
export function hex(bytes: Uint8Array): string {
  return [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('');
}

/** fromBase64 reads base64 in its one form, with padding. It throws VerificationError. */
export function fromBase64(text: string): Uint8Array {
  const bytes = /^[A-Za-z0-9+/]*={0,2}$/.test(text) ? new Uint8Array(getBase64Encoder().encode(text)) : null;
  if (bytes === null || toBase64(bytes) !== text) throw new VerificationError('a text that is no base64');
  return bytes;
}

/** toBase64 writes base64 with padding. */
export function toBase64(bytes: Uint8Array): string {
  return getBase64Decoder().decode(bytes);
}

/** toBase58 writes addresses and signatures. */
export function toBase58(bytes: Uint8Array): string {
  return getBase58Decoder().decode(bytes);
}

/** asAddress types a text that is known to be an address. */
export const asAddress = (text: string): Address => text as Address;
