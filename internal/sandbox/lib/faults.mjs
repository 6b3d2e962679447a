// What can be made to go wrong, and for how many requests.

import { invalidParams, RpcError } from './errors.mjs';
import { MAX_WAITING } from './chain.mjs';

export class Faults {
  /** @param {import('./chain.mjs').Chain} chain */
  constructor(chain) {
    this.chain = chain;
    this.reset();
  }

  /** Heals everything; what waits to land still lands. */
  reset() {
    this.drops = 0;
    this.fails = 0;
    this.failure = null;
    this.lost = 0;
    this.garbage = 0;
    this.landingSlots = 0;
    this.answerDelayMs = 0;
    this.unhealthy = false;
    /** @type {'up' | '503' | 'reset' | 'hang'} */
    this.node = 'up';
    this.loseAnswer = false;
    this.chain.slots.lag = 0;
    this.chain.slots.finalityHeld = false;
  }

  /**
   * What befalls the next sendTransaction: a failed one is answered with an
   * error and a dropped one with its signature, neither lands; a lost one lands
   * and is not answered.
   * @returns {RpcError | 'drop' | 'lose' | null}
   */
  onSend() {
    if (this.fails > 0) {
      this.fails--;
      return this.failure;
    }
    if (this.drops > 0) {
      this.drops--;
      return 'drop';
    }
    if (this.lost > 0) {
      this.lost--;
      return 'lose';
    }
    return null;
  }

  /** The connection of the request at hand ends without an answer. */
  loseThisAnswer() {
    this.loseAnswer = true;
  }

  /** @returns {boolean} whether to end it, once */
  takeLostAnswer() {
    const lost = this.loseAnswer;
    this.loseAnswer = false;
    return lost;
  }

  /** Lets a transaction land some slots later. */
  wait(tx) {
    const { chain } = this;
    if (chain.waiting.length >= MAX_WAITING) throw invalidParams(`more than ${MAX_WAITING} transactions wait to land`);
    chain.waiting.push({ tx: { ...tx, wire: Buffer.from(tx.wire) }, slot: chain.slots.slot + this.landingSlots });
  }

  /** What is set, for a person or a test to see. */
  show() {
    return {
      drops: this.drops, fails: this.fails, lost: this.lost, garbage: this.garbage, landing_slots: this.landingSlots,
      answer_delay_ms: this.answerDelayMs, unhealthy: this.unhealthy, node: this.node,
      lag_slots: this.chain.slots.lag, finality_held: this.chain.slots.finalityHeld, waiting: this.chain.waiting.length,
    };
  }
}
