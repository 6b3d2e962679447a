import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { Book, GapError, MismatchError, OrdersBook, ProtocolError, Streams, crc32, decodeMessage } from '../dist/src/index.js';

const symbol = 'SLUSD/USDC';
const place = { symbol, epoch: 'e7', engine_seq: 1, ts: null };

/** l2 makes a message whose checksum is right after it was applied to copy. */
function l2(type, seq, bids, asks, copy, more = {}) {
  const m = { channel: 'l2', type, ...place, seq, prev_seq: type === 'snapshot' ? 0 : seq - 1, bids, asks, checksum: 0, ...more };
  try {
    copy.apply({ ...m });
  } catch { /* of the checksum, which is told below */ }
  return { ...m, checksum: copy.checksum() };
}

test('crc32 is that of zip', () => {
  assert.equal(crc32('123456789'), 0xcbf43926);
  assert.equal(crc32(''), 0);
});

test('the messages of docs/websocket.md', async () => {
  const guide = await readFile(new URL('../../../docs/websocket.md', import.meta.url), 'utf8');
  const book = new Book(symbol, 50);
  const shown = [...guide.matchAll(/^S→ (\{"channel":"l2".*\})$/gm)].map(([, text]) => decodeMessage(text));
  assert.equal(shown.length, 2);
  for (const m of shown) book.apply(m);
  assert.deepEqual([book.seq, book.bids, book.asks], [1043, [], [['0.999100', '5000.000000']]]);
});

test('the orders of docs/websocket.md', async () => {
  const guide = await readFile(new URL('../../../docs/websocket.md', import.meta.url), 'utf8');
  const orders = new OrdersBook(symbol);
  const shown = [...guide.matchAll(/^S→ (\{"channel":"l3".*\})$/gm)].map(([, text]) => decodeMessage(text));
  assert.equal(shown.length, 2);
  for (const m of shown) orders.apply(m);
  assert.deepEqual(orders.bids, [['7000000000023', '0.999000', '10.000000'], ['7000000000019', '0.998900', '15.000000']]);
  const next = { ...shown[1], seq: 1045, prev_seq: 1044, asks: [] };
  const copy = new OrdersBook(symbol);
  for (const m of shown) copy.apply(m);
  // It loses its place: deleted, and there again behind the others.
  const moved = { ...next, bids: [['7000000000031', '0.999000', '3.000000'], ['7000000000023', '0.999000', '0'], ['7000000000023', '0.999000', '12.000000']] };
  assert.throws(() => copy.apply({ ...moved, checksum: 0 }), MismatchError);
  orders.apply({ ...moved, checksum: copy.checksum() });
  assert.deepEqual(orders.bids.map(([id]) => id), ['7000000000031', '7000000000023', '7000000000019']);
  assert.throws(() => orders.apply({ ...next, seq: 1046, prev_seq: 1045, bids: [['7', '0.999000', '0']] }), MismatchError);
  assert.throws(() => orders.apply({ ...next, seq: 1050, prev_seq: 1049 }), GapError);
});

test('levels are kept in order, whatever comes', () => {
  const [book, copy] = [new Book(symbol, 100), new Book(symbol, 100)];
  book.apply(l2('snapshot', 1, [], [], copy));
  const model = { bids: new Map(), asks: new Map() };
  let seed = 7;
  const random = (n) => (seed = (seed * 48_271) % 2_147_483_647) % n;
  for (let seq = 2; seq < 600; seq++) {
    const change = { bids: [], asks: [] };
    for (const side of ['bids', 'asks']) {
      for (const at of new Set([random(60), random(60)])) {
        const price = `${at}.${String(at % 10)}0`;
        const qty = random(3) === 0 ? '0' : `${1 + random(1e6)}.5`;
        if (qty === '0' && !model[side].delete(price)) continue;
        if (qty !== '0') model[side].set(price, qty);
        change[side].push([price, qty]);
      }
    }
    const m = l2('update', seq, change.bids, change.asks, copy);
    book.apply(m);
    for (const [side, sign] of [['bids', -1], ['asks', 1]]) {
      assert.deepEqual(book[side], [...model[side]].sort((a, b) => sign * (Number(a[0]) - Number(b[0]))));
    }
  }
});

