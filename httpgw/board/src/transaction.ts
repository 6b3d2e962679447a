// A v0 transaction taken apart, and held to the terms that were quoted. What is
// not expected is refused: there is no list of what is bad.
import { decode, encode } from './base58.ts';

const systemProgram = '11111111111111111111111111111111';
const tokenPrograms = ['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'];
const accountProgram = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL';
const memoProgram = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr';
const budgetProgram = 'ComputeBudget111111111111111111111111111111';

const keySize = 32;
const signatureSize = 64;
const largest = 1232; // bytes
const mostPriority = 1_000_000n; // lamports, 0.001 SOL
const solDecimals = 9;

/** A Doubt is why a transaction should not be signed. */
export class Doubt extends Error {}

function hold(what: string, holds: boolean): asserts holds {
  if (!holds) throw new Doubt(what);
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
    hold('the transaction is cut short', this.at + count <= this.bytes.length);
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
    hold('a count is too large', second < 128 && second > 0);
    return (first & 127) | (second << 7);
  }

  list<T>(read: () => T): T[] {
    return Array.from({ length: this.count() }, read);
  }
}

/** parse takes a transaction apart. It throws Doubt. */
export function parse(bytes: Uint8Array): Transaction {
  hold('the transaction is too large', bytes.length <= largest);
  const r = new Reader(bytes);
  const signatures = r.list(() => r.take(signatureSize));
  const from = r.at;
  hold('the transaction is of another version', r.byte() === 0x80);
  const required = r.byte();
  r.take(2); // how many of the keys are read-only: the chain holds the programs to that
  const keys = r.list(() => encode(r.take(keySize)));
  r.take(keySize); // blockhash
  const key = (index: number): string => {
    const found = keys[index];
    hold('an account is not in the transaction', found !== undefined);
    return found;
  };
  const instructions = r.list(() => ({ program: key(r.byte()), accounts: r.list(() => key(r.byte())), data: r.take(r.count()) }));
  hold('the transaction reads address tables', r.count() === 0);
  hold('something follows the transaction', r.at === bytes.length);
  hold('signatures and signers differ', signatures.length === required && required <= keys.length && new Set(keys).size === keys.length);
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

// onCurve reports whether 32 bytes are a point of ed25519: a derived address is none.
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
  throw new Doubt('no token account can be derived');
}

export interface Leg {
  mint: string | null; // null: SOL
  atoms: bigint;
  decimals: number; // of the mint, 9 of SOL
  to: string; // wallet
}

/** Terms are what the transaction must do, by the quote. */
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
  else throw new Doubt('a compute budget that is not expected');
}

// moved reads an instruction that moves money: SOL, or a token with its mint.
function moved(i: Instruction): { from: string; to: string; owner: string; mint: string | null; atoms: bigint; decimals: number } {
  const [a, b, c, d] = i.accounts;
  if (i.program === systemProgram) {
    hold('a system instruction that is not expected', i.data.length === 12 && view(i.data).getUint32(0, true) === 2 && a !== undefined && b !== undefined);
    return { from: a, to: b, owner: a, mint: null, atoms: view(i.data).getBigUint64(4, true), decimals: solDecimals };
  }
  hold('a token instruction that is not expected', i.data.length === 10 && i.data[0] === 12 && a !== undefined && b !== undefined && c !== undefined && d !== undefined);
  return { from: a, mint: b, to: c, owner: d, atoms: view(i.data).getBigUint64(1, true), decimals: i.data[9] ?? 0 };
}

/**
 * inspect holds a transaction to its terms: it moves the payment from the wallet
 * and the delivery to it, and nothing else. It throws Doubt. It returns who pays
 * the network's fee and, at most, what is paid for priority in lamports.
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
      hold('accounts are opened twice', rentPayer === null);
      hold('an account is opened that is not expected', i.data.length === 1 && i.data[0] === 1 && owner === terms.wallet && mint === terms.deliver.mint);
      rentPayer = payer ?? null;
    } else {
      hold(`an unknown program: ${i.program}`, i.program === systemProgram || tokenPrograms.includes(i.program));
      moving.push(i);
    }
  }
  const twice = 'the transaction does not pay once and deliver once';
  hold(twice, moving.length === 2);
  hold('the memo is not the claim', memos.length === 1 && memos[0] === terms.memo);
  const parties = [terms.desk, terms.wallet];
  hold('the signers are not the desk and the wallet', t.signers.length === 2 && parties.every((p) => t.signers.includes(p)));
  hold('the rent is paid by another', rentPayer === null || parties.includes(rentPayer));
  const priority = (seen.units * seen.price + 999_999n) / 1_000_000n;
  hold('the priority fee is too high', priority <= mostPriority);
  const legs = new Set<string>();
  for (const i of moving) legs.add(await legOf(i, terms));
  hold(twice, legs.size === 2);
  return { feePayer: t.signers[0] ?? '', rentPayer, priority };
}

async function legOf(i: Instruction, terms: Terms): Promise<'pay' | 'deliver'> {
  const m = moved(i);
  const [name, leg, owner] = m.owner === terms.wallet ? (['pay', terms.pay, terms.wallet] as const) : (['deliver', terms.deliver, terms.desk] as const);
  const place = async (wallet: string) => (leg.mint === null ? wallet : tokenAccount(wallet, leg.mint, i.program));
  hold(`the ${name} leg moves another amount`, m.atoms === leg.atoms && m.decimals === leg.decimals);
  hold(`the ${name} leg moves another token`, m.mint === leg.mint && m.owner === owner);
  hold(`the ${name} leg goes elsewhere`, m.from === (await place(owner)) && m.to === (await place(leg.to)));
  return name;
}
