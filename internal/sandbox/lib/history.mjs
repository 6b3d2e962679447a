// Transactions that landed: by signature, by message and by address, the newest
// of them up to a named limit.

/**
 * @typedef {object} Landed
 * @property {number} sequence order of landing, from 1
 * @property {string} signature
 * @property {number} slot
 * @property {number} blockTime Unix seconds
 * @property {Buffer} wire
 * @property {string} hash messageHash
 * @property {string[]} addresses all keys, loaded ones last
 * @property {string | null} memo
 * @property {Record<string, any>} meta as getTransaction answers it in its raw encodings
 */

export class History {
  /** @param {number} limit transactions kept, at least 1 */
  constructor(limit) {
    this.limit = limit;
    this.sequence = 0;
    /** The newest slot of which a transaction was dropped; -1 if none was. */
    this.dropped = -1;
    /** @type {Map<string, Landed>} oldest first */
    this.bySignature = new Map();
    /** @type {Map<string, number>} message to the block height it ran at */
    this.messages = new Map();
    /** @type {Map<string, Landed[]>} oldest first */
    this.byAddress = new Map();
  }

  /**
   * @param {Landed} landed its sequence is given here
   * @param {number} height of its block
   */
  add(landed, height) {
    landed.sequence = ++this.sequence;
    this.bySignature.set(landed.signature, landed);
    this.messages.set(landed.hash, height);
    for (const address of landed.addresses) {
      const list = this.byAddress.get(address);
      if (list === undefined) this.byAddress.set(address, [landed]);
      else list.push(landed);
    }
    if (this.bySignature.size > this.limit) this.drop(this.bySignature.values().next().value);
  }

  /** Forgets the oldest; its message is remembered by expire's rule. */
  drop(landed) {
    this.dropped = landed.slot;
    this.bySignature.delete(landed.signature);
    for (const address of landed.addresses) {
      const list = this.byAddress.get(address);
      if (list === undefined) continue;
      list.shift();
      if (list.length === 0) this.byAddress.delete(address);
    }
  }

  /**
   * Forgets messages whose blockhash cannot be valid any more.
   * @param {number} height the newest
   * @param {number} life of a blockhash, in blocks
   */
  expire(height, life) {
    for (const [hash, ran] of this.messages) {
      if (height - ran <= life) return;
      this.messages.delete(hash);
    }
  }

  /** @param {string} hash */
  hasRun(hash) {
    return this.messages.has(hash);
  }

  /**
   * The transactions that landed after a place in the order, oldest first.
   * @param {number} sequence
   * @returns {Landed[]}
   */
  since(sequence) {
    return [...this.bySignature.values()].filter((landed) => landed.sequence > sequence);
  }

  /** All but the transactions themselves. */
  save() {
    return { sequence: this.sequence, messages: [...this.messages] };
  }

  /**
   * @param {ReturnType<History['save']>} saved
   * @param {Landed[]} landed oldest first, the last of them saved.sequence
   */
  load(saved, landed) {
    for (const one of landed) {
      this.sequence = one.sequence - 1; // add gives it its old place
      this.add(one, 0);
    }
    if (saved.sequence > landed.length && landed.length > 0) this.dropped = Math.max(this.dropped, landed[0].slot);
    this.sequence = saved.sequence;
    this.messages = new Map(saved.messages);
  }
}