test('a message that does not fit breaks the book until a snapshot', () => {
  const bids = [['0.9', '1'], ['0.8', '2']];
  const base = () => {
    const [book, copy] = [new Book(symbol, 10), new Book(symbol, 10)];
    book.apply(l2('snapshot', 10, bids, [['1.0', '1']], copy));
    return { book, copy };
  };
  for (const [name, Class, change] of [
    ['a number was left out', GapError, (copy) => ({ ...l2('update', 12, [], [], copy), prev_seq: 11 })],
    ['of another epoch', GapError, (copy) => l2('update', 11, [], [], copy, { epoch: 'e8' })],
    ['goes back', GapError, (copy) => l2('update', 9, [], [], copy)],
    ['stands still', GapError, (copy) => ({ ...l2('update', 10, [], [], copy), prev_seq: 10 })],
    ['a wrong checksum', MismatchError, (copy) => ({ ...l2('update', 11, [['0.9', '3']], [], copy), checksum: 1 })],
    ['deletes what is not there', MismatchError, (copy) => l2('update', 11, [['0.7', '0']], [], copy)],
    ['more levels than were asked for', MismatchError, (copy) =>
      l2('update', 11, Array.from({ length: 9 }, (_, i) => [`0.1${i}`, '1']), [], copy)],
  ]) {
    const { book, copy } = base();
    assert.throws(() => book.apply(change(copy)), Class, name);
    assert.equal(book.whole, false, name);
    book.apply(l2('snapshot', 20, bids, [], new Book(symbol, 10)));
    assert.deepEqual([book.whole, book.seq, book.bids, book.asks], [true, 20, bids, []], name);
  }
  const { book, copy } = base();
  book.apply(l2('update', 11, Array.from({ length: 8 }, (_, i) => [`0.1${i}`, '1']), [], copy)); // as many as were asked for
  assert.equal(book.bids.length, 10);
});

test('hostile messages are refused, and change nothing', () => {
  const good = { channel: 'l2', type: 'snapshot', ...place, seq: 1, prev_seq: 0, bids: [['1', '1']], asks: [], checksum: 5 };
  assert.ok(decodeMessage(JSON.stringify(good)));
  for (const bad of [
    { ...good, type: 'other' }, { ...good, symbol: '' }, { ...good, symbol: 5 }, { ...good, epoch: null }, { ...good, seq: -1 },
    { ...good, seq: 1.5 }, { ...good, seq: '1' }, { ...good, seq: 2 ** 53 }, { ...good, prev_seq: undefined }, { ...good, bids: null },
    { ...good, bids: {} }, { ...good, bids: [['1']] }, { ...good, bids: [['1', '1', '1']] }, { ...good, bids: [[1, '1']] },
    { ...good, bids: [['-1', '1']] }, { ...good, bids: [['1e9', '1']] }, { ...good, bids: [['1', 'NaN']] }, { ...good, checksum: null },
    { ...good, bids: Array(1_001).fill(['1', '1']) },
    { channel: 'trades', type: 'update', ...place, seq: 1, prev_seq: 0, trades: [{ trade_id: 1, price: '1', qty: '1', side: 'both', ts: 'x' }] },
    { channel: 'trades', type: 'update', ...place, seq: 1, prev_seq: 0, trades: [null] },
    { channel: 'ticker', type: 'update', ...place, seq: 1, last: 5 },
    { channel: 'tickets', type: 'update', ...place, seq: 1, prev_seq: 0, tickets: [{ order_id: 'T1' }] },
    { channel: 'tickets', type: 'update', ...place, seq: 1, prev_seq: 0, tickets: [], gone: [5] },
    { channel: 'heartbeat', seqs: { a: 'b' } }, { channel: 'heartbeat', seqs: null }, { channel: 'status', type: 'welcome' },
    { channel: 'control', type: 'ack', rejected: [{}] }, { channel: 'control', type: 'what' }, { channel: 'mark', epoch: 'e1' },
    {}, [], null, 5, 'text', { channel: 5 },
  ]) {
    assert.throws(() => decodeMessage(JSON.stringify(bad)), ProtocolError, JSON.stringify(bad));
  }
  for (const text of ['', '{', 'null', '['.repeat(10_000), '{"channel":"l2"', '\u0000']) assert.throws(() => decodeMessage(text), ProtocolError);
  assert.equal(decodeMessage('{"channel":"__proto__"}'), null);
  assert.equal(decodeMessage('{"channel":"of a later day"}'), null);
});

const trades = (type, seq, ids, more = {}) => ({
  channel: 'trades', type, ...place, seq, prev_seq: type === 'snapshot' ? 0 : seq - 1, ...more,
  trades: ids.map((trade_id) => ({ trade_id, price: '1', qty: '1', side: 'buy', ts: 't' })),
});

