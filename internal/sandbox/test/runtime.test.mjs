// What the runtime executes that settlement must know to refuse: address
// tables, version 1, durable nonces. And answers in the shape of real nodes.

import assert from 'node:assert/strict';
import { createHash, sign } from 'node:crypto';
import { test } from 'node:test';
import * as base58 from '../lib/base58.mjs';
import { LOOKUP_TABLE, MEMO, SYSTEM } from '../lib/programs.mjs';
import { isOnCurve } from '../lib/setup.mjs';
import { account, newKey, SOL, startNode, tempDir, testData, transfer } from './helpers.mjs';

const RECENT_BLOCKHASHES = 'SysvarRecentB1ockHashes11111111111111111111';
const RENT = 'SysvarRent111111111111111111111111111111111';

function u64(n) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(n));
  return bytes;
}

/** Signs a message by its one signer. */
const one = (key, message) => Buffer.concat([Buffer.from([1]), sign(null, message, key.privateKey), message]);

test('address tables: made, extended, loaded and shown', async (t) => {
  const c = await startNode(t);
  const [payer, to] = [c.rich(), newKey()];
  const slot = c.chain.slots.slot - 1;
  let table;
  let bump = 256;
  do {
    bump--;
    table = createHash('sha256').update(payer.pub).update(u64(slot)).update(Buffer.from([bump]))
      .update(base58.decode(LOOKUP_TABLE)).update('ProgramDerivedAddress').digest();
  } while (isOnCurve(table));
  const accounts = [
    account(table, false, true), account(payer.pub, true, false), account(payer.pub, true, true), account(base58.decode(SYSTEM), false, false),
  ];
  const make = Buffer.concat([Buffer.alloc(4), u64(slot), Buffer.from([bump])]);
  const extend = Buffer.concat([Buffer.from([2, 0, 0, 0]), u64(1), to.pub]);
  await c.send(c.transaction([payer], [{ program: LOOKUP_TABLE, accounts, data: make }, { program: LOOKUP_TABLE, accounts, data: extend }]));
  c.chain.advance();

  const data = transfer(payer.pub, to.pub, SOL).data;
  const message = Buffer.concat([
    Buffer.from([0x80, 1, 0, 1, 2]), payer.pub, base58.decode(SYSTEM), base58.decode(await c.blockhash()),
    Buffer.from([1, 1, 2, 0, 2, data.length]), data, Buffer.from([1]), table, Buffer.from([1, 0, 0]),
  ]);
  const signature = await c.send(one(payer, message));
  for (let i = 0; i < 31; i++) c.chain.advance();
  const shown = await c.call('getTransaction', signature, { maxSupportedTransactionVersion: 0 });
  assert.deepEqual(shown.meta.loadedAddresses, { writable: [to.address], readonly: [] });
  assert.deepEqual(shown.meta.postBalances.at(-1) - shown.meta.preBalances.at(-1), Number(SOL));
  assert.deepEqual(shown.transaction.message.addressTableLookups, [{ accountKey: base58.encode(table), writableIndexes: [0], readonlyIndexes: [] }]);
  assert.equal((await c.call('getSignaturesForAddress', to.address))[0].signature, signature);
  const parsed = await c.call('getTransaction', signature, { maxSupportedTransactionVersion: 0, encoding: 'jsonParsed' });
  assert.deepEqual(parsed.transaction.message.accountKeys.at(-1), { pubkey: to.address, writable: true, signer: false, source: 'lookupTable' });
  assert.equal(parsed.transaction.message.instructions[0].parsed.info.destination, to.address);

  const bad = Buffer.from(message);
  bad[bad.length - 2] = 1; // the table has one address
  await assert.rejects(c.send(one(payer, bad)), /address table lookup uses an invalid index/);
});

test('version 1: runs, and is shown to those who ask for it', async (t) => {
  const c = await startNode(t);
  const [payer, to] = [c.rich(), newKey()];
  const { data } = transfer(payer.pub, to.pub, SOL);
  const message = Buffer.concat([
    Buffer.from([0x81, 1, 0, 1, 0x0f, 0, 0, 0]), base58.decode(await c.blockhash()), Buffer.from([1, 3]),
    payer.pub, to.pub, base58.decode(SYSTEM), u64(77), Buffer.from([0x10, 0x27, 0, 0, 0, 0, 1, 0]),
    Buffer.from([2, 2, data.length, 0]), Buffer.from([0, 1]), data,
  ]);
  const bytes = Buffer.concat([message, sign(null, message, payer.privateKey)]);
  const signature = await c.send(bytes);
  for (let i = 0; i < 31; i++) c.chain.advance();
  const get = (most) => c.call('getTransaction', signature, { encoding: 'base64', maxSupportedTransactionVersion: most });
  const shown = await get(1);
  assert.deepEqual([shown.version, shown.meta.fee, shown.transaction[0]], [1, 5077, bytes.toString('base64')]);
  assert.equal((await c.call('getTransaction', signature, { maxSupportedTransactionVersion: 1 })).transaction.message.addressTableLookups, undefined);
  for (const most of [0, undefined]) {
    await assert.rejects(get(most), (e) => e.code === -32015 && /Transaction version \(1\) is not supported/.test(e.message));
  }
});

