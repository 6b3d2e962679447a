// What a follower knows of the market, whichever way the messages came: one
// state a stream (a channel of a symbol), held to its chain of numbers, to the
// checksums, to the heartbeats, and to REST at the same epoch and number.
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Board, Book, Gap, Mismatch, Quote, Tape } from './book.mjs';

const patience = 240_000; // ms for one question to REST, and for the last comparison
const meetWithin = 2_000; // for the feed to come to where REST was
const restPage = 100; // trades

const makers = { l2: Book, trades: Tape, ticker: Quote, tickets: Board };

/** Market is the state of all streams of a follower. */
export class Market {
  /** rest is REST's URL; onFault hears of the first thing that is wrong. */
  constructor({ rest, symbols, channels, depth, onFault }) {
    this.rest = rest;
    this.symbols = symbols;
    this.depth = depth;
    this.onFault = onFault;
    this.epoch = null;
    this.fault = null;
    this.streams = new Map();
    for (const symbol of symbols) {
      for (const channel of channels) {
        const state = new makers[channel](symbol, depth);
        this.streams.set(`${channel}:${symbol}`, { channel, symbol, state, lost: false, broken: false });
      }
    }
    this.comparisons = new Set();
    this.counts = {
      messages: 0, snapshots: 0, updates: 0, trades: 0, tickers: 0, tickets: 0, heartbeats: 0, epochs: 0,
      lost: 0, noticed: 0, overtaken: 0, repeated: 0, healed: 0, depth_compared: 0, trades_compared: 0, tickets_compared: 0,
    };
  }

  /** fail notes the first fault. */
  fail(error) {
    if (this.fault !== null) return;
    this.fault = error;
    this.onFault(error);
  }

  /** resumePoints is where a client that comes back left off. */
  resumePoints() {
    const points = { epoch: this.epoch };
    for (const [name, s] of this.streams) {
      if (s.channel !== 'ticker' && s.state.epoch === this.epoch && !s.broken) points[name] = s.state.seq;
    }
    return points;
  }

  /** welcome takes a connection's first message. It throws Mismatch. */
  welcome(m) {
    if (m.epoch === this.epoch) return;
    this.counts.epochs++;
    if (this.epoch !== null && !(Number(m.epoch.slice(1)) > Number(this.epoch.slice(1)))) {
      throw new Mismatch(`epoch ${m.epoch} after ${this.epoch}`);
    }
    this.epoch = m.epoch;
  }

  /** heartbeat holds every stream to the number that the server says it is at. It throws Mismatch. */
  heartbeat(m) {
    this.counts.heartbeats++;
    for (const [name, seq] of Object.entries(m.seqs)) {
      const s = this.streams.get(name);
      if (s === undefined) throw new Mismatch(`heartbeat: ${name} was not asked for`);
      if (s.broken) continue;
      if (s.state.seq === seq) this.#mend(s); // also where the server has told again what was lost
      else if (!s.lost) throw new Mismatch(`heartbeat: ${name} is at ${seq}, we are at ${s.state.seq}`);
      else this.#notice(s);
    }
  }

  /**
   * take takes a message of a stream; again: the server may repeat what it sent
   * before the connection broke. It throws Mismatch.
   */
  take(m, again = false) {
    const s = this.streams.get(`${m.channel}:${m.symbol}`);
    if (s === undefined) throw new Mismatch(`nobody asked for ${JSON.stringify(m).slice(0, 300)}`);
    this.counts.messages++;
    if (s.broken && m.type !== 'snapshot') return;
    if (again && m.type !== 'snapshot' && m.epoch === s.state.epoch && m.seq <= s.state.seq) {
      this.counts.repeated++;
      return;
    }
    if (m.type === 'snapshot') this.#mend(s);
    try {
      this.counts.trades += s.state.apply(m) ?? 0;
    } catch (error) {
      if (!(error instanceof Gap) || !s.lost) throw error;
      this.#notice(s);
      return;
    }
    if (s.channel === 'ticker') this.counts.tickers++;
    else if (s.channel === 'tickets') this.counts.tickets++;
    else this.counts[m.type === 'snapshot' ? 'snapshots' : 'updates']++;
    for (const c of this.comparisons) {
      if (c.stream === s) c.take(m);
    }
    if (s.state.holes?.length > 0) this.#heal(s);
  }

