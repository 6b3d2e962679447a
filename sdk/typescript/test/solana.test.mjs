import assert from 'node:assert/strict';
import { generateKeyPair } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { promisify } from 'node:util';
import { getBase58Decoder } from '@solana/kit';
import { BlockdeskError, Client, VerificationError } from '../dist/src/index.js';
import {
  Chain, Desk, PaymentFailedError, PaymentPendingError, decodeTransaction, fromBase64, keypairSigner, parseKeypair, settled, sign, toBase64,
  tokenAccount, verify, walletSigner,
} from '../dist/src/solana/index.js';

// Real answers of a demo, about one order.
const recorded = JSON.parse(await readFile(new URL('answers.json', import.meta.url), 'utf8'));
const { taker, ticket } = recorded;
const clone = (value) => structuredClone(value);

const noSigner = { address: taker, signMessage: assert.fail, signTransaction: assert.fail };

/** desk is one whose service gives these answers, by path. */
function desk(answers, more = {}) {
  const requests = [];
  const fetch = async (url, init) => {
    const { pathname } = new URL(url);
    requests.push({ path: pathname, body: init.body && JSON.parse(init.body) });
    const answer = answers[pathname];
    const body = typeof answer === 'function' ? answer(JSON.parse(init.body ?? '{}')) : answer;
    return new Response(JSON.stringify(body), { status: body.status ?? 200 });
  };
  const client = new Client({ baseUrl: 'http://desk.test', fetch, token: 'token' });
  return { desk: new Desk({ client, signer: noSigner, pollMs: 1, ...more }), client, requests };
}

const order = { ticket, tranche_id: 'T1-1', fill_usd: '1000', rail: 'USDC' };

const ways = {
  build: ['/api/v1/dvp/build', (d, offer) => d.build(offer)],
  claim: ['/rfq-native/modular-claim-take', (d, offer) => d.claim(offer)],
  atomic: ['/rfq-native/atomic-claim-ticket', (d, offer) => d.atomicClaim(offer)],
};

/** take goes through one way with a quote and an answer that change may have spoilt. */
async function take(way, change = () => {}, more = {}) {
  const { quote, answer } = clone(recorded[way]);
  change(answer, quote);
  const [path, by] = ways[way];
  const d = desk({ '/api/v1/rfq/quote': quote, [path]: answer }, more);
  return by(d.desk, await d.desk.quote({ ...order, ...more.order }));
}

test('what the desk answers is what was asked for', async () => {
  for (const way of Object.keys(ways)) {
    const made = await take(way);
    assert.equal(made.claim_id, recorded[way].answer.claim_id);
    assert.deepEqual(made.transaction.instructions.map((i) => i.kind), [
      'compute_limit', 'compute_price', 'transfer_token', ...(way === 'claim' ? [] : ['create_account', 'transfer_token']), 'memo',
    ]);
    assert.deepEqual(made.cost, { feeLamports: way === 'claim' ? 6_000n : 11_000n, rentPayer: way === 'claim' ? null : taker });
  }
});

// leaves are the paths of all texts in an answer.
function* leaves(value, path = []) {
  for (const [name, v] of Object.entries(value)) {
    if (typeof v === 'string') yield [...path, name];
    else if (typeof v === 'object' && v !== null) yield* leaves(v, [...path, name]);
  }
}

// What may differ without harm: it is for people, or is looked at elsewhere.
const harmless = /\.(ticket_label|valid_until|issued_at|expires_at|reserved_at|state|url|fields|way|bot_wallet|reference_price_usd|build_id)(\.|$)|\.fee\./;

test('an answer that says anything else of the money is refused', async () => {
  for (const way of Object.keys(ways)) {
    for (const where of ['quote', 'answer']) {
      for (const path of leaves(recorded[way][where])) {
        const name = `${way} ${where}.${path.join('.')}`;
        if (harmless.test(name) || (where === 'quote' && path[0] === 'quote_id')) continue;
        const spoil = (answer, quote) => {
          const parent = path.slice(0, -1).reduce((v, k) => v[k], where === 'quote' ? quote : answer);
          const was = parent[path.at(-1)];
          parent[path.at(-1)] = /^[0-9.]+$/.test(was) ? was.replace(/[1-9]/, (d) => (d === '9' ? '8' : String(Number(d) + 1))) : `${was.slice(0, -1)}${was.endsWith('2') ? '3' : '2'}`;
        };
        await assert.rejects(take(way, spoil), VerificationError, name);
      }
    }
  }
});

