// The chain: LiteSVM executes, this file gives it slots, a blockhash window, a
// status cache and a history. All of it runs on one event loop: a transaction
// is whole before the next one starts.

import { createHash, createPrivateKey, createPublicKey, randomBytes, sign, verify } from 'node:crypto';
import native from './native.mjs';
import { Accounts } from './accounts.mjs';
import * as base58 from './base58.mjs';
import { fromNative } from './errors.mjs';
import { feeOf } from './fees.mjs';
import { History } from './history.mjs';
import { COMPUTE_BUDGET, isToken, LOOKUP_TABLE, MEMO, MEMO_V1, SYSTEM } from './programs.mjs';
import { Slots } from './slots.mjs';
import { decimalsOf, readAccount, uiBalance } from './tokens.mjs';
import { decodeTransaction, isSane, isWritable, messageHash } from './wire.mjs';

/** Slots that one request may advance. */
export const MAX_ADVANCE = 100000;
/** Transactions that wait for their slot at most. */
export const MAX_WAITING = 10000;

const SLOT_HASHES = 512;
const TABLE_HEADER = 56;
const FAUCET_LAMPORTS = 9n * 10n ** 15n; // below 2^53, so that a saved balance is exact
const FAUCET_REFILL = 10n ** 15n;
const MIN_OWN_UNITS = 200000;
const ADVANCE_NONCE = 4;
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * @typedef {import('./wire.mjs').Transaction} Transaction
 * @typedef {import('./errors.mjs').TransactionError} TransactionError
 * @typedef {object} Outcome
 * @property {TransactionError | null} err
 * @property {boolean} landed whether it is in a block: it paid a fee
 * @property {string[]} logs
 * @property {bigint} units compute units consumed
 * @property {any[] | null} inner inner instructions by index, raw form
 * @property {{programId: string, data: [string, 'base64']} | null} returnData
 */

export class Chain {
  /**
   * @param {{confirmSlots: number, finalizeSlots: number, blockhashSlots?: number, slotMs: number, seed?: string, history: number}} options
   *   seed: two chains of one seed have the same genesis, blockhashes and faucet
   */
  constructor(options) {
    const genesis = options.seed === undefined
      ? randomBytes(32)
      : createHash('sha256').update(`genesis ${options.seed}`).digest();
    this.slots = new Slots({ ...options, genesis, nowMs: Date.now() });
    this.history = new History(options.history);
    this.use(new native.LiteSvm());
    this.submitted = 0;
    this.executed = 0;
    /** @type {{tx: Transaction, slot: number}[]} sent, to land in that slot */
    this.waiting = [];
    this.openFaucet();
    this.syncClock();
  }

  /** Takes a runtime, new or restored: our own window replaces its checks. */
  use(svm) {
    this.svm = svm;
    svm.setBlockhashCheck(false);
    svm.setTransactionHistory(0n);
    svm.setSigverify(true);
    this.accounts = new Accounts(svm);
  }

  openFaucet() {
    const seed = createHash('sha256').update('faucet').update(this.slots.genesis).digest();
    this.faucet = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' });
    this.faucetKey = createPublicKey(this.faucet).export({ format: 'der', type: 'spki' }).subarray(SPKI_HEAD.length);
  }

  /**
   * Opens the next slot and lands what waited for it.
   * @param {number} [nowMs] the wall clock, where time runs by it
   */
  advance(nowMs) {
    this.slots.advance(nowMs);
    this.opened();
  }

  /**
   * Opens many slots. The runtime sees only those in which something lands, and the
   * last: it costs ten times as much as all else.
   * @param {number} count
   */
  advanceBy(count) {
    for (let left = count; left > 0; left--) {
      this.slots.advance();
      if (this.waiting.length > 0 || left === 1) this.opened();
    }
  }

  /** Tells the runtime of a new slot and lands what waited for it. */
  opened() {
    this.svm.expireBlockhash(); // durable nonces move with it
    this.syncClock();
    this.accounts.decimals.clear();
    this.history.expire(this.slots.newestHeight, this.slots.blockhashSlots);
    if (this.waiting.length === 0) return;
    const due = this.waiting.filter((w) => w.slot <= this.slots.slot);
    this.waiting = this.waiting.filter((w) => w.slot > this.slots.slot);
    for (const { tx } of due) this.land(tx);
  }

  syncClock() {
    const clock = this.svm.getClock();
    clock.slot = BigInt(this.slots.slot);
    clock.unixTimestamp = BigInt(Math.floor(this.slots.timeMs / 1000));
    this.svm.setClock(clock);
  }

