import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as base58 from '../lib/base58.mjs';
import { decodeMessage, decodeTransaction, isSane, isWritable } from '../lib/wire.mjs';

// Made with @solana/kit 8.4.0: a transfer of 1,000,000 lamports.
const LEGACY = '012ecc91e2f18ffb086d7ac468981e9c17506b89d1dd8b054fd94b4f7034c9d3b58dfa0371773c5eb54bbb774e8c93afa8ffd660efac9896919ef55f53af99dc0b01000103be24fc70f39999cdbc6d8422bdce005f7254d3efc4ced73867dfd62f1a736b9827c6a4403a85af06e09e3f0f0a8537ac0e12ca55c841b8124c4ac99e03a7b2da0000000000000000000000000000000000000000000000000000000000000000aeebad4a796fcc2e15dc4c6061b45ed9b373f26adfc798ca7d2d8cc58182718e01020200010c0200000040420f0000000000';
const V0 = '011023fc4227f41b2b7524a3ec27eaf4bcef27739dbfdcec043682c1ce79eee77cf88617c0e06d7cfa1472ee77457104a390be85822458203b8f89278ae1885f028001000103be24fc70f39999cdbc6d8422bdce005f7254d3efc4ced73867dfd62f1a736b9827c6a4403a85af06e09e3f0f0a8537ac0e12ca55c841b8124c4ac99e03a7b2da0000000000000000000000000000000000000000000000000000000000000000aeebad4a796fcc2e15dc4c6061b45ed9b373f26adfc798ca7d2d8cc58182718e01020200010c0200000040420f000000000000';
const V1 = '8101000107000000aeebad4a796fcc2e15dc4c6061b45ed9b373f26adfc798ca7d2d8cc58182718e0103be24fc70f39999cdbc6d8422bdce005f7254d3efc4ced73867dfd62f1a736b9827c6a4403a85af06e09e3f0f0a8537ac0e12ca55c841b8124c4ac99e03a7b2da0000000000000000000000000000000000000000000000000000000000000000070000000000000050c3000002020c0000010200000040420f00000000009bc89cd0a39e73bb701ec29291ac523667d042a1ce38ab81f1d5dea409b77b01caf6fd7f65685107fda35856df708bcd6c2b7a04ddf4ec1d68b538b511f8b50e';

for (const [name, hex, version] of [['legacy', LEGACY, 'legacy'], ['version 0', V0, 0], ['version 1', V1, 1]]) {
  const bytes = Buffer.from(hex, 'hex');

  test(`${name}: every field`, () => {
    const tx = decodeTransaction(bytes);
    assert.equal(tx.version, version);
    assert.deepEqual([tx.required, tx.readonlySigned, tx.readonlyUnsigned], [1, 0, 1]);
    assert.deepEqual(tx.keys.map(base58.encode), [
      'DoFB3sbgF1WHUXjkRetfWrXu9tFixXD2gPpPcEHpEnsy', '3gGaddhtK8G8SRPzXVdD6vbCKASHdjCLocszShdKipjs', '11111111111111111111111111111111',
    ]);
    assert.equal(base58.encode(tx.blockhash), 'CmpNeggWJ4JaWJeJ8YKN1Zypmk7uvQq3PECGUCAEMbky');
    assert.deepEqual(tx.instructions.map((i) => [i.program, i.accounts, i.data.toString('hex')]), [[2, [0, 1], '0200000040420f0000000000']]);
    assert.deepEqual([0, 1, 2].map((i) => isWritable(tx, i)), [true, true, false]);
    assert.deepEqual(tx.config, version === 1 ? { priorityFee: 7n, unitLimit: 50000 } : {});
    assert.equal(tx.signatures.length, 1);
    assert.ok(isSane(tx));
    assert.deepEqual(tx.wire, bytes);
    assert.deepEqual(decodeMessage(tx.message).instructions, tx.instructions);
  });

  test(`${name}: every truncation is refused, what follows is passed over`, () => {
    for (let length = 0; length < bytes.length; length++) {
      assert.throws(() => decodeTransaction(bytes.subarray(0, length)), RangeError, `${length} bytes`);
    }
    assert.deepEqual(decodeTransaction(Buffer.concat([bytes, Buffer.from('tail')])).wire, bytes);
  });
}

test('lengths that have a shorter form are refused', () => {
  const bytes = Buffer.from(LEGACY, 'hex');
  const alias = Buffer.concat([Buffer.from([0x81, 0x00]), bytes.subarray(1)]);
  assert.throws(() => decodeTransaction(alias), RangeError);
  const long = Buffer.concat([Buffer.from([0xff, 0xff, 0x04]), bytes.subarray(1)]);
  assert.throws(() => decodeTransaction(long), /above u16/);
});

test('a version above 1 is refused', () => {
  const bytes = Buffer.from(V0, 'hex');
  bytes[65] = 0x82;
  assert.throws(() => decodeTransaction(bytes), /version/);
});

test('sanitize', () => {
  const cases = {
    'no signature for the payer': (tx) => { tx.required = 0; },
    'a signature too few': (tx) => { tx.signatures = []; },
    'a payer that is read-only': (tx) => { tx.readonlySigned = 1; },
    'more read-only keys than keys': (tx) => { tx.readonlyUnsigned = 3; },
    'a program beyond the keys': (tx) => { tx.instructions[0].program = 3; },
    'the payer as program': (tx) => { tx.instructions[0].program = 0; },
    'an account beyond the keys': (tx) => { tx.instructions[0].accounts = [3]; },
    'a lookup of nothing': (tx) => { tx.lookups = [{ table: tx.keys[0], writable: [], readonly: [] }]; },
  };
  for (const [name, spoil] of Object.entries(cases)) {
    const tx = decodeTransaction(Buffer.from(V0, 'hex'));
    spoil(tx);
    assert.equal(isSane(tx), false, name);
  }
});

test('base58: known texts, all lengths, bad characters', () => {
  assert.equal(base58.encode(Buffer.from('hello world')), 'StV1DL6CwTryKyV');
  assert.equal(base58.encode(Buffer.alloc(32)), '1'.repeat(32));
  assert.equal(base58.decode('0OIl'), null);
  assert.equal(base58.decode('é'), null);
  for (let length = 0; length < 80; length++) {
    const bytes = randomBytes(length).fill(0, 0, length % 4);
    assert.deepEqual(Buffer.from(base58.decode(base58.encode(bytes))), bytes);
  }
});

test('nothing that passes the checks aborts the runtime', () => {
  const script = path.join(path.dirname(fileURLToPath(import.meta.url)), 'mutate.mjs');
  const run = spawnSync(process.execPath, [script, String(Date.now()), '1500'], { encoding: 'utf8', timeout: 600000 });
  assert.equal(run.status, 0, `${script}: ${run.signal} ${run.stderr}`);
  assert.ok(JSON.parse(run.stdout).seen.run > 500);
});