test('an answer that lacks something, or has something else there, is refused', async () => {
  for (const way of Object.keys(ways)) {
    for (const where of ['quote', 'answer']) {
      for (const path of leaves(recorded[way][where])) {
        const name = `${way} ${where}.${path.join('.')}`;
        if (harmless.test(name) || (where === 'quote' && path[0] === 'quote_id')) continue;
        for (const value of [undefined, null, 5, {}, [], '', true]) {
          const spoil = (answer, quote) => {
            path.slice(0, -1).reduce((v, k) => v[k], where === 'quote' ? quote : answer)[path.at(-1)] = value;
          };
          await assert.rejects(take(way, spoil), VerificationError, `${name} = ${JSON.stringify(value)}`);
        }
      }
    }
  }
  await assert.rejects(take('build', undefined, { order: { maxPriceUsd: '$1.000000000' } }), VerificationError);
});

test('what the caller knows of the desk counts more than its word', async () => {
  const { quote } = recorded.build;
  const [desk1] = recorded.build.answer.required_signers;
  const right = { desk: desk1, payTo: [quote.payment.pay_to], mints: { USDC: quote.payment.mint, SLUSD: ticket.base_mint } };
  await take('build', undefined, { trust: right });
  for (const wrong of [
    { desk: ticket.base_mint }, { payTo: [ticket.base_mint] }, { mints: { USDC: ticket.base_mint } }, { mints: { SLUSD: quote.payment.mint } },
  ]) await assert.rejects(take('build', undefined, { trust: { ...right, ...wrong } }), VerificationError, JSON.stringify(wrong));
  await take('build', undefined, { order: { maxPriceUsd: quote.price_usd } });
  await assert.rejects(take('build', undefined, { order: { maxPriceUsd: '0.996' } }), VerificationError);
});

test('a quote in SOL is in lamports, and no more than was wanted', async () => {
  const quoted = async (amount, amount_atoms, more = {}) => {
    const quote = clone(recorded.build.quote);
    Object.assign(quote, { rail: 'SOL', payment: { ...quote.payment, rail: 'SOL', mint: null, amount, amount_atoms } });
    return desk({ '/api/v1/rfq/quote': quote }).desk.quote({ ...order, rail: 'SOL', ...more });
  };
  assert.equal((await quoted('6.250000000', '6250000000')).pay.atoms, 6_250_000_000n);
  // A person would read a hundredth of what is signed.
  await assert.rejects(quoted('6.25000000000', '625000000000'), VerificationError);
  await assert.rejects(quoted('6.25', '625'), VerificationError);
  await quoted('6.250000000', '6250000000', { maxAmount: '6.25' });
  await assert.rejects(quoted('6.250000000', '6250000000', { maxAmount: '6.249' }), VerificationError);
  await assert.rejects(quoted('6.250000000', '6250000000', { maxAmount: '6,25' }), VerificationError);
});

test('a challenge of another form is refused', async () => {
  for (const nonce of [undefined, null, 5, {}, '', '!', 'AAAA']) {
    await assert.rejects(desk({ '/api/v1/dvp/handshake': { ok: true, pubkey: taker, nonce } }).desk.handshake(), (e) => e instanceof BlockdeskError);
  }
});

const terms = (way) => {
  const { quote, answer } = recorded[way];
  const leg = (mint, atoms, to) => ({ mint, decimals: 6, atoms: BigInt(atoms), to });
  const from = recorded.build.answer.required_signers[0];
  return {
    taker, pay: leg(quote.payment.mint, quote.payment.amount_atoms, quote.payment.pay_to), feePayer: way === 'claim' ? taker : from,
    receive: way === 'claim' ? null : { ...leg(ticket.base_mint, quote.base_amount_atoms, taker), from },
    memo: answer.claim_id, reference: answer.payment.reference,
  };
};

