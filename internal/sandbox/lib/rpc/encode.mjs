// Accounts as answers: encodings, slices and the parsed forms of token
// accounts and mints.

import zlib from 'node:zlib';
import * as base58 from '../base58.mjs';
import { invalidParams, INVALID_REQUEST, RpcError } from '../errors.mjs';
import { toNumber } from '../chain.mjs';
import { SYSTEM, TOKEN } from '../programs.mjs';
import { decimalsOf, readAccount, readMint, uiAmount } from '../tokens.mjs';
import * as p from './params.mjs';

const MAX_BASE58 = 128;
const ENCODINGS = ['binary', 'base58', 'base64', 'base64+zstd', 'jsonParsed'];

/** @typedef {{encoding: string, slice: {offset: number, length: number} | null}} Form */

/**
 * @param {Record<string, any>} config
 * @param {string} [byDefault]
 * @returns {Form}
 */
export function formOf(config, byDefault = 'binary') {
  const encoding = config.encoding ?? byDefault;
  if (!ENCODINGS.includes(encoding)) {
    const known = '`binary`, `base58`, `base64`, `jsonParsed`, `base64+zstd`';
    throw invalidParams(`Invalid params: unknown variant \`${String(encoding).slice(0, 50)}\`, expected one of ${known}.`);
  }
  if (config.dataSlice === undefined || config.dataSlice === null) return { encoding, slice: null };
  const slice = p.options(config.dataSlice);
  return { encoding, slice: { offset: p.whole(slice.offset), length: p.whole(slice.length) } };
}

/**
 * @param {any} node
 * @param {import('../accounts.mjs').Account} account
 * @param {Form} form
 */
export function encodeAccount(node, account, form) {
  const head = { lamports: toNumber(account.lamports), owner: account.owner, executable: account.executable };
  const tail = { rentEpoch: account.rentEpoch, space: account.data.length };
  return { ...head, data: encodeData(node, account, form), ...tail };
}

function encodeData(node, account, { encoding, slice }) {
  if (encoding === 'jsonParsed') {
    const parsed = parseAccount(node, account);
    if (parsed !== null) return { ...parsed, space: account.data.length };
  }
  const data = slice === null ? account.data : account.data.subarray(slice.offset, slice.offset + slice.length);
  switch (encoding) {
    case 'binary':
      return short(data);
    case 'base58':
      return [short(data), 'base58'];
    case 'base64+zstd':
      if (zlib.zstdCompressSync === undefined) throw invalidParams('base64+zstd needs Node 22.15 or later');
      return [zlib.zstdCompressSync(data).toString('base64'), 'base64+zstd'];
    default:
      return [data.toString('base64'), 'base64'];
  }
}

function short(data) {
  if (data.length <= MAX_BASE58) return base58.encode(data);
  throw new RpcError(INVALID_REQUEST,
    'Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.');
}

function parseAccount(node, account) {
  const program = account.owner === TOKEN ? 'spl-token' : 'spl-token-2022';
  const token = readAccount(account.owner, account.data);
  if (token !== null) {
    const decimals = decimalsOf(node.chain.accounts, token.mint);
    if (decimals === null) return null;
    return { program, parsed: { type: 'account', info: accountInfo(token, decimals) } };
  }
  const mint = readMint(account.owner, account.data);
  if (mint !== null) {
    const info = {
      mintAuthority: mint.authority, supply: mint.supply.toString(), decimals: mint.decimals,
      isInitialized: true, freezeAuthority: mint.freeze,
    };
    return { program, parsed: { type: 'mint', info } };
  }
  return account.owner === SYSTEM && account.data.length === 80 ? parseNonce(account.data) : null;
}

function accountInfo(token, decimals) {
  return {
    mint: token.mint,
    owner: token.owner,
    tokenAmount: uiAmount(token.amount, decimals),
    delegate: token.delegate ?? undefined,
    state: token.state,
    isNative: token.native !== null,
    rentExemptReserve: token.native === null ? undefined : uiAmount(token.native, decimals),
    delegatedAmount: token.delegate === null ? undefined : uiAmount(token.delegated, decimals),
    closeAuthority: token.close ?? undefined,
  };
}

function parseNonce(data) {
  if (data.readUInt32LE(4) !== 1) return null;
  const info = {
    authority: base58.encodeKey(data.subarray(8, 40)),
    blockhash: base58.encode(data.subarray(40, 72)),
    feeCalculator: { lamportsPerSignature: data.readBigUInt64LE(72).toString() },
  };
  return { program: 'nonce', parsed: { type: 'initialized', info } };
}
