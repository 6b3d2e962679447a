import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { test } from 'node:test';
import { MAX_BATCH, MAX_BODY } from '../lib/http.mjs';
import { startNode } from './helpers.mjs';

const request = (method, params, id = 1) => ({ jsonrpc: '2.0', id, method, params });

test('hostile JSON is answered', async (t) => {
  const c = await startNode(t);
  const parse = '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}';
  const invalid = '{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request"},"id":null}';
  for (const [body, want] of [
    ['', parse], ['{', parse], ['nul', parse], ['[1,', parse], ['\u0000', parse], [Buffer.from([0xff, 0xfe]), parse],
    ['['.repeat(100000), parse],
    [`${'['.repeat(100000)}${']'.repeat(100000)}`, `[${invalid}]`],
    ['[]', invalid], ['1', invalid], ['null', invalid], ['"getSlot"', invalid], ['{}', invalid], ['{"jsonrpc":"2.0","id":1}', invalid],
    ['{"jsonrpc":"2.0","id":{"a":1},"method":"getHealth"}', invalid],
    ['{"jsonrpc":"2.0","id":1,"method":7}', invalid],
    ['{"id":1,"method":"getHealth"}', '{"jsonrpc":"2.0","error":{"code":-32600,"message":"Unsupported JSON-RPC protocol version"},"id":1}'],
    ['{"jsonrpc":"2.0","id":1,"method":"constructor"}', '{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}'],
    ['{"jsonrpc":"2.0","id":1,"method":"__proto__"}', '{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}'],
    ['{"jsonrpc":"2.0","id":1,"method":"sandbox_toString"}', '{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}'],
    ['{"jsonrpc":"2.0","id":"x","method":"getHealth","params":{}}', '{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params: expected a sequence."},"id":"x"}'],
    ['{"jsonrpc":"2.0","id":null,"method":"getHealth"}', '{"jsonrpc":"2.0","result":"ok","id":null}'],
    ['{"jsonrpc":"2.0","method":"getHealth"}', ''], // a notification
  ]) {
    const response = await c.post(body);
    assert.equal(response.status, 200);
    assert.equal(await response.text(), want, String(body).slice(0, 60));
  }
});

test('every method bears every kind of argument', async (t) => {
  const c = await startNode(t);
  const nonsense = [undefined, null, true, -1, 0.5, 1e300, 'x', '1'.repeat(44), '1'.repeat(10000), [], [[]], [null], {}, { commitment: 3 },
    { encoding: 'base64', dataSlice: 5 }, { encoding: {}, filters: 'x', limit: 'y', accounts: 3 }, { mint: [], programId: 4 },
    { filters: [null, 3], slots: 'x', count: [], mode: {}, hold: 'no', wallet: 1 }];
  const { methods } = await import('../lib/node.mjs');
  const { controls } = await import('../lib/controls.mjs');
  const names = [...Object.keys(methods), ...Object.keys(controls)].filter((name) => name !== 'sandbox_setNode');
  let calls = 0;
  for (const name of names) {
    for (const first of nonsense) {
      const params = [first, nonsense[calls++ % nonsense.length]];
      const answer = await (await c.post(JSON.stringify(request(name, params)))).json();
      assert.ok('result' in answer || answer.error.code !== -32603, `${name} ${JSON.stringify(params)}: ${JSON.stringify(answer)}`);
      c.node.faults.reset();
    }
  }
  assert.ok(calls > 500);
});

test('batches', async (t) => {
  const c = await startNode(t);
  const post = async (value) => (await c.post(JSON.stringify(value))).json();
  const answers = await post([request('getHealth', [], 1), request('nope', [], 'b'), 5, { jsonrpc: '2.0', method: 'getHealth' }]);
  assert.deepEqual(answers.map((a) => [a.id, a.result ?? a.error.code]), [[1, 'ok'], ['b', -32601], [null, -32600]]);
  assert.equal((await post(Array(MAX_BATCH).fill(request('getHealth', [])))).length, MAX_BATCH);
  assert.equal((await post(Array(MAX_BATCH + 1).fill(request('getHealth', [])))).error.code, -32600);
});

test('HTTP: sizes, types and methods', async (t) => {
  const c = await startNode(t);
  const room = MAX_BODY - JSON.stringify(request('getHealth', [''])).length;
  const fits = JSON.stringify(request('getHealth', ['x'.repeat(room)]));
  assert.equal(fits.length, MAX_BODY);
  assert.equal((await c.post(fits)).status, 200);
  assert.equal((await c.post(`${fits} `)).status, 413);
  assert.equal((await c.post('{}', { 'content-type': 'text/plain' })).status, 415);
  assert.equal((await fetch(c.url)).status, 405);
  assert.equal((await fetch(c.url, { method: 'PUT', body: '{}' })).status, 405);
  assert.equal(await (await fetch(`${c.url}/health`)).text(), 'ok');
  const preflight = await fetch(c.url, { method: 'OPTIONS' });
  assert.deepEqual([preflight.status, preflight.headers.get('access-control-allow-origin')], [204, '*']);
});

test('bytes that are no HTTP, and callers that go away', async (t) => {
  const c = await startNode(t);
  const { port } = new URL(c.url);
  for (const bytes of ['\x16\x03\x01\x02\x00', 'POST / HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n{', 'GET / HTTP/9\r\n\r\n']) {
    await new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => socket.write(bytes, () => setTimeout(() => socket.destroy(), 20)));
      socket.on('error', () => {}).on('close', resolve);
    });
  }
  assert.equal(await c.call('getHealth'), 'ok');
});

test('many callers at once, in one order', async (t) => {
  const c = await startNode(t);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  t.after(() => agent.destroy());
  const ask = (id) => new Promise((resolve, reject) => {
    const body = JSON.stringify(request('sandbox_advance', [{ slots: 1 }], id));
    http.request(c.url, { method: 'POST', agent, headers: { 'content-type': 'application/json' } }, (response) => {
      let text = '';
      response.on('data', (chunk) => { text += chunk; }).on('end', () => resolve(JSON.parse(text).result.slot));
    }).on('error', reject).end(body);
  });
  const slots = await Promise.all(Array.from({ length: 500 }, (_, i) => ask(i)));
  assert.equal(new Set(slots).size, 500);
});
