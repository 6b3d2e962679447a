import { getAddressEncoder, getProgramDerivedAddress, isAddress } from '@solana/kit';
import { VerificationError } from '../errors.js';
import { asAddress, associatedTokenProgram, systemProgram, type Instruction, type Transaction } from './transaction.js';

const maxUnits = 400_000n;
const maxPriorityLamports = 1_000_000n; // 0.001 SOL
const lamportsPerSignature = 5_000n;

/** Leg is what one side gives. */
export interface Leg {
  /** null: SOL. */
  readonly mint: string | null;
  /** Of the mint; 9 of SOL. */
  readonly decimals: number;
  /** Lamports of SOL. */
  readonly atoms: bigint;
  /** The wallet that gets it. */
  readonly to: string;
}

/** Terms are what a transaction must be, to be signed. */
export interface Terms {
  /** Who pays, receives and signs. */
  readonly taker: string;
  readonly pay: Leg;
  /** What comes for it in the same transaction, and from whom; null where the payment is alone. */
  readonly receive: (Leg & { readonly from: string }) | null;
  /** Who pays the network. */
  readonly feePayer: string;
  /** The claim's id, as a text and as an account. */
  readonly memo: string;
  readonly reference: string;
}

/** Cost is what a transaction takes beyond its legs. */
export interface Cost {
  /** Of the network, at most; who pays it is Terms.feePayer. */
  readonly feeLamports: bigint;
  /** Whose SOL the taker's new token account takes, if that is not there yet; null where none is made. */
  readonly rentPayer: string | null;
}

/** tokenAccount derives the associated token account of a wallet. */
export async function tokenAccount(wallet: string, mint: string, program: string): Promise<string> {
  const { encode } = getAddressEncoder();
  const [account] = await getProgramDerivedAddress({
    programAddress: asAddress(associatedTokenProgram), seeds: [wallet, program, mint].map((a) => encode(asAddress(a))),
  });
  return account;
}

/**
 * verify holds a transaction to its terms: every instruction in its order, every
 * amount and account, who signs, and which accounts may change. It needs no node.
 * Whatever is more, less or otherwise throws VerificationError.
 */
export async function verify(t: Transaction, terms: Terms): Promise<Cost> {
  checkAddresses(terms);
  const rest = [...t.instructions];
  const priority = budget(rest.shift(), rest.shift());
  // A payment alone has the memo right before it, as Solana Pay has it; services of 0.1.0 put it last.
  if (terms.receive === null && rest.length > 1 && rest.at(-2)?.kind === 'memo') rest.push(...rest.splice(-2, 1));
  await pays(rest, terms);
  const rentPayer = terms.receive ? await receives(rest, terms, terms.receive) : null;
  same('the memo', rest.shift(), { kind: 'memo', text: terms.memo, extra: [] });
  if (rest.length > 0) throw new VerificationError(`an instruction that is not expected: ${text(rest[0])}`);
  const signers = rights(t, terms.feePayer);
  if (!signers.includes(terms.taker)) throw new VerificationError(`${terms.taker} is not to sign`);
  for (const [signer, signature] of t.signatures) {
    if (signature !== null) throw new VerificationError(`${signer} has signed already`);
  }
  return { feeLamports: lamportsPerSignature * BigInt(signers.length) + priority, rentPayer };
}

function checkAddresses({ taker, pay, receive, feePayer, reference }: Terms): void {
  const all = [taker, feePayer, reference, pay.to, pay.mint, ...(receive ? [receive.from, receive.to, receive.mint] : [])];
  for (const a of all) {
    if (a !== null && !isAddress(a)) throw new VerificationError(`${JSON.stringify(a)} is no address`);
  }
  if (receive && receive.to !== taker) throw new VerificationError(`the delivery goes to ${receive.to}`);
}

// budget checks the two instructions that bound computing, and returns what the
// price adds to the fee at most, in lamports.
function budget(limit: Instruction | undefined, price: Instruction | undefined): bigint {
  if (limit?.kind !== 'compute_limit' || price?.kind !== 'compute_price') {
    throw new VerificationError(`a compute limit and a price were expected: ${text([limit, price])}`);
  }
  same('accounts of the compute budget', [...limit.extra, ...price.extra], []);
  const priority = (limit.units * price.microLamports + 999_999n) / 1_000_000n;
  if (limit.units < 1n || limit.units > maxUnits || priority > maxPriorityLamports) {
    throw new VerificationError(`${limit.units} compute units, and ${priority} lamports for them`);
  }
  return priority;
}

