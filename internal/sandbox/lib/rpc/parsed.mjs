// jsonParsed: instructions of the system, token, associated token and memo
// programs by name; any other keeps its accounts and data.

import * as base58 from '../base58.mjs';
import { ATA, isToken, MEMO, MEMO_V1, SYSTEM, TOKEN } from '../programs.mjs';
import { uiAmount } from '../tokens.mjs';
import { isWritable } from '../wire.mjs';

const AUTHORITIES = ['mintTokens', 'freezeAccount', 'accountOwner', 'closeAccount'];

/**
 * The keys of a transaction with what each may do.
 * @param {import('../wire.mjs').Transaction} tx
 * @param {{writable: string[], readonly: string[]}} loaded
 */
export function parsedKeys(tx, loaded) {
  const programs = new Set(tx.instructions.map((i) => i.program));
  const fixed = tx.keys.map((key, i) => ({
    pubkey: base58.encodeKey(key), writable: isWritable(tx, i) && !programs.has(i), signer: i < tx.required, source: 'transaction',
  }));
  const fromTable = (writable) => (pubkey) => ({ pubkey, writable, signer: false, source: 'lookupTable' });
  return [...fixed, ...loaded.writable.map(fromTable(true)), ...loaded.readonly.map(fromTable(false))];
}

/** Inner instructions in parsed form. */
export function parseInner(inner, keys) {
  return inner.map(({ index, instructions }) => ({ index, instructions: instructions.map((i) => parseInstruction(i, keys)) }));
}

/**
 * @param {{programIdIndex: number, accounts: number[], data: string, stackHeight: number}} instruction
 * @param {string[]} keys
 */
export function parseInstruction(instruction, keys) {
  const programId = keys[instruction.programIdIndex];
  const accounts = instruction.accounts.map((index) => keys[index]);
  const { stackHeight } = instruction;
  const data = Buffer.from(base58.decode(instruction.data));
  let found = null;
  try {
    found = parse(programId, accounts, data);
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof MissingAccount)) throw error; // short data or accounts: not parsed
  }
  return found === null
    ? { programId, accounts, data: instruction.data, stackHeight }
    : { ...found, programId, stackHeight };
}

class MissingAccount extends Error {}

function parse(programId, accounts, data) {
  if (programId === MEMO || programId === MEMO_V1) {
    const text = data.toString('utf8');
    return Buffer.from(text).equals(data) ? { program: 'spl-memo', parsed: text } : null;
  }
  const account = (i) => {
    if (accounts[i] === undefined) throw new MissingAccount();
    return accounts[i];
  };
  if (programId === SYSTEM) return named('system', parseSystem(account, data));
  if (programId === ATA) return named('spl-associated-token-account', parseAta(account, data));
  if (isToken(programId)) return named(programId === TOKEN ? 'spl-token' : 'spl-token-2022', parseToken(account, accounts, data));
  return null;
}

function named(program, parsed) {
  return parsed === null ? null : { program, parsed };
}

function parseSystem(account, data) {
  const lamports = () => Number(data.readBigUInt64LE(4));
  switch (data.readUInt32LE()) {
    case 0:
      return { type: 'createAccount', info: {
        source: account(0), newAccount: account(1), lamports: lamports(),
        space: Number(data.readBigUInt64LE(12)), owner: key(data, 20),
      } };
    case 1:
      return { type: 'assign', info: { account: account(0), owner: key(data, 4) } };
    case 2:
      return { type: 'transfer', info: { source: account(0), destination: account(1), lamports: lamports() } };
    case 4:
      return { type: 'advanceNonce', info: {
        nonceAccount: account(0), recentBlockhashesSysvar: account(1), nonceAuthority: account(2),
      } };
    case 8:
      return { type: 'allocate', info: { account: account(0), space: lamports() } };
    default:
      return null;
  }
}

function parseAta(account, data) {
  const type = data.length === 0 || data[0] === 0 ? 'create' : data[0] === 1 ? 'createIdempotent' : null;
  if (type === null) return null;
  return { type, info: {
    source: account(0), account: account(1), wallet: account(2), mint: account(3), systemProgram: account(4), tokenProgram: account(5),
  } };
}

function parseToken(account, accounts, data) {
  const amount = () => data.readBigUInt64LE(1).toString();
  const checked = () => {
    const ui = uiAmount(data.readBigUInt64LE(1), data.readUInt8(9));
    return { tokenAmount: ui };
  };
  const info = (fields, at, name) => ({ ...fields, ...authority(account, accounts, at, name) });
  switch (data.readUInt8(0)) {
    case 1:
      return { type: 'initializeAccount', info: { account: account(0), mint: account(1), owner: account(2), rentSysvar: account(3) } };
    case 3:
      return { type: 'transfer', info: info({ source: account(0), destination: account(1), amount: amount() }, 2, 'authority') };
    case 4:
      return { type: 'approve', info: info({ source: account(0), delegate: account(1), amount: amount() }, 2, 'owner') };
    case 5:
      return { type: 'revoke', info: info({ source: account(0) }, 1, 'owner') };
    case 6:
      return { type: 'setAuthority', info: info({
        account: account(0), authorityType: AUTHORITIES[data.readUInt8(1)] ?? 'other',
        newAuthority: data.readUInt8(2) === 0 ? null : key(data, 3),
      }, 1, 'authority') };
    case 7:
      return { type: 'mintTo', info: info({ mint: account(0), account: account(1), amount: amount() }, 2, 'mintAuthority') };
    case 8:
      return { type: 'burn', info: info({ account: account(0), mint: account(1), amount: amount() }, 2, 'authority') };
    case 9:
      return { type: 'closeAccount', info: info({ account: account(0), destination: account(1) }, 2, 'owner') };
    case 12:
      return { type: 'transferChecked', info: info({
        source: account(0), mint: account(1), destination: account(2), ...checked(),
      }, 3, 'authority') };
    case 14:
      return { type: 'mintToChecked', info: info({ mint: account(0), account: account(1), ...checked() }, 2, 'mintAuthority') };
    case 15:
      return { type: 'burnChecked', info: info({ account: account(0), mint: account(1), ...checked() }, 2, 'authority') };
    case 17:
      return { type: 'syncNative', info: { account: account(0) } };
    case 18:
      return { type: 'initializeAccount3', info: { account: account(0), mint: account(1), owner: key(data, 1) } };
    case 20:
      return { type: 'initializeMint2', info: {
        mint: account(0), decimals: data.readUInt8(1), mintAuthority: key(data, 2),
        freezeAuthority: data.readUInt8(34) === 0 ? undefined : key(data, 35),
      } };
    case 21:
      return { type: 'getAccountDataSize', info: { mint: account(0) } };
    case 22:
      return { type: 'initializeImmutableOwner', info: { account: account(0) } };
    default:
      return null;
  }
}

/** One signer by its name, or a multisig account with its signers. */
function authority(account, accounts, at, name) {
  if (accounts.length <= at + 1) return { [name]: account(at) };
  const multisig = `multisig${name[0].toUpperCase()}${name.slice(1)}`;
  return { [multisig]: account(at), signers: accounts.slice(at + 1) };
}

function key(data, at) {
  if (data.length < at + 32) throw new RangeError('short instruction');
  return base58.encodeKey(data.subarray(at, at + 32));
}
