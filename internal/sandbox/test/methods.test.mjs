import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { test } from 'node:test';
import * as base58 from '../lib/base58.mjs';
import { CLOCK, MEMO, SYSTEM, TOKEN, TOKEN_2022 } from '../lib/programs.mjs';
import { account, newKey, signatureOf, signedTransaction, SOL, startNode, tempDir, transfer } from './helpers.mjs';

/** A call must be refused with this code. */
async function refused(promise, code, message) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.code, code, error.message);
    if (message instanceof RegExp) assert.match(error.message, message);
    else if (message !== undefined) assert.equal(error.message, message);
    return true;
  });
}

test('the chain as a whole', async (t) => {
  const c = await startNode(t);
  assert.equal(await c.call('getHealth'), 'ok');
  assert.equal(await c.call('getSlot', { commitment: 'processed' }), 531);
  for (let i = 0; i < 10; i++) c.chain.advance();
  assert.equal(await c.call('getSlot', { commitment: 'processed' }), 541);
  assert.equal(await c.call('getSlot', { commitment: 'confirmed' }), 540);
  assert.equal(await c.call('getSlot'), 510);
  assert.equal(await c.call('getBlockHeight'), 260);
  const info = await c.call('getEpochInfo');
  assert.deepEqual([info.absoluteSlot, info.blockHeight, info.epoch, info.slotIndex, info.slotsInEpoch], [510, 260, 0, 510, 432000]);
  assert.ok(Math.abs(await c.call('getBlockTime', 510) - Date.now() / 1000) < 60);
  await refused(c.call('getBlockTime', 542), -32004, 'Block not available for slot 542');
  await refused(c.call('getBlockTime', 3), -32001, /^Block 3 cleaned up, does not exist on node. First available block: 500$/);
  assert.equal(typeof (await c.call('getVersion'))['solana-core'], 'string');
  assert.equal(base58.decode(await c.call('getGenesisHash')).length, 32);
  assert.equal(await c.call('getMinimumBalanceForRentExemption', 165), 2039280);
  assert.equal(await c.call('getMinimumBalanceForRentExemption', 0), 890880);
  assert.equal(await c.call('getFirstAvailableBlock'), 0);
  const block = await c.call('getBlock', 510, { transactionDetails: 'none' });
  assert.deepEqual([block.blockHeight, block.blockTime], [260, await c.call('getBlockTime', 510)]);
  await refused(c.call('getBlock', 510), -32602, /transactionDetails none/);
  await refused(c.call('getBlock', 3, { transactionDetails: 'none' }), -32001, /cleaned up/);
  await refused(c.call('getSlot', { minContextSlot: 511 }), -32016, 'Minimum context slot has not been reached');
  await refused(c.call('getSlot', { commitment: 'never' }), -32602, /unknown variant/);
});

test('blockhashes live for 150 slots', async (t) => {
  const c = await startNode(t);
  for (let i = 0; i < 40; i++) c.chain.advance();
  const { context, value } = await c.call('getLatestBlockhash');
  assert.equal(context.slot, 540);
  assert.equal(value.lastValidBlockHeight, await c.call('getBlockHeight') + 150);
  const valid = async (commitment) => (await c.call('isBlockhashValid', value.blockhash, { commitment })).value;
  assert.equal(await valid('finalized'), true);
  const newest = await c.blockhash('processed');
  assert.equal((await c.call('isBlockhashValid', newest)).value, false); // no finalized bank knows it yet
  while (await c.call('getBlockHeight', { commitment: 'processed' }) < value.lastValidBlockHeight) c.chain.advance();
  assert.equal(await valid('processed'), true);
  c.chain.advance();
  assert.equal(await valid('processed'), false);
  await refused(c.call('isBlockhashValid', 'abc'), -32602);
});