test('a durable nonce outlives its blockhash, once', async (t) => {
  const c = await startNode(t);
  const [payer, nonce, to] = [c.rich(), newKey(), newKey()];
  const create = Buffer.concat([Buffer.alloc(4), u64(SOL), u64(80), base58.decode(SYSTEM)]);
  const initialize = Buffer.concat([Buffer.from([6, 0, 0, 0]), payer.pub]);
  const recent = account(base58.decode(RECENT_BLOCKHASHES), false, false);
  await c.send(c.transaction([payer, nonce], [
    { program: SYSTEM, accounts: [account(payer.pub, true, true), account(nonce.pub, true, true)], data: create },
    { program: SYSTEM, accounts: [account(nonce.pub, false, true), recent, account(base58.decode(RENT), false, false)], data: initialize },
  ]));
  const stored = (await c.call('getAccountInfo', nonce.address, { encoding: 'jsonParsed' })).value.data.parsed.info;
  assert.equal(stored.authority, payer.address);
  const advance = { program: SYSTEM, accounts: [account(nonce.pub, false, true), recent, account(payer.pub, true, false)], data: Buffer.from([4, 0, 0, 0]) };
  const bytes = c.transaction([payer], [advance, transfer(payer.pub, to.pub, SOL)], stored.blockhash);
  for (let i = 0; i < 400; i++) c.chain.advance();
  await c.send(bytes);
  assert.equal(c.chain.accounts.balance(to.pub), SOL);
  for (let i = 0; i < 400; i++) c.chain.advance();
  await assert.rejects(c.send(bytes), /Blockhash not found/); // the nonce has moved
});

/** The names and kinds of a value, so that two answers can be compared. */
function shape(value) {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shape(value[0])];
  if (value === null || typeof value !== 'object') return typeof value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, shape(value[key])]));
}

test('getTransaction has the shape of a mainnet answer', async (t) => {
  const real = testData('solana/transactions/mainnet_1_5bvyp1nob5.json')?.result;
  if (real === undefined) return t.skip('no test data: set BLOCKDESK_TESTDATA');
  const c = await startNode(t, { setup: tempDir(), wallets: 1 });
  const { signature } = await c.call('sandbox_fund', { wallet: newKey().address, symbol: '92C', amount: 1000 });
  for (let i = 0; i < 31; i++) c.chain.advance();
  const ours = await c.call('getTransaction', signature, { maxSupportedTransactionVersion: 0 });
  // Without costUnits, the one field that we do not have, and what the one
  // transaction has and the other has not.
  const bare = ({ meta: { costUnits, ...meta }, transaction: { signatures, message }, ...rest }) => ({
    ...rest,
    meta: { ...meta, preTokenBalances: [], loadedAddresses: Object.keys(meta.loadedAddresses).sort() },
    transaction: {
      signatures,
      message: { ...message, instructions: message.instructions.filter((i) => i.accounts.length > 0), addressTableLookups: [] },
    },
  });
  assert.deepEqual(shape(bare(ours)), shape(bare(real)));
  return undefined;
});

test('a mainnet memo is listed as mainnet lists it', async (t) => {
  const real = testData('solana/transactions/mainnet_3_2E9Ddokz6H.json')?.result;
  if (real === undefined) return t.skip('no test data: set BLOCKDESK_TESTDATA');
  const c = await startNode(t);
  const payer = c.rich();
  const { accountKeys, instructions } = real.transaction.message;
  const { data } = instructions.find((i) => accountKeys[i.programIdIndex] === MEMO);
  const bytes = c.transaction([payer], [{ program: MEMO, accounts: [], data: Buffer.from(base58.decode(data)) }]);
  await c.send(bytes);
  for (let i = 0; i < 31; i++) c.chain.advance();
  assert.equal((await c.call('getSignaturesForAddress', payer.address))[0].memo, '[12] CFP #4115716');
  return undefined;
});