  /** lose has a follower throw away an update of a whole stream, and reports whether it may. */
  lose(m) {
    const s = this.streams.get(`${m.channel}:${m.symbol}`);
    if (m.type !== 'update' || s === undefined || s.lost || s.broken) return false;
    s.lost = true;
    this.counts.lost++;
    this.#forget(s);
    return true;
  }

  /** resumed takes the gaps for closed: the streams of these symbols go on from before them. */
  resumed(symbols) {
    for (const s of this.streams.values()) {
      if (symbols.includes(s.symbol) && !s.broken) this.#mend(s);
    }
  }

  // notice takes a gap for found: the stream waits for a snapshot.
  #notice(s) {
    this.counts.noticed++;
    Object.assign(s, { lost: false, broken: true });
    this.#forget(s);
    this.onGap(s);
  }

  #mend(s) {
    if (s.lost) this.counts.overtaken++;
    Object.assign(s, { lost: false, broken: false });
  }

  // forget ends the comparisons of a stream that can no longer meet REST.
  #forget(s) {
    for (const c of this.comparisons) {
      if (c.stream === s) c.finish(false);
    }
  }

  // heal asks REST for the trades that a snapshot has passed over.
  async #heal(s) {
    const { after, before } = s.state.holes.shift();
    for (let cursor = before, tries = 0; ; ) {
      let page;
      try {
        page = (await this.ask('trades', s.symbol, restPage, `&before=${cursor}`)).trades;
      } catch (error) {
        if (++tries > 100) return this.fail(error); // the server may be down now
        await sleep(100);
        continue;
      }
      for (const t of page) {
        if (t.trade_id <= after) return undefined;
        if (!s.state.byID.has(t.trade_id)) this.counts.healed++;
        try {
          s.state.note(t);
        } catch (error) {
          return this.fail(error);
        }
      }
      if (page.length < restPage) return undefined;
      cursor = page[page.length - 1].trade_id;
    }
  }

  /** ask asks REST. */
  ask(path, symbol, limit, more = '') {
    return this.#get(`${this.rest}/api/v1/market/${path}?symbol=${encodeURIComponent(symbol)}&limit=${limit}${more}`);
  }

  async #get(url) {
    const answer = await fetch(url, { signal: AbortSignal.timeout(patience) });
    if (!answer.ok) throw new Error(`${url}: status ${answer.status}`);
    return answer.json();
  }

  /** checkREST compares one stream with REST; false = they did not meet. */
  async checkREST(s) {
    if (s.lost || s.broken) return false;
    if (s.channel === 'tickets') return this.#checkTickets(s);
    const c = new Comparison(this, s);
    this.comparisons.add(c);
    const timer = setTimeout(() => c.finish(false), meetWithin);
    try {
      c.answer = await (s.channel === 'l2' ? this.ask('depth', s.symbol, this.depth) : this.ask('trades', s.symbol, restPage));
      c.compare();
      return await c.done;
    } catch (error) {
      if (error instanceof Mismatch) this.fail(error);
      throw error;
    } finally {
      clearTimeout(timer);
      this.comparisons.delete(c);
    }
  }

  /** whole reports whether every stream is at a number of this epoch and none waits to be mended. */
  whole() {
    return [...this.streams.values()].every((s) => !s.lost && !s.broken && s.state.epoch === this.epoch);
  }

  // checkTickets compares a board with the desk's own list, which has no number of
  // the stream: the two meet where the board has not moved meanwhile.
  async #checkTickets(s) {
    const { epoch, seq } = s.state;
    const answer = await this.#get(`${this.rest}/api/v1/rfq/market-tickets`);
    const theirs = answer.tickets.filter((t) => t.pair === s.symbol).map((t) => JSON.stringify(t)).sort();
    if (epoch !== s.state.epoch || seq !== s.state.seq) return false;
    if (JSON.stringify(theirs) !== JSON.stringify(s.state.list())) return false; // one is on its way, or finish says so
    this.counts.tickets_compared++;
    return true;
  }

  /** compared are the streams that REST has too. */
  *compared() {
    for (const s of this.streams.values()) {
      if (s.channel !== 'ticker') yield s;
    }
  }

  /** checkAll compares what meets, and passes over what does not. */
  async checkAll() {
    for (const s of this.compared()) {
      await this.checkREST(s).catch(() => false); // the server may be down now
      if (this.fault !== null) return;
    }
  }

  /** finish compares every stream once more: the feed and REST must meet. */
  async finish() {
    for (const s of this.compared()) {
      const until = Date.now() + patience;
      let problem = 'they never were at the same number';
      for (let met = false; !met && this.fault === null; ) {
        met = await this.checkREST(s).catch((error) => {
          problem = error.message;
          return false;
        });
        if (!met && Date.now() > until) {
          return this.fail(new Mismatch(`${s.channel} ${s.symbol}: not compared with REST: ${problem}`));
        }
        if (!met) await sleep(20);
      }
    }
    return undefined;
  }

  /** tapes sums up the trades of each symbol: their number, and a hash of them all in their order. */
  tapes() {
    const out = {};
    for (const s of this.streams.values()) {
      if (s.channel !== 'trades') continue;
      const hash = createHash('sha256');
      const ids = [...s.state.byID.keys()].sort((a, b) => a - b);
      for (const id of ids) hash.update(`${s.state.byID.get(id)}\n`);
      out[s.symbol] = { trades: ids.length, sha256: hash.digest('hex') };
    }
    return out;
  }

  /** places are the number of each stream at the end. */
  places() {
    return Object.fromEntries([...this.streams].map(([name, s]) => [name, s.state.seq]));
  }
}

