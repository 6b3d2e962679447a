// Slots, block times, commitment levels and the window of recent blockhashes.
// Block heights lie below slots, further with each slot that is skipped: who
// mixes the two up is found out here and not on mainnet.

import { createHash } from 'node:crypto';
import * as base58 from './base58.mjs';

/** The first slot of a new chain. */
export const FIRST_SLOT = 500;
/** The block height of the first slot. */
export const FIRST_HEIGHT = 250;
/** By default, as on mainnet, a blockhash is good for a block at most this many above its own. */
export const BLOCKHASH_SLOTS = 150;
/** The most that may be set: the heights of that many slots are kept. */
export const MAX_BLOCKHASH_SLOTS = 100000;
export const SLOTS_PER_EPOCH = 432000;

const SPARE_BLOCKHASHES = 2048; // kept beyond their life, for levels below the newest slot
const MAX_BLOCK_TIMES = 200000; // about a day of slots
const MAX_SAVED_TIMES = 5000;

/** @typedef {'processed' | 'confirmed' | 'finalized'} Commitment */

export class Slots {
  /**
   * @param {{confirmSlots: number, finalizeSlots: number, blockhashSlots?: number, slotMs: number, genesis: Buffer, nowMs: number}} options
   *   confirmSlots and finalizeSlots: after how many slots a block reaches the level
   *   blockhashSlots: a blockhash is good for a block at most this many above its own
   */
  constructor(options) {
    this.confirmSlots = options.confirmSlots;
    this.finalizeSlots = options.finalizeSlots;
    this.blockhashSlots = options.blockhashSlots ?? BLOCKHASH_SLOTS;
    this.slotMs = options.slotMs;
    this.genesis = options.genesis;
    /** The newest slot; it has a block. */
    this.slot = FIRST_SLOT - 1;
    this.newestHeight = FIRST_HEIGHT - 1;
    this.confirmed = FIRST_SLOT;
    this.finalized = FIRST_SLOT;
    this.finalityHeld = false;
    this.lag = 0;
    this.timeMs = options.nowMs - options.finalizeSlots * options.slotMs;
    /** @type {Map<string, number>} blockhash to its slot, oldest first */
    this.hashes = new Map();
    /** @type {Map<number, string>} */
    this.hashOf = new Map();
    /** @type {Map<number, number>} slot to Unix seconds, oldest first; skipped slots are not in it */
    this.times = new Map();
    /** @type {Map<number, number>} slot to block height, as times */
    this.heights = new Map();
    // A new chain is as old as its finality, so that the levels are apart.
    while (this.slot < FIRST_SLOT + this.finalizeSlots) this.advance();
  }

  /**
   * Opens the next slot.
   * @param {number} [nowMs] the wall clock, where time runs by it
   */
  advance(nowMs) {
    this.slot++;
    this.newestHeight++;
    this.heights.set(this.slot, this.newestHeight);
    trim(this.heights, MAX_BLOCK_TIMES);
    this.timeMs = nowMs === undefined ? this.timeMs + this.slotMs : Math.max(this.timeMs, nowMs);
    this.times.set(this.slot, Math.floor(this.timeMs / 1000));
    trim(this.times, MAX_BLOCK_TIMES);
    const hash = base58.encode(createHash('sha256').update(this.genesis).update(String(this.slot)).digest());
    this.hashes.set(hash, this.slot);
    this.hashOf.set(this.slot, hash);
    trim(this.hashes, this.blockhashSlots + SPARE_BLOCKHASHES);
    trim(this.hashOf, this.blockhashSlots + SPARE_BLOCKHASHES);
    this.confirmed = Math.max(this.confirmed, this.slot - this.confirmSlots);
    if (!this.finalityHeld) this.finalized = Math.max(this.finalized, this.slot - this.finalizeSlots);
  }

  /**
   * Passes slots without a block.
   * @param {number} count
   */
  skip(count) {
    this.slot += count;
    this.timeMs += count * this.slotMs;
  }

  /**
   * The newest slot with a block at a commitment level, as the node tells it: a
   * node made to lag tells an older one.
   * @param {Commitment} commitment
   */
  at(commitment) {
    const oldest = this.times.keys().next().value;
    let slot = Math.max(oldest, this.true(commitment) - this.lag);
    while (!this.times.has(slot)) slot--;
    return slot;
  }

  true(commitment) {
    if (commitment === 'processed') return this.slot;
    return commitment === 'confirmed' ? this.confirmed : this.finalized;
  }

  /**
   * The level that a slot has reached, or null where the node has not seen it.
   * @param {number} slot
   * @returns {Commitment | null}
   */
  levelOf(slot) {
    if (slot <= this.at('finalized')) return 'finalized';
    if (slot <= this.at('confirmed')) return 'confirmed';
    return slot <= this.at('processed') ? 'processed' : null;
  }

  /** @param {number} slot one with a block */
  height(slot) {
    return this.heights.get(slot);
  }

  /** @param {Commitment} commitment */
  latestBlockhash(commitment) {
    const slot = this.at(commitment);
    const hash = this.hashOf.get(slot) ?? this.hashOf.get(this.slot);
    return { blockhash: hash, lastValidBlockHeight: this.height(slot) + this.blockhashSlots };
  }

  /**
   * Whether a block on top of the bank at slot takes a transaction with hash.
   * @param {string} hash
   * @param {number} slot
   */
  isValid(hash, slot) {
    const born = this.hashes.get(hash);
    return born !== undefined && born <= slot && this.height(slot) - this.height(born) <= this.blockhashSlots;
  }

  /** What a restart needs. */
  save() {
    return {
      genesis: this.genesis.toString('base64'), slot: this.slot, confirmed: this.confirmed, finalized: this.finalized,
      timeMs: this.timeMs, hashes: [...this.hashes], times: [...this.times].slice(-MAX_SAVED_TIMES),
      newestHeight: this.newestHeight, heights: [...this.heights].slice(-Math.max(MAX_SAVED_TIMES, this.hashes.size)),
    };
  }

  /** @param {ReturnType<Slots['save']>} saved */
  load(saved) {
    this.genesis = Buffer.from(saved.genesis, 'base64');
    this.slot = saved.slot;
    this.confirmed = saved.confirmed;
    this.finalized = saved.finalized;
    this.timeMs = saved.timeMs;
    this.hashes = new Map(saved.hashes);
    this.hashOf = new Map(saved.hashes.map(([hash, slot]) => [slot, hash]));
    this.times = new Map(saved.times);
    this.newestHeight = saved.newestHeight;
    this.heights = new Map(saved.heights);
  }
}

/** Drops a map's oldest entry where it has more than limit. */
function trim(map, limit) {
  if (map.size > limit) map.delete(map.keys().next().value);
}
