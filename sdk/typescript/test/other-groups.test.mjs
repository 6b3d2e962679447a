// Symbols of several groups: one feed, a connection to each group that serves some.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Client, OtherGroupError } from '../dist/src/index.js';
import { Sockets, book, symbol } from './sockets.mjs';

const other = '92C/SLUSD';
const most = 8;

const elsewhere = (of, ws_url) => ({ channel: 'l2', symbol: of, code: 'OTHER_GROUP', ws_url });
const ack = (symbols, rejected = [], resumed = false) => ({
  channel: 'control', type: 'ack', action: 'SUBSCRIBE_MARKET', success: rejected.length === 0,
  subscribed: symbols.map((s) => ({ channel: 'l2', symbol: s, seq: 1, resumed })), rejected,
});

/** following is a feed of both symbols with its first connection, and what it tells. */
async function following({ symbols = [symbol, other], ...more } = {}) {
  const sockets = new Sockets();
  const feed = new Client({ baseUrl: 'http://eu.test', ...more }).feed({ symbols, channels: ['l2'], depth: 10, retryMs: [1, 5], WebSocket: sockets.WebSocket });
  const told = [];
  for (const event of ['open', 'close', 'rejected', 'refused']) feed.on(event, (value) => told.push([event, value]));
  const first = sockets.next();
  feed.start();
  return { sockets, feed, told, socket: await first };
}

/** sent is one that has been sent to the other group too. */
async function sent(url = 'ws://us.test:81', own = [symbol]) {
  const all = await following({ symbols: [...own, other], otherGroups: [['http://asia.test'], ['http://us.test', 'http://us-2.test']] });
  const next = all.sockets.next('f1');
  all.socket.say(ack(own, [elsewhere(other, url)]));
  return { ...all, there: await next };
}

test('one feed follows both groups, each with its own numbers', async () => {
  const { sockets, feed, told, socket, there } = await sent();
  assert.deepEqual([there.url, there.sent.map((m) => [m.action, m.symbols, m.resume])], ['ws://us.test:81/ws/rfq', [['SUBSCRIBE_MARKET', [other], undefined]]]);
  socket.say(book('snapshot', 5));
  assert.equal(feed.whole, false);
  there.say(ack([other]), book('snapshot', 70, 'f1', other));
  assert.deepEqual([feed.whole, feed.book(symbol).epoch, feed.book(other).epoch, feed.book(other).seq], [true, 'e1', 'f1', 70]);

  const next = sockets.next('f1');
  there.onclose({ code: 1012, reason: 'LEADER_CHANGED: ws://us-2.test/ws/rfq' });
  const back = await next;
  assert.deepEqual([back.url, back.sent[0].resume], ['ws://us-2.test/ws/rfq', { epoch: 'f1', [`l2:${other}`]: 70 }]);
  back.say(ack([other], [], true), book('update', 71, 'f1', other));
  socket.say(book('update', 6));
  assert.deepEqual([feed.book(symbol).seq, feed.book(other).seq, socket.closed], [6, 71, false]);
  assert.deepEqual(told.map(([event]) => event), ['open', 'open', 'close', 'open']);
  await feed.close();
  assert.deepEqual([socket.closed, back.closed, told.at(-1)], [true, true, ['close', { error: null, retryMs: null }]]);
  assert.equal(told.filter(([event]) => event === 'close').length, 2);
});

test('a group that is down is tried at its next node, and the first goes on', async () => {
  const { sockets, feed, socket, there } = await sent();
  const next = sockets.next('f1');
  there.onerror({});
  assert.equal((await next).url, 'ws://us.test/ws/rfq');
  assert.equal(socket.closed, false);
  await feed.close();
});

test('a connection that carries nothing rests until there is something for it', async () => {
  const { sockets, feed, told, socket, there } = await sent(undefined, []);
  there.say(ack([other]), book('snapshot', 70, 'f1', other));
  assert.deepEqual([feed.whole, socket.closed, sockets.all.length, told.map(([event]) => event)], [true, true, 2, ['open']]);
  const next = sockets.next();
  feed.subscribe([symbol]);
  const back = await next;
  assert.deepEqual([back.url, back.sent[0].symbols], ['ws://eu.test/ws/rfq', [symbol]]);
  feed.unsubscribe([other]);
  assert.deepEqual([there.closed || (await new Promise((resolve) => setTimeout(() => resolve(there.closed)))), feed.book(other)], [true, undefined]);
  await feed.close();
});