// A Comparison holds a REST answer to the feed at the same epoch and number.
// REST is never behind the feed, so the feed's state from before the question
// and the messages since lead to the answer's.
class Comparison {
  constructor(market, stream) {
    this.market = market;
    this.stream = stream;
    this.from = stream.channel === 'l2' ? stream.state.clone() : stream.state;
    this.start = { epoch: stream.state.epoch, seq: stream.state.seq };
    this.messages = [];
    this.done = new Promise((resolve) => {
      this.finish = resolve;
    });
  }

  /** take notes a message, and compares when the answer is there. */
  take(m) {
    if (this.stream.channel === 'l2') this.messages.push(m);
    if (this.answer) this.compare();
  }

  compare() {
    const { answer, start, stream } = this;
    // A restart lies between.
    if (answer.epoch !== stream.state.epoch || start.epoch !== stream.state.epoch) return this.finish(false);
    if (answer.seq < start.seq) {
      throw new Mismatch(`${stream.symbol}: REST is at ${answer.seq}, the feed was at ${start.seq} before`);
    }
    if (stream.state.seq < answer.seq) return undefined; // on its way
    return this.finish(stream.channel === 'l2' ? this.#depth() : this.#trades());
  }

  #depth() {
    const { answer, from: book, market } = this;
    while (book.seq < answer.seq && this.messages.length > 0) book.apply(this.messages.shift());
    if (book.seq !== answer.seq) return false; // a snapshot has passed over it
    for (const side of ['bids', 'asks']) {
      const [theirs, ours] = [JSON.stringify(answer[side]), JSON.stringify(book.levels(side))];
      if (theirs !== ours) {
        throw new Mismatch(`${book.symbol} at ${answer.epoch} ${answer.seq}: ${side} of REST ${theirs}, of the feed ${ours}`);
      }
    }
    market.counts.depth_compared++;
    return true;
  }

  #trades() {
    const { answer, from: tape, market } = this;
    const last = tape.lastAt.get(answer.seq);
    if (last === undefined) return false;
    if (answer.trades.length > 0 && answer.trades[0].trade_id !== last) {
      throw new Mismatch(`${tape.symbol} at ${answer.seq}: the last trade is ${answer.trades[0].trade_id} by REST, ${last} by the feed`);
    }
    for (const t of answer.trades) {
      if (tape.byID.has(t.trade_id)) tape.note(t); // others are older than our first snapshot
    }
    market.counts.trades_compared++;
    return true;
  }
}