test('no byte of a transaction can be another one', async () => {
  const wire = fromBase64(recorded.build.answer.transaction);
  const was = decodeTransaction(wire);
  await verify(was, terms('build'));
  let taken = 0;
  for (let at = 0; at < wire.length; at++) {
    const bad = wire.slice();
    bad[at] ^= 1 << at % 8;
    try {
      const t = decodeTransaction(bad);
      const { feeLamports } = await verify(t, terms('build'));
      // A blockhash is of no matter to who signs, nor is a budget below its cap.
      assert.ok(feeLamports <= 1_010_000n, `byte ${at}`);
      taken++;
    } catch (error) {
      if (!(error instanceof VerificationError)) throw error;
    }
  }
  assert.ok(taken >= 32 && taken <= 32 + 12, `${taken} taken`); // 32 bytes of blockhash, 12 of the budget
});

test('bytes that are no transaction of the desk are refused', async () => {
  const wire = fromBase64(recorded.build.answer.transaction);
  for (const bad of [
    new Uint8Array(), wire.slice(0, -1), new Uint8Array([...wire, 0]), new Uint8Array([wire[0] | 0x80, 0, ...wire.slice(1)]), new Uint8Array(1_233),
    new Uint8Array(200).fill(255), wire.slice(1),
  ]) assert.throws(() => decodeTransaction(bad), VerificationError, String(bad.length));
  for (const text of ['', '%%%', `${recorded.build.answer.transaction}=`, recorded.build.answer.transaction.slice(0, -1)]) {
    await assert.rejects(take('build', (answer) => { answer.transaction = text; }), VerificationError);
  }
});

test('the desk\'s own golden transactions are read', async () => {
  for (const [name, kinds] of [['payment_usdc', 4], ['payment_sol', 4], ['atomic_reference', 6]]) {
    const text = await readFile(new URL(`../../../internal/solana/build/testdata/${name}.txt`, import.meta.url), 'utf8');
    const t = decodeTransaction(Uint8Array.from(Buffer.from(text.split('\n')[1], 'hex')));
    assert.equal(t.instructions.length, kinds, name);
  }
});

test('a payment may make the account that is paid, at the price of its rent', async () => {
  const text = await readFile(new URL('payment_usdc_create.txt', import.meta.url), 'utf8');
  const t = decodeTransaction(Uint8Array.from(Buffer.from(text.split('\n')[1], 'hex')));
  const [, , create, memo, pay] = t.instructions;
  const want = {
    taker: pay.owner, pay: { mint: pay.mint, decimals: 6, atoms: pay.atoms, to: create.owner }, receive: null, feePayer: pay.owner,
    memo: memo.text, reference: pay.extra[0],
  };
  await verify(t, want);
  await assert.rejects(verify(t, { ...want, pay: { ...want.pay, to: pay.owner } }), VerificationError);
});

test('token accounts are derived as the chain does', async () => {
  const wire = decodeTransaction(fromBase64(recorded.build.answer.transaction));
  const create = wire.instructions.find((i) => i.kind === 'create_account');
  assert.equal(await tokenAccount(taker, ticket.base_mint, create.program), create.account);
});

const base58 = (bytes) => getBase58Decoder().decode(bytes);

/** A key that nobody has. */
async function newKey() {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('ed25519');
  const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32);
  return new Uint8Array([...seed, ...publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)]);
}

// rekeyed puts a key that the test has in the place of the taker's.
async function rekeyed() {
  const secret = await newKey();
  const signer = await keypairSigner(secret);
  const wire = fromBase64(recorded.claim.answer.transaction);
  wire.set(secret.slice(32), 1 + 64 + 1 + 3 + 1); // count, signature, version, header, count
  return { signer, wire, transaction: decodeTransaction(wire) };
}

