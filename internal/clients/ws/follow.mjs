// Follows the WebSocket feed with npm's ws, a client that is not ours, and
// checks every message: the chain of sequence numbers, the checksum of the
// rebuilt book, the trades, the heartbeats; and the book and the trades against
// REST at the same epoch and sequence number. It comes back by itself, with
// resume, after the server has restarted and once on its own account.
//
//   node follow.mjs --ws ws://HOST:PORT --rest http://HOST:PORT --symbols A/B,C/D --seconds N
//
// The last line is JSON with the counts; the exit code is 0 only when nothing
// was wrong.
import { parseArgs } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from 'ws';
import { Book, Mismatch, Tape } from './book.mjs';

const depth = 100;
const silence = 4_000; // ms without a message, heartbeats included
const retryPause = 50;
const restPause = 200; // between two comparisons with REST
const patience = 10_000; // for the last comparison, and to come back

const { values: args } = parseArgs({
  options: { ws: { type: 'string' }, rest: { type: 'string' }, symbols: { type: 'string' }, seconds: { type: 'string' } },
});
const symbols = args.symbols.split(',');
const endAt = Date.now() + Number(args.seconds) * 1000;

const counts = {
  messages: 0, snapshots: 0, updates: 0, trades: 0, tickers: 0, heartbeats: 0,
  connections: 0, resumed: 0, epochs: 0, depth_compared: 0, trades_compared: 0,
};
const books = new Map(symbols.map((s) => [s, new Book(s, depth)]));
const tapes = new Map(symbols.map((s) => [s, new Tape(s)]));
const tickers = new Map(); // by symbol: {epoch, seq}
let socket = null;
let epoch = null;
let lastMessage = Date.now();
let fault = null;

function fail(error) {
  if (fault === null) {
    fault = error;
    console.error(`FAILED: ${error.message}`);
  }
  socket?.terminate();
}

function state(channel, symbol) {
  return { l2: books, trades: tapes, ticker: tickers }[channel].get(symbol);
}

// resumePoints is where a client that comes back left off.
function resumePoints() {
  const points = { epoch };
  for (const symbol of symbols) {
    if (books.get(symbol).epoch === epoch) points[`l2:${symbol}`] = books.get(symbol).seq;
    if (tapes.get(symbol).epoch === epoch) points[`trades:${symbol}`] = tapes.get(symbol).seq;
  }
  return points;
}

function subscribe(ws) {
  const request = {
    action: 'SUBSCRIBE_MARKET', id: String(counts.connections), channels: ['l2', 'trades', 'ticker'],
    symbols, depth, heartbeat: true,
  };
  if (epoch !== null) request.resume = resumePoints();
  ws.send(JSON.stringify(request));
}

function onAck(m) {
  if (!m.success || m.rejected.length > 0 || m.id !== String(counts.connections)) {
    throw new Mismatch(`the ack is ${JSON.stringify(m)}`);
  }
  if (m.subscribed.length !== 3 * symbols.length) throw new Mismatch(`${m.subscribed.length} subscriptions`);
  for (const s of m.subscribed) {
    if (s.resumed) counts.resumed++;
  }
}

function onWelcome(m) {
  if (m.epoch !== epoch) {
    counts.epochs++;
    if (epoch !== null && !(Number(m.epoch.slice(1)) > Number(epoch.slice(1)))) {
      throw new Mismatch(`epoch ${m.epoch} after ${epoch}`);
    }
    for (const t of tickers.values()) t.seq = 0;
    epoch = m.epoch;
  }
}

function onTicker(m) {
  const known = tickers.get(m.symbol);
  if (known?.epoch === m.epoch && m.seq <= known.seq && m.type !== 'snapshot') {
    throw new Mismatch(`ticker ${m.symbol}: seq ${m.seq} after ${known.seq}`);
  }
  tickers.set(m.symbol, { epoch: m.epoch, seq: m.seq });
  counts.tickers++;
}

// onHeartbeat holds every stream to the number that the server says it is at.
function onHeartbeat(m) {
  counts.heartbeats++;
  for (const [stream, seq] of Object.entries(m.seqs)) {
    const [channel, symbol] = [stream.slice(0, stream.indexOf(':')), stream.slice(stream.indexOf(':') + 1)];
    const ours = state(channel, symbol)?.seq;
    if (ours !== seq) throw new Mismatch(`heartbeat: ${stream} is at ${seq}, we are at ${ours}`);
  }
}

function onMessage(m) {
  counts.messages++;
  switch (m.channel) {
    case 'status':
      return onWelcome(m);
    case 'control':
      if (m.type === 'ack') return onAck(m);
      throw new Mismatch(`the server says ${JSON.stringify(m)}`);
    case 'heartbeat':
      return onHeartbeat(m);
    case 'ticker':
      return onTicker(m);
    case 'l2':
      counts[m.type === 'snapshot' ? 'snapshots' : 'updates']++;
      books.get(m.symbol).apply(m);
      return settle('l2', m);
    case 'trades':
      counts.trades += tapes.get(m.symbol).apply(m);
      return settle('trades', m);
    default:
      throw new Mismatch(`unknown channel: ${JSON.stringify(m)}`);
  }
}

function connect() {
  const ws = new WebSocket(`${args.ws}/ws/rfq`);
  socket = ws;
  ws.on('open', () => {
    counts.connections++;
    lastMessage = Date.now();
    subscribe(ws);
  });
  ws.on('message', (data) => {
    if (ws !== socket || fault !== null) return;
    lastMessage = Date.now();
    try {
      onMessage(JSON.parse(data));
    } catch (error) {
      fail(error);
    }
  });
  ws.on('error', () => {}); // 'close' follows
  ws.on('close', async () => {
    if (ws !== socket || fault !== null || Date.now() > endAt + patience) return;
    await sleep(retryPause);
    connect();
  });
}

