// Exact decimals, the copies of the market, and the ladder's prices.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Decimal, grouped, short, size } from '../src/decimal.ts';
import { Book, crc32, maxTrades, Tape, Tickets } from '../src/market.ts';
import { listed, maxRows, priced } from '../src/offers.ts';

const d = (text) => Decimal.parse(text);

test('decimals are exact', () => {
  assert.equal(d('0.1').plus(d('0.2')).toString(), '0.3');
  assert.equal(d('9007199254740993.000001').plus(d('0.000001')).toString(), '9007199254740993.000002');
  assert.equal(d('1000').over(d('0.996502500'), 6).toString(), '1003.509775');
  assert.equal(d('-0.05').toString(), '-0.05');
  assert.equal(d('1.005').rounded(2).toString(), '1.00');
  assert.equal(d('1.001').rounded(2, true).toString(), '1.01');
  assert.equal(d('-1.001').rounded(2, true).toString(), '-1.01');
  assert.equal(d('0.999').compare(d('0.9990')), 0);
  for (const bad of ['', '.', '1.', '.1', '1e3', '+1', '0x1', ' 1', '1,000', '1'.repeat(41), 'NaN']) assert.throws(() => d(bad), RangeError);
});

test('numbers are written for readers without changing a digit', () => {
  assert.equal(grouped('1234567.000001'), '1,234,567.000001');
  assert.equal(grouped('999'), '999');
  assert.equal(short('3750000.000000'), '3,750,000');
  assert.equal(short('100'), '100');
  assert.equal(short('0.984015000'), '0.984015');
  assert.deepEqual(['250', '1000', '25000', '2500000', '1234'].map(size), ['250', '1k', '25k', '2.5m', '1,234']);
});

// What the desk has answered with.
test('the ladder rounds as the desk does', () => {
  assert.deepEqual(priced('0.999000000', { fill_usd: '1000', discount_bps: 25 }, 6), { price: '0.996502500', base: '1003.509775' });
  assert.equal(priced('0.349789361', { fill_usd: '1000000', discount_bps: 250 }, 6).price, '0.341044627');
  assert.deepEqual(priced('0.999000000', { fill_usd: '250', discount_bps: 0 }, 6), { price: '0.999000000', base: '250.250250' });
});

test('a long list is cut, and says so', () => {
  const ticket = (n) => ({ order_id: `T${n}`, ticket_label: n === 7 ? 'Seventh' : '', pair: 'A/B', rails: ['USDC'] });
  const many = (count) => Array.from({ length: count }, (_, n) => ticket(n));
  assert.deepEqual(listed(many(maxRows), ''), { tickets: many(maxRows), note: '' });
  const over = listed(many(maxRows + 1), ' usdc ');
  assert.deepEqual([over.tickets.length, over.note], [maxRows, 'The first 200 of 201: filter to see others.']);
  assert.deepEqual(listed(many(20), 'SEVENTH').tickets.map((t) => t.order_id), ['T7']);
  assert.deepEqual([listed([], '').note, listed(many(1), 'x').note], ['No offer is open.', 'No offer matches.']);
});

const l2 = (type, seq, bids, asks, checksum) => ({ channel: 'l2', type, symbol: 'A/B', epoch: 'e1', seq, prev_seq: seq - 1, ts: '', bids, asks, checksum });

test('a book is held to its checksum', () => {
  assert.equal(crc32('123456789'), 0xcbf43926);
  const book = new Book();
  const sum = (asks, bids) => crc32([...asks, ...bids].flat().map((x) => x.replace('.', '').replace(/^0+/, '')).join(''));
  const [bids, asks] = [[['9.900', '1.0'], ['9.800', '2.0']], [['10.000', '3.0'], ['10.100', '0.5']]];
  assert.ok(book.apply(l2('snapshot', 1, bids, asks, sum(asks, bids))));
  assert.deepEqual([book.bids(), book.asks()], [bids, asks]);
  assert.ok(book.apply(l2('update', 2, [['9.900', '0']], [['9.950', '4.0']], sum([['9.950', '4.0'], ...asks], bids.slice(1)))));
  assert.deepEqual(book.asks()[0], ['9.950', '4.0']);
  assert.ok(!book.apply(l2('update', 3, [['9.700', '1.0']], [], 1)));
});

test('a tape keeps the newest, and takes none twice', () => {
  const tape = new Tape();
  const trade = (trade_id) => ({ trade_id, price: '1', qty: '1', side: 'buy', ts: '' });
  const message = (type, seq, trades) => ({ channel: 'trades', type, symbol: 'A/B', epoch: 'e1', seq, ts: '', trades });
  tape.apply(message('snapshot', 1, [trade(1), trade(2)]));
  assert.deepEqual(tape.apply(message('update', 2, [trade(2), trade(3)])).map((t) => t.trade_id), [3]);
  assert.deepEqual(tape.trades.map((t) => t.trade_id), [3, 2, 1]);
  tape.apply(message('update', 3, Array.from({ length: maxTrades + 1 }, (_, i) => trade(10 + i))));
  assert.equal(tape.trades.length, maxTrades);
  assert.equal(tape.trades[0].trade_id, 10 + maxTrades);
});

test('tickets come, change and go', () => {
  const all = new Tickets();
  const ticket = (order_id, state = 'open') => ({ order_id, state });
  const message = (type, symbol, tickets, gone) => ({ channel: 'tickets', type, symbol, tickets, gone });
  all.apply(message('snapshot', 'A/B', [ticket('T10'), ticket('T2')]));
  all.apply(message('snapshot', 'C/D', [ticket('T3')]));
  assert.deepEqual(all.open().map((t) => t.order_id), ['T2', 'T3', 'T10']);
  all.apply(message('update', 'A/B', [ticket('T2', 'exhausted'), ticket('T11')], ['T10']));
  assert.deepEqual(all.open().map((t) => t.order_id), ['T3', 'T11']);
  assert.equal(all.find('T2').state, 'exhausted');
  all.apply(message('snapshot', 'A/B', []));
  assert.equal(all.find('T11'), undefined);
});
