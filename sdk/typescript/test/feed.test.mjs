import assert from 'node:assert/strict';
import test from 'node:test';
import { Client, EventFeed, EventParser, Feed, ProtocolError } from '../dist/src/index.js';
import { Sockets, book, symbol } from './sockets.mjs';

const options = { url: 'ws://desk.test/ws/rfq', symbols: [symbol], channels: ['l2'], depth: 10, retryMs: [1, 5] };

const ack = { channel: 'control', type: 'ack', action: 'SUBSCRIBE_MARKET', success: true, subscribed: [{ channel: 'l2', symbol, seq: 1, resumed: false }], rejected: [] };
const heartbeat = (seq) => ({ channel: 'heartbeat', ts: 't', seqs: { [`l2:${symbol}`]: seq } });

/** following is a feed with its first connection, and what it tells. */
async function following(more = {}) {
  const sockets = new Sockets();
  const feed = new Feed({ ...options, WebSocket: sockets.WebSocket, ...more });
  const told = [];
  for (const event of ['open', 'close', 'gap', 'rejected', 'refused']) feed.on(event, (value) => told.push([event, value]));
  const first = sockets.next();
  feed.start();
  return { sockets, feed, told, socket: await first };
}

test('it subscribes, follows, asks anew after a gap, and resumes', async () => {
  const { sockets, feed, told, socket } = await following();
  assert.deepEqual(socket.sent, [{ action: 'SUBSCRIBE_MARKET', channels: ['l2'], symbols: [symbol], id: '1', depth: 10, heartbeat: true }]);
  socket.say(ack, book('snapshot', 5), book('update', 6));
  assert.deepEqual([feed.whole, feed.book(symbol).seq, feed.book(symbol).bids], [true, 6, [['6.0', '1']]]);

  socket.say(book('update', 8));
  assert.deepEqual([feed.whole, socket.sent.at(-1)], [false, { action: 'RESYNC', channels: ['l2'], symbols: [symbol], id: '2' }]);
  socket.say(book('update', 9), book('snapshot', 9));
  assert.deepEqual([feed.whole, feed.book(symbol).seq], [true, 9]);

  const second = sockets.next();
  socket.onclose({ code: 1012, reason: 'restart' });
  const back = await second;
  assert.deepEqual([socket.closed, back.sent[0].resume], [true, { epoch: 'e1', [`l2:${symbol}`]: 9 }]);
  back.say({ ...ack, subscribed: [{ ...ack.subscribed[0], resumed: true }] }, book('update', 10));
  assert.deepEqual([feed.book(symbol).seq, told.map(([event]) => event)], [10, ['open', 'gap', 'close', 'open']]);
  await feed.close();
  assert.equal(back.closed, true);
});

test('what cannot be a message ends the connection, and nothing else', async () => {
  for (const bad of ['', '{', '{"channel":"l2"}', { channel: 'l2', type: 'update', symbol, seq: -1 }, new ArrayBuffer(5)]) {
    const { sockets, feed, told, socket } = await following();
    socket.say(ack, book('snapshot', 5));
    const second = sockets.next();
    if (bad instanceof ArrayBuffer) socket.onmessage({ data: bad });
    else socket.say(bad);
    const back = await second;
    assert.deepEqual([socket.closed, back.sent[0].resume], [true, { epoch: 'e1', [`l2:${symbol}`]: 5 }]);
    assert.ok(told.at(-1)[1].error instanceof ProtocolError);
    await feed.close();
  }
});

test('a service whose books never fit is left, and asked from the beginning', async () => {
  const { sockets, feed, told, socket } = await following();
  const second = sockets.next();
  for (let i = 0; i < 20 && !socket.closed; i++) {
    socket.say({ ...book('snapshot', 5), checksum: 1 });
    await new Promise(setImmediate);
  }
  const back = await second;
  assert.equal(back.sent[0].resume, undefined);
  assert.equal(socket.sent.filter((r) => r.action === 'RESYNC').length, 8); // fewer than 20 a second
  assert.equal(told.filter(([event]) => event === 'gap').length, 9);
  await feed.close();
});

test('the lost end of a stream is found by the heartbeats', async () => {
  const { feed, told, socket } = await following();
  socket.say(ack, book('snapshot', 5), heartbeat(6), book('update', 6), heartbeat(7));
  assert.deepEqual(told.map(([event]) => event), ['open']);
  socket.say(heartbeat(7));
  assert.deepEqual([told.at(-1)[0], socket.sent.at(-1).action], ['gap', 'RESYNC']);
  await feed.close();
});

