// Methods about the chain as a whole: slots, times, blockhashes, fees, health.

import * as base58 from '../base58.mjs';
import { BLOCK_CLEANED_UP, BLOCK_NOT_AVAILABLE, invalidParams, NODE_UNHEALTHY, RpcError, SLOT_SKIPPED } from '../errors.mjs';
import { feeOf } from '../fees.mjs';
import { SLOTS_PER_EPOCH } from '../slots.mjs';
import { decodeMessage } from '../wire.mjs';
import { toNumber } from '../chain.mjs';
import * as p from './params.mjs';

/** A node this many slots behind calls itself unhealthy, as Agave's default. */
export const HEALTHY_LAG = 128;
const MAX_DATA = 10 * 1024 * 1024;

/** @throws {RpcError} where the node is made to be behind or sick */
export function checkHealth(node) {
  const { lag } = node.chain.slots;
  if (lag > HEALTHY_LAG) {
    throw new RpcError(NODE_UNHEALTHY, `Node is behind by ${lag} slots`, { numSlotsBehind: lag });
  }
  if (node.faults.unhealthy) throw new RpcError(NODE_UNHEALTHY, 'Node is unhealthy', { numSlotsBehind: null });
}

function slotOf(node, config) {
  const slot = node.chain.slots.at(p.commitment(config));
  p.checkContext(slot, config);
  return slot;
}

function getEpochInfo(node, params) {
  const slot = slotOf(node, p.options(params[0]));
  return {
    absoluteSlot: slot,
    blockHeight: node.chain.slots.height(slot),
    epoch: Math.floor(slot / SLOTS_PER_EPOCH),
    slotIndex: slot % SLOTS_PER_EPOCH,
    slotsInEpoch: SLOTS_PER_EPOCH,
    transactionCount: node.chain.executed,
  };
}

function getBlockTime(node, params) {
  const slot = p.whole(params[0]);
  const { slots } = node.chain;
  if (slot > slots.at('confirmed')) throw new RpcError(BLOCK_NOT_AVAILABLE, `Block not available for slot ${slot}`);
  const time = slots.times.get(slot);
  if (time === undefined) {
    const first = slots.times.keys().next().value;
    if (slot > first) {
      throw new RpcError(SLOT_SKIPPED, `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`);
    }
    throw new RpcError(BLOCK_CLEANED_UP,
      `Block ${slot} cleaned up, does not exist on node. First available block: ${first}`);
  }
  return time;
}

/** A block without its transactions. */
function getBlock(node, params) {
  const slot = p.whole(params[0]);
  if (p.options(params[1]).transactionDetails !== 'none') throw invalidParams('only transactionDetails none is served');
  const blockTime = getBlockTime(node, [slot]);
  const { slots } = node.chain;
  const hash = slots.hashOf.get(slot);
  return { blockHeight: slots.height(slot) ?? null, blockTime, blockhash: hash ?? null, parentSlot: slot - 1 };
}

/** The chain has nothing below its first slot, so until a transaction is dropped a node has all of it. */
function getFirstAvailableBlock(node) {
  const { history, slots } = node.chain;
  if (history.dropped < 0) return 0;
  for (const slot of slots.times.keys()) if (slot > history.dropped) return slot;
  return slots.slot;
}

function getLatestBlockhash(node, params) {
  const config = p.options(params[0]);
  const context = p.context(node, config);
  return { context, value: node.chain.slots.latestBlockhash(p.commitment(config)) };
}

function isBlockhashValid(node, params) {
  const hash = p.string(params[0]);
  if (base58.decode(hash)?.length !== 32) throw invalidParams('Invalid param: WrongSize');
  const config = p.options(params[1]);
  const context = p.context(node, config);
  return { context, value: node.chain.slots.isValid(hash, context.slot) };
}

function getFeeForMessage(node, params) {
  const bytes = p.base64(p.string(params[0]));
  const config = p.options(params[1]);
  const context = p.context(node, config);
  let message;
  try {
    message = decodeMessage(bytes);
  } catch (error) {
    throw invalidParams(`failed to deserialize solana_message::versions::VersionedMessage: ${error.message}`);
  }
  if (!message.instructions.every((i) => i.program < message.keys.length)) {
    throw invalidParams('invalid transaction message: index out of bounds');
  }
  const valid = node.chain.slots.isValid(base58.encode(message.blockhash), context.slot);
  return { context, value: valid ? toNumber(feeOf(message)) : null };
}

function requestAirdrop(node, params) {
  const to = p.pubkey(params[0]);
  const lamports = BigInt(p.whole(params[1], 10 ** 15));
  checkHealth(node);
  return node.chain.airdrop(to, lamports).signature;
}

export const methods = {
  getSlot: (node, params) => slotOf(node, p.options(params[0])),
  getBlockHeight: (node, params) => node.chain.slots.height(slotOf(node, p.options(params[0]))),
  getTransactionCount: (node, params) => slotOf(node, p.options(params[0])) && node.chain.executed,
  getEpochInfo,
  getBlock,
  getBlockTime,
  getLatestBlockhash,
  isBlockhashValid,
  getFeeForMessage,
  requestAirdrop,
  getHealth(node) {
    checkHealth(node);
    return 'ok';
  },
  getVersion: () => ({ 'solana-core': p.API_VERSION, 'feature-set': 0 }),
  getGenesisHash: (node) => base58.encode(node.chain.slots.genesis),
  getFirstAvailableBlock,
  getMinimumBalanceForRentExemption: (node, params) =>
    toNumber(node.chain.svm.minimumBalanceForRentExemption(BigInt(p.whole(params[0], MAX_DATA)))),
};
