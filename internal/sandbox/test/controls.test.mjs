import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Chain, MAX_WAITING } from '../lib/chain.mjs';
import { DEFAULTS, Node } from '../lib/node.mjs';
import { State } from '../lib/state.mjs';
import { Client, newKey, signatureOf, SOL, startNode, tempDir, transfer } from './helpers.mjs';

async function pair(t, options) {
  const c = await startNode(t, options);
  const [payer, to] = [c.rich(), newKey()];
  let amount = SOL;
  const pay = () => c.transaction([payer], [transfer(payer.pub, to.pub, amount++)]);
  return { c, pay, to };
}

const code = (want) => (error) => {
  assert.equal(error.code, want, error.message);
  return true;
};

test('time: advance, pause, resume, set', async (t) => {
  const { c } = await pair(t, { slotMs: 2 });
  await c.call('sandbox_pause');
  const slot = await c.call('getSlot', { commitment: 'processed' });
  assert.deepEqual(await c.call('sandbox_advance', { slots: 7 }), { slot: slot + 7 });
  assert.equal(await c.call('getSlot', { commitment: 'processed' }), slot + 7);
  await c.call('sandbox_setTime', { unixTimestamp: 2000000000 });
  await c.call('sandbox_advance', { slots: 40 });
  const time = await c.call('getBlockTime', slot + 40);
  assert.ok(time >= 2000000000 && time < 2000000100, `${time}`);
  await c.call('sandbox_resume');
  while (await c.call('getSlot', { commitment: 'processed' }) < slot + 60); // Go's test of this ends a hang
  await assert.rejects(c.call('sandbox_advance', { slots: 100001 }), code(-32602));
  await assert.rejects(c.call('sandbox_advance', { slots: -1 }), code(-32602));
  await assert.rejects(c.call('sandbox_advance', 5), code(-32602));
});

test('skipped slots: heights fall behind, blockhashes live longer', async (t) => {
  const { c, pay, to } = await pair(t);
  const { lastValidBlockHeight, blockhash } = (await c.call('getLatestBlockhash')).value;
  const bytes = pay();
  await c.send(bytes);
  const slot = await c.call('getSlot', { commitment: 'processed' });
  const height = await c.call('getBlockHeight', { commitment: 'processed' });
  assert.deepEqual(await c.call('sandbox_skipSlots', { slots: 1000 }), { slot: slot + 1001 });
  assert.equal(await c.call('getBlockHeight', { commitment: 'processed' }), height + 1);
  assert.equal(await c.call('getSlot', { commitment: 'confirmed' }), slot); // the last with a block
  assert.equal((await c.call('isBlockhashValid', blockhash, { commitment: 'processed' })).value, true);
  await assert.rejects(c.send(bytes, { preflightCommitment: 'processed' }), /already been processed/);
  assert.equal(c.chain.accounts.balance(to.pub), SOL);
  await c.call('sandbox_advance', { slots: lastValidBlockHeight - height });
  assert.equal((await c.call('isBlockhashValid', blockhash, { commitment: 'processed' })).value, false);
  await assert.rejects(c.call('getBlockTime', slot + 5), (e) => e.code === -32007 &&
    e.message === `Slot ${slot + 5} was skipped, or missing due to ledger jump to recent snapshot`);
});

test('failed sends: an error, and nothing lands', async (t) => {
  const { c, pay } = await pair(t);
  await c.call('sandbox_failSends', { count: 2, code: -32005, message: 'Node is behind by 200 slots', data: { numSlotsBehind: 200 } });
  const bytes = pay();
  for (let i = 0; i < 2; i++) {
    await assert.rejects(c.send(bytes), (e) => e.code === -32005 && e.data.numSlotsBehind === 200);
  }
  assert.equal(await c.status(signatureOf(bytes)), null);
  assert.equal(await c.send(bytes), signatureOf(bytes));
});

test('dropped sends: preflight and a signature, and nothing lands', async (t) => {
  const { c, pay, to } = await pair(t);
  await c.call('sandbox_dropSends', { count: 1 });
  const bytes = pay();
  assert.equal(await c.send(bytes), signatureOf(bytes));
  assert.equal(c.chain.accounts.balance(to.pub), 0n);
  await c.send(bytes);
  assert.equal(c.chain.accounts.balance(to.pub), SOL);
});