  /**
   * Why a bank at slot would not take the transaction's blockhash.
   * @param {Transaction} tx
   * @param {number} slot
   * @returns {TransactionError | null}
   */
  ageError(tx, slot) {
    const fresh = this.slots.isValid(base58.encode(tx.blockhash), slot) || this.hasNonce(tx);
    if (!fresh) return 'BlockhashNotFound';
    return this.history.hasRun(messageHash(tx)) ? 'AlreadyProcessed' : null;
  }

  /** Whether the transaction lives by a durable nonce that is current. */
  hasNonce(tx) {
    const first = tx.instructions[0];
    if (first === undefined || base58.encodeKey(tx.keys[first.program]) !== SYSTEM) return false;
    if (first.data.length < 4 || first.data.readUInt32LE() !== ADVANCE_NONCE) return false;
    const key = tx.keys[first.accounts[0]];
    const account = key === undefined ? null : this.accounts.get(key);
    if (account === null || account.owner !== SYSTEM || account.data.length !== 80) return false;
    const initialized = account.data.readUInt32LE(0) === 1 && account.data.readUInt32LE(4) === 1;
    return initialized && account.data.subarray(40, 72).equals(tx.blockhash);
  }

  /** Whether every signature is the message's, as far as OpenSSL tells. */
  isSigned(tx) {
    return tx.signatures.every((signature, i) => {
      const key = createPublicKey({ key: Buffer.concat([SPKI_HEAD, tx.keys[i]]), format: 'der', type: 'spki' });
      return verify(null, tx.message, key, signature);
    });
  }

  /**
   * Runs a transaction in the current slot and keeps what it did.
   * @param {Transaction} tx sane
   * @param {{undoFailure?: boolean}} [options] undoFailure: a transaction that
   *   fails leaves nothing behind, its fee neither; so preflight and execution
   *   are one run of the program
   * @returns {Outcome}
   */
  land(tx, options = {}) {
    const early = this.ageError(tx, this.slots.slot);
    if (early !== null) return failure(early);
    const keys = this.resolve(tx);
    const before = this.look(tx, keys);
    const payer = this.accounts.get(tx.keys[0]);
    const outcome = this.run(tx, (bytes) => this.svm.sendVersionedTransaction(bytes));
    outcome.landed = outcome.err === null || (payer !== null && this.accounts.balance(tx.keys[0]) !== payer.lamports);
    if (!outcome.landed) return outcome;
    if (outcome.err !== null && options.undoFailure) {
      this.accounts.set(tx.keys[0], payer);
      return outcome;
    }
    this.executed++;
    this.keep(tx, outcome, keys, before, this.look(tx, keys, before));
    return outcome;
  }

  /**
   * Runs a transaction and keeps nothing.
   * @param {Transaction} tx sane
   * @param {{sigVerify: boolean}} options
   * @returns {Outcome & {accounts: Map<string, import('./accounts.mjs').Account>}}
   */
  simulate(tx, options) {
    this.svm.setSigverify(options.sigVerify);
    try {
      let result;
      const outcome = this.run(tx, (bytes) => (result = this.svm.simulateVersionedTransaction(bytes)));
      const accounts = new Map();
      for (const found of outcome.err === null ? result.postAccounts() : []) {
        accounts.set(base58.encodeKey(found.address), found.account());
      }
      return { ...outcome, accounts };
    } finally {
      this.svm.setSigverify(true);
    }
  }

  /** @returns {Outcome} */
  run(tx, execute) {
    if (tx.keys.some((key) => base58.encodeKey(key) === LOOKUP_TABLE)) this.syncSlotHashes();
    const result = execute(tx.wire);
    const failed = result instanceof native.FailedTransactionMetadata;
    const meta = failed || result instanceof native.SimulatedTransactionInfo ? result.meta() : result;
    const returned = meta.returnData();
    const data = Buffer.from(returned.data());
    return {
      err: failed ? fromNative(result.err()) : null,
      landed: false,
      logs: meta.logs(),
      units: meta.computeUnitsConsumed(),
      inner: innerOf(meta),
      returnData: data.length === 0
        ? null
        : { programId: base58.encodeKey(returned.programId()), data: [data.toString('base64'), 'base64'] },
    };
  }

  /** Address tables are made with a recent slot, which this sysvar proves. */
  syncSlotHashes() {
    const hashes = [];
    for (let slot = this.slots.slot - 1; hashes.length < SLOT_HASHES; slot--) {
      const hash = this.slots.hashOf.get(slot);
      if (hash === undefined) break;
      hashes.push({ slot: BigInt(slot), hash });
    }
    this.svm.setSlotHashes(hashes);
  }