// pays takes the payment from the front of the instructions, and the account of
// whom it goes to, where the taker has to make that.
async function pays(rest: Instruction[], { taker, pay, reference }: Terms): Promise<void> {
  if (pay.mint === null) {
    return same('the payment', rest.shift(), { kind: 'transfer_sol', from: taker, to: pay.to, atoms: pay.atoms, extra: [reference] });
  }
  const program = programOf(rest.find((i) => i.kind === 'transfer_token'));
  if (rest[0]?.kind === 'create_account') same('the account that is paid', rest.shift(), await creation(taker, pay.to, pay.mint, program));
  same('the payment', rest.shift(), await transfer(taker, { ...pay, mint: pay.mint }, program, [reference]));
}

// receives takes the delivery, and returns who pays for the taker's account.
async function receives(rest: Instruction[], terms: Terms, leg: Leg & { from: string }): Promise<string> {
  if (leg.mint === null) throw new VerificationError('a delivery of SOL');
  const create = rest.shift();
  const program = programOf(rest[0]);
  const payer = create?.kind === 'create_account' ? create.payer : null;
  if (payer !== terms.taker && payer !== leg.from) throw new VerificationError(`the account that receives: ${text(create)}`);
  same('the account that receives', create, await creation(payer, leg.to, leg.mint, program));
  same('the delivery', rest.shift(), await transfer(leg.from, { ...leg, mint: leg.mint }, program, []));
  return payer;
}

// programOf takes the token program that the transfer itself names: with a wrong
// one the accounts are others, and the chain refuses the mint.
function programOf(i: Instruction | undefined): string {
  if (i?.kind !== 'transfer_token') throw new VerificationError(`a transfer was expected: ${text(i)}`);
  return i.program;
}

async function transfer(owner: string, leg: Leg & { mint: string }, program: string, extra: readonly string[]): Promise<Instruction> {
  const { mint, atoms, decimals } = leg;
  const [from, to] = [await tokenAccount(owner, mint, program), await tokenAccount(leg.to, mint, program)];
  return { kind: 'transfer_token', program, from, mint, to, owner, atoms, decimals, extra };
}

async function creation(payer: string, owner: string, mint: string, program: string): Promise<Instruction> {
  const account = await tokenAccount(owner, mint, program);
  return { kind: 'create_account', payer, account, owner, mint, system: systemProgram, program, extra: [] };
}

// rights holds what accounts may do to what the instructions need, and returns
// who signs. A key that signs or may be written to for no reason is refused.
function rights(t: Transaction, feePayer: string): string[] {
  const [signers, writable] = [new Set([feePayer]), new Set([feePayer])];
  for (const i of t.instructions) {
    if (i.kind === 'transfer_sol') {
      signers.add(i.from);
      writable.add(i.from).add(i.to);
    } else if (i.kind === 'transfer_token') {
      signers.add(i.owner);
      writable.add(i.from).add(i.to);
    } else if (i.kind === 'create_account') {
      signers.add(i.payer);
      writable.add(i.payer).add(i.account);
    }
  }
  same('who pays the fee', t.accounts[0], feePayer);
  same('the signers', [...t.signatures.keys()].sort(), [...signers].sort());
  same('the accounts that may change', [...t.writable].sort(), [...writable].sort());
  return [...signers];
}

// text writes a value for a person, members in the order of their names.
const text = (value: unknown): string => JSON.stringify(value, (_, v: unknown) => {
  if (typeof v === 'bigint') return v.toString();
  if (typeof v !== 'object' || v === null || Array.isArray(v)) return v;
  return Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)));
}) ?? 'nothing';

/** same throws VerificationError where a value is not the one that was expected. */
export function same(what: string, got: unknown, want: unknown): void {
  if (text(got) !== text(want)) throw new VerificationError(`${what}: ${text(got)}, expected ${text(want)}`);
}