test('silence ends a connection', async () => {
  const { sockets, feed, told, socket } = await following({ silenceMs: 20 });
  socket.say(ack);
  const back = await sockets.next();
  assert.deepEqual([socket.closed, String(told.at(-1)[1].error)], [true, 'BlockdeskError: nothing was heard for 20 ms']);
  back.say(ack, book('snapshot', 1));
  await feed.close();
});

test('a feed of nothing ends, and says so', async () => {
  const { feed, told, socket } = await following();
  const books = feed.books(symbol);
  const next = books.next();
  socket.say({ ...ack, success: false, subscribed: [], rejected: [{ channel: 'l2', symbol, code: 'UNKNOWN_SYMBOL' }] });
  await assert.rejects(next, /none of l2/);
  assert.deepEqual(told[0], ['rejected', { channel: 'l2', symbol, code: 'UNKNOWN_SYMBOL' }]);
});

test('who is slow gets the newest book, and no other', async () => {
  const { feed, socket } = await following();
  const books = feed.books(symbol);
  const first = books.next();
  socket.say(ack, book('snapshot', 1));
  assert.equal((await first).value.seq, 1);
  for (let seq = 2; seq < 100; seq++) socket.say(book('update', seq));
  assert.equal((await books.next()).value.seq, 99);
  const last = books.next();
  await feed.close();
  assert.equal((await last).done, true);
});

test('a listener that throws is heard of, and does not stop the feed', async (t) => {
  const { feed, socket } = await following();
  feed.on('book', () => { throw new Error('of the listener'); });
  const thrown = [];
  t.mock.method(globalThis, 'queueMicrotask', (task) => {
    try {
      task();
    } catch (error) {
      thrown.push(error.message);
    }
  });
  socket.say(ack, book('snapshot', 5), book('update', 6));
  assert.deepEqual([thrown, feed.book(symbol).seq], [['of the listener', 'of the listener'], 6]);
  t.mock.restoreAll();
  await feed.close();
});

test('more streams come and go while it runs', async () => {
  const { feed, socket } = await following();
  feed.subscribe(['92C/SLUSD'], ['trades']);
  feed.unsubscribe(['92C/SLUSD'], ['trades']);
  const [, more, less] = socket.sent;
  assert.deepEqual([more.action, more.channels, less.action, less.symbols], ['SUBSCRIBE_MARKET', ['trades'], 'UNSUBSCRIBE_MARKET', ['92C/SLUSD']]);
  await feed.close();
});

const text = 'retry: 700\nevent: l2\ndata: {"a":\ndata: 1}\n\n: comment\nid: e7-1\nevent: mark\ndata: x\n\nid: a\0b\ndata\n\nevent: never\n\nid: lost\n';
const want = [['l2', '{"a":\n1}', ''], ['mark', 'x', 'e7-1'], ['message', '', 'e7-1']];

test('events are read however they are cut', () => {
  for (const stream of [text, `\uFEFF${text}`, text.replaceAll('\n', '\r\n'), text.replaceAll('\n', '\r')]) {
    for (let size = 1; size < 40; size++) {
      const got = [];
      const parser = new EventParser('', (e) => got.push([e.type, e.data, parser.lastEventId]));
      for (let at = 0; at < stream.length; at += size) parser.feed(stream.slice(at, at + size));
      assert.deepEqual([got, parser.retryMs], [want, 700], `${size} ${JSON.stringify(stream.slice(0, 20))}`);
    }
  }
});

test('an event without end is refused', () => {
  const parser = new EventParser('', () => {});
  const chunk = `data: ${'x'.repeat(1 << 20)}\n`;
  assert.throws(() => { for (let i = 0; i < 17; i++) parser.feed(chunk); }, ProtocolError);
});

