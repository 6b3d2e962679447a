// Parses a v0 transaction and verifies it against the quoted terms. Everything that is
// not expected is refused: an allow list, not a deny list.
import { decode, encode } from './base58.ts';

const systemProgram = '11111111111111111111111111111111';
const tokenPrograms = ['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'];
const accountProgram = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL';
const memoProgram = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr';
const budgetProgram = 'ComputeBudget111111111111111111111111111111';

const keySize = 32;
const signatureSize = 64;
const maxTransaction = 1232; // bytes
const maxPriority = 1_000_000n; // lamports, 0.001 SOL
const solDecimals = 9;

/** VerificationError is the reason why a transaction must not be signed. */
export class VerificationError extends Error {}

function verify(what: string, holds: boolean): asserts holds {
  if (!holds) throw new VerificationError(what);
}

interface Instruction {
  program: string;
  accounts: string[];
  data: Uint8Array;
}

export interface Transaction {
  signatures: Uint8Array[];
  keys: string[];
  signers: string[];
  instructions: Instruction[];
  /** The bytes that are signed. */
  message: Uint8Array;
}

class Reader {
  at = 0;
  constructor(readonly bytes: Uint8Array) {}

  take(count: number): Uint8Array {
    verify('the transaction is cut short', this.at + count <= this.bytes.length);
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  byte(): number {
    return this.take(1)[0] ?? 0;
  }

  count(): number {
    const first = this.byte();
    if (first < 128) return first;
    const second = this.byte();
    verify('a count is too large', second < 128 && second > 0);
    return (first & 127) | (second << 7);
  }

  list<T>(read: () => T): T[] {
    return Array.from({ length: this.count() }, read);
  }
}

/** parse parses a transaction. It throws VerificationError. */
export function parse(bytes: Uint8Array): Transaction {
  verify('the transaction is too large', bytes.length <= maxTransaction);
  const r = new Reader(bytes);
  const signatures = r.list(() => r.take(signatureSize));
  const from = r.at;
  verify('the transaction is of another version', r.byte() === 0x80);
  const required = r.byte();
  r.take(2); // numbers of read-only keys, which the chain enforces
  const keys = r.list(() => encode(r.take(keySize)));
  r.take(keySize); // blockhash
  const key = (index: number): string => {
    const found = keys[index];
    verify('an account is not in the transaction', found !== undefined);
    return found;
  };
  const instructions = r.list(() => ({ program: key(r.byte()), accounts: r.list(() => key(r.byte())), data: r.take(r.count()) }));
  verify('the transaction reads address tables', r.count() === 0);
  verify('trailing bytes after the transaction', r.at === bytes.length);
  verify('signatures and signers differ', signatures.length === required && required <= keys.length && new Set(keys).size === keys.length);
  return { signatures, keys, signers: keys.slice(0, required), instructions, message: bytes.subarray(from) };
}

const prime = 2n ** 255n - 19n;
const curve = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let b = base % prime, e = exponent; e > 0n; e >>= 1n) {
    if (e & 1n) result = (result * b) % prime;
    b = (b * b) % prime;
  }
  return result;
}

// onCurve reports whether 32 bytes are a point of ed25519. A derived address is not.
function onCurve(bytes: Uint8Array): boolean {
  let y = 0n;
  for (let i = keySize - 1; i >= 0; i--) y = y * 256n + BigInt((bytes[i] ?? 0) & (i === keySize - 1 ? 127 : 255));
  const square = (y * y) % prime;
  const x = ((square + prime - 1n) * power(curve * square + 1n, prime - 2n)) % prime; // x²
  return x === 0n || power(x, (prime - 1n) / 2n) === 1n;
}

/** tokenAccount derives the associated token account of a wallet. */
export async function tokenAccount(wallet: string, mint: string, program: string): Promise<string> {
  const key = (text: string) => decode(text, keySize);
  const marker = new TextEncoder().encode('ProgramDerivedAddress');
  for (let bump = 255; bump >= 0; bump--) {
    const seed = new Uint8Array([...key(wallet), ...key(program), ...key(mint), bump, ...key(accountProgram), ...marker]);
    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', seed));
    if (!onCurve(hash)) return encode(hash);
  }
  throw new VerificationError('no token account can be derived');
}

export interface Leg {
  mint: string | null; // null: SOL
  atoms: bigint;
  decimals: number; // of the mint, 9 of SOL
  to: string; // wallet
}