test('a feed that rests can be closed', async () => {
  const { feed, there } = await sent(undefined, []);
  await feed.close();
  assert.equal(there.closed, true);
});

test('books wait for what is sent to another group', async () => {
  const { socket, sockets, feed } = await following({ symbols: [other], nodes: ['http://us.test'] });
  const books = feed.books(other);
  const first = books.next();
  const next = sockets.next('f1');
  socket.say(ack([], [elsewhere(other, 'ws://us.test')]));
  (await next).say(ack([other]), book('snapshot', 70, 'f1', other));
  assert.equal((await first).value.seq, 70);
  await feed.close();
});

test('nobody goes where nobody has named', async () => {
  const strange = ['ws://evil.test', 'ws://us.test@evil.test', 'ws://a@us.test', 'ftp://us.test', 'us.test', '', 'ws://['];
  for (const url of strange) {
    const { feed, told, socket, sockets } = await following({ otherGroups: [['http://us.test']] });
    socket.say(ack([symbol], [elsewhere(other, url)]));
    assert.deepEqual(told.map(([event]) => event), ['refused', 'rejected', 'open']);
    assert.ok(told[0][1] instanceof OtherGroupError && told[0][1].url === url && /not named/.test(told[0][1].message));
    assert.deepEqual([sockets.all.length, feed.book(other)], [1, undefined]);
    await feed.close();
  }
  const { socket, feed } = await following({ baseUrl: 'https://eu.test', symbols: [other], otherGroups: [['https://us.test']] });
  const books = feed.books(other).next();
  socket.say(ack([], [elsewhere(other, 'ws://us.test')])); // from TLS to plain text
  await assert.rejects(books, { name: 'OtherGroupError', url: 'ws://us.test' });
});

test('nobody is sent on twice', async () => {
  const { feed, told, there, sockets } = await sent();
  there.say(ack([], [elsewhere(other, 'ws://eu.test')]));
  await new Promise(setImmediate);
  assert.deepEqual([told.map(([event]) => event), sockets.all.length, feed.book(other)], [['open', 'refused', 'rejected'], 2, undefined]);
  await feed.close();
});

test('a feed goes to so many other groups and no further', async () => {
  const symbols = Array.from({ length: most + 1 }, (_, i) => `A${i}/USDC`);
  const { feed, told, socket, sockets } = await following({ symbols: [symbol, ...symbols] });
  socket.say(ack([symbol], symbols.map((s, i) => elsewhere(s, `ws://eu.test:${i + 1}`))));
  await new Promise(setImmediate);
  assert.equal(sockets.all.length, 1 + most);
  assert.deepEqual(told.slice(0, 2).map(([event, value]) => [event, value.url ?? value.symbol]), [['refused', `ws://eu.test:${most + 1}`], ['rejected', symbols[most]]]);
  assert.match(told[0][1].message, /8 other groups at most/);
  await feed.close();
});

test('server-sent events go to the group that has all of their symbols', async () => {
  const moved = (location) => new Response('{"ok":false,"code":"OTHER_GROUP"}', { status: 307, headers: { location } });
  const stream = () => new Response(`data: ${JSON.stringify(book('snapshot', 5, 'f1', other))}\n\n`, { headers: { 'content-type': 'text/event-stream' } });
  const asked = [];
  const ended = async (answers) => {
    asked.length = 0;
    const fetch = async (url) => (asked.push(url.host), answers[asked.length - 1]);
    const feed = new Client({ baseUrl: 'http://eu.test', otherGroups: [['http://us.test']] }).events({ symbols: [other], channels: ['l2'], fetch, retryMs: [1, 5] });
    const close = new Promise((resolve) => feed.on('close', resolve));
    feed.start();
    const { error } = await close;
    await feed.close();
    return { error, feed };
  };
  const { error, feed } = await ended([moved('http://us.test:81/api/v1/market/stream?symbols=x'), stream()]);
  assert.deepEqual([error.name, feed.book(other).seq, asked], ['TransportError', 5, ['eu.test', 'us.test:81']]);
  for (const answers of [[moved('http://evil.test/')], [moved('http://us.test/'), moved('http://eu.test/')]]) {
    assert.equal((await ended(answers)).error.name, 'OtherGroupError');
    assert.equal(asked.length, answers.length);
  }
});