  /** All account keys, those of address tables last. */
  resolve(tx) {
    const pick = (lookup, indexes) => {
      const table = this.accounts.get(lookup.table);
      if (table === null || table.owner !== LOOKUP_TABLE) return [];
      const at = (i) => table.data.subarray(TABLE_HEADER + 32 * i, TABLE_HEADER + 32 * (i + 1));
      return indexes.map(at).filter((key) => key.length === 32);
    };
    const writable = tx.lookups.flatMap((l) => pick(l, l.writable));
    const readonly = tx.lookups.flatMap((l) => pick(l, l.readonly));
    return { all: [...tx.keys, ...writable, ...readonly], writable, readonly };
  }

  /**
   * Balances and token balances of the keys, in getTransaction's form.
   * @param {{balances: any[], tokens: any[]}} [before] of the same keys: what
   *   the transaction could not write is taken from it
   */
  look(tx, keys, before) {
    const names = keys.all.map(base58.encodeKey);
    const withTokens = names.some(isToken);
    const firstReadonly = keys.all.length - keys.readonly.length;
    const balances = [];
    const tokens = [];
    names.forEach((name, accountIndex) => {
      const writable = accountIndex < tx.keys.length ? isWritable(tx, accountIndex) : accountIndex < firstReadonly;
      if (before !== undefined && !writable) {
        balances.push(before.balances[accountIndex]);
        tokens.push(...before.tokens.filter((token) => token.accountIndex === accountIndex));
        return;
      }
      // A program's account is large, and no token account.
      const isRead = withTokens && !isToken(name) && !tx.instructions.some((i) => i.program === accountIndex);
      const account = isRead ? this.accounts.get(keys.all[accountIndex]) : null;
      balances.push(toNumber(isRead ? account?.lamports ?? 0n : this.accounts.balance(keys.all[accountIndex])));
      const token = account === null ? null : readAccount(account.owner, account.data);
      if (token === null) return;
      const decimals = decimalsOf(this.accounts, token.mint);
      if (decimals === null) return;
      const { mint, owner } = token;
      tokens.push({ accountIndex, mint, owner, programId: account.owner, uiTokenAmount: uiBalance(token.amount, decimals) });
    });
    return { balances, tokens };
  }

  keep(tx, outcome, keys, before, after) {
    const meta = {
      err: outcome.err,
      status: outcome.err === null ? { Ok: null } : { Err: outcome.err },
      fee: toNumber(feeOf(tx)),
      preBalances: before.balances,
      postBalances: after.balances,
      innerInstructions: outcome.inner,
      logMessages: outcome.logs,
      preTokenBalances: before.tokens,
      postTokenBalances: after.tokens,
      rewards: [],
      loadedAddresses: {
        writable: keys.writable.map(base58.encodeKey),
        readonly: keys.readonly.map(base58.encodeKey),
      },
      returnData: outcome.returnData ?? undefined,
      computeUnitsConsumed: toNumber(outcome.units),
    };
    this.history.add({
      sequence: 0,
      signature: base58.encode(tx.signatures[0]),
      slot: this.slots.slot,
      blockTime: this.slots.times.get(this.slots.slot),
      wire: Buffer.from(tx.wire), // a copy: the request's bytes may go
      hash: messageHash(tx),
      addresses: [...new Set(keys.all.map(base58.encodeKey))],
      memo: memoOf(tx),
      meta,
    }, this.slots.newestHeight);
  }

  /**
   * Gives lamports from the faucet, by a transaction like any other.
   * @param {Uint8Array} to
   * @param {bigint} lamports
   * @returns {{signature: string, outcome: Outcome}}
   */
  airdrop(to, lamports) {
    if (this.accounts.balance(this.faucetKey) < FAUCET_REFILL + lamports) {
      this.accounts.set(this.faucetKey, {
        lamports: FAUCET_LAMPORTS, owner: SYSTEM, data: Buffer.alloc(0), executable: false, rentEpoch: 0n,
      });
    }
    const transfer = Buffer.alloc(12);
    transfer.writeUInt32LE(2);
    transfer.writeBigUInt64LE(lamports, 4);
    return this.submit([this.faucet], [
      {
        program: SYSTEM,
        accounts: [{ key: this.faucetKey, signer: true, writable: true }, { key: to, signer: false, writable: true }],
        data: transfer,
      },
    ]);
  }

