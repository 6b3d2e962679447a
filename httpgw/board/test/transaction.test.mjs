// The page's own check of a transaction, against two that the demo's chain has
// taken, one of each rail.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode, encode, fromBase64, toBase64 } from '../src/base58.ts';
import { VerificationError, inspect, parse, tokenAccount } from '../src/transaction.ts';
import builds from './builds.json';

const { wallet, desk, slusd } = builds;
const delivered = 1_003_509_775n;
const decimals = { usdc: 6, sol: 9, slusd: 6 };
const terms = (b) => ({
  wallet, desk, memo: b.memo, pay: { mint: b.mint, atoms: BigInt(b.atoms), decimals: b.mint ? decimals.usdc : decimals.sol, to: b.to },
  deliver: { mint: slusd, atoms: delivered, decimals: decimals.slusd, to: wallet },
});
const check = (bytes, want) => inspect(parse(bytes), want);

for (const rail of ['usdc', 'sol']) {
  const b = builds[rail];
  const bytes = fromBase64(b.transaction);

  test(`${rail}: what was quoted is taken`, async () => {
    const t = parse(bytes);
    assert.deepEqual(t.signers, [desk, wallet]);
    assert.deepEqual(await inspect(t, terms(b)), { feePayer: desk, rentPayer: wallet, priority: 1000n });
    assert.equal(toBase64(bytes), b.transaction);
  });

  test(`${rail}: other terms are refused`, async () => {
    const good = terms(b);
    const pay = (change) => ({ ...good, pay: { ...good.pay, ...change } });
    const deliver = (change) => ({ ...good, deliver: { ...good.deliver, ...change } });
    for (const bad of [
      pay({ atoms: good.pay.atoms - 1n }), pay({ atoms: good.pay.atoms + 1n }), pay({ to: desk }), pay({ decimals: 8 }), deliver({ decimals: 7 }), pay({ mint: slusd }), pay({ mint: good.pay.mint ? null : slusd }),
      deliver({ atoms: delivered - 1n }), deliver({ atoms: delivered + 1n }), deliver({ to: desk }), deliver({ mint: b.to }),
      { ...good, memo: 'Cxxxxxxxxxxxxx' }, { ...good, desk: b.to }, { ...good, wallet: desk, desk: wallet }, { ...good, wallet: b.to },
    ]) await assert.rejects(check(bytes, bad), VerificationError);
  });

  test(`${rail}: no byte of what is signed can be another`, async () => {
    const t = parse(bytes);
    const start = bytes.length - t.message.length;
    const keys = start + 5; // version, three counts, number of keys
    // Nothing that money moves by: how many keys are read-only, the account by
    // which the payment is found, the blockhash, and the compute budget's data.
    const free = new Set([start + 2, start + 3]);
    const span = (from, size) => { for (let i = 0; i < size; i++) free.add(from + i); };
    span(keys + 32 * t.keys.indexOf(b.reference), 32);
    span(keys + 32 * t.keys.length, 32);
    for (const i of t.instructions.slice(0, 2)) span(i.data.byteOffset - bytes.byteOffset + 1, i.data.length - 1);
    const passed = [];
    for (let at = start; at < bytes.length; at++) {
      for (const bit of [1, 128]) {
        const other = Uint8Array.from(bytes);
        other[at] ^= bit;
        try {
          await check(other, terms(b));
          if (!free.has(at) && !harmless(t, parse(other))) passed.push(at - start);
        } catch (error) {
          assert.ok(error instanceof VerificationError, `byte ${at}: ${error}`);
        }
      }
    }
    assert.deepEqual(passed, []);
  });

  test(`${rail}: what is cut short or goes on is refused`, async () => {
    for (let size = 0; size < bytes.length; size++) assert.throws(() => parse(bytes.subarray(0, size)), VerificationError);
    assert.throws(() => parse(new Uint8Array([...bytes, 0])), VerificationError);
    assert.throws(() => parse(new Uint8Array(1233)), VerificationError);
  });
}

// harmless: only what the chain holds to one value differs (the accounts of one that
// is opened, behind its owner and mint), the extra accounts of a payment, or which of
// the two parties pays the rent.
function harmless(a, b) {
  const core = (t) => JSON.stringify(t.instructions.map(({ program, accounts, data }) => {
    if (data.length === 1) return [program, accounts[2], accounts[3], data[0]];
    return [program, accounts.slice(0, data.length === 10 ? 4 : 2), [...data]];
  }));
  return core(a) === core(b);
}

test('token accounts are derived as Solana does', async () => {
  const token = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
  assert.equal(await tokenAccount(wallet, builds.usdc.mint, token), builds.usdc.walletAccount);
});

test('base58', () => {
  for (const bytes of [[], [0], [0, 0, 1], [255], Array.from({ length: 32 }, (_, i) => i * 7)]) {
    assert.deepEqual([...decode(encode(Uint8Array.from(bytes)), bytes.length)], bytes);
  }
  assert.equal(encode(new Uint8Array(32)), '1'.repeat(32));
  for (const bad of ['0', 'O', 'I', 'l', '1'.repeat(31), '1'.repeat(33), `${'1'.repeat(31)}z1`, 'z'.repeat(44), 'z'.repeat(1000)]) {
    assert.throws(() => decode(bad, 32), RangeError);
  }
});
