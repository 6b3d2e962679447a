// Token accounts and mints of both token programs, read from their bytes.

import * as base58 from './base58.mjs';
import { isToken, NATIVE_MINT } from './programs.mjs';

const ACCOUNT_SIZE = 165;
const MINT_SIZE = 82;
const MULTISIG_SIZE = 355;
const MINT_TYPE = 1; // Token-2022 marks extended accounts with a type byte
const ACCOUNT_TYPE = 2;
const STATES = ['uninitialized', 'initialized', 'frozen'];

/** @typedef {{mint: string, owner: string, amount: bigint, state: string, delegate: string | null, delegated: bigint, native: bigint | null, close: string | null}} TokenAccount */

/**
 * @param {string} program the account's owner
 * @param {Buffer} data
 * @returns {TokenAccount | null} null: not an initialized token account
 */
export function readAccount(program, data) {
  if (!isToken(program) || !hasKind(data, ACCOUNT_SIZE, ACCOUNT_TYPE)) return null;
  const state = STATES[data[108]];
  if (state === undefined || state === 'uninitialized') return null;
  return {
    mint: base58.encodeKey(data.subarray(0, 32)),
    owner: base58.encodeKey(data.subarray(32, 64)),
    amount: data.readBigUInt64LE(64),
    delegate: data.readUInt32LE(72) === 0 ? null : base58.encodeKey(data.subarray(76, 108)),
    state,
    native: data.readUInt32LE(109) === 0 ? null : data.readBigUInt64LE(113),
    delegated: data.readBigUInt64LE(121),
    close: data.readUInt32LE(129) === 0 ? null : base58.encodeKey(data.subarray(133, 165)),
  };
}

/**
 * @param {string} program
 * @param {Buffer} data
 * @returns {{authority: string | null, supply: bigint, decimals: number, freeze: string | null} | null}
 */
export function readMint(program, data) {
  if (!isToken(program) || !hasKind(data, MINT_SIZE, MINT_TYPE) || data[45] !== 1) return null;
  return {
    authority: data.readUInt32LE(0) === 0 ? null : base58.encodeKey(data.subarray(4, 36)),
    supply: data.readBigUInt64LE(36),
    decimals: data[44],
    freeze: data.readUInt32LE(46) === 0 ? null : base58.encodeKey(data.subarray(50, 82)),
  };
}

function hasKind(data, size, kind) {
  if (data.length === size) return true;
  return data.length > ACCOUNT_SIZE && data.length !== MULTISIG_SIZE && data[ACCOUNT_SIZE] === kind;
}

/**
 * An amount as nodes print it.
 * @param {bigint} amount atoms
 * @param {number} decimals
 */
export function uiAmount(amount, decimals) {
  const digits = amount.toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const part = digits.slice(digits.length - decimals).replace(/0+$/, '');
  const text = part === '' ? whole : `${whole}.${part}`;
  return { uiAmount: Number(text), decimals, amount: amount.toString(), uiAmountString: text };
}

/**
 * An amount as getTransaction prints it: there, none is null.
 * @param {bigint} amount
 * @param {number} decimals
 */
export function uiBalance(amount, decimals) {
  const ui = uiAmount(amount, decimals);
  return amount === 0n ? { ...ui, uiAmount: null } : ui;
}

/**
 * A mint's decimals, remembered until the slot ends.
 * @param {import('./accounts.mjs').Accounts} accounts
 * @param {string} mint
 * @returns {number | null} null: no such mint
 */
export function decimalsOf(accounts, mint) {
  if (mint === NATIVE_MINT) return 9;
  const known = accounts.decimals.get(mint);
  if (known !== undefined) return known;
  const account = accounts.get(base58.decode(mint));
  const found = account === null ? null : readMint(account.owner, account.data);
  if (found === null) return null;
  accounts.decimals.set(mint, found.decimals);
  return found.decimals;
}
