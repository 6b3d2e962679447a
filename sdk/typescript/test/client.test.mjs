import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import {
  ApiError, Client, NotAdmittedError, NotFoundError, PaymentMismatchError, ProtocolError, RateLimitedError, RefusedError, RequestError,
  TimeoutError, TransportError, UnavailableError,
} from '../dist/src/index.js';

const json = (status, body, headers = {}) => () =>
  new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers } });
const problem = (code, more = {}) => ({ ok: false, code, error: 'A sentence.', request_id: 'r1', service: '/', specification: '/', ...more });

/** scripted is a client whose fetch answers one after the other, and the requests it has seen. */
function scripted(answers, options = {}) {
  const seen = [];
  const fetch = async (url, init) => {
    seen.push({ url: String(url), ...init });
    const answer = answers[Math.min(seen.length, answers.length) - 1];
    return answer(init);
  };
  return { seen, client: new Client({ baseUrl: 'http://desk.test', fetch, ...options }) };
}

const quote = { order_id: 'T1', tranche_id: 'T1-1', fill_usd: '250', rail: 'USDC' };

test('a question is a URL', async () => {
  const { seen, client } = scripted([json(200, { ok: true })], { apiUrl: 'http://api.test' });
  await client.getDepth({ symbol: '92C/SLUSD', limit: 5 });
  await client.getMarketPool({ pool_address: 'a/../b?c' });
  await client.getLegacyStatus();
  await client.getCandles();
  assert.deepEqual(seen.map((s) => s.url), [
    'http://desk.test/api/v1/market/depth?symbol=92C%2FSLUSD&limit=5', 'http://desk.test/api/v1/market/pools/a%2F..%2Fb%3Fc',
    'http://api.test/status', 'http://desk.test/api/v1/market/candles',
  ]);
  assert.deepEqual(seen.map((s) => [s.redirect, s.credentials]), Array(4).fill(['manual', 'omit']));
  await assert.rejects(scripted([]).client.getLegacyStatus(), /apiUrl/);
});

test('what the desk refuses is an error of its class', async () => {
  for (const [status, code, Class] of [
    [400, 'INVALID_FIELD', RequestError], [403, 'TAKER_NON_ADMIS_JETON', NotAdmittedError], [404, 'UNKNOWN_TICKET', NotFoundError],
    [405, 'METHOD_NOT_ALLOWED', RequestError], [409, 'REFUS_DVP', RefusedError], [422, 'PAYMENT_MISMATCH', PaymentMismatchError],
    [429, 'RATE_LIMITED', RateLimitedError], [503, 'CHAIN_UNAVAILABLE', UnavailableError], [500, 'INTERNAL', ApiError],
  ]) {
    const { client } = scripted([json(status, problem(code, { reason: 'why', field: 'rail' }), { 'retry-after': '7' })]);
    const error = await client.postQuote(quote).catch((e) => e);
    assert.ok(error instanceof Class && error instanceof ApiError, `${status}: ${error}`);
    const { code: got, reason, field, requestId, retryAfterMs } = error;
    assert.deepEqual([got, reason, field, requestId, retryAfterMs], [code, 'why', 'rail', 'r1', 7_000]);
  }
});

test('whatever else answers is an error too', async () => {
  for (const [answer, Class] of [
    [json(200, 'no JSON'), ProtocolError], [json(200, '5'), ProtocolError], [json(200, 'null'), ProtocolError],
    [json(502, '<html>'), UnavailableError], [json(400, '{"code":5,"error":[],"retry":{}}'), RequestError],
    [json(418, 'null', { 'x-request-id': 'r9', 'retry-after': 'nonsense' }), ApiError],
    [() => { throw new TypeError('fetch failed', { cause: new Error('ECONNREFUSED') }); }, TransportError],
  ]) {
    await assert.rejects(scripted([answer]).client.getSymbols({ retries: 0 }), Class);
  }
  const error = await scripted([json(418, 'null', { 'x-request-id': 'r9' })]).client.getSymbols().catch((e) => e);
  assert.deepEqual([error.code, error.requestId, error.retryAfterMs], ['', 'r9', null]);
});

test('the time is a number, and nothing else', async () => {
  assert.equal(await scripted([json(200, '1763539200')]).client.getUdfTime(), 1763539200);
  for (const answer of ['"1763539200"', '{}', 'null', '[1763539200]', 'true']) {
    await assert.rejects(scripted([json(200, answer)]).client.getUdfTime({ retries: 0 }), ProtocolError);
  }
});

test('an answer is bounded', async () => {
  const options = { maxAnswerBytes: 100 };
  await scripted([json(200, `{"a":"${'x'.repeat(92)}"}`)], options).client.getSymbols();
  await assert.rejects(scripted([json(200, `{"a":"${'x'.repeat(93)}"}`)], options).client.getSymbols(), ProtocolError);
});

