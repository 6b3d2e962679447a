// What a wallet should know before it signs: the transaction is taken apart by
// @solana/kit, every instruction is named, and the whole is held to the terms
// that were quoted. Whatever is not expected is a Refusal: there is no list of
// what is bad.
import {
  decompileTransactionMessage, getAddressEncoder, getCompiledTransactionMessageDecoder, getCompiledTransactionMessageEncoder,
  getProgramDerivedAddress, getTransactionDecoder, getTransactionEncoder,
} from '@solana/kit';

export const systemProgram = '11111111111111111111111111111111';
export const tokenPrograms = ['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'];
const associatedTokenProgram = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL';
const memoProgram = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr';
const computeBudgetProgram = 'ComputeBudget111111111111111111111111111111';

const maxUnits = 1_400_000n;
const maxPriorityLamports = 1_000_000n; // 0.001 SOL
const lamportsPerSignature = 5_000n;
const maxTransaction = 1_232; // bytes

/** A Refusal says why a wallet does not sign. */
export class Refusal extends Error {}

/** tokenAccount derives the associated token account of a wallet. */
export async function tokenAccount(wallet, mint, program) {
  const encode = getAddressEncoder().encode;
  const [account] = await getProgramDerivedAddress({
    programAddress: associatedTokenProgram, seeds: [encode(wallet), encode(program), encode(mint)],
  });
  return account;
}

// describe names an instruction and its parts, or refuses it.
function describe(instruction) {
  const { programAddress: program, data: bytes = new Uint8Array() } = instruction;
  const data = Buffer.from(bytes);
  const accounts = (instruction.accounts ?? []).map((a) => a.address);
  const unknown = () => new Refusal(`an instruction that is not expected: ${program} ${data.toString('hex')}`);
  const exactly = (size, least) => {
    if (data.length !== size || accounts.length < least) throw unknown();
  };
  switch (program) {
    case computeBudgetProgram:
      if (data[0] === 2) {
        exactly(5, 0);
        return { kind: 'compute_limit', units: BigInt(data.readUInt32LE(1)), extra: accounts };
      }
      if (data[0] === 3) {
        exactly(9, 0);
        return { kind: 'compute_price', micro_lamports: data.readBigUInt64LE(1), extra: accounts };
      }
      throw unknown();
    case systemProgram: {
      exactly(12, 2);
      if (data.readUInt32LE(0) !== 2) throw unknown();
      const [from, to, ...extra] = accounts;
      return { kind: 'transfer_sol', from, to, amount: data.readBigUInt64LE(4), extra };
    }
    case tokenPrograms[0]:
    case tokenPrograms[1]: {
      exactly(10, 4);
      if (data[0] !== 12) throw unknown();
      const [from, mint, to, owner, ...extra] = accounts;
      return { kind: 'transfer_token', program, from, mint, to, owner, amount: data.readBigUInt64LE(1), decimals: data[9], extra };
    }
    case associatedTokenProgram: {
      exactly(1, 6);
      if (data[0] !== 1) throw unknown();
      const [payer, account, owner, mint, system, tokens, ...extra] = accounts;
      return { kind: 'create_account', payer, account, owner, mint, system, program: tokens, extra };
    }
    case memoProgram:
      return { kind: 'memo', text: data.toString('utf8'), extra: accounts };
    default:
      throw unknown();
  }
}

const text = (value) => JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? v.toString() : v));

/** same refuses what is not what was expected. */
export function same(what, got, want) {
  if (text(got) !== text(want)) throw new Refusal(`${what}: ${text(got)}, expected ${text(want)}`);
}

// pay is the instruction that pays a leg.
async function pay(leg, from, reference) {
  const extra = reference ? [reference] : [];
  if (leg.mint === null) return { kind: 'transfer_sol', from, to: leg.to, amount: leg.atoms, extra };
  return {
    kind: 'transfer_token', program: leg.program, from: await tokenAccount(from, leg.mint, leg.program), mint: leg.mint,
    to: await tokenAccount(leg.to, leg.mint, leg.program), owner: from, amount: leg.atoms, decimals: leg.decimals, extra,
  };
}

async function create(leg, payer) {
  return {
    kind: 'create_account', payer, account: await tokenAccount(leg.to, leg.mint, leg.program), owner: leg.to, mint: leg.mint,
    system: systemProgram, program: leg.program, extra: [],
  };
}

// expected are the instructions after the two of the compute budget.
async function expected(terms, rentPayer) {
  const list = [];
  if (terms.pay) list.push(await pay(terms.pay, terms.wallet, terms.reference));
  if (terms.deliver) {
    list.push(await create(terms.deliver, rentPayer), await pay(terms.deliver, terms.desk, terms.deliver.reference));
  }
  const memo = { kind: 'memo', text: terms.memo, extra: [] };
  // Right before a payment that is alone, as Solana Pay has it; otherwise last.
  if (terms.pay && !terms.deliver) list.unshift(memo);
  else list.push(memo);
  return list;
}

