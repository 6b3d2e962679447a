// Methods that read what landed.

import * as base58 from '../base58.mjs';
import { invalidParams, RpcError, UNSUPPORTED_VERSION } from '../errors.mjs';
import { decodeTransaction } from '../wire.mjs';
import * as p from './params.mjs';
import { parsedKeys, parseInner, parseInstruction } from './parsed.mjs';

const MAX_STATUSES = 256;
const MAX_SIGNATURES = 1000;
const ENCODINGS = ['binary', 'base58', 'base64', 'json', 'jsonParsed'];

function getSignatureStatuses(node, params) {
  const signatures = p.list(params[0]);
  if (signatures.length > MAX_STATUSES) throw invalidParams(`Too many inputs provided; max ${MAX_STATUSES}`);
  const all = p.flag(p.options(params[1]).searchTransactionHistory);
  const { slots, history } = node.chain;
  const value = signatures.map((given) => {
    const landed = history.bySignature.get(p.signature(given));
    const level = landed === undefined ? null : slots.levelOf(landed.slot);
    if (level === null || (!all && slots.slot - landed.slot > slots.blockhashSlots)) return null;
    return {
      slot: landed.slot,
      confirmations: level === 'finalized' ? null : slots.at('processed') - landed.slot,
      err: landed.meta.err,
      status: landed.meta.status,
      confirmationStatus: level,
    };
  });
  return { context: p.context(node, {}, 'processed'), value };
}

/** A configuration object, or its encoding alone, as older clients send it. */
function transactionConfig(value) {
  const config = typeof value === 'string' ? { encoding: value } : p.options(value);
  const encoding = config.encoding ?? 'json';
  if (!ENCODINGS.includes(encoding)) {
    throw invalidParams(`Invalid params: unknown variant \`${String(encoding).slice(0, 50)}\`, expected one of \`binary\`, \`base64\`, \`base58\`, \`json\`, \`jsonParsed\`.`);
  }
  const most = config.maxSupportedTransactionVersion;
  return { encoding, level: p.ledgerCommitment(config), most: most === undefined || most === null ? null : p.whole(most, 255) };
}

function getTransaction(node, params) {
  const signature = p.signature(params[0]);
  const { encoding, level, most } = transactionConfig(params[1]);
  const { slots, history } = node.chain;
  const landed = history.bySignature.get(signature);
  if (landed === undefined || landed.slot > slots.at(level)) return null;
  const tx = decodeTransaction(landed.wire);
  if (tx.version !== 'legacy' && (most === null || tx.version > most)) throw unsupported(tx.version);
  const { slot, blockTime } = landed;
  const transaction = encodeTransaction(landed, tx, encoding);
  const meta = encoding === 'jsonParsed' ? parsedMeta(landed, tx) : landed.meta;
  return { slot, transaction, meta, version: most === null ? undefined : tx.version, blockTime };
}

const unsupported = (version) => new RpcError(UNSUPPORTED_VERSION,
  `Transaction version (${version}) is not supported by the requesting client. ` +
  `Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": ${version}`);

function encodeTransaction(landed, tx, encoding) {
  switch (encoding) {
    case 'binary':
      return base58.encode(landed.wire);
    case 'base58':
      return [base58.encode(landed.wire), 'base58'];
    case 'base64':
      return [landed.wire.toString('base64'), 'base64'];
    default:
      return { signatures: tx.signatures.map(base58.encode), message: encodeMessage(landed, tx, encoding) };
  }
}

function encodeMessage(landed, tx, encoding) {
  const lookups = tx.version !== 0 ? undefined : tx.lookups.map((l) => ({
    accountKey: base58.encodeKey(l.table), writableIndexes: l.writable, readonlyIndexes: l.readonly,
  }));
  const recentBlockhash = base58.encode(tx.blockhash);
  if (encoding === 'jsonParsed') {
    const keys = keysOf(landed, tx);
    return {
      accountKeys: parsedKeys(tx, landed.meta.loadedAddresses),
      recentBlockhash,
      instructions: tx.instructions.map((i) => parseInstruction(raw(i, 1), keys)),
      addressTableLookups: lookups,
    };
  }
  return {
    header: {
      numRequiredSignatures: tx.required,
      numReadonlySignedAccounts: tx.readonlySigned,
      numReadonlyUnsignedAccounts: tx.readonlyUnsigned,
    },
    accountKeys: tx.keys.map(base58.encodeKey),
    recentBlockhash,
    instructions: tx.instructions.map((i) => raw(i, 1)),
    addressTableLookups: lookups,
  };
}

const raw = (instruction, stackHeight) => ({
  programIdIndex: instruction.program,
  accounts: instruction.accounts,
  data: base58.encode(instruction.data),
  stackHeight,
});

function keysOf(landed, tx) {
  const { writable, readonly } = landed.meta.loadedAddresses;
  return [...tx.keys.map(base58.encodeKey), ...writable, ...readonly];
}

function parsedMeta(landed, tx) {
  const innerInstructions = parseInner(landed.meta.innerInstructions, keysOf(landed, tx));
  return { ...landed.meta, innerInstructions, loadedAddresses: undefined };
}

function getSignaturesForAddress(node, params) {
  const address = base58.encodeKey(p.pubkey(params[0]));
  const config = p.options(params[1]);
  const level = p.ledgerCommitment(config);
  const limit = config.limit === undefined || config.limit === null ? MAX_SIGNATURES : p.whole(config.limit);
  if (limit === 0 || limit > MAX_SIGNATURES) throw invalidParams(`Invalid limit; max ${MAX_SIGNATURES}`);
  const { slots, history } = node.chain;
  const newest = slots.at(level);
  p.checkContext(newest, config);
  const before = bound(history, config.before, Infinity);
  const until = bound(history, config.until, 0);
  const list = history.byAddress.get(address) ?? [];
  const found = [];
  for (let i = list.length - 1; i >= 0 && found.length < limit; i--) {
    const landed = list[i];
    if (landed.sequence <= until) break;
    if (landed.slot > newest || landed.sequence >= before) continue;
    found.push({
      signature: landed.signature,
      slot: landed.slot,
      err: landed.meta.err,
      memo: landed.memo,
      blockTime: landed.blockTime,
      confirmationStatus: slots.levelOf(landed.slot),
    });
  }
  return found;
}

/** The place of a signature in the order of landing; an unknown one has none. */
function bound(history, given, none) {
  if (given === undefined || given === null) return none;
  const landed = history.bySignature.get(p.signature(given));
  // Agave finds nothing before a signature that it does not know.
  return landed?.sequence ?? 0;
}

export const methods = { getSignatureStatuses, getTransaction, getSignaturesForAddress };