test('a lost answer: it lands', async (t) => {
  const { c, pay } = await pair(t);
  await c.call('sandbox_loseAnswers', {});
  const bytes = pay();
  await assert.rejects(c.send(bytes), /fetch failed/);
  assert.equal((await c.status(signatureOf(bytes))).err, null);
  assert.equal(await c.call('getHealth'), 'ok');
});

test('delayed landing: not found at first', async (t) => {
  const { c, pay } = await pair(t);
  await c.call('sandbox_delayLanding', { slots: 3 });
  const bytes = pay();
  await c.send(bytes);
  await c.call('sandbox_advance', { slots: 2 });
  assert.equal(await c.status(signatureOf(bytes)), null);
  await c.call('sandbox_advance', { slots: 1 });
  assert.equal((await c.status(signatureOf(bytes))).confirmationStatus, 'processed');

  // One that expires before it lands never does.
  await c.call('sandbox_delayLanding', { slots: 200 });
  const late = pay();
  await c.send(late);
  await c.call('sandbox_advance', { slots: 200 });
  assert.equal(await c.status(signatureOf(late)), null);
});

test('what waits to land has a limit', async (t) => {
  const { c, pay } = await pair(t);
  await c.call('sandbox_delayLanding', { slots: 1 });
  const bytes = pay();
  for (let i = c.chain.waiting.length; i < MAX_WAITING; i++) c.chain.waiting.push({ tx: null, slot: Infinity });
  await assert.rejects(c.send(bytes), code(-32602));
  c.chain.waiting.pop();
  await c.send(bytes);
});

test('held finality, and one that catches up', async (t) => {
  const { c, pay } = await pair(t);
  await c.call('sandbox_holdFinality', { hold: true });
  const bytes = pay();
  await c.send(bytes);
  await c.call('sandbox_advance', { slots: 100 });
  assert.equal((await c.status(signatureOf(bytes))).confirmationStatus, 'confirmed');
  assert.equal(await c.call('getTransaction', signatureOf(bytes), { maxSupportedTransactionVersion: 0 }), null);
  await c.call('sandbox_holdFinality', { hold: false });
  await c.call('sandbox_advance', { slots: 1 });
  assert.equal((await c.status(signatureOf(bytes))).confirmationStatus, 'finalized');
});

test('other numbers of slots to the levels', async (t) => {
  const { c, pay } = await pair(t);
  await c.call('sandbox_setCommitment', { confirmSlots: 2, finalizeSlots: 4 });
  const bytes = pay();
  await c.send(bytes);
  const levels = [];
  for (let i = 0; i < 5; i++) {
    levels.push((await c.status(signatureOf(bytes))).confirmationStatus);
    await c.call('sandbox_advance');
  }
  assert.deepEqual(levels, ['processed', 'processed', 'confirmed', 'confirmed', 'finalized']);
  await assert.rejects(c.call('sandbox_setCommitment', { confirmSlots: 9 }), code(-32602));
});

test('a lagging node tells an older chain and, far behind, is unhealthy', async (t) => {
  const { c, pay } = await pair(t);
  await c.call('sandbox_advance', { slots: 200 });
  const slot = await c.call('getSlot', { commitment: 'processed' });
  const bytes = pay();
  await c.send(bytes);
  await c.call('sandbox_lag', { slots: 100 });
  assert.equal(await c.call('getSlot', { commitment: 'processed' }), slot - 100);
  assert.equal(await c.status(signatureOf(bytes)), null);
  assert.equal(await c.call('getHealth'), 'ok');
  await c.call('sandbox_lag', { slots: 129 });
  await assert.rejects(c.call('getHealth'), (e) => e.code === -32005 && e.message === 'Node is behind by 129 slots' && e.data.numSlotsBehind === 129);
  await assert.rejects(c.send(pay()), code(-32005));
  assert.equal(await (await fetch(`${c.url}/health`)).text(), 'behind');
  await c.call('sandbox_heal');
  assert.equal((await c.status(signatureOf(bytes))).slot, slot);
  await c.call('sandbox_setHealth', { healthy: false });
  await assert.rejects(c.call('getHealth'), (e) => e.code === -32005 && e.message === 'Node is unhealthy' && e.data.numSlotsBehind === null);
  assert.equal(await (await fetch(`${c.url}/health`)).text(), 'unknown');
});