// budget checks the first two instructions and returns what they cost at most.
function budget(shown) {
  const [limit, price] = shown;
  same('the first instruction', limit?.kind, 'compute_limit');
  same('the second instruction', price?.kind, 'compute_price');
  same('accounts of the compute budget', [...limit.extra, ...price.extra], []);
  const priority = (limit.units * price.micro_lamports + 999_999n) / 1_000_000n;
  if (limit.units < 1n || limit.units > maxUnits || priority > maxPriorityLamports) {
    throw new Refusal(`compute budget: ${limit.units} units, ${priority} lamports`);
  }
  return priority;
}

// decode takes a transaction apart. Kit lets what follows a message pass, and a
// last count that is missing: bytes that it would write otherwise are refused, so
// that what is shown is all that there is.
function decode(raw) {
  if (raw.length > maxTransaction) throw new Refusal(`${raw.length} bytes`);
  const transaction = getTransactionDecoder().decode(raw);
  const compiled = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
  same('version', compiled.version, 0);
  const messageBytes = getCompiledTransactionMessageEncoder().encode(compiled);
  if (!Buffer.from(getTransactionEncoder().encode({ ...transaction, messageBytes })).equals(Buffer.from(raw))) {
    throw new Refusal('the bytes are not the one encoding of the transaction');
  }
  same('address tables', compiled.addressTableLookups ?? [], []);
  return { transaction, compiled, message: decompileTransactionMessage(compiled) };
}

// roles holds the accounts' rights to what the instructions need: a key that is
// writable, or signs, for no reason of theirs is refused.
function roles(compiled, shown, feePayer) {
  const signers = new Set([feePayer]);
  const writable = new Set([feePayer]);
  for (const i of shown) {
    if (i.kind === 'transfer_sol') {
      signers.add(i.from);
      writable.add(i.from).add(i.to);
    }
    if (i.kind === 'transfer_token') {
      signers.add(i.owner);
      writable.add(i.from).add(i.to);
    }
    if (i.kind === 'create_account') {
      signers.add(i.payer);
      writable.add(i.payer).add(i.account);
    }
  }
  const { header, staticAccounts: keys } = compiled;
  const firstWritable = header.numSignerAccounts;
  const lastWritable = keys.length - header.numReadonlyNonSignerAccounts;
  const got = { signers: keys.slice(0, firstWritable), writable: [] };
  for (const [i, key] of keys.entries()) {
    if (i < firstWritable ? i < firstWritable - header.numReadonlySignerAccounts : i < lastWritable) got.writable.push(key);
  }
  same('signers', [...got.signers].sort(), [...signers].sort());
  same('writable accounts', [...got.writable].sort(), [...writable].sort());
  same('fee payer', keys[0], feePayer);
  same('keys that appear twice', keys.length, new Set(keys).size);
  const used = new Set([...compiled.instructions.flatMap((i) => [i.programAddressIndex, ...(i.accountIndices ?? [])]), 0]);
  same('keys that nothing uses', keys.length, used.size);
  return got.signers;
}

/**
 * inspect holds a transaction to its terms:
 *
 *   wallet     who pays and receives
 *   desk       who delivers; null where the payment is alone
 *   feePayer   address
 *   pay        {mint|null, program, decimals, atoms, to} or null for a delivery
 *   deliver    {mint, program, decimals, atoms, to} or null for a payment
 *   rentPayers addresses that may pay for the account that receives
 *   memo, reference (null = none), blockhash (null = any)
 *   signed     whether every signature must be there, else none may
 *
 * It returns what it has seen. Amounts are BigInt, in atoms.
 */
export async function inspect(raw, terms) {
  const { transaction, compiled, message } = decode(raw);
  const shown = message.instructions.map(describe);
  const priority = budget(shown);
  const created = shown.find((i) => i.kind === 'create_account');
  const rentPayer = created?.payer ?? null;
  if (rentPayer !== null && !terms.rentPayers.includes(rentPayer)) throw new Refusal(`the rent is paid by ${rentPayer}`);
  const plan = await expected(terms, rentPayer);
  same('instructions', shown.slice(2).map((i) => i.kind), plan.map((i) => i.kind));
  for (const [i, want] of plan.entries()) same(`instruction ${i + 2}`, shown[i + 2], want);
  const signers = roles(compiled, shown, terms.feePayer);
  if (terms.blockhash !== null) same('blockhash', message.lifetimeConstraint.blockhash, terms.blockhash);
  same('signers that the bytes name', Object.keys(transaction.signatures), signers);
  for (const [key, signature] of Object.entries(transaction.signatures)) {
    if ((signature !== null) !== terms.signed) throw new Refusal(`the signature of ${key} is ${signature === null ? 'not ' : ''}there`);
  }
  return {
    transaction, shown, signers, rentPayer, blockhash: message.lifetimeConstraint.blockhash,
    fee: lamportsPerSignature * BigInt(signers.length) + priority,
  };
}

