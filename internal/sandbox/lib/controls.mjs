// The sandbox_ methods: what a test or a person may do to the chain. Each takes
// one object, given alone or as the only element of params.

import * as base58 from './base58.mjs';
import { MAX_ADVANCE } from './chain.mjs';
import { invalidParams, NODE_UNHEALTHY, RpcError } from './errors.mjs';
import { SYSTEM } from './programs.mjs';
import * as p from './rpc/params.mjs';

const MAX_COUNT = 1000000;
const MAX_DELAY_MS = 60000;
const MAX_SLOT_MS = 60000;
const GARBAGE = ['text', 'empty', 'truncated', 'wrong_type'];
const NODE_MODES = ['up', '503', 'reset', 'hang', 'refuse'];
const LOCKED = /^Sysvar|^BPFLoader|^NativeLoader|^LoaderV4/;
const MAX_ACCOUNT = 1024 * 1024;
const MAX_U64 = (1n << 64n) - 1n;

function oneOf(value, names) {
  if (!names.includes(value)) throw invalidParams(`Invalid params: expected one of ${names.join(', ')}`);
  return value;
}

/** A u64 given as a number or, above 2^53, as a string of digits. */
function u64(value) {
  const text = typeof value === 'number' ? String(p.whole(value)) : p.string(value);
  if (!/^[0-9]{1,20}$/.test(text) || BigInt(text) > MAX_U64) throw invalidParams('Invalid params: expected a u64');
  return BigInt(text);
}

function advance(node, { slots = 1 }) {
  const { chain } = node;
  chain.advanceBy(p.whole(slots, MAX_ADVANCE));
  return { slot: chain.slots.slot };
}

function skipSlots(node, { slots = 1 }) {
  node.chain.slots.skip(p.whole(slots, MAX_ADVANCE));
  return advance(node, {}); // the newest slot has a block
}

function setTime(node, { unixTimestamp }) {
  node.timer.setTime(1000 * p.whole(unixTimestamp, 253402300799));
  return { unixTimestamp };
}

function setCommitment(node, { confirmSlots, finalizeSlots }) {
  const { slots } = node.chain;
  const confirm = p.whole(confirmSlots ?? slots.confirmSlots, MAX_ADVANCE);
  const finalize = p.whole(finalizeSlots ?? slots.finalizeSlots, MAX_ADVANCE);
  if (finalize < confirm) throw invalidParams('Invalid params: finalizeSlots below confirmSlots');
  slots.confirmSlots = confirm;
  slots.finalizeSlots = finalize;
  return { confirmSlots: confirm, finalizeSlots: finalize };
}

function failSends(node, { count = 1, code = NODE_UNHEALTHY, message = 'Node is unhealthy', data }) {
  if (!Number.isSafeInteger(code)) throw invalidParams('Invalid params: code is no integer');
  node.faults.fails = p.whole(count, MAX_COUNT);
  node.faults.failure = new RpcError(code, p.string(message), data);
  return node.faults.show();
}

function setNode(node, { mode, forMs }) {
  oneOf(mode, NODE_MODES);
  if (mode === 'refuse') node.refuse(p.whole(forMs, MAX_DELAY_MS));
  else node.setMode(mode);
  return node.faults.show();
}

/**
 * Programs and sysvars are left alone: the runtime aborts on ones that it
 * cannot read.
 */
function setAccount(node, { pubkey, lamports, owner = SYSTEM, data = '' }) {
  const key = p.pubkey(pubkey);
  const program = base58.encodeKey(p.pubkey(owner));
  const names = [base58.encodeKey(key), program];
  if (names.some((name) => LOCKED.test(name)) || node.chain.accounts.get(key)?.executable) {
    throw invalidParams('Invalid params: programs and sysvars cannot be set');
  }
  const bytes = p.base64(p.string(data));
  if (bytes.length > MAX_ACCOUNT) throw invalidParams(`Invalid params: data of more than ${MAX_ACCOUNT} bytes`);
  node.chain.accounts.set(key, { lamports: u64(lamports), owner: program, data: bytes, executable: false, rentEpoch: MAX_U64 });
  return null;
}

/** A control that sets one number of the faults. */
const number = (name, field, most) => (node, params) => {
  node.faults[name] = p.whole(params[field] ?? 1, most);
  return node.faults.show();
};

export const controls = {
  sandbox_advance: advance,
  sandbox_skipSlots: skipSlots,
  sandbox_pause: (node) => node.timer.pause(),
  sandbox_resume: (node) => node.timer.resume(),
  sandbox_setSlotMs: (node, { slotMs }) => node.timer.setSlotMs(p.whole(slotMs, MAX_SLOT_MS)),
  sandbox_setTime: setTime,
  sandbox_setCommitment: setCommitment,
  sandbox_holdFinality(node, { hold = true }) {
    node.chain.slots.finalityHeld = p.flag(hold);
    return node.faults.show();
  },
  sandbox_lag(node, { slots = 0 }) {
    node.chain.slots.lag = p.whole(slots, MAX_COUNT);
    return node.faults.show();
  },
  sandbox_setHealth(node, { healthy = true }) {
    node.faults.unhealthy = !p.flag(healthy);
    return node.faults.show();
  },
  sandbox_setNode: setNode,
  sandbox_dropSends: number('drops', 'count', MAX_COUNT),
  sandbox_failSends: failSends,
  sandbox_loseAnswers: number('lost', 'count', MAX_COUNT),
  sandbox_delayLanding: number('landingSlots', 'slots', MAX_ADVANCE),
  sandbox_delayAnswers: number('answerDelayMs', 'ms', MAX_DELAY_MS),
  sandbox_answerGarbage(node, { count = 1, kind = 'text' }) {
    node.faults.garbageKind = oneOf(kind, GARBAGE);
    node.faults.garbage = p.whole(count, MAX_COUNT);
    return node.faults.show();
  },
  sandbox_setAccount: setAccount,
  sandbox_fund: (node, { wallet, symbol, amount }) => node.fund(p.pubkey(wallet), p.string(symbol), u64(amount)),
  sandbox_saveState: (node) => node.save(),
  sandbox_heal(node) {
    node.setMode('up');
    node.faults.reset();
    return node.faults.show();
  },
  sandbox_status: (node) => ({
    slot: node.chain.slots.slot, confirmed: node.chain.slots.confirmed, finalized: node.chain.slots.finalized,
    slot_ms: node.timer.slotMs, paused: node.timer.paused, transactions: node.chain.executed,
    kept: node.chain.history.bySignature.size, faults: node.faults.show(),
  }),
};
