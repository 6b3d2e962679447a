// sendTransaction and simulateTransaction.

import { invalidParams, describe, PREFLIGHT_FAILURE, RpcError, SIGNATURE_VERIFICATION } from '../errors.mjs';
import * as base58 from '../base58.mjs';
import { plain } from '../accounts.mjs';
import { decodeTransaction, isSane, MAX_PACKET, MAX_V1 } from '../wire.mjs';
import { checkHealth } from './cluster.mjs';
import { encodeAccount, formOf } from './encode.mjs';
import * as p from './params.mjs';
import { parseInner } from './parsed.mjs';

const TYPE = 'solana_transaction::versioned::VersionedTransaction';

/**
 * The transaction of a request.
 * @param {unknown} value
 * @param {Record<string, any>} config its encoding: base58 where there is none
 */
function transactionOf(value, config) {
  const text = p.string(value);
  const encoding = config.encoding ?? 'base58';
  if (encoding !== 'base58' && encoding !== 'base64') {
    throw invalidParams(`unsupported encoding: ${String(encoding).slice(0, 50)}. Supported encodings: base58, base64`);
  }
  const version1 = encoding === 'base64' ? text.startsWith('gQ') : false;
  const most = version1 ? MAX_V1 : MAX_PACKET;
  const encoded = encoding === 'base64' ? 4 * Math.ceil(most / 3) : Math.ceil(most * 1.37);
  if (text.length > encoded) {
    throw invalidParams(`${encoding} encoded ${TYPE} too large: ${text.length} bytes (max: encoded/raw ${encoded}/${most})`);
  }
  const bytes = encoding === 'base64' ? p.base64(text) : base58.decode(text);
  if (bytes === null) throw invalidParams('invalid base58 encoding: InvalidCharacter');
  if (bytes.length > most) {
    throw invalidParams(`decoded ${TYPE} too large: ${bytes.length} bytes (max: ${most} bytes)`);
  }
  let tx;
  try {
    tx = decodeTransaction(Buffer.from(bytes));
  } catch (error) {
    throw invalidParams(`failed to deserialize ${TYPE}: ${error.message}`);
  }
  if (!isSane(tx)) throw invalidParams(`invalid transaction: ${describe('SanitizeFailure')}`);
  return tx;
}

function sendTransaction(node, params) {
  const config = p.options(params[1]);
  const tx = transactionOf(params[0], config);
  const level = p.commitment(config, 'preflightCommitment');
  if (config.maxRetries !== undefined && config.maxRetries !== null) p.whole(config.maxRetries);
  const slot = node.chain.slots.at(level);
  p.checkContext(slot, config);
  const fault = node.faults.onSend();
  if (fault instanceof RpcError) throw fault;
  const waits = fault === 'drop' || node.faults.landingSlots > 0;
  if (p.flag(config.skipPreflight)) {
    if (!waits) node.chain.land(tx);
  } else {
    checkHealth(node);
    preflight(node, tx, slot, waits);
  }
  if (waits && fault !== 'drop') node.faults.wait(tx);
  if (fault === 'lose') node.faults.loseThisAnswer();
  return base58.encode(tx.signatures[0]);
}

/**
 * Refuses a transaction that would fail. Where it may land at once, the test is
 * the execution itself, undone if it fails.
 */
function preflight(node, tx, slot, dry) {
  const early = node.chain.ageError(tx, slot);
  let outcome = { err: early, logs: [], units: 0n, inner: null, returnData: null };
  if (early !== null) {
    if (!node.chain.isSigned(tx)) throw signatureFailure();
  } else {
    outcome = dry ? node.chain.simulate(tx, { sigVerify: true }) : node.chain.land(tx, { undoFailure: true });
  }
  if (outcome.err === 'SignatureFailure') throw signatureFailure();
  if (outcome.err !== null) {
    throw new RpcError(PREFLIGHT_FAILURE, `Transaction simulation failed: ${describe(outcome.err)}`, {
      ...resultOf(outcome), accounts: null, innerInstructions: null, replacementBlockhash: null,
    });
  }
}

const signatureFailure = () => new RpcError(SIGNATURE_VERIFICATION, 'Transaction signature verification failure');

function resultOf(outcome) {
  return { err: outcome.err, logs: outcome.logs, unitsConsumed: Number(outcome.units), returnData: outcome.returnData };
}

function simulateTransaction(node, params) {
  const config = p.options(params[1]);
  let tx = transactionOf(params[0], config);
  const sigVerify = p.flag(config.sigVerify);
  const replace = p.flag(config.replaceRecentBlockhash);
  if (sigVerify && replace) throw invalidParams('sigVerify may not be used with replaceRecentBlockhash');
  const level = p.commitment(config);
  const context = p.context(node, config, level);
  let replacementBlockhash = null;
  if (replace) {
    replacementBlockhash = node.chain.slots.latestBlockhash(level);
    tx = withBlockhash(tx, replacementBlockhash.blockhash);
  }
  const wanted = config.accounts === undefined || config.accounts === null ? null : accountsWanted(config.accounts, tx);
  let early = node.chain.ageError(tx, context.slot);
  if (early !== null && sigVerify && !node.chain.isSigned(tx)) throw signatureFailure();
  const outcome = early === null
    ? node.chain.simulate(tx, { sigVerify })
    : { err: early, logs: [], units: 0n, inner: null, returnData: null, accounts: new Map() };
  if (outcome.err === 'SignatureFailure') throw signatureFailure();
  const accounts = wanted === null ? null : wanted.keys.map((key) => afterwards(node, outcome, key, wanted.form));
  const keys = node.chain.resolve(tx).all.map(base58.encodeKey);
  const inner = p.flag(config.innerInstructions) ? parseInner(outcome.inner ?? [], keys) : null;
  return { context, value: { ...resultOf(outcome), accounts, innerInstructions: inner, replacementBlockhash } };
}

function accountsWanted(value, tx) {
  const wanted = p.options(value);
  if (wanted.encoding === 'binary' || wanted.encoding === 'base58') throw invalidParams('base58 encoding not supported');
  const addresses = p.list(wanted.addresses);
  if (addresses.length > tx.keys.length) throw invalidParams(`Too many accounts provided; max ${tx.keys.length}`);
  return { keys: addresses.map(p.pubkey), form: formOf(wanted, 'base64') };
}

function afterwards(node, outcome, key, form) {
  const changed = outcome.accounts.get(base58.encodeKey(key));
  const account = changed === undefined ? node.chain.accounts.get(key) : plain(changed);
  return account === null || account.lamports === 0n ? null : encodeAccount(node, account, form);
}

/** The same transaction with another blockhash; its signatures no longer fit. */
function withBlockhash(tx, hash) {
  const wire = Buffer.from(tx.wire);
  const at = tx.blockhash.byteOffset - tx.wire.byteOffset;
  wire.set(base58.decode(hash), at);
  return decodeTransaction(wire);
}

export const methods = { sendTransaction, simulateTransaction };