test('a node that is down, in each way', async (t) => {
  const { c } = await pair(t);
  const ask = (signal) => fetch(c.url, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"jsonrpc":"2.0","id":1,"method":"getSlot"}', signal,
  });
  await c.call('sandbox_setNode', { mode: '503' });
  const down = await ask();
  assert.deepEqual([down.status, down.headers.get('retry-after')], [503, '1']);
  await c.call('sandbox_setNode', { mode: 'reset' });
  await assert.rejects(ask(), /fetch failed/);
  await c.call('sandbox_setNode', { mode: 'hang' });
  await assert.rejects(ask(AbortSignal.timeout(100)), { name: 'TimeoutError' });
  await c.call('sandbox_setNode', { mode: 'up' });
  assert.equal((await ask()).status, 200);
  await c.call('sandbox_setNode', { mode: 'refuse', forMs: 1000 });
  let refusals = 0;
  for (;;) { // Go's test of this ends a hang
    try {
      await ask();
      break;
    } catch {
      refusals++;
    }
    await new Promise((resolve) => { setTimeout(resolve, 10); });
  }
  assert.ok(refusals > 0);
  await assert.rejects(c.call('sandbox_setNode', { mode: 'gone' }), code(-32602));
});

test('wrong answers', async (t) => {
  const { c } = await pair(t);
  const body = '{"jsonrpc":"2.0","id":5,"method":"getHealth"}';
  for (const [kind, want] of [
    ['text', '<html><body>Bad Gateway</body></html>'], ['empty', ''], ['truncated', '{"jsonrpc":"2.0","r'],
    ['wrong_type', '{"jsonrpc":"2.0","result":"garbage","id":1}'],
  ]) {
    await c.call('sandbox_answerGarbage', { count: 1, kind });
    assert.equal(await (await c.post(body)).text(), want);
    assert.equal(await (await c.post(body)).text(), '{"jsonrpc":"2.0","result":"ok","id":5}');
  }
  await c.call('sandbox_delayAnswers', { ms: 80 });
  const start = performance.now();
  await c.post(body);
  assert.ok(performance.now() - start > 70);
});

test('a state file: the chain goes on, a damaged one is refused', async (t) => {
  const dir = tempDir();
  const options = { state: path.join(dir, 'chain.state'), setup: dir, wallets: 1, seed: undefined };
  const first = new Node({ ...DEFAULTS, port: 0, slotMs: 0, log: () => {}, ...options });
  await first.start();
  const c = new Client(first);
  const [payer, to] = [c.rich(), newKey()];
  const bytes = c.transaction([payer], [transfer(payer.pub, to.pub, SOL)]);
  await c.send(bytes);
  await c.call('sandbox_advance', { slots: 40 });
  const slots = JSON.stringify(await c.call('sandbox_status'));
  const told = await c.call('getTransaction', signatureOf(bytes), { maxSupportedTransactionVersion: 0 });
  assert.ok((await c.call('sandbox_saveState')).bytes > 1000000);
  await first.stop();
  assert.equal(statSync(options.state).mode & 0o777, 0o600);

  const again = await startNode(t, options);
  assert.equal(JSON.stringify(await again.call('sandbox_status')), slots);
  assert.deepEqual(await again.call('getTransaction', signatureOf(bytes), { maxSupportedTransactionVersion: 0 }), told);
  assert.equal((await again.call('getBalance', to.address)).value, Number(SOL));
  await assert.rejects(again.send(bytes), /already been processed/);
  assert.equal((await again.call('getSignaturesForAddress', to.address)).length, 1);
  await again.send(again.transaction([payer], [transfer(payer.pub, to.pub, 5n * SOL)]));

  const whole = readFileSync(options.state);
  for (const damaged of [whole.subarray(0, 1000), Buffer.concat([whole, Buffer.from('x')]), flip(whole, 500000), Buffer.alloc(0)]) {
    const file = path.join(dir, 'damaged.state');
    writeFileSync(file, damaged);
    assert.throws(() => new Node({ ...DEFAULTS, port: 0, log: () => {}, state: file }), /is not a whole state file/);
  }
});

