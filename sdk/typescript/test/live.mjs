// Follows a running service both ways, breaks its own connections again and
// again, and at the end holds what it has to REST.
//
//   node live.mjs BASE SYMBOL
//
// It says when it follows. Each line of its standard input has it print the counts so far, as JSON. It ends
// when its standard input does. The last line is JSON with the counts;
// the exit code is 0 only where both books are those of REST.
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { Client } from '../dist/src/index.js';

const [base, symbol] = process.argv.slice(2);
const breakEvery = 300; // ms
const patience = 240_000;
const client = new Client({ baseUrl: base });
const follow = { symbols: [symbol], channels: ['l2', 'trades', 'ticker'], depth: 100, retryMs: [20, 200] };

const lines = {}; // what breaks the connection that stands, by way
const feeds = {
  ws: client.feed({ ...follow, WebSocket: class extends WebSocket {
    constructor(url) {
      super(url);
      lines.ws = () => this.terminate();
    }
  } }),
  sse: client.events({ ...follow, fetch: (url, init) => {
    const line = new AbortController();
    lines.sse = () => line.abort();
    return fetch(url, { ...init, signal: AbortSignal.any([init.signal, line.signal]) });
  } }),
};

const counts = {};
for (const [way, feed] of Object.entries(feeds)) {
  const c = (counts[way] = { connections: 0, resumed: 0, gaps: 0, holes: 0, books: 0, trades: 0, epochs: 0 });
  const [epochs, ids] = [new Set(), []];
  feed.on('open', ({ epoch, subscribed }) => {
    c.connections++;
    c.epochs = epochs.add(epoch).size;
    if (subscribed.some((s) => s.channel === 'l2' && s.resumed)) c.resumed++;
  });
  feed.on('gap', ({ error }) => {
    c.gaps++;
    console.error(`${way}: ${error.message}`);
  });
  feed.on('book', () => c.books++);
  feed.on('trades', ({ trades, hole }) => {
    if (hole) c.holes++;
    for (const { trade_id } of trades) {
      if (ids.length > 0 && trade_id <= ids.at(-1)) throw new Error(`${way}: trade ${trade_id} after ${ids.at(-1)}`);
      ids.push(trade_id);
    }
    c.trades = ids.length;
  });
  feed.start();
}

while (!Object.values(feeds).every((feed) => feed.whole)) await sleep(20);
console.log('following');

let ended = false;
process.stdin.on('data', () => console.log(JSON.stringify(counts))).on('end', () => (ended = true));
for (let turn = 0; !ended; turn++) {
  await sleep(breakEvery);
  const way = ['ws', 'sse'][turn % 2];
  if (feeds[way].whole) lines[way]();
}

/** meets reports whether a feed comes to where REST is, with the same book. Nobody trades now. */
async function meets(feed) {
  for (const end = Date.now() + patience; Date.now() < end; await sleep(20)) {
    const { epoch, seq, bids, asks } = await client.getDepth({ symbol, limit: 100 });
    const book = feed.book(symbol);
    if (!feed.whole || book.epoch !== epoch || book.seq !== seq) continue;
    return JSON.stringify([book.bids, book.asks]) === JSON.stringify([bids, asks]);
  }
  return false;
}

for (const [way, feed] of Object.entries(feeds)) {
  counts[way].met = await meets(feed);
  if (!counts[way].met) process.exitCode = 1;
  await feed.close();
}
console.log(JSON.stringify(counts));