test('a blockhash, a status and a duplicate live as long as --blockhash-slots says', async (t) => {
  const state = path.join(tempDir(), 'chain.state');
  const c = await startNode(t, { blockhashSlots: 3000, state });
  const [payer, to] = [c.rich(), newKey()];
  const { blockhash, lastValidBlockHeight } = (await c.call('getLatestBlockhash')).value;
  const height = () => c.call('getBlockHeight', { commitment: 'processed' });
  assert.equal(lastValidBlockHeight, await c.call('getBlockHeight') + 3000);
  const config = { preflightCommitment: 'processed' };
  const bytes = c.transaction([payer], [transfer(payer.pub, to.pub, SOL)], blockhash);
  const signature = await c.send(bytes, config);
  for (let left = lastValidBlockHeight - await height(); left > 0; left--) c.chain.advance();
  assert.equal((await c.call('isBlockhashValid', blockhash, { commitment: 'processed' })).value, true);
  assert.equal((await c.status(signature)).confirmationStatus, 'finalized');
  await refused(c.send(bytes, config), -32002, 'Transaction simulation failed: This transaction has already been processed');
  await c.send(c.transaction([payer], [transfer(payer.pub, to.pub, 2n * SOL)], blockhash), config);
  // A restart keeps the heights of all blockhashes.
  await c.node.stop();
  const again = await startNode(t, { blockhashSlots: 3000, state });
  const valid = () => again.call('isBlockhashValid', blockhash, { commitment: 'processed' });
  assert.equal((await valid()).value, true);
  again.chain.advance();
  assert.equal((await valid()).value, false);
  const late = again.transaction([payer], [transfer(payer.pub, to.pub, 3n * SOL)], blockhash);
  await refused(again.send(late, config), -32002, 'Transaction simulation failed: Blockhash not found');
});

test('fees are what the runtime charges', async (t) => {
  const c = await startNode(t);
  const [payer, to] = [c.rich(), newKey()];
  const budget = (type, bytes) => ({ program: 'ComputeBudget111111111111111111111111111111', accounts: [], data: Buffer.concat([Buffer.from([type]), bytes]) });
  const limit = (n) => { const b = Buffer.alloc(4); b.writeUInt32LE(n); return budget(2, b); };
  const price = (n) => { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(n)); return budget(3, b); };
  const memo = { program: MEMO, accounts: [], data: Buffer.from('hi') };
  for (const extra of [[], [memo], [price(1000001), memo], [limit(77777), price(12345)], [limit(5000000), price(999)]]) {
    const bytes = c.transaction([payer], [...extra, transfer(payer.pub, to.pub, SOL)], await c.blockhash());
    const message = bytes.subarray(65).toString('base64');
    const fee = (await c.call('getFeeForMessage', message)).value;
    const before = c.chain.accounts.balance(payer.pub);
    const signature = await c.send(bytes);
    assert.equal(before - c.chain.accounts.balance(payer.pub) - SOL, BigInt(fee));
    assert.equal(c.chain.history.bySignature.get(signature).meta.fee, fee);
    c.chain.advance();
  }
  const stale = signedTransaction([payer], [memo], base58.encode(Buffer.alloc(32, 7))).subarray(65).toString('base64');
  assert.equal((await c.call('getFeeForMessage', stale)).value, null);
  await refused(c.call('getFeeForMessage', 'AAAA'), -32602, /failed to deserialize/);
});

