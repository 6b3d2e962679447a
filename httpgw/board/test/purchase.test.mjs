// A purchase as the wallet page makes it, against a service that is made up.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServiceError } from '../src/api.ts';
import { fromBase64 } from '../src/base58.ts';
import { build, follow } from '../src/purchase.ts';
import { VerificationError } from '../src/transaction.ts';
import builds from './builds.json';

const order = (rail) => ({ order_id: 'T1', tranche_id: 'T1-1', fill_usd: '1000', rail });

/** buy builds with a quote and a build that change may have spoilt. */
function buy(name, change = () => undefined) {
  const b = builds[name];
  const rail = name.toUpperCase();
  const amount = name === 'usdc' ? '1000.000000' : `${b.atoms.slice(0, -9) || '0'}.${b.atoms.slice(-9).padStart(9, '0')}`;
  const quote = {
    ...order(rail), quote_id: 'Q1', price_usd: '0.996502500', base_amount: '1003.509775', base_amount_atoms: '1003509775',
    payment: { rail, mint: b.mint, amount, amount_atoms: b.atoms, pay_to: b.to },
  };
  const built = { build_id: 'B1', claim_id: b.memo, transaction: b.transaction, quote: structuredClone(quote) };
  const status = { chain: { desk_address: builds.desk } };
  change(quote, built, status);
  const post = async (path) => (path.endsWith('/quote') ? quote : built);
  return build({ post, get: async () => status }, order(rail), builds.slusd, builds.wallet, 'token');
}

for (const name of ['usdc', 'sol']) {
  test(`${name}: what was ordered is built`, async () => {
    const deal = await buy(name);
    assert.deepEqual(deal.bytes, fromBase64(builds[name].transaction));
    assert.equal(deal.feePayer, builds.desk);
  });

  test(`${name}: a quote or a build of anything else is refused`, async () => {
    const both = (change) => (quote, built) => {
      change(quote);
      change(built.quote);
    };
    for (const change of [
      both((q) => { q.order_id = 'T2'; }), both((q) => { q.tranche_id = 'T1-2'; }), both((q) => { q.fill_usd = '250'; }), both((q) => { q.rail = 'X'; }),
      (q) => { q.payment.rail = name === 'usdc' ? 'SOL' : 'USDC'; }, (q) => { q.payment.mint = name === 'usdc' ? null : builds.slusd; },
      // A person would read a hundredth of what is signed, or ten times what comes.
      (q) => { q.payment.amount = q.payment.amount_atoms.padStart(12, '0').replace(/(.{11})$/, '.$1'); }, both((q) => { q.base_amount = '10035.09775'; }),
      (q) => { q.payment.amount = '1'; }, (q) => { q.payment.amount_atoms = '1'; }, (q) => { q.payment.pay_to = builds.desk; },
      both((q) => { q.base_amount_atoms = '1'; }), (_, built) => { built.quote.price_usd = '1'; }, (_, built) => { built.claim_id = 'C1'; },
      (_, __, status) => { status.chain.desk_address = null; }, (_, __, status) => { status.chain.desk_address = builds.slusd; },
    ]) await assert.rejects(buy(name, change), VerificationError, String(change));
    await assert.rejects(buy(name, (q) => { q.payment.amount = 'many'; }), RangeError);
  });
}

test('a claim is followed over a service that does not answer', async () => {
  const waits = [];
  globalThis.window = { setTimeout: (f, ms) => { waits.push(ms); f(); } };
  const answers = [new TypeError('fetch failed'), new ServiceError(503, 'OVERLOADED', '', 0), new ServiceError(429, 'RATE_LIMITED', '', 30), new ServiceError(503, 'OVERLOADED', '', 9e9), { state: 'reserved' }, { state: 'settled' }];
  const get = async () => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const told = [];
  const claim = await follow({ get }, 'C1', (seen, trouble) => told.push(seen?.state ?? trouble.constructor.name));
  assert.equal(claim.state, 'settled');
  assert.deepEqual(told, ['TypeError', 'ServiceError', 'ServiceError', 'ServiceError', 'reserved', 'settled']);
  assert.deepEqual(waits, [2_000, 2_000, 30_000, 60_000, 2_000]);
  await assert.rejects(follow({ get: async () => { throw new ServiceError(404, 'UNKNOWN_CLAIM', '', 0); } }, 'C1', () => undefined), ServiceError);
});