test('saved history: appended, cut back, rewritten at twice its limit', () => {
  const dir = tempDir();
  const file = path.join(dir, 'chain.state');
  const chain = () => new Chain({ confirmSlots: 1, finalizeSlots: 31, slotMs: 400, history: 10 });
  const lines = () => readFileSync(`${file}.history`, 'utf8').split('\n').length - 1;
  const [first, state] = [chain(), new State(file)];
  assert.equal(state.load(first), false);
  const to = newKey();
  const counts = [];
  for (let i = 0; i < 7; i++) {
    for (let k = 0; k < 3; k++) first.airdrop(to.pub, 1000000n);
    state.save(first);
    counts.push(lines());
  }
  assert.deepEqual(counts, [3, 6, 9, 12, 15, 18, 10]);

  // A save that appended its lines and then died: they are dropped.
  const before = readFileSync(file);
  first.airdrop(to.pub, 1000000n);
  state.save(first);
  assert.equal(lines(), 11);
  writeFileSync(file, before);
  const again = chain();
  assert.equal(new State(file).load(again), true);
  assert.equal(again.history.sequence, 21);
  assert.deepEqual([...again.history.bySignature.values()].map((l) => l.sequence), [12, 13, 14, 15, 16, 17, 18, 19, 20, 21]);
  assert.equal(lines(), 10);

  const whole = readFileSync(`${file}.history`);
  for (const damaged of [whole.subarray(0, whole.length - 5), Buffer.concat([Buffer.from('x'), whole]), Buffer.alloc(0)]) {
    writeFileSync(`${file}.history`, damaged);
    assert.throws(() => new State(file).load(chain()), /is not a whole state file/);
  }
});

function flip(bytes, at) {
  const out = Buffer.from(bytes);
  out[at] ^= 1;
  return out;
}

test('one seed, one chain; none, another each time', async (t) => {
    const [a, b, other] = await Promise.all(['s', 's', undefined].map((seed) => startNode(t, { seed, setup: tempDir() })));
  assert.equal(await a.call('getGenesisHash'), await b.call('getGenesisHash'));
  assert.equal(await a.blockhash(), await b.blockhash());
  assert.deepEqual(a.node.setup.plan.wallets, b.node.setup.plan.wallets);
  assert.notEqual(await a.call('getGenesisHash'), await other.call('getGenesisHash'));
  assert.notEqual(a.node.setup.plan.desk.address, other.node.setup.plan.desk.address);
});

test('history has a limit, oldest out first', async (t) => {
  const { c } = await pair(t, { history: 10 });
  const to = newKey();
  const sent = [];
  for (let i = 0; i < 11; i++) sent.push(await c.call('requestAirdrop', to.address, 1000000));
  await c.call('sandbox_advance', { slots: 40 });
  const kept = (await c.call('getSignaturesForAddress', to.address)).map((s) => s.signature);
  assert.deepEqual(kept, sent.slice(1).reverse());
  assert.equal(await c.call('getTransaction', sent[0], { maxSupportedTransactionVersion: 0 }), null);
  assert.equal((await c.call('sandbox_status')).kept, 10);
  const first = await c.call('getFirstAvailableBlock'); // sent[0] is dropped, so its block is not whole
  assert.ok(first > 500, `first available block ${first}`);
  assert.ok((await c.call('getBlock', first, { transactionDetails: 'none' })).blockHeight > 250);
});

test('setAccount leaves programs and sysvars alone', async (t) => {
  const { c } = await pair(t);
  for (const pubkey of ['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'SysvarC1ock11111111111111111111111111111111']) {
    await assert.rejects(c.call('sandbox_setAccount', { pubkey, lamports: 1 }), code(-32602));
  }
  const { address } = newKey();
  for (const bad of [{ owner: 'BPFLoaderUpgradeab1e11111111111111111111111' }, { lamports: '18446744073709551616' }, { lamports: 1.5 }, { data: 'x' }]) {
    await assert.rejects(c.call('sandbox_setAccount', { pubkey: address, lamports: 1, ...bad }), code(-32602));
  }
  assert.equal(await c.call('sandbox_setAccount', { pubkey: address, lamports: 7 }), null);
  assert.equal((await c.call('getBalance', address)).value, 7);
});