test('a change is repeated under its key, and only where that is safe', async () => {
  const lost = () => { throw new TypeError('fetch failed'); };
  const busy = json(503, problem('OVERLOADED'), { 'retry-after': '0' });
  const { seen, client } = scripted([lost, busy, json(200, { ok: true })]);
  await client.postQuote(quote);
  const keys = new Set(seen.map((s) => s.headers['idempotency-key']));
  assert.deepEqual([seen.length, keys.size, new Set(seen.map((s) => s.body)).size], [3, 1, 1]);
  assert.match([...keys][0], /^[0-9a-f]{32}$/);

  const own = scripted([json(200, { ok: true })]);
  await own.client.postQuote(quote, { idempotencyKey: 'mine' });
  await own.client.postQuote(quote);
  await own.client.postQuote(quote);
  const sent = own.seen.map((s) => s.headers['idempotency-key']);
  assert.deepEqual([sent[0], new Set(sent).size], ['mine', 3]);

  for (const [answer, times] of [
    [lost, 1], [busy, 1], // who knows what became of it
    [json(429, problem('RATE_LIMITED'), { 'retry-after': '0' }), 4], // it surely was not carried out
    [json(429, problem('EMISSION_PAR_IP_TROP_RECENTE'), { 'retry-after': '3600' }), 1], // the caller's to wait
  ]) {
    const handshake = scripted([answer]);
    await assert.rejects(handshake.client.postHandshake({ pubkey: 'x' }));
    assert.equal(handshake.seen.length, times);
  }
  for (const status of [400, 403, 404, 409, 422, 500]) {
    const refused = scripted([json(status, problem('X'))]);
    await assert.rejects(refused.client.postQuote(quote));
    assert.equal(refused.seen.length, 1, String(status));
  }
});

test('the token goes where it must, and nowhere else', async () => {
  const { seen, client } = scripted([json(200, { ok: true })], { token: 'secret', apiUrl: 'http://api.test' });
  await client.postBuild({});
  await client.postSubmit({ build_id: 'B' });
  await client.getSymbols();
  await client.postQuote(quote);
  await client.postFallbackVerifyPayment({});
  assert.deepEqual(seen.map((s) => s.headers.authorization), ['Bearer secret', 'Bearer secret', undefined, undefined, undefined]);
  client.token = null;
  await assert.rejects(client.postBuild({}), /handshake/);
  assert.equal(seen.length, 5);
});

test('a call ends by its time, or by its caller', async () => {
  const never = ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const keepAlive = setInterval(() => {}, 1_000); // the timers of AbortSignal keep no process
  try {
    await assert.rejects(scripted([never]).client.getSymbols({ timeoutMs: 5, retries: 0 }), TimeoutError);
    const { seen, client } = scripted([never]);
    await assert.rejects(client.getSymbols({ timeoutMs: 5, retries: 1 }), TimeoutError);
    assert.equal(seen.length, 2);
    const caller = new AbortController();
    const call = client.getSymbols({ signal: caller.signal });
    caller.abort(new Error('enough'));
    await assert.rejects(call, /enough/);
    const waiting = scripted([json(503, problem('X'), { 'retry-after': '4' })]).client.getSymbols({ signal: AbortSignal.timeout(20) });
    await assert.rejects(waiting, { name: 'TimeoutError' });
  } finally {
    clearInterval(keepAlive);
  }
});

test('the version is that of the API', async () => {
  const read = async (path) => JSON.parse(await readFile(new URL(path, import.meta.url), 'utf8'));
  const [{ version }, { info }] = [await read('../package.json'), await read('../../openapi/svc_public_api_v1.json')];
  assert.equal(version, info.version);
});

const away = (to) => json(307, problem('LEADER_CHANGED', { leader: { id: 'b', url: to } }), { location: to, 'retry-after': '1' });

test('a redirect is followed with body, key and token, to named hosts alone', async () => {
  const build = { order_id: 'T1', tranche_id: 'T1-1', fill_usd: '250', rail: 'USDC', taker: '1'.repeat(32) };
  const { seen, client } = scripted([away('http://desk.test:9/there?x=1'), away('http://b.test/further'), json(200, { ok: true })], {
    token: 'secret', nodes: ['http://b.test'],
  });
  await client.postBuild(build, { idempotencyKey: 'k1' });
  assert.deepEqual(seen.map((s) => s.url), ['http://desk.test/api/v1/dvp/build', 'http://desk.test:9/there?x=1', 'http://b.test/further']);
  for (const s of seen) {
    assert.deepEqual([s.method, s.body, s.headers['idempotency-key'], s.headers.authorization], ['POST', JSON.stringify(build), 'k1', 'Bearer secret']);
  }
  for (const to of ['http://evil.test/', 'http://desk.test@evil.test/', 'http://me@desk.test/', 'ftp://desk.test/', '/levels', '']) {
    const other = scripted([away(to)], { retries: 0 });
    const error = await other.client.postQuote(quote).catch((e) => e);
    assert.ok(error instanceof UnavailableError && error.status === 307 && error.leader === to, `${to}: ${error}`);
    assert.equal(other.seen.length, 1, to);
  }
  const circle = scripted([away('http://desk.test/again')], { retries: 0 });
  await assert.rejects(circle.client.postQuote(quote), UnavailableError);
  assert.equal(circle.seen.length, 4);
  const plain = scripted([away('http://desk.test/x')], { baseUrl: 'https://desk.test', retries: 0 });
  await assert.rejects(plain.client.postQuote(quote), UnavailableError);
  assert.equal(plain.seen.length, 1);
});

test('the next node is asked with the same key', async () => {
  const unknown = json(503, problem('LEADER_CHANGED', { reason: 'outcome_unknown' }), { 'retry-after': '0' });
  const down = () => { throw new TypeError('fetch failed'); };
  const { seen, client } = scripted([unknown, down, json(200, { ok: true })], { nodes: ['http://b.test', 'http://c.test'] });
  await client.postQuote(quote);
  await client.getDepth({ symbol: 'A/B' }); // the one that answers is asked first from now on
  assert.deepEqual(seen.map((s) => new URL(s.url).host), ['desk.test', 'b.test', 'c.test', 'c.test']);
  assert.equal(new Set(seen.slice(0, 3).map((s) => s.headers['idempotency-key'])).size, 1);
  const once = scripted([unknown]);
  await assert.rejects(once.client.postHandshake({ pubkey: 'k', nonce: 'n', signature: 's' }), UnavailableError);
  assert.equal(once.seen.length, 1);
});
