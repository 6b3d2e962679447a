// Free amounts on the ladder, all-in prices, and grouped levels.
import assert from 'node:assert/strict';
import test from 'node:test';
import { allIn, snap } from '../src/buy.ts';
import { group, places } from '../src/depth.ts';

const fills = ['250', '1000', '25000', '2500000'];

test('an amount is put on the largest step of the ladder that it reaches', () => {
  for (const [typed, want] of [
    ['250', '250'], ['999.99', '250'], ['1000', '1000'], ['24,999', '1000'], ['25k', '25000'], ['3M', '2500000'], ['1', '250'], ['0', '250'],
    ['', null], ['ten', null], ['1e3', null], ['-1', '250'], ['1.2.3', null], ['9'.repeat(41), null],
  ]) assert.equal(snap(typed, fills), want, typed);
  assert.equal(snap('250', []), null);
});

test('the all-in price is what is paid by what is received', () => {
  assert.equal(allIn('250.000000', '250.250250'), '0.999');
  assert.equal(allIn('1', '0.000000'), '–');
});

test('grouped levels add up, and never look better than they are', () => {
  const bids = [['1.0019', '1.5'], ['1.0011', '2'], ['0.9999', '3']];
  const asks = [['1.0021', '1'], ['1.0029', '2'], ['1.0030', '0.5']];
  assert.deepEqual(group(bids, 3, false), [['1.001', '3.5'], ['0.999', '3']]);
  assert.deepEqual(group(asks, 3, true), [['1.003', '3.5']]);
  assert.deepEqual(group([['1234', '1'], ['1236', '1']], -1, true), [['1240', '2']]);
  assert.deepEqual(group([['1240', '1']], -1, true), [['1240', '1']]);
});

test('quantities show as many decimals as are worth it', () => {
  assert.equal(places(['12345.678901', '1'], 6), 0);
  assert.equal(places(['19.779900'], 6), 2);
  assert.equal(places(['0.000123'], 6), 6);
  assert.equal(places(['5'], 0), 0);
});
