// The feed over a socket that the test holds in its hands.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

let sockets, timers, watch;

class Socket {
  sent = [];
  constructor() {
    sockets.push(this);
  }
  send(text) {
    this.sent.push(JSON.parse(text));
  }
  close() {}
  say(message) {
    this.onmessage({ data: JSON.stringify(message) });
  }
  said(action) {
    return this.sent.filter((m) => m.action === action);
  }
}

beforeEach(() => {
  [sockets, timers] = [[], []];
  globalThis.WebSocket = Socket;
  globalThis.window = { setInterval: (f) => { watch = f; }, setTimeout: (f, ms) => timers.push({ f, ms }), clearTimeout: () => undefined, addEventListener: () => undefined };
});

const { Feed } = await import('../src/feed.ts');

function start(fits = () => true) {
  const taken = [];
  const feed = new Feed('ws://test', ['A/B', 'C/D'], 50, { message: (m) => (taken.push(m), fits(m)), link: () => undefined });
  feed.follow('A/B');
  const [socket] = sockets;
  socket.onopen();
  return { feed, socket, taken };
}

const l2 = (type, seq, more = {}) => ({ channel: 'l2', type, symbol: 'A/B', epoch: 'e1', seq, prev_seq: type === 'update' ? seq - 1 : 0, ts: '', bids: [], asks: [], ...more });
const beat = (seq) => ({ channel: 'heartbeat', ts: '', seqs: { 'l2:A/B': seq } });

test('it subscribes to all pairs, and to one in detail', () => {
  const { feed, socket } = start();
  assert.deepEqual(socket.sent.map((m) => [m.channels, m.symbols, m.resume]), [[['ticker', 'tickets'], ['A/B', 'C/D'], undefined], [['l2', 'trades'], ['A/B'], undefined]]);
  socket.say(l2('snapshot', 1));
  feed.follow('C/D');
  assert.deepEqual(socket.said('UNSUBSCRIBE_MARKET').map((m) => m.symbols), [['A/B']]);
  assert.deepEqual(socket.sent.at(-1).symbols, ['C/D']);
});

test('a feed of no detail has the tickers and tickets alone', () => {
  const feed = new Feed('ws://test', ['A/B', 'C/D'], 50, { message: () => true, link: () => undefined });
  feed.follow('');
  feed.follow('');
  assert.equal(sockets.length, 1);
  const [socket] = sockets;
  socket.onopen();
  assert.deepEqual(socket.sent.map((m) => m.channels), [['ticker', 'tickets']]);
  socket.say({ ...l2('snapshot', 1), channel: 'ticker', ts: 'now' });
  assert.equal(feed.link.lastMarketTs, 'now');
  feed.follow('A/B');
  feed.follow('');
  assert.deepEqual(socket.sent.slice(1).map((m) => [m.action, m.symbols]), [['SUBSCRIBE_MARKET', ['A/B']], ['UNSUBSCRIBE_MARKET', ['A/B']]]);
});

test('an address that a page may not go to is tried later, and told of', (t) => {
  t.mock.method(console, 'warn', () => undefined);
  globalThis.WebSocket = class { constructor() { throw new Error('from TLS to plain text'); } };
  const feed = new Feed('ws://test', ['A/B'], 50, { message: () => true, link: () => undefined });
  feed.follow('A/B');
  assert.ok(!feed.link.up && feed.link.retryAt > 0 && timers.length === 1);
  globalThis.WebSocket = Socket;
  timers[0].f();
  assert.equal(sockets.length, 1);
});

test('a gap asks for a snapshot, once, and nothing is taken before it', () => {
  const { feed, socket, taken } = start();
  for (const m of [l2('snapshot', 5), l2('update', 6), l2('update', 8), l2('update', 9)]) socket.say(m);
  assert.deepEqual(taken.map((m) => m.seq), [5, 6]);
  assert.deepEqual(socket.said('RESYNC'), [{ action: 'RESYNC', channels: ['l2'], symbols: ['A/B'] }]);
  for (const m of [l2('snapshot', 9), l2('update', 10)]) socket.say(m);
  assert.deepEqual(taken.map((m) => m.seq), [5, 6, 9, 10]);
  socket.say(l2('update', 11, { epoch: 'e2' }));
  assert.equal(socket.said('RESYNC').length, 2);
  assert.equal(feed.link.gaps, 2);
});