test('each trade comes once, and what is missing is told', () => {
  const s = new Streams(50);
  s.follow([{ channel: 'trades', symbol }]);
  const ids = (m) => s.take(m)?.prints.trades.map((t) => t.trade_id);
  assert.equal(s.take(trades('update', 5, [9])), null); // before its snapshot
  assert.deepEqual(ids(trades('snapshot', 5, [3, 7])), [3, 7]);
  assert.deepEqual(ids(trades('update', 6, [8, 9])), [8, 9]);
  assert.equal(ids(trades('update', 6, [8, 9])), undefined); // again, as after a return
  assert.equal(s.take(trades('update', 9, [12])).kind, 'gap');
  assert.equal(s.take(trades('update', 10, [13])), null);
  const overlap = s.take(trades('snapshot', 11, [8, 9, 12]));
  assert.deepEqual([overlap.prints.trades.map((t) => t.trade_id), overlap.prints.hole], [[12], null]);
  assert.deepEqual(s.take(trades('snapshot', 30, [20, 21])).prints.hole, { after: 12, before: 20 });
  assert.deepEqual(ids(trades('snapshot', 1, [2], { epoch: 'e8' })), [2]); // a desk restored from a backup
  assert.equal(s.take(trades('update', 2, [2], { epoch: 'e8' })).kind, 'gap'); // a trade that was there
});

test('a stream resumes where it is whole, and heartbeats find a lost end', () => {
  const s = new Streams(50);
  const names = [{ channel: 'l2', symbol }, { channel: 'trades', symbol }, { channel: 'ticker', symbol }];
  s.follow(names);
  assert.equal(s.resume(), undefined);
  s.take(l2('snapshot', 5, [], [], new Book(symbol, 50)));
  s.take(trades('snapshot', 8, [1]));
  assert.deepEqual(s.resume(), { epoch: 'e7', [`l2:${symbol}`]: 5, [`trades:${symbol}`]: 8 });
  const seqs = { [`l2:${symbol}`]: 5, [`trades:${symbol}`]: 9 };
  assert.deepEqual(s.heartbeat(seqs), []); // it may be on its way
  const [lost] = s.heartbeat(seqs);
  assert.deepEqual([lost.kind, lost.stream.channel], ['gap', 'trades']);
  assert.deepEqual(s.resume(), { epoch: 'e7', [`l2:${symbol}`]: 5 });
  const [late] = s.heartbeat(seqs); // the ticker's snapshot, three heartbeats late
  assert.deepEqual(late.stream, { channel: 'ticker', symbol });
  assert.equal(s.whole, false);
});

test('the sales of a pair', () => {
  const s = new Streams(50);
  s.follow([{ channel: 'rfq_trades', symbol }]);
  const sale = (trade_id) => ({ trade_id, price_usd: '0.99', fill_usd: '250', base_amount: '252', rail: 'USDC', ts: '2026-11-22T10:45:13.301Z', l1_signature: null });
  const message = (type, seq, ...ids) => decodeMessage(JSON.stringify({
    channel: 'rfq_trades', type, ...place, seq, prev_seq: type === 'snapshot' ? 0 : seq - 1, rfq_trades: ids.map(sale),
  }));
  const taken = (m) => s.take(m).prints.trades.map((t) => t.trade_id);
  assert.deepEqual(taken(message('snapshot', 3, 1, 2)), [1, 2]);
  assert.deepEqual(taken(message('update', 4, 3)), [3]);
  assert.equal(s.take(message('update', 6, 5)).kind, 'gap');
  assert.deepEqual(taken(message('snapshot', 6, 1, 2, 3, 4, 5)), [4, 5]);
  assert.throws(() => decodeMessage(JSON.stringify({ channel: 'rfq_trades', type: 'update', ...place, seq: 1, prev_seq: 0, rfq_trades: [{ trade_id: 1 }] })));
});

test('the tickets of a pair', () => {
  const s = new Streams(50);
  s.follow([{ channel: 'tickets', symbol }]);
  const m = (type, seq, ids, gone) => ({
    channel: 'tickets', type, ...place, seq, prev_seq: type === 'snapshot' ? 0 : seq - 1, tickets: ids.map((order_id) => ({ order_id })),
    ...(gone && { gone }),
  });
  s.take(m('snapshot', 1, ['T1', 'T2']));
  s.take(m('update', 2, ['T3'], ['T1']));
  assert.deepEqual([...s.board(symbol).tickets.keys()], ['T2', 'T3']);
  assert.equal(s.take(m('update', 3, [], ['T9'])).kind, 'gap');
});
