// Follows the server-sent events as a browser's EventSource would, on Node's own
// HTTP client, and checks every message as follow.mjs does. It comes back by
// Last-Event-ID; with --disturb it breaks its connection, stays away for a
// while, and throws an update away on purpose, which it must notice and mend by
// coming back without an id.
//
//   node stream.mjs --rest http://HOST:PORT --symbols A/B,C/D [--ws ignored] [--depth 100]
//                   [--disturb MS] [--away MS] [--tickets]
//
// Each line of its standard input has it print the counts so far, as JSON. It ends
// when its standard input does. The last line is JSON with the counts;
// the exit code is 0 only when nothing was wrong.
import { parseArgs } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { Mismatch } from './book.mjs';
import { EventStream } from './eventstream.mjs';
import { Market } from './market.mjs';

const silence = 120_000; // ms without a message, heartbeats included: longer than a busy machine takes
const retryPause = 50; // shorter than the server says: it is one client, and in a hurry
const restPause = 200; // between two comparisons with REST
const patience = 240_000; // to come back

const { values: args } = parseArgs({
  options: {
    ws: { type: 'string' }, rest: { type: 'string' }, symbols: { type: 'string' }, depth: { type: 'string', default: '100' },
    disturb: { type: 'string', default: '0' }, away: { type: 'string', default: '0' }, tickets: { type: 'boolean', default: false },
  },
});
const symbols = args.symbols.split(',');
const channels = ['l2', 'trades', 'ticker', ...(args.tickets ? ['tickets'] : [])];
const depth = Number(args.depth);
const url = `${args.rest}/api/v1/market/stream?symbols=${encodeURIComponent(args.symbols)}&channels=${channels}&depth=${depth}`;

const market = new Market({ rest: args.rest, symbols, channels, depth, onFault });
const { counts } = market;
Object.assign(counts, { connections: 0, restarts: 0, compressed: 0, resumed: 0, marks: 0, resyncs: 0 });
let abort = null; // ends the connection that stands
let open = false;
let lastMessage = Date.now();
let lastID = '';
let awayUntil = 0;
const victims = new Set(); // the channels whose next update is thrown away

function onFault(error) {
  console.error(`FAILED: ${error.message}`);
  abort?.abort();
}

// onGap comes back without an id: the server begins everything anew.
market.onGap = () => {
  counts.resyncs++;
  lastID = '';
  abort.abort();
};

function onEvent(connection, event) {
  const m = JSON.parse(event.data);
  lastMessage = Date.now();
  if (m.channel !== event.type) throw new Mismatch(`event ${event.type} is ${event.data.slice(0, 300)}`);
  if (m.channel === 'status') {
    if (m.type === 'restart') counts.restarts++;
    else market.welcome(m);
  } else if (m.channel === 'control') {
    if (m.type !== 'ack' || !m.success || m.rejected.length > 0 || m.subscribed.length !== channels.length * symbols.length) {
      throw new Mismatch(`the server says ${event.data}`);
    }
    counts.resumed += m.subscribed.filter((s) => s.resumed).length;
  } else if (m.channel === 'mark') {
    if (event.lastEventId !== `${m.epoch}-${m.engine_seq}`) throw new Mismatch(`id ${event.lastEventId} is of ${event.data}`);
  } else if (m.channel === 'heartbeat') {
    market.heartbeat(m);
  } else if (victims.has(m.channel) && !connection.behind && market.lose(m)) {
    victims.delete(m.channel);
  } else {
    market.take(m, connection.behind);
  }
}

// read reads one connection to its end.
async function read() {
  abort = new AbortController();
  const { signal } = abort;
  const headers = lastID === '' ? {} : { 'Last-Event-ID': lastID };
  const answer = await fetch(url, { headers, signal });
  const type = answer.headers.get('content-type');
  if (answer.status === 503) return; // it starts or stops
  if (answer.status !== 200 || type !== 'text/event-stream; charset=utf-8') {
    throw new Mismatch(`${url}: status ${answer.status}, ${type}`);
  }
  counts.connections++;
  open = true;
  lastMessage = Date.now();
  // Until its first id, a connection may repeat what came after the last one's.
  const connection = { behind: lastID !== '' };
  const events = new EventStream(lastID, (event) => {
    if (!signal.aborted) onEvent(connection, event);
  });
  const decoder = new TextDecoder();
  for await (const chunk of answer.body) {
    events.feed(decoder.decode(chunk, { stream: true }));
    if (signal.aborted) return;
    if (events.lastEventId !== lastID) {
      lastID = events.lastEventId;
      counts.marks++;
      connection.behind = false;
    }
  }
}

let ended = false;
let over = false;
process.stdin.on('data', () => console.log(JSON.stringify(counts))).on('end', () => (ended = true));

async function run() {
  while (!over && market.fault === null) {
    try {
      await read();
    } catch (error) {
      if (error instanceof Mismatch || error instanceof SyntaxError) market.fail(error);
    }
    open = false;
    await sleep(Math.max(retryPause, awayUntil - Date.now()));
  }
}

// The disturbances, one after the other.
const disturbances = [
  () => abort.abort(),
  () => victims.add('l2'),
  () => abort.abort(),
  () => victims.add('trades').add('tickets'),
  () => {
    awayUntil = Date.now() + Number(args.away);
    abort.abort();
  },
];

// follow compares with REST while the feed runs, and disturbs.
async function follow() {
  let turn = 0;
  let disturbAt = Date.now() + Number(args.disturb);
  while (market.fault === null && !ended) {
    await sleep(restPause);
    if (Date.now() - lastMessage > (open ? silence : Math.max(patience, Number(args.away) + silence))) {
      return market.fail(new Mismatch(`no message for ${Date.now() - lastMessage} ms, heartbeats included`));
    }
    if (open && Number(args.disturb) > 0 && Date.now() > disturbAt && market.whole()) {
      disturbances[turn++ % disturbances.length]();
      disturbAt = Date.now() + Number(args.disturb);
    }
    await market.checkAll();
  }
  return undefined;
}

// settle waits until the connection stands and every stream is whole.
async function settle() {
  const until = Date.now() + patience;
  while (market.fault === null && !(open && market.whole())) {
    if (Date.now() > until) return market.fail(new Mismatch('the connection or a stream does not come back'));
    await sleep(20);
  }
  return undefined;
}

const running = run();
await follow();
await settle();
await market.finish();
if (market.fault === null && !open) market.fail(new Mismatch('the connection is not open at the end'));
over = true;
abort.abort();
await running;
console.log(JSON.stringify({ ok: market.fault === null, ...counts, seqs: market.places(), tapes: market.tapes() }));
process.exit(market.fault === null ? 0 : 1);