test('server-sent events come back by the last id, and without one after a gap', async () => {
  const requests = [];
  const event = (m, id) => `${id ? `id: ${id}\n` : ''}event: ${m.channel}\ndata: ${JSON.stringify(m)}\n\n`;
  const mark = (n) => event({ channel: 'mark', epoch: 'e1', engine_seq: n }, `e1-${n}`);
  const streams = [
    [event({ channel: 'status', type: 'welcome', epoch: 'e1' }), event(ack), event(book('snapshot', 5)), mark(5)],
    [event(book('update', 5)), event(book('update', 6)), mark(6), event(book('update', 9))], // the first again, and then a gap
    [event(book('snapshot', 9)), mark(9)],
  ];
  const fetch = async (url, init) => {
    requests.push({ url: String(url), id: init.headers['last-event-id'] });
    const body = streams[requests.length - 1];
    if (!body) return new Response('{}', { status: 503, headers: { 'retry-after': '60' } });
    return new Response(body.join(''), { headers: { 'content-type': 'text/event-stream; charset=utf-8' } });
  };
  const feed = new EventFeed({ ...options, url: 'http://desk.test/api/v1/market/stream', fetch });
  const refused = new Promise((resolve) => feed.on('close', ({ error, retryMs }) => error?.status === 503 && resolve(retryMs)));
  feed.start();
  assert.equal(await refused, 60_000);
  assert.deepEqual(requests.map((r) => r.id), [undefined, 'e1-5', undefined, 'e1-9']);
  assert.equal(requests[0].url, 'http://desk.test/api/v1/market/stream?symbols=SLUSD%2FUSDC&channels=l2&depth=10');
  assert.deepEqual([feed.whole, feed.book(symbol).seq], [true, 9]);
  await feed.close();
});

test('a query that is wrong ends the events for good', async () => {
  let requests = 0;
  const fetch = async () => {
    requests++;
    return new Response(JSON.stringify({ ok: false, code: 'UNKNOWN_SYMBOL', error: 'No such symbol.', field: 'symbols' }), { status: 400 });
  };
  const feed = new EventFeed({ ...options, url: 'http://desk.test/api/v1/market/stream', fetch });
  const ended = new Promise((resolve) => feed.on('close', resolve));
  await assert.rejects(feed.books(symbol).next(), { name: 'RequestError', field: 'symbols' });
  const { error, retryMs } = await ended;
  assert.deepEqual([error.code, retryMs, requests], ['UNKNOWN_SYMBOL', null, 1]);
  await assert.rejects(feed.books('92C/SLUSD').next(), { name: 'RequestError' });
});

test('a book that is not followed is told of at once', async () => {
  const { feed } = await following();
  await assert.rejects(feed.books('92C/SLUSD').next(), /not followed/);
  await feed.close();
});

test('a program that was busy does not take that for silence', async () => {
  const { sockets, feed, told, socket } = await following({ silenceMs: 60 });
  socket.say(ack, book('snapshot', 5));
  const later = setTimeout(() => socket.say(book('update', 6)), 30); // comes due while nothing runs
  for (const end = performance.now() + 120; performance.now() < end;);
  await new Promise((resolve) => setTimeout(resolve, 5));
  clearTimeout(later);
  assert.deepEqual([feed.book(symbol).seq, told.map(([event]) => event), sockets.all.length], [6, ['open'], 1]);
  await feed.close();
});

test('a service that asks for years is asked again in minutes', async () => {
  const fetch = async () => new Response('{"ok":false,"code":"OVERLOADED"}', { status: 503, headers: { 'retry-after': '999999999' } });
  const feed = new EventFeed({ ...options, url: 'http://desk.test/api/v1/market/stream', fetch });
  const closed = new Promise((resolve) => feed.on('close', resolve));
  feed.start();
  assert.equal((await closed).retryMs, 300_000);
  await feed.close();
});

test('a feed goes on where the leader is, or at the next node', async () => {
  const tried = [];
  class Closing {
    constructor(url) {
      tried.push(url);
      const reason = ['LEADER_CHANGED: ws://b.test:81/ws/rfq', 'LEADER_CHANGED', 'LEADER_CHANGED: ws://evil.test/ws/rfq', 'restart'][tried.length - 1];
      if (reason) queueMicrotask(() => this.onclose({ code: 1012, reason }));
    }
    send() {}
    close() {}
  }
  const feed = new Client({ baseUrl: 'http://a.test', nodes: ['http://b.test'] }).feed({ symbols: ['A/B'], WebSocket: Closing, retryMs: [1, 2] });
  feed.start();
  while (tried.length < 5) await new Promise((resolve) => setTimeout(resolve, 1));
  await feed.close();
  assert.deepEqual(tried, ['ws://a.test/ws/rfq', 'ws://b.test:81/ws/rfq', 'ws://a.test/ws/rfq', 'ws://b.test/ws/rfq', 'ws://a.test/ws/rfq']);
});
