// Follows the WebSocket feed with npm's ws, a client that is not ours, and
// checks every message, also against REST at the same epoch and number (see
// market.mjs). It comes back by itself, with resume, after the server has
// restarted. With --disturb it also throws updates away on purpose, which it
// must notice and mend by RESYNC, breaks its connection, leaves streams and
// comes back to them, and stays away for a while.
//
//   node follow.mjs --ws ws://HOST:PORT --rest http://HOST:PORT --symbols A/B,C/D [--depth 100]
//                   [--disturb MS] [--away MS] [--compress] [--tickets]
//
// Each line of its standard input has it print the counts so far, as JSON. It ends
// when its standard input does. The last line is JSON with the counts;
// the exit code is 0 only when nothing was wrong.
import { parseArgs } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from 'ws';
import { Mismatch } from './book.mjs';
import { Market } from './market.mjs';

const silence = 120_000; // ms without a message, heartbeats included: longer than a busy machine takes
const retryPause = 50;
const restPause = 200; // between two comparisons with REST
const patience = 240_000; // to come back

const { values: args } = parseArgs({
  options: {
    ws: { type: 'string' }, rest: { type: 'string' }, symbols: { type: 'string' }, depth: { type: 'string', default: '100' },
    disturb: { type: 'string', default: '0' }, away: { type: 'string', default: '0' }, compress: { type: 'boolean', default: false },
    tickets: { type: 'boolean', default: false },
  },
});
const symbols = args.symbols.split(',');
const channels = ['l2', 'trades', 'ticker', ...(args.tickets ? ['tickets'] : [])];
const depth = Number(args.depth);

const market = new Market({ rest: args.rest, symbols, channels, depth, onFault });
const { counts } = market;
Object.assign(counts, { connections: 0, restarts: 0, compressed: 0, resumed: 0, resyncs: 0, resubscribed: 0 });
let socket = null;
let lastMessage = Date.now();
let awayUntil = 0;
const victims = new Set(); // the channels whose next update is thrown away
let nextID = 0;
const asked = new Map(); // what an ack must answer, by id

function onFault(error) {
  console.error(`FAILED: ${error.message}`);
  socket?.terminate();
}

function send(request, onAck) {
  const id = String(++nextID);
  asked.set(id, { action: request.action, onAck });
  socket.send(JSON.stringify({ ...request, id }));
}

function subscribe() {
  const request = { action: 'SUBSCRIBE_MARKET', channels, symbols, depth, heartbeat: true };
  if (market.epoch !== null) request.resume = market.resumePoints();
  send(request, (m) => {
    if (m.subscribed.length !== channels.length * symbols.length) throw new Mismatch(`${m.subscribed.length} subscriptions`);
    counts.resumed += m.subscribed.filter((s) => s.resumed).length;
  });
}

// onGap asks for the stream anew.
market.onGap = (s) => {
  send({ action: 'RESYNC', channels: [s.channel], symbols: [s.symbol] }, (m) => {
    if (m.subscribed.length !== 1) throw new Mismatch(`RESYNC: ${JSON.stringify(m)}`);
    counts.resyncs++;
  });
};

// resubscribe leaves a symbol's streams and comes back to them where it left.
function resubscribe(symbol) {
  send({ action: 'UNSUBSCRIBE_MARKET', channels, symbols: [symbol] }, (m) => {
    if (m.unsubscribed.length !== channels.length) throw new Mismatch(`UNSUBSCRIBE_MARKET: ${JSON.stringify(m)}`);
    // What was on its way has come before the ack, so this is where we are.
    const request = { action: 'SUBSCRIBE_MARKET', channels, symbols: [symbol], depth, resume: market.resumePoints() };
    send(request, () => counts.resubscribed++);
    market.resumed([symbol]);
  });
}

function onControl(m) {
  const request = asked.get(m.id);
  if (m.type !== 'ack' || request?.action !== m.action || !m.success || m.rejected.length > 0) {
    throw new Mismatch(`the server says ${JSON.stringify(m)}`);
  }
  asked.delete(m.id);
  request.onAck(m);
}

function onMessage(m) {
  switch (m.channel) {
    case 'status':
      return market.welcome(m);
    case 'control':
      return onControl(m);
    case 'heartbeat':
      return market.heartbeat(m);
    default:
      if (victims.has(m.channel) && market.lose(m)) return void victims.delete(m.channel);
      return market.take(m);
  }
}

function connect() {
  const ws = new WebSocket(`${args.ws}/ws/rfq`, { perMessageDeflate: args.compress });
  socket = ws;
  ws.on('open', () => {
    counts.connections++;
    if (ws.extensions.includes('permessage-deflate')) counts.compressed++;
    lastMessage = Date.now();
    asked.clear();
    subscribe();
    market.resumed(symbols);
  });
  ws.on('message', (data) => {
    if (ws !== socket || market.fault !== null) return;
    lastMessage = Date.now();
    try {
      onMessage(JSON.parse(data));
    } catch (error) {
      market.fail(error);
    }
  });
  ws.on('error', () => {}); // 'close' follows
  ws.on('close', async (code) => {
    if (ws !== socket || market.fault !== null) return;
    if (code === 1012) counts.restarts++;
    else if (code !== 1006) return market.fail(new Mismatch(`closed with ${code}`));
    await sleep(Math.max(retryPause, awayUntil - Date.now()));
    return connect();
  });
}

// leave resubscribes once nothing is missing: a gap that shows itself while the
// streams are being left could not be mended by RESYNC. It returns false to be
// tried again.
function leave() {
  victims.clear();
  if (!market.whole()) return false;
  resubscribe(symbols[counts.resubscribed % symbols.length]);
  return true;
}

// The disturbances, one after the other.
const disturbances = [
  () => victims.add('l2'),
  () => socket.terminate(),
  () => victims.add('trades').add('tickets'),
  leave,
  () => {
    awayUntil = Date.now() + Number(args.away);
    socket.terminate();
  },
];

let ended = false;
process.stdin.on('data', () => console.log(JSON.stringify(counts))).on('end', () => (ended = true));

// follow compares with REST while the feed runs, and disturbs.
async function follow() {
  let turn = 0;
  let disturbAt = Date.now() + Number(args.disturb);
  while (market.fault === null && !ended) {
    await sleep(restPause);
    const open = socket.readyState === WebSocket.OPEN;
    if (Date.now() - lastMessage > (open ? silence : Math.max(patience, Number(args.away) + silence))) {
      return market.fail(new Mismatch(`no message for ${Date.now() - lastMessage} ms, heartbeats included`));
    }
    if (open && Number(args.disturb) > 0 && Date.now() > disturbAt && asked.size === 0) {
      if (disturbances[turn % disturbances.length]() === false) continue;
      turn++;
      disturbAt = Date.now() + Number(args.disturb);
    }
    await market.checkAll();
  }
  return undefined;
}

// settle waits until the connection stands and every stream is whole.
async function settle() {
  const until = Date.now() + patience;
  while (market.fault === null && !(socket.readyState === WebSocket.OPEN && market.epoch !== null && asked.size === 0 && market.whole())) {
    if (Date.now() > until) return market.fail(new Mismatch('the connection or a stream does not come back'));
    await sleep(20);
  }
  return undefined;
}

connect();
await follow();
await settle();
await market.finish();
if (market.fault === null && socket.readyState !== WebSocket.OPEN) market.fail(new Mismatch('the connection is not open at the end'));
const last = socket;
socket = null;
last.terminate();
console.log(JSON.stringify({ ok: market.fault === null, ...counts, seqs: market.places(), tapes: market.tapes() }));
process.exit(market.fault === null ? 0 : 1);