test('a wallet that changes what it signs is found out', async () => {
  const { signer, transaction } = await rekeyed();
  const signed = await sign(transaction, signer);
  assert.equal(decodeTransaction(signed.wire).signatures.get(signer.address).length, 64);
  const other = await rekeyed();
  for (const [name, signTransaction] of [
    ['signs nothing', async (wire) => wire],
    ['signs another one', async () => (await sign(other.transaction, other.signer)).wire],
    ['answers nothing', async () => new Uint8Array()],
    ['changes the fee', async (wire) => {
      const bad = wire.slice();
      bad[bad.length - 30] ^= 1;
      return bad;
    }],
    ['signs something else', async (wire) => {
      const bad = wire.slice();
      bad.set(await signer.signMessage(new Uint8Array([1])), 1);
      return bad;
    }],
  ]) {
    await assert.rejects(sign(transaction, { ...signer, signTransaction }), VerificationError, name);
  }
});

test('a browser\'s wallet signs by the Wallet Standard', async () => {
  const { signer, transaction } = await rekeyed();
  const account = { address: signer.address };
  const wallet = { features: {
    'solana:signMessage': { signMessage: async ({ message }) => [{ signature: await signer.signMessage(message) }] },
    'solana:signTransaction': { signTransaction: async (input) => [{ signedTransaction: await signer.signTransaction(input.transaction) }] },
  } };
  assert.ok((await sign(transaction, walletSigner(wallet, account))).signature);
  await assert.rejects(sign(transaction, walletSigner({ features: {} }, account)), /cannot sign/);
});

test('a keypair file is 64 numbers', async () => {
  const secret = await newKey();
  assert.deepEqual(parseKeypair(JSON.stringify([...secret])), secret);
  for (const bad of ['', '{}', '[]', '[1,2]', JSON.stringify(Array(64).fill(256)), JSON.stringify(Array(64).fill('1')), JSON.stringify(Array(65).fill(1))]) {
    assert.throws(() => parseKeypair(bad));
  }
});

test('the handshake signs a nonce of this protocol for this key, and nothing else', async () => {
  const secret = await newKey();
  const signer = await keypairSigner(secret);
  const inside = (domain, key) => toBase64(new Uint8Array([...new TextEncoder().encode(domain), ...key, ...new Uint8Array(40)]));
  const nonce = inside('svc_dvp_handshake_v1\0', secret.slice(32));
  const path = '/api/v1/dvp/handshake';
  const door = (given) => ({ [path]: (body) => (body.signature ? { ok: true, access_token: 'granted' } : { ok: true, nonce: given }) });
  const good = desk(door(nonce), { signer });
  await good.desk.handshake();
  assert.equal(good.client.token, 'granted');
  for (const bad of [
    inside('svc_other_protocol_1\0', secret.slice(32)), inside('svc_dvp_handshake_v1\0', (await newKey()).slice(32)),
    recorded.build.answer.transaction, '%', '',
  ]) {
    await assert.rejects(desk(door(bad), { signer: { ...signer, signMessage: assert.fail } }).desk.handshake(), (e) => e.code !== 'ERR_ASSERTION');
  }
});

test('a claim that has not been settled is no success', () => {
  assert.equal(settled({ state: 'settled' }).state, 'settled');
  for (const state of ['expired', 'released', 'refund_due']) assert.throws(() => settled({ state, claim_id: 'C1' }), new RegExp(state));
});

test('what comes back from submit is what was signed', async () => {
  const { signer, transaction } = await rekeyed();
  const made = { claim_id: 'C1', build_id: 'B1', transaction };
  const path = '/api/v1/dvp/submit';
  const other = await rekeyed();
  const right = (body) => {
    const wire = fromBase64(body.transaction);
    const [signature] = decodeTransaction(wire).signatures.values();
    return { ok: true, claim_id: 'C1', state: 'broadcast', slot: null, transaction: body.transaction, signature: base58(signature) };
  };
  const good = desk({ [path]: right }, { signer });
  assert.equal((await good.desk.submit(made)).state, 'broadcast');
  assert.equal(good.requests[0].body.build_id, 'B1');
  assert.ok(decodeTransaction(fromBase64(good.requests[0].body.transaction)).signatures.get(signer.address));
  const otherWire = toBase64((await sign(other.transaction, other.signer)).wire);
  for (const change of [
    { claim_id: 'C2' }, { transaction: otherWire }, { transaction: toBase64(transaction.wire) }, { signature: base58(new Uint8Array(64).fill(1)) },
    { transaction: null }, { transaction: 'x' },
  ]) {
    const bad = desk({ [path]: (body) => ({ ...right(body), ...change }) }, { signer });
    await assert.rejects(bad.desk.submit(made), VerificationError, JSON.stringify(change));
  }
});