  /**
   * Builds, signs and lands a version 0 transaction with the newest blockhash.
   * Its compute limit is a number of its own, so that no two are the same.
   * @param {import('node:crypto').KeyObject[]} signers the fee payer first
   * @param {{program: string, accounts: {key: Uint8Array, signer: boolean, writable: boolean}[], data: Buffer}[]} instructions
   */
  submit(signers, instructions) {
    const limit = Buffer.alloc(5);
    limit[0] = 2;
    limit.writeUInt32LE(MIN_OWN_UNITS + (this.submitted++ % 1000000), 1);
    const all = [{ program: COMPUTE_BUDGET, accounts: [], data: limit }, ...instructions];
    const message = compile(publicKey(signers[0]), all, base58.decode(this.slots.hashOf.get(this.slots.slot)));
    const byKey = new Map(signers.map((signer) => [base58.encodeKey(publicKey(signer)), signer]));
    const signatures = message.signers.map((key) => sign(null, message.bytes, byKey.get(base58.encodeKey(key))));
    const tx = decodeTransaction(Buffer.concat([Buffer.from([signatures.length]), ...signatures, message.bytes]));
    if (!isSane(tx)) throw new Error('a transaction of our own is not sane');
    return { signature: base58.encode(tx.signatures[0]), outcome: this.land(tx) };
  }
}

/** @returns {Buffer} */
export function publicKey(privateKey) {
  return createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(SPKI_HEAD.length);
}

/** A private key from its 32-byte seed. */
export function privateKey(seed) {
  return createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' });
}

/**
 * A version 0 message; instruction data of at most 127 bytes.
 * @returns {{bytes: Buffer, signers: Uint8Array[]}}
 */
export function compile(payer, instructions, blockhash) {
  /** @type {Map<string, {key: Uint8Array, signer: boolean, writable: boolean}>} */
  const metas = new Map();
  const note = (key, signer, writable) => {
    const name = base58.encodeKey(key);
    const meta = metas.get(name) ?? { key, signer: false, writable: false };
    metas.set(name, { key, signer: meta.signer || signer, writable: meta.writable || writable });
  };
  note(payer, true, true);
  for (const i of instructions) {
    for (const a of i.accounts) note(a.key, a.signer, a.writable);
    note(base58.decode(i.program), false, false);
  }
  const rank = (m) => (m.signer ? 0 : 2) + (m.writable ? 0 : 1);
  const ordered = [...metas.values()].sort((a, b) => rank(a) - rank(b));
  const index = new Map(ordered.map((m, i) => [base58.encodeKey(m.key), i]));
  const count = (r) => ordered.filter((m) => rank(m) === r).length;
  const parts = [Buffer.from([0x80, count(0) + count(1), count(1), count(3), ordered.length])];
  parts.push(...ordered.map((m) => m.key), blockhash, Buffer.from([instructions.length]));
  for (const i of instructions) {
    const accounts = i.accounts.map((a) => index.get(base58.encodeKey(a.key)));
    if (i.data.length > 127) throw new RangeError('instruction data above 127 bytes');
    parts.push(Buffer.from([index.get(i.program), accounts.length, ...accounts, i.data.length]), i.data);
  }
  return { bytes: Buffer.concat([...parts, Buffer.from([0])]), signers: ordered.filter((m) => m.signer).map((m) => m.key) };
}

function failure(err) {
  return { err, landed: false, logs: [], units: 0n, inner: null, returnData: null };
}

function innerOf(meta) {
  const out = [];
  meta.innerInstructions().forEach((list, index) => {
    if (list.length === 0) return;
    out.push({
      index,
      instructions: list.map((inner) => {
        const instruction = inner.instruction();
        return {
          programIdIndex: instruction.programIdIndex(),
          accounts: [...instruction.accounts()],
          data: base58.encode(instruction.data()),
          stackHeight: inner.stackHeight(),
        };
      }),
    });
  });
  return out;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The memos of a transaction's own instructions, as Agave joins them. */
function memoOf(tx) {
  const memos = [];
  for (const { program, data } of tx.instructions) {
    const id = base58.encodeKey(tx.keys[program]);
    if (id !== MEMO && id !== MEMO_V1) continue;
    let text = '(unparseable)';
    try {
      text = utf8.decode(data);
    } catch {
      // not UTF-8: the words above stand for it
    }
    memos.push(`[${data.length}] ${text}`);
  }
  return memos.length === 0 ? null : memos.join('; ');
}

/** A number where it is exact. */
export function toNumber(value) {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}
