// Methods that read accounts. All levels of commitment see the newest state, but
// for the clock, by which a reader knows what slot an answer is as of.

import * as base58 from '../base58.mjs';
import { invalidParams } from '../errors.mjs';
import { toNumber } from '../chain.mjs';
import { CLOCK, isToken, TOKEN, TOKEN_2022 } from '../programs.mjs';
import { decimalsOf, readAccount, readMint, uiAmount } from '../tokens.mjs';
import { encodeAccount, formOf } from './encode.mjs';
import * as p from './params.mjs';

const MAX_ACCOUNTS = 100;
const MAX_FILTERS = 4;
const MAX_FILTER_BYTES = 128;

function getAccountInfo(node, params) {
  const key = p.pubkey(params[0]);
  const config = p.options(params[1]);
  const form = formOf(config);
  const context = p.context(node, config);
  const account = accountAt(node, key, context.slot);
  return { context, value: account === null ? null : encodeAccount(node, account, form) };
}

/** What an account holds in an answer as of a slot that has a block. */
function accountAt(node, key, slot) {
  const account = node.chain.accounts.get(key);
  if (account === null || slot === node.chain.slots.slot || base58.encodeKey(key) !== CLOCK) return account;
  const data = Buffer.from(account.data);
  data.writeBigUInt64LE(BigInt(slot));
  data.writeBigInt64LE(BigInt(node.chain.slots.times.get(slot)), 32);
  return { ...account, data };
}

function getMultipleAccounts(node, params) {
  const keys = p.list(params[0]);
  if (keys.length > MAX_ACCOUNTS) throw invalidParams(`Too many inputs provided; max ${MAX_ACCOUNTS}`);
  const config = p.options(params[1]);
  const form = formOf(config, 'base64');
  const context = p.context(node, config);
  const value = keys.map(p.pubkey).map((key) => accountAt(node, key, context.slot))
    .map((account) => (account === null ? null : encodeAccount(node, account, form)));
  return { context, value };
}

function getBalance(node, params) {
  const key = p.pubkey(params[0]);
  return { context: p.context(node, p.options(params[1])), value: toNumber(node.chain.accounts.balance(key)) };
}

function getProgramAccounts(node, params) {
  const program = p.pubkey(params[0]);
  const config = p.options(params[1]);
  const form = formOf(config);
  const filters = p.list(config.filters ?? []);
  if (filters.length > MAX_FILTERS) throw invalidParams(`Too many filters provided; max ${MAX_FILTERS}`);
  const tests = filters.map(filterOf);
  const found = node.chain.accounts.ofProgram(program)
    .filter(({ account }) => tests.every((test) => test(account)))
    .map(({ key, account }) => ({ pubkey: base58.encodeKey(key), account: encodeAccount(node, account, form) }));
  const context = p.context(node, config);
  return p.flag(config.withContext) ? { context, value: found } : found;
}

/** @returns {(account: import('../accounts.mjs').Account) => boolean} */
function filterOf(filter) {
  if (filter === 'tokenAccountState') return (account) => readAccount(account.owner, account.data) !== null;
  const known = p.options(filter);
  if (known.dataSize !== undefined) {
    const size = p.whole(known.dataSize);
    return (account) => account.data.length === size;
  }
  if (known.memcmp === undefined) throw invalidParams('Invalid params: unknown filter');
  const { offset, bytes, encoding } = p.options(known.memcmp);
  const at = p.whole(offset);
  const want = filterBytes(bytes, encoding ?? 'base58');
  if (want.length > MAX_FILTER_BYTES) throw invalidParams('Invalid param: encoded binary data should be less than 129 bytes');
  return (account) => at + want.length <= account.data.length && want.equals(account.data.subarray(at, at + want.length));
}

function filterBytes(bytes, encoding) {
  if (Array.isArray(bytes)) return Buffer.from(bytes.map((byte) => p.whole(byte, 255)));
  const text = p.string(bytes);
  if (encoding === 'base64') return p.base64(text);
  const decoded = text.length > 2 * MAX_FILTER_BYTES ? null : base58.decode(text);
  if (decoded === null || !['base58', 'binary'].includes(encoding)) throw invalidParams('Invalid param: bad memcmp bytes');
  return Buffer.from(decoded);
}

function getTokenAccountBalance(node, params) {
  const key = p.pubkey(params[0]);
  const context = p.context(node, p.options(params[1]));
  const account = node.chain.accounts.get(key);
  if (account === null) throw invalidParams('Invalid param: could not find account');
  const token = readAccount(account.owner, account.data);
  if (token === null) throw invalidParams('Invalid param: not a Token account');
  const decimals = decimalsOf(node.chain.accounts, token.mint);
  if (decimals === null) throw invalidParams('Invalid param: could not find mint');
  return { context, value: uiAmount(token.amount, decimals) };
}

function getTokenSupply(node, params) {
  const key = p.pubkey(params[0]);
  const context = p.context(node, p.options(params[1]));
  const account = node.chain.accounts.get(key);
  if (account === null) throw invalidParams('Invalid param: could not find account');
  const mint = readMint(account.owner, account.data);
  if (mint === null) throw invalidParams('Invalid param: not a Token mint');
  return { context, value: uiAmount(mint.supply, mint.decimals) };
}

function getTokenAccountsByOwner(node, params) {
  const owner = base58.encodeKey(p.pubkey(params[0]));
  const wanted = tokenFilter(node, p.options(params[1]));
  const config = p.options(params[2]);
  const form = formOf(config);
  const value = node.chain.accounts.ofProgram(base58.decode(wanted.program))
    .filter(({ account }) => {
      const token = readAccount(account.owner, account.data);
      return token !== null && token.owner === owner && (wanted.mint === null || token.mint === wanted.mint);
    })
    .map(({ key, account }) => ({ pubkey: base58.encodeKey(key), account: encodeAccount(node, account, form) }));
  return { context: p.context(node, config), value };
}

function tokenFilter(node, filter) {
  if (filter.mint !== undefined) {
    const key = p.pubkey(filter.mint);
    const account = node.chain.accounts.get(key);
    if (account === null || !isToken(account.owner)) throw invalidParams('Invalid param: could not find mint');
    return { mint: base58.encodeKey(key), program: account.owner };
  }
  const program = base58.encodeKey(p.pubkey(filter.programId));
  if (program !== TOKEN && program !== TOKEN_2022) throw invalidParams('Invalid param: unrecognized Token program id');
  return { mint: null, program };
}

export const methods = {
  getAccountInfo,
  getMultipleAccounts,
  getBalance,
  getProgramAccounts,
  getTokenAccountBalance,
  getTokenSupply,
  getTokenAccountsByOwner,
};
