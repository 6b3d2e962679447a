// Time: a slot every slotMs, or by hand.

export class Timer {
  /**
   * @param {import('./chain.mjs').Chain} chain
   * @param {number} slotMs 0: slots advance by hand only
   */
  constructor(chain, slotMs) {
    this.chain = chain;
    this.slotMs = slotMs;
    this.paused = slotMs === 0;
    this.offsetMs = chain.slots.timeMs > Date.now() ? chain.slots.timeMs - Date.now() : 0;
    this.interval = null;
    this.restart();
  }

  restart() {
    clearInterval(this.interval);
    this.interval = null;
    if (this.paused || this.slotMs === 0) return;
    this.interval = setInterval(() => this.chain.advance(Date.now() + this.offsetMs), this.slotMs);
  }

  pause() {
    this.paused = true;
    this.restart();
    return { slot: this.chain.slots.slot };
  }

  resume() {
    this.paused = this.slotMs === 0;
    this.restart();
    return { slot: this.chain.slots.slot };
  }

  /** @param {number} slotMs */
  setSlotMs(slotMs) {
    this.slotMs = slotMs;
    this.paused = slotMs === 0;
    if (slotMs > 0) this.chain.slots.slotMs = slotMs;
    this.restart();
    return { slot_ms: slotMs };
  }

  /** Sets the chain's clock, from the next slot on, forwards or back. */
  setTime(unixMs) {
    this.offsetMs = unixMs - Date.now();
    this.chain.slots.timeMs = unixMs;
    this.chain.syncClock();
  }

  stop() {
    clearInterval(this.interval);
  }
}
