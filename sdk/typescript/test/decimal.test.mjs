import assert from 'node:assert/strict';
import test from 'node:test';
import {
  addDecimals, compareDecimals, divideDecimals, fromAtoms, isDecimal, multiplyDecimals, subtractDecimals, toAtoms,
} from '../dist/src/index.js';

test('atoms and units', () => {
  for (const [text, decimals, atoms] of [
    ['0', 6, 0n], ['1', 0, 1n], ['12.5', 6, 12_500_000n], ['0.000001', 6, 1n], ['18446744073709.551615', 6, (1n << 64n) - 1n],
  ]) {
    assert.equal(toAtoms(text, decimals), atoms);
    assert.equal(compareDecimals(fromAtoms(atoms, decimals), text), 0);
  }
  assert.throws(() => toAtoms('0.0000001', 6), RangeError);
  assert.equal(toAtoms('0.0000001', 6, 'down'), 0n);
  assert.equal(toAtoms('0.0000001', 6, 'up'), 1n);
  assert.equal(fromAtoms(-5n, 2), '-0.05');
});

test('what is no decimal is refused', () => {
  for (const bad of ['', ' 1', '1 ', '-1', '+1', '01', '.5', '5.', '1e3', '0x1', '1,5', '١', 'NaN', 'Infinity', '1_000', '1'.repeat(61), null, 1, {}]) {
    assert.equal(isDecimal(bad), false, String(bad));
    if (typeof bad !== 'string') continue;
    assert.throws(() => toAtoms(bad, 6), RangeError);
    assert.throws(() => compareDecimals(bad, '1'), RangeError);
    assert.throws(() => compareDecimals('1', bad), RangeError);
  }
});

test('arithmetic is exact, as integers of one scale are', () => {
  let seed = 1;
  const random = (n) => (seed = (seed * 48_271) % 2_147_483_647) % n;
  for (let i = 0; i < 2_000; i++) {
    const [scaleA, scaleB] = [random(10), random(10)];
    const [a, b] = [BigInt(random(1e9)) * BigInt(random(1e9)), BigInt(random(1e9))];
    const [x, y] = [fromAtoms(a, scaleA), fromAtoms(b, scaleB)];
    const [wideA, wideB] = [a * 10n ** BigInt(20 - scaleA), b * 10n ** BigInt(20 - scaleB)];
    assert.equal(Math.sign(compareDecimals(x, y)), wideA < wideB ? -1 : wideA > wideB ? 1 : 0, `${x} ${y}`);
    assert.equal(toAtoms(addDecimals(x, y), 20), wideA + wideB);
    if (wideA >= wideB) assert.equal(toAtoms(subtractDecimals(x, y), 20), wideA - wideB);
    assert.equal(toAtoms(multiplyDecimals(x, y), 20), (wideA * wideB) / 10n ** 20n);
    if (b > 0n) {
      const [down, up] = [divideDecimals(x, y, 6, 'down'), divideDecimals(x, y, 6, 'up')];
      assert.ok(compareDecimals(multiplyDecimals(down, y), x) <= 0 && compareDecimals(multiplyDecimals(up, y), x) >= 0, `${x} / ${y}`);
      assert.ok(toAtoms(up, 6) - toAtoms(down, 6) <= 1n);
    }
  }
  assert.throws(() => divideDecimals('1', '0', 6, 'down'), RangeError);
  assert.throws(() => divideDecimals('1', '3', 6, 'exact'), RangeError);
});