async function rest(path, symbol, limit) {
  const url = `${args.rest}/api/v1/market/${path}?symbol=${encodeURIComponent(symbol)}&limit=${limit}`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(patience) });
  if (!answer.ok) throw new Error(`${url}: status ${answer.status}`);
  return answer.json();
}

// A Comparison holds a REST answer to the feed at the same epoch and number.
// REST is never behind the feed, so the feed's state from before the question
// and the messages since lead to the answer's.
class Comparison {
  constructor(channel, symbol) {
    this.channel = channel;
    this.symbol = symbol;
    this.from = state(channel, symbol);
    if (channel === 'l2') this.from = this.from.clone();
    this.start = { epoch: this.from.epoch, seq: this.from.seq };
    this.messages = [];
    this.done = new Promise((resolve) => {
      this.finish = resolve;
    });
  }

  /** take notes a message, and compares when the answer is there. */
  take(m) {
    if (this.channel === 'l2') this.messages.push(m);
    if (this.answer) this.compare();
  }

  compare() {
    const { answer, start, symbol } = this;
    if (answer.epoch !== epoch || start.epoch !== epoch) return this.finish(false); // a restart lies between
    if (answer.seq < start.seq) throw new Mismatch(`${symbol}: REST is at ${answer.seq}, the feed was at ${start.seq} before`);
    if (state(this.channel, symbol).seq < answer.seq) return undefined; // on its way
    if (this.channel === 'l2') return this.finish(this.#depth());
    return this.finish(this.#trades());
  }

  #depth() {
    const { answer, from: book } = this;
    while (book.seq < answer.seq && this.messages.length > 0) book.apply(this.messages.shift());
    if (book.seq !== answer.seq) return false; // a snapshot has passed over it
    for (const side of ['bids', 'asks']) {
      const [theirs, ours] = [JSON.stringify(answer[side]), JSON.stringify(book.levels(side))];
      if (theirs !== ours) throw new Mismatch(`${this.symbol} at ${answer.epoch} ${answer.seq}: ${side} of REST ${theirs}, of the feed ${ours}`);
    }
    counts.depth_compared++;
    return true;
  }

  #trades() {
    const { answer, from: tape } = this;
    const last = tape.lastAt.get(answer.seq);
    if (last === undefined) return false;
    if (answer.trades.length > 0 && answer.trades[0].trade_id !== last) {
      throw new Mismatch(`${this.symbol} at ${answer.seq}: the last trade is ${answer.trades[0].trade_id} by REST, ${last} by the feed`);
    }
    for (const t of answer.trades) {
      const known = tape.byID.get(t.trade_id);
      if (known === undefined) continue; // older than our first snapshot
      for (const [key, value] of Object.entries(JSON.parse(known))) {
        if (t[key] !== value) throw new Mismatch(`trade ${t.trade_id}: ${key} is ${t[key]} by REST, ${value} by the feed`);
      }
    }
    counts.trades_compared++;
    return true;
  }
}

const comparisons = new Set();

// settle gives a stream's message to the comparisons that wait for it.
function settle(channel, m) {
  for (const c of comparisons) {
    if (c.channel === channel && c.symbol === m.symbol) c.take(m);
  }
}

// checkREST compares one stream of a symbol; false = they did not meet.
async function checkREST(channel, symbol) {
  const c = new Comparison(channel, symbol);
  comparisons.add(c);
  const timer = setTimeout(() => c.finish(false), 2_000);
  try {
    c.answer = await rest(...(channel === 'l2' ? ['depth', symbol, depth] : ['trades', symbol, 100]));
    c.compare();
    return await c.done;
  } catch (error) {
    if (error instanceof Mismatch) fail(error);
    throw error;
  } finally {
    clearTimeout(timer);
    comparisons.delete(c);
  }
}

// follow compares with REST while the feed runs, and drops the connection once
// to resume it.
async function follow() {
  const dropAt = Date.now() + (endAt - Date.now()) / 4;
  let dropped = false;
  while (fault === null && Date.now() < endAt) {
    await sleep(restPause);
    if (!dropped && Date.now() > dropAt && socket.readyState === WebSocket.OPEN) {
      dropped = true;
      socket.terminate();
    }
    if (Date.now() - lastMessage > silence && socket.readyState === WebSocket.OPEN) {
      return fail(new Mismatch(`no message for ${silence} ms, heartbeats included`));
    }
    for (const symbol of symbols) {
      for (const channel of ['l2', 'trades']) {
        await checkREST(channel, symbol).catch(() => false); // the server may be down now
      }
    }
  }
}

// finish compares every symbol once more: the feed and REST must meet.
async function finish() {
  for (const symbol of symbols) {
    for (const channel of ['l2', 'trades']) {
      const until = Date.now() + patience;
      let problem = 'they never were at the same number';
      for (let met = false; !met && fault === null; ) {
        met = await checkREST(channel, symbol).catch((error) => {
          problem = error.message;
          return false;
        });
        if (!met && Date.now() > until) return fail(new Mismatch(`${channel} ${symbol}: not compared with REST: ${problem}`));
      }
    }
  }
}

connect();
await follow();
if (fault === null) await finish();
const open = socket.readyState === WebSocket.OPEN;
if (fault === null && !open) fail(new Mismatch('the connection is not open at the end'));
const last = socket;
socket = null;
last.terminate();
console.log(JSON.stringify({ ok: fault === null, ...counts, seqs: Object.fromEntries([...books].map(([s, b]) => [s, b.seq])) }));
process.exit(fault === null ? 0 : 1);