test('accounts in every encoding', async (t) => {
  const c = await startNode(t);
  const key = newKey();
  const data = Buffer.from(Array.from({ length: 100 }, (_, i) => i));
  await c.call('sandbox_setAccount', { pubkey: key.address, lamports: '18446744073709551615', owner: MEMO, data: data.toString('base64') });
  const raw = await (await c.post(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getBalance', params: [key.address] }))).text();
  assert.match(raw, /"value":18446744073709551615/);
  const get = async (config) => (await c.call('getAccountInfo', key.address, config)).value;
  assert.deepEqual((await get({ encoding: 'base64' })).data, [data.toString('base64'), 'base64']);
  assert.deepEqual((await get({ encoding: 'base58' })).data, [base58.encode(data), 'base58']);
  assert.equal((await get()).data, base58.encode(data));
  assert.deepEqual((await get({ encoding: 'jsonParsed' })).data, [data.toString('base64'), 'base64']);
  assert.deepEqual((await get({ encoding: 'base64', dataSlice: { offset: 98, length: 10 } })).data, [Buffer.from([98, 99]).toString('base64'), 'base64']);
  const { owner, space, executable } = await get({ encoding: 'base64' });
  assert.deepEqual([owner, space, executable], [MEMO, 100, false]);
  assert.equal((await c.call('getAccountInfo', newKey().address)).value, null);
  await refused(c.call('getAccountInfo', 'short'), -32602, 'Invalid param: WrongSize');
  await refused(c.call('getAccountInfo', '0'.repeat(40)), -32602, 'Invalid param: Invalid');
  await refused(c.call('getAccountInfo', key.address, { encoding: 'hex' }), -32602, /unknown variant/);
  await refused(c.call('getAccountInfo'), -32602, '`params` should have at least 1 argument(s)');
  const large = newKey().address;
  await c.call('sandbox_setAccount', { pubkey: large, lamports: 1000000, data: Buffer.alloc(129).toString('base64') });
  await refused(c.call('getAccountInfo', large), -32600, /base 58/);

  const many = await c.call('getMultipleAccounts', [key.address, newKey().address], { encoding: 'base64' });
  assert.deepEqual(many.value.map((v) => v?.space ?? null), [100, null]);
  await refused(c.call('getMultipleAccounts', Array(101).fill(key.address)), -32602, 'Too many inputs provided; max 100');
});

test('the clock is of the slot that the answer is as of', async (t) => {
  const c = await startNode(t);
  await c.call('sandbox_advance', { slots: 5 });
  for (const commitment of ['processed', 'confirmed', 'finalized']) {
    const one = await c.call('getAccountInfo', CLOCK, { encoding: 'base64', commitment });
    const many = await c.call('getMultipleAccounts', [CLOCK], { encoding: 'base64', commitment });
    assert.deepEqual(many, { context: one.context, value: [one.value] });
    const data = Buffer.from(one.value.data[0], 'base64');
    assert.equal(Number(data.readBigUInt64LE()), one.context.slot);
    if (commitment !== 'processed') assert.equal(Number(data.readBigInt64LE(32)), await c.call('getBlockTime', one.context.slot));
  }
});

test('program accounts by size and bytes', async (t) => {
  const c = await startNode(t);
  const owner = newKey();
  const set = (length, fill) => {
    const key = newKey();
    c.chain.accounts.set(key.pub, { lamports: SOL, owner: owner.address, data: Buffer.alloc(length, fill), executable: false, rentEpoch: 0n });
    return key.address;
  };
  const [a, b, d] = [set(10, 1), set(10, 2), set(20, 2)];
  const find = async (...filters) => (await c.call('getProgramAccounts', owner.address, { encoding: 'base64', filters })).map((f) => f.pubkey).sort();
  const two = base58.encode(Buffer.from([2, 2]));
  assert.deepEqual(await find(), [a, b, d].sort());
  assert.deepEqual(await find({ dataSize: 10 }), [a, b].sort());
  assert.deepEqual(await find({ memcmp: { offset: 8, bytes: two } }), [b, d].sort());
  assert.deepEqual(await find({ memcmp: { offset: 9, bytes: two } }), [d]);
  assert.deepEqual(await find({ dataSize: 10 }, { memcmp: { offset: 0, bytes: 'AgI=', encoding: 'base64' } }), [b]);
  const context = await c.call('getProgramAccounts', owner.address, { encoding: 'base64', withContext: true, dataSlice: { offset: 0, length: 1 } });
  assert.equal(context.context.slot, 500); // the finalized one
  assert.equal(context.value.find((f) => f.pubkey === d).account.data[0], 'Ag==');
  await refused(c.call('getProgramAccounts', owner.address, { filters: Array(5).fill({ dataSize: 1 }) }), -32602, /max 4/);
  await refused(c.call('getProgramAccounts', owner.address, { filters: [{ colour: 1 }] }), -32602);
});

test('sendTransaction refuses what Agave refuses', async (t) => {
  const c = await startNode(t);
  const [payer, to] = [c.rich(), newKey()];
  for (let i = 0; i < 40; i++) c.chain.advance();
  const good = c.transaction([payer], [transfer(payer.pub, to.pub, SOL)]);
  await refused(c.send(Buffer.from('nonsense')), -32602, /^failed to deserialize solana_transaction::versioned::VersionedTransaction: /);
  await refused(c.call('sendTransaction', 'a!b=', { encoding: 'base64' }), -32602, 'invalid base64 encoding: InvalidByte(1, 33)');
  await refused(c.call('sendTransaction', good.toString('base64'), { encoding: 'hex' }), -32602, /^unsupported encoding: hex/);
  await refused(c.send(Buffer.alloc(1233)), -32602, /too large: 1644|too large: 1233 bytes/);
  const tooLong = Buffer.alloc(1300).toString('base64');
  await refused(c.call('sendTransaction', tooLong, { encoding: 'base64' }), -32602, /too large: 1736 bytes \(max: encoded\/raw 1644\/1232\)/);
  const insane = Buffer.from(good);
  insane[66] = 9; // required signatures
  await refused(c.send(insane), -32602, 'invalid transaction: Transaction failed to sanitize accounts offsets correctly');
  const forged = Buffer.from(good);
  forged[10] ^= 1;
  await refused(c.send(forged), -32003, 'Transaction signature verification failure');
  assert.equal(await c.send(forged, { skipPreflight: true }), signatureOf(forged));
  assert.equal(await c.status(signatureOf(forged)), null);

  // The newest blockhash is not known to the finalized bank of a default preflight.
  const young = c.transaction([payer], [transfer(payer.pub, to.pub, SOL)], await c.blockhash('processed'));
  await refused(c.send(young), -32002, 'Transaction simulation failed: Blockhash not found');
  assert.equal(await c.send(young, { preflightCommitment: 'processed' }), signatureOf(young));

  assert.equal(await c.call('sendTransaction', base58.encode(good)), signatureOf(good)); // base58 is the default
  await refused(c.send(good), -32002, 'Transaction simulation failed: This transaction has already been processed');
  const poor = newKey();
  await refused(c.send(c.transaction([poor], [transfer(poor.pub, to.pub, SOL)])), -32002,
    'Transaction simulation failed: Attempt to debit an account but found no record of a prior credit.');
});

test('preflight failure: data as Agave gives it', async (t) => {
  const c = await startNode(t);
  const [payer, to] = [c.rich(), newKey()];
  const before = c.chain.accounts.balance(payer.pub);
  await assert.rejects(c.send(c.transaction([payer], [transfer(payer.pub, to.pub, 1000n * SOL)])), (error) => {
    assert.equal(error.message, 'Transaction simulation failed: Error processing Instruction 0: custom program error: 0x1');
    assert.deepEqual(error.data, {
      err: { InstructionError: [0, { Custom: 1 }] },
      logs: [
        `Program ${SYSTEM} invoke [1]`, `Transfer: insufficient lamports ${before - 5000n}, need ${1000n * SOL}`,
        `Program ${SYSTEM} failed: custom program error: 0x1`,
      ],
      unitsConsumed: 150, returnData: null, accounts: null, innerInstructions: null, replacementBlockhash: null,
    });
    return true;
  });
  assert.equal(c.chain.accounts.balance(payer.pub), before);
});

test('simulateTransaction', async (t) => {
  const c = await startNode(t);
  const [payer, to] = [c.rich(), newKey()];
  const bytes = c.transaction([payer], [transfer(payer.pub, to.pub, SOL)]);
  const simulate = (tx, config) => c.call('simulateTransaction', tx.toString('base64'), { encoding: 'base64', ...config });
  const { value } = await simulate(bytes, { sigVerify: true, accounts: { encoding: 'base64', addresses: [to.address, newKey().address] } });
  assert.deepEqual([value.err, value.unitsConsumed, value.accounts[0].lamports, value.accounts[1]], [null, 150, Number(SOL), null]);
  assert.equal(c.chain.accounts.balance(to.pub), 0n);

  const forged = Buffer.from(bytes);
  forged[5] ^= 1;
  assert.equal((await simulate(forged)).value.err, null);
  await refused(simulate(forged, { sigVerify: true }), -32003);
  await refused(simulate(forged, { sigVerify: true, replaceRecentBlockhash: true }), -32602, 'sigVerify may not be used with replaceRecentBlockhash');

  const stale = signedTransaction([payer], [transfer(payer.pub, to.pub, SOL)], base58.encode(createHash('sha256').digest()));
  assert.equal((await simulate(stale)).value.err, 'BlockhashNotFound');
  const replaced = (await simulate(stale, { replaceRecentBlockhash: true })).value;
  assert.equal(replaced.err, null);
  assert.equal(replaced.replacementBlockhash.blockhash, await c.blockhash());
  assert.equal(c.chain.history.bySignature.size, 1); // the airdrop alone
});

test('signatures of an address: order, before, until, limit, memo', async (t) => {
  const c = await startNode(t);
  const [payer, to] = [c.rich(), newKey()];
  const memo = (text) => ({ program: MEMO, accounts: [], data: Buffer.from(text) });
  const sent = [];
  for (const memos of [[], [memo('a'), memo('ü')], [{ ...memo(''), data: Buffer.from([0xff]) }], [], []]) {
    sent.unshift(await c.send(c.transaction([payer], [transfer(payer.pub, to.pub, SOL), ...memos], await c.blockhash()), { skipPreflight: true }));
    for (let i = 0; i < 40; i++) c.chain.advance();
  }
  const list = (config) => c.call('getSignaturesForAddress', to.address, config);
  const names = async (config) => (await list(config)).map((s) => s.signature);
  // The third failed: its memo is no text, which the memo program refuses.
  const all = await list();
  assert.deepEqual(all.map((s) => s.signature), sent);
  assert.deepEqual(all.map((s) => s.memo), [null, null, '[1] (unparseable)', '[1] a; [2] ü', null]);
  assert.equal(all[2].err.InstructionError[0], 1);
  assert.ok(all.every((s) => s.confirmationStatus === 'finalized' && s.blockTime > 0));
  assert.deepEqual(await names({ limit: 2 }), sent.slice(0, 2));
  assert.deepEqual(await names({ before: sent[1] }), sent.slice(2));
  assert.deepEqual(await names({ until: sent[3] }), sent.slice(0, 3));
  assert.deepEqual(await names({ before: sent[0], until: sent[3], limit: 1 }), [sent[1]]);
  await refused(list({ limit: 1001 }), -32602, 'Invalid limit; max 1000');
  await refused(list({ limit: 0 }), -32602);
  await refused(list({ commitment: 'processed' }), -32602, 'Method does not support commitment below `confirmed`');
  await refused(list({ before: 'x' }), -32602);
});

test('getTransaction: encodings, versions, commitment', async (t) => {
  const c = await startNode(t);
  const [payer, to] = [c.rich(), newKey()];
  const bytes = c.transaction([payer], [transfer(payer.pub, to.pub, SOL)]);
  const signature = await c.send(bytes);
  const get = (config) => c.call('getTransaction', signature, { maxSupportedTransactionVersion: 0, ...config });
  assert.equal(await get(), null);
  c.chain.advance();
  assert.equal((await get({ commitment: 'confirmed' })).slot, 531);
  assert.equal(await get(), null);
  for (let i = 0; i < 31; i++) c.chain.advance();
  assert.deepEqual((await get({ encoding: 'base64' })).transaction, [bytes.toString('base64'), 'base64']);
  assert.deepEqual((await get({ encoding: 'base58' })).transaction, [base58.encode(bytes), 'base58']);
  const plain = await get();
  assert.equal(plain.version, 0);
  assert.deepEqual(plain.transaction.message.header, { numRequiredSignatures: 1, numReadonlySignedAccounts: 0, numReadonlyUnsignedAccounts: 1 });
  assert.deepEqual(plain.transaction.message.instructions[0].accounts, [0, 1]);
  assert.equal(plain.meta.postBalances[1] - plain.meta.preBalances[1], Number(SOL));
  const parsed = await get({ encoding: 'jsonParsed' });
  assert.deepEqual(parsed.transaction.message.instructions[0].parsed,
    { type: 'transfer', info: { source: payer.address, destination: to.address, lamports: Number(SOL) } });
  await refused(c.call('getTransaction', signature), -32015,
    'Transaction version (0) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": 0');
  await refused(get({ commitment: 'processed' }), -32602);
  await refused(c.call('getTransaction', 'abc'), -32602, 'Invalid param: WrongSize');
  assert.equal(await c.call('getTransaction', base58.encode(Buffer.alloc(64, 3))), null);
});

test('statuses leave the cache after 150 slots', async (t) => {
  const c = await startNode(t);
  const [payer, to] = [c.rich(), newKey()];
  const signature = await c.send(c.transaction([payer], [transfer(payer.pub, to.pub, SOL)]));
  assert.deepEqual(await c.status(signature), { slot: 531, confirmations: 0, err: null, status: { Ok: null }, confirmationStatus: 'processed' });
  for (let i = 0; i < 150; i++) c.chain.advance();
  assert.equal((await c.status(signature)).confirmations, null);
  c.chain.advance();
  assert.equal(await c.status(signature), null);
  const all = await c.call('getSignatureStatuses', [signature, base58.encode(Buffer.alloc(64, 3))], { searchTransactionHistory: true });
  assert.deepEqual(all.value.map((s) => s?.confirmationStatus ?? null), ['finalized', null]);
  await refused(c.call('getSignatureStatuses', Array(257).fill(signature)), -32602, 'Too many inputs provided; max 256');
});

test('token accounts, mints and their parsed forms', async (t) => {
  const c = await startNode(t, { setup: tempDir(), wallets: 1 });
  const { plan } = c.node.setup;
  const usdc = plan.wallets[0].accounts.USDC;
  assert.deepEqual((await c.call('getTokenAccountBalance', usdc)).value,
    { uiAmount: 5000000, decimals: 6, amount: '5000000000000', uiAmountString: '5000000' });
  assert.equal((await c.call('getTokenSupply', plan.mints.USDC.address)).value.amount, '6000000000000');
  const byMint = await c.call('getTokenAccountsByOwner', plan.desk.address, { mint: plan.mints['92C'].address }, { encoding: 'jsonParsed' });
  assert.deepEqual(byMint.value.map((v) => [v.pubkey, v.account.data.program, v.account.data.parsed.info.owner]),
    [[plan.desk.accounts['92C'], 'spl-token-2022', plan.desk.address]]);
  const byProgram = await c.call('getTokenAccountsByOwner', plan.desk.address, { programId: TOKEN }, { encoding: 'base64' });
  assert.deepEqual(byProgram.value.map((v) => v.pubkey).sort(), [plan.desk.accounts.USDC, plan.desk.accounts.SLUSD].sort());
  const mint = await c.call('getAccountInfo', plan.mints['92C'].address, { encoding: 'jsonParsed' });
  assert.deepEqual([mint.value.owner, mint.value.data.parsed.type, mint.value.data.parsed.info.decimals], [TOKEN_2022, 'mint', 6]);
  await refused(c.call('getTokenAccountBalance', newKey().address), -32602, 'Invalid param: could not find account');
  await refused(c.call('getTokenAccountBalance', plan.desk.address), -32602, 'Invalid param: not a Token account');
  await refused(c.call('getTokenAccountsByOwner', plan.desk.address, { mint: newKey().address }), -32602, 'Invalid param: could not find mint');
  await refused(c.call('getTokenAccountsByOwner', plan.desk.address, { programId: MEMO }), -32602, 'Invalid param: unrecognized Token program id');
  const funded = await c.call('sandbox_fund', { wallet: newKey().address, symbol: '92C', amount: '1000' });
  assert.equal((await c.call('getTokenAccountBalance', funded.account)).value.amount, '1000');
});

test('airdrops are transactions of their own', async (t) => {
  const c = await startNode(t);
  const to = newKey();
  const signatures = await Promise.all([1, 2, 3].map(() => c.call('requestAirdrop', to.address, 1000000000)));
  assert.equal(new Set(signatures).size, 3);
  assert.equal((await c.call('getBalance', to.address)).value, 3000000000);
  await refused(c.call('requestAirdrop', to.address, -1), -32602);
  await refused(c.call('requestAirdrop', to.address, 1e18), -32602);
});

test('a signer that is not the payer', async (t) => {
  const c = await startNode(t);
  const [payer, other] = [c.rich(), newKey()];
  const memo = { program: MEMO, accounts: [account(other.pub, true, false)], data: Buffer.from('signed') };
  const bytes = c.transaction([payer, other], [memo]);
  assert.equal(await c.status(await c.send(bytes)) === null, false);
});