test('what does not fit its checksum is asked for anew', () => {
  const { socket } = start((m) => m.seq !== 6);
  for (const m of [l2('snapshot', 5), l2('update', 6), l2('update', 7)]) socket.say(m);
  assert.equal(socket.said('RESYNC').length, 1);
});

test('two heartbeats tell of a last message that is missing', () => {
  const { socket } = start();
  for (const m of [l2('snapshot', 5), beat(6)]) socket.say(m);
  assert.equal(socket.said('RESYNC').length, 0, 'it may be on its way');
  for (const m of [l2('update', 6), beat(6), beat(7)]) socket.say(m);
  assert.equal(socket.said('RESYNC').length, 0);
  socket.say(beat(7));
  assert.equal(socket.said('RESYNC').length, 1);
});

test('gap after gap ends the connection, and the next one is later', () => {
  const { feed, socket } = start(() => false);
  const waits = [];
  for (let broken = 0; broken < 3; broken++) {
    const open = sockets.at(-1);
    for (let i = 0; feed.link.up || i === 0; i++) {
      assert.ok(i < 20, 'it asks for ever');
      open.say(l2('snapshot', i));
    }
    assert.equal(open.said('RESYNC').length, 8);
    waits.push(timers.at(-1).ms);
    timers.at(-1).f();
    sockets.at(-1).onopen();
  }
  assert.ok(waits[0] <= 250 && waits[2] >= 500, String(waits));
  socket.say(l2('snapshot', 99)); // of a connection that has ended
  assert.ok(!feed.link.up);
});

test('a snapshot that does not come is asked for again', () => {
  const { feed, socket } = start();
  for (const m of [l2('snapshot', 5), l2('update', 7), beat(7), beat(7)]) socket.say(m);
  assert.equal(socket.said('RESYNC').length, 1);
  socket.say(beat(7));
  assert.equal(socket.said('RESYNC').length, 2);
  assert.ok(feed.link.up);
});

test('what is no message ends the connection alone', (t) => {
  t.mock.method(console, 'error', () => undefined);
  for (const text of ['', 'null', '{"channel":"heartbeat"}', '{']) {
    sockets = [];
    const { feed, socket } = start((m) => m.bids.length >= 0);
    socket.say(l2('snapshot', 5));
    socket.onmessage({ data: text });
    assert.ok(!feed.link.up, text);
    timers.at(-1).f();
    sockets.at(-1).onopen();
    assert.equal(sockets.at(-1).sent[1].resume, undefined, 'it begins anew');
  }
  const { feed, socket } = start((m) => [...m.bids].length >= 0);
  socket.say(l2('snapshot', 5, { bids: null }));
  assert.ok(!feed.link.up);
});

test('after a break it comes back, later each time, and resumes', () => {
  const { feed, socket } = start();
  for (const m of [l2('snapshot', 5), { ...l2('snapshot', 3), channel: 'trades', trades: [] }]) socket.say(m);
  assert.ok(feed.link.up);
  socket.onclose();
  assert.ok(!feed.link.up);
  const waits = [];
  for (let i = 0; i < 8; i++) {
    const { f, ms } = timers.at(-1);
    waits.push(ms);
    f();
    if (i < 7) sockets.at(-1).onclose();
  }
  assert.ok(waits[0] <= 250 && waits.at(-1) > 3_999 && waits.every((ms) => ms <= 8_000), String(waits));
  const back = sockets.at(-1);
  back.onopen();
  assert.deepEqual(back.sent[1].resume, { epoch: 'e1', 'l2:A/B': 5, 'trades:A/B': 3 });
  socket.onclose(); // of the one before: means nothing
  back.say(l2('update', 6));
  assert.ok(feed.link.up);
});

test('a connection that is silent is ended', (t) => {
  let now = 1000;
  t.mock.method(performance, 'now', () => now);
  const { feed, socket } = start();
  socket.say(l2('snapshot', 1));
  now += 5_000;
  watch();
  assert.ok(feed.link.up);
  now += 1;
  watch();
  assert.ok(!feed.link.up);
  timers.at(-1).f();
  now += 5_001; // and one that does not open
  watch();
  timers.at(-1).f();
  assert.equal(sockets.length, 3);
});