/** Terms are the effects of the transaction according to the quote. */
export interface Terms {
  wallet: string;
  desk: string;
  pay: Leg;
  deliver: Leg;
  memo: string;
}

const view = (data: Uint8Array): DataView => new DataView(data.buffer, data.byteOffset, data.byteLength);

function budget(i: Instruction, seen: { units: bigint; price: bigint }): void {
  if (i.data[0] === 2 && i.data.length === 5) seen.units = BigInt(view(i.data).getUint32(1, true));
  else if (i.data[0] === 3 && i.data.length === 9) seen.price = view(i.data).getBigUint64(1, true);
  else throw new VerificationError('unexpected compute budget instruction');
}

// transferOf parses a transfer of SOL or of a token.
function transferOf(i: Instruction): { from: string; to: string; owner: string; mint: string | null; atoms: bigint; decimals: number } {
  const [a, b, c, d] = i.accounts;
  if (i.program === systemProgram) {
    verify('unexpected system instruction', i.data.length === 12 && view(i.data).getUint32(0, true) === 2 && a !== undefined && b !== undefined);
    return { from: a, to: b, owner: a, mint: null, atoms: view(i.data).getBigUint64(4, true), decimals: solDecimals };
  }
  verify('unexpected token instruction', i.data.length === 10 && i.data[0] === 12 && a !== undefined && b !== undefined && c !== undefined && d !== undefined);
  return { from: a, mint: b, to: c, owner: d, atoms: view(i.data).getBigUint64(1, true), decimals: i.data[9] ?? 0 };
}

/**
 * inspect verifies that a transaction transfers the payment from the wallet and the
 * delivery to it, and nothing else. It throws VerificationError. It returns the payers of
 * the network fee and of the account rent, and the maximum priority fee in lamports.
 */
export async function inspect(t: Transaction, terms: Terms): Promise<{ feePayer: string; rentPayer: string | null; priority: bigint }> {
  const seen = { units: 200_000n, price: 0n };
  const memos: string[] = [];
  let rentPayer: string | null = null;
  const moving: Instruction[] = [];
  for (const i of t.instructions) {
    if (i.program === budgetProgram) budget(i, seen);
    else if (i.program === memoProgram) memos.push(new TextDecoder().decode(i.data));
    else if (i.program === accountProgram) {
      const [payer, , owner, mint] = i.accounts;
      verify('more than one account is created', rentPayer === null);
      verify('an unexpected account is created', i.data.length === 1 && i.data[0] === 1 && owner === terms.wallet && mint === terms.deliver.mint);
      rentPayer = payer ?? null;
    } else {
      verify(`an unknown program: ${i.program}`, i.program === systemProgram || tokenPrograms.includes(i.program));
      moving.push(i);
    }
  }
  const twice = 'the transaction does not pay once and deliver once';
  verify(twice, moving.length === 2);
  verify('the memo does not name the claim', memos.length === 1 && memos[0] === terms.memo);
  const parties = [terms.desk, terms.wallet];
  verify('the signers are not the desk and the wallet', t.signers.length === 2 && parties.every((p) => t.signers.includes(p)));
  verify('another party pays the rent', rentPayer === null || parties.includes(rentPayer));
  const priority = (seen.units * seen.price + 999_999n) / 1_000_000n;
  verify('the priority fee is too high', priority <= maxPriority);
  const legs = new Set<string>();
  for (const i of moving) legs.add(await checkTransfer(i, terms));
  verify(twice, legs.size === 2);
  return { feePayer: t.signers[0] ?? '', rentPayer, priority };
}

async function checkTransfer(i: Instruction, terms: Terms): Promise<'pay' | 'deliver'> {
  const m = transferOf(i);
  const [name, leg, owner] = m.owner === terms.wallet ? (['pay', terms.pay, terms.wallet] as const) : (['deliver', terms.deliver, terms.desk] as const);
  const place = async (wallet: string) => (leg.mint === null ? wallet : tokenAccount(wallet, leg.mint, i.program));
  verify(`the ${name} leg moves another amount`, m.atoms === leg.atoms && m.decimals === leg.decimals);
  verify(`the ${name} leg moves another token`, m.mint === leg.mint && m.owner === owner);
  verify(`the ${name} leg goes otherShards`, m.from === (await place(owner)) && m.to === (await place(leg.to)));
  return name;
}