test('a payment is shown until it was seen, and a claim followed to its end', async () => {
  const { quote } = recorded.claim;
  const made = { claim_id: 'C1', offer: { quote } };
  const list = [{ ok: true, state: 'pending', retry_after_ms: 1 }, { ok: true, state: 'pending', retry_after_ms: 0 }, { ok: true, verified: true, state: 'paid' }];
  const verify = desk({ '/rfq-native/settlement/verify-payment': () => list.shift() });
  assert.equal((await verify.desk.verifyPayment(made, 'S')).state, 'paid');
  assert.deepEqual(verify.requests.map((r) => r.body), Array(3).fill({ order_id: 'T1', tranche_id: 'T1-1', l1_signature: 'S', claim_id: 'C1' }));
  const states = ['reserved', 'paid', 'delivering', 'refund_due'];
  const follow = desk({ '/api/v1/rfq/claims/C1': () => ({ ok: true, claim_id: 'C1', state: states.shift() }) });
  assert.equal((await follow.desk.follow('C1')).state, 'refund_due');
  const never = desk({ '/api/v1/rfq/claims/C1': { ok: true, state: 'paid' } }, { patienceMs: 60 });
  await assert.rejects(never.desk.follow('C1'), { name: 'TimeoutError' });
  await assert.rejects(desk({ '/api/v1/rfq/claims/C1': { ok: true, state: 'paid' } }).desk.follow('C1', { signal: AbortSignal.timeout(10) }));
});

// A node that gives the same answers again and again, the last one for ever.
function node(t, script) {
  const calls = [];
  t.mock.method(globalThis, 'fetch', async (_, init) => {
    const { id, method } = JSON.parse(init.body);
    calls.push(method);
    const list = script[method];
    const answer = list.length > 1 ? list.shift() : list[0];
    if (answer === null) throw new TypeError('fetch failed');
    return new Response(JSON.stringify({ jsonrpc: '2.0', id, ...answer }), { headers: { 'content-type': 'application/json' } });
  });
  return calls;
}

test('a payment is sent until it is final, and a lost answer is no failure', async (t) => {
  const status = (confirmationStatus, err = null) => ({ result: { context: { slot: 1 }, value: [confirmationStatus && { slot: 9, confirmations: null, err, status: {}, confirmationStatus }] } });
  const refused = { error: { code: -32002, message: 'Transaction simulation failed', data: { err: 'AccountNotFound', logs: [] } } };
  const finalize = (script, finalMs = 240_000) => {
    const calls = node(t, script);
    return new Chain({ url: 'http://node.test', pollMs: 1, resendMs: 2, finalMs }).finalize(new Uint8Array([1]), 'sig').then((slot) => ({ slot, calls }), (error) => ({ error, calls })).finally(() => t.mock.restoreAll());
  };
  const sent = { result: 'sig' };
  assert.equal((await finalize({ sendTransaction: [sent], getSignatureStatuses: [status(null), status('confirmed'), status('finalized')] })).slot, 9n);
  // The node has taken it, and its answer was lost; later it is away for a while.
  const lost = await finalize({ sendTransaction: [null, sent], getSignatureStatuses: [null, null, status(null), status(null), status('finalized')] });
  assert.equal(lost.slot, 9n);
  assert.ok(lost.calls.filter((c) => c === 'sendTransaction').length >= 1);
  // It says no, because it is on the chain already: this is a start after a crash.
  assert.equal((await finalize({ sendTransaction: [refused], getSignatureStatuses: [status('finalized')] })).slot, 9n);
  assert.match(String((await finalize({ sendTransaction: [refused], getSignatureStatuses: [status(null)] })).error), /does not take it/);
  assert.ok((await finalize({ sendTransaction: [sent], getSignatureStatuses: [status('finalized', { InstructionError: [0, 'Custom'] })] })).error instanceof PaymentFailedError);
  assert.ok((await finalize({ sendTransaction: [sent], getSignatureStatuses: [status(null)] }, 100)).error instanceof PaymentPendingError);
});
