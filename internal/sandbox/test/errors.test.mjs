import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describe } from '../lib/errors.mjs';
import * as json from '../lib/json.mjs';
import { isOnCurve } from '../lib/setup.mjs';
import { uiAmount, uiBalance } from '../lib/tokens.mjs';
import { newKey } from './helpers.mjs';

test('transaction errors in Agave\'s words', () => {
  for (const [err, text] of [
    ['BlockhashNotFound', 'Blockhash not found'],
    ['AlreadyProcessed', 'This transaction has already been processed'],
    ['AccountNotFound', 'Attempt to debit an account but found no record of a prior credit.'],
    [{ InstructionError: [2, { Custom: 6001 }] }, 'Error processing Instruction 2: custom program error: 0x1771'],
    [{ InstructionError: [0, 'MissingRequiredSignature'] }, 'Error processing Instruction 0: missing required signature for instruction'],
    [{ InsufficientFundsForRent: { account_index: 1 } }, 'Transaction results in an account (1) with insufficient funds for rent'],
    [{ DuplicateInstruction: 3 }, 'Transaction contains a duplicate instruction (3) that is not allowed'],
  ]) assert.equal(describe(err), text);
});

test('u64 stays exact in JSON', () => {
  assert.equal(json.encode({ a: 18446744073709551615n, b: [1, null, undefined, 'x"\n'], c: undefined, d: true, e: 0.5 }),
    '{"a":18446744073709551615,"b":[1,null,null,"x\\"\\n"],"d":true,"e":0.5}');
});

test('amounts as nodes print them', () => {
  assert.deepEqual(uiAmount(1234500n, 6), { uiAmount: 1.2345, decimals: 6, amount: '1234500', uiAmountString: '1.2345' });
  assert.deepEqual(uiAmount(5n, 6), { uiAmount: 0.000005, decimals: 6, amount: '5', uiAmountString: '0.000005' });
  assert.deepEqual(uiAmount(7n, 0), { uiAmount: 7, decimals: 0, amount: '7', uiAmountString: '7' });
  assert.deepEqual(uiBalance(0n, 6), { uiAmount: null, decimals: 6, amount: '0', uiAmountString: '0' });
  assert.equal(uiAmount(2n ** 64n - 1n, 9).uiAmountString, '18446744073.709551615');
});

test('points of the curve', () => {
  for (let i = 0; i < 10; i++) assert.ok(isOnCurve(newKey().pub));
  // The associated account of a wallet is none: y = 2 has no x either.
  const off = Buffer.alloc(32);
  off[0] = 2;
  assert.equal(isOnCurve(off), false);
});
