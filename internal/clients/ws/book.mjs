// A client's own copy of one symbol's market, made of the feed's messages
// alone. Prices and quantities stay texts; nothing here is a float.
import { crc32 } from './crc32.mjs';

/** A Mismatch is a message that does not fit what came before it. */
export class Mismatch extends Error {}

/** A Gap is a Mismatch that a message in between would explain. */
export class Gap extends Mismatch {}

// compare orders positive decimals of one fixed precision.
const compare = (a, b) => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);

// digits returns a decimal as Kraken's checksum takes it.
const digits = (decimal) => decimal.replace('.', '').replace(/^0+/, '');

const checksumLevels = 10; // a side

// follows holds an update to the place that the copy is at.
function follows(m, copy) {
  if (m.epoch === copy.epoch && m.prev_seq === copy.seq && m.seq === copy.seq + 1) return;
  throw new Gap(`${m.channel} ${m.symbol}: at ${copy.epoch} ${copy.seq}, then ${m.epoch} ${m.prev_seq} -> ${m.seq}`);
}

/** Book is the order book of one symbol, rebuilt from l2 messages. */
export class Book {
  constructor(symbol, depth) {
    this.symbol = symbol;
    this.depth = depth;
    this.epoch = null;
    this.seq = 0;
    this.bids = new Map(); // quantity by price
    this.asks = new Map();
  }

  /** apply takes one l2 message. It throws Mismatch. */
  apply(m) {
    if (m.type === 'snapshot') {
      this.bids.clear();
      this.asks.clear();
    } else {
      follows(m, this);
    }
    this.epoch = m.epoch;
    this.seq = m.seq;
    this.#change(this.bids, m.bids);
    this.#change(this.asks, m.asks);
    const sum = this.checksum();
    if (sum !== m.checksum) {
      throw new Mismatch(`l2 ${this.symbol} seq ${m.seq}: checksum ${sum}, the message has ${m.checksum}`);
    }
  }

  #change(side, levels) {
    for (const [price, qty] of levels) {
      if (qty !== '0') {
        side.set(price, qty);
      } else if (!side.delete(price)) {
        throw new Mismatch(`l2 ${this.symbol} seq ${this.seq}: ${price} is deleted and was not there`);
      }
    }
    if (side.size > this.depth) {
      throw new Mismatch(`l2 ${this.symbol} seq ${this.seq}: ${side.size} levels, ${this.depth} were asked for`);
    }
  }

  /** clone returns a copy that goes its own way. */
  clone() {
    const copy = new Book(this.symbol, this.depth);
    Object.assign(copy, { epoch: this.epoch, seq: this.seq, bids: new Map(this.bids), asks: new Map(this.asks) });
    return copy;
  }

  /** levels returns a side's levels, best first. */
  levels(side) {
    const sign = side === 'bids' ? -1 : 1;
    return [...this[side]].sort((a, b) => sign * compare(a[0], b[0]));
  }

  /** checksum is Kraken's: asks then bids, the ten best of each. */
  checksum() {
    let text = '';
    for (const side of ['asks', 'bids']) {
      for (const [price, qty] of this.levels(side).slice(0, checksumLevels)) text += digits(price) + digits(qty);
    }
    return crc32(text);
  }
}

const keptTrades = 1_000_000;
const keptPlaces = 10_000;

/** Tape is the trades of one symbol, in their order. */
export class Tape {
  constructor(symbol) {
    this.symbol = symbol;
    this.epoch = null;
    this.seq = 0;
    this.last = 0; // trade_id
    this.byID = new Map();
    this.lastAt = new Map(); // trade_id of the last trade, by seq of this epoch
    this.holes = []; // {after, before}: trades that a snapshot may have passed over
  }

  /** apply takes one trades message and returns how many trades are new. It throws Mismatch. */
  apply(m) {
    if (m.type !== 'snapshot') follows(m, this);
    const before = this.last;
    if (m.epoch !== this.epoch) this.lastAt.clear();
    this.epoch = m.epoch;
    this.seq = m.seq;
    const fresh = m.trades.filter((t) => this.#take(m, t)).length;
    this.lastAt.set(m.seq, this.last);
    if (this.lastAt.size > keptPlaces) this.lastAt.delete(this.lastAt.keys().next().value);
    if (m.type === 'snapshot') this.#holds(m.trades);
    if (fresh > 0 && m.type === 'snapshot' && m.trades[0].trade_id > before) {
      this.holes.push({ after: before, before: m.trades[0].trade_id });
    }
    return fresh;
  }

  // take reports whether t is new; one that is not must say what it said.
  #take(m, t) {
    if (t.trade_id > this.last) {
      this.last = t.trade_id;
      this.note(t);
      return true;
    }
    if (m.type !== 'snapshot') throw new Mismatch(`trades ${this.symbol}: trade ${t.trade_id} came after ${this.last}`);
    this.note(t);
    return false;
  }

  /** note keeps a trade, which must be what it was when it was seen before. It throws Mismatch. */
  note({ trade_id, price, qty, side, ts }) {
    const text = `${trade_id},${price},${qty},${side},${ts}`;
    const known = this.byID.get(trade_id);
    if (known !== undefined && known !== text) throw new Mismatch(`trade ${known} of ${this.symbol} is ${text} now`);
    this.byID.set(trade_id, text);
    if (this.byID.size > keptTrades) throw new Mismatch(`more than ${keptTrades} trades`);
  }

  // holds checks that a snapshot has every trade that was seen and is not older
  // than its first one: a restart loses none.
  #holds(trades) {
    if (trades.length === 0) {
      if (this.byID.size > 0) throw new Mismatch(`trades ${this.symbol}: the snapshot is empty, ${this.last} was seen`);
      return;
    }
    const there = new Set(trades.map((t) => t.trade_id));
    for (const id of this.byID.keys()) {
      if (id >= trades[0].trade_id && !there.has(id)) throw new Mismatch(`trade ${id} of ${this.symbol} is gone`);
    }
  }
}

/** Quote is the ticker of one symbol, which may skip numbers but never goes back. */
export class Quote {
  constructor(symbol) {
    this.symbol = symbol;
    this.epoch = null;
    this.seq = 0;
  }

  /** apply takes one ticker message. It throws Mismatch. */
  apply(m) {
    if (m.type !== 'snapshot' && m.epoch === this.epoch && m.seq <= this.seq) {
      throw new Mismatch(`ticker ${m.symbol}: seq ${m.seq} after ${this.seq}`);
    }
    this.epoch = m.epoch;
    this.seq = m.seq;
  }
}

/** Board is the desk's tickets of one pair. */
export class Board {
  constructor(symbol) {
    this.symbol = symbol;
    this.epoch = null;
    this.seq = 0;
    this.byID = new Map(); // the record's text, by order_id
  }

  /** apply takes one tickets message. It throws Mismatch. */
  apply(m) {
    if (m.type === 'snapshot') this.byID.clear();
    else follows(m, this);
    this.epoch = m.epoch;
    this.seq = m.seq;
    for (const t of m.tickets) {
      if (t.pair !== this.symbol) throw new Mismatch(`tickets ${this.symbol}: ${t.order_id} is of ${t.pair}`);
      this.byID.set(t.order_id, JSON.stringify(t));
    }
    for (const id of m.gone ?? []) {
      if (!this.byID.delete(id)) throw new Mismatch(`tickets ${this.symbol}: ${id} is gone and was not there`);
    }
  }

  /** list returns the records, in an order of their own. */
  list() {
    return [...this.byID.values()].sort();
  }
}
