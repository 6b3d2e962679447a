// JSON-RPC 2.0 over HTTP as Agave serves it: requests, batches and
// notifications, and the faults that befall an answer.

import http from 'node:http';
import { INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, RpcError } from './errors.mjs';
import * as json from './json.mjs';

/** Largest request. Agave takes 50 KiB; sandbox_setAccount may need more. */
export const MAX_BODY = 2 * 1024 * 1024;
export const MAX_BATCH = 256;
export const MAX_CONNECTIONS = 1024;

const REQUEST_TIMEOUT_MS = 30000;
const IDLE_TIMEOUT_MS = 120000; // above that of Go's client, which would meet a closed connection
const PREFIX = 'sandbox_';
const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8', 'access-control-allow-origin': '*' };
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST, GET, OPTIONS',
  'access-control-allow-headers': 'content-type, solana-client',
  'access-control-max-age': '86400',
};

/** How many arguments a method needs at least. */
const REQUIRED = {
  isBlockhashValid: 1, sendTransaction: 1, simulateTransaction: 1, getSignatureStatuses: 1, getTransaction: 1,
  getSignaturesForAddress: 1, getAccountInfo: 1, getMultipleAccounts: 1, getProgramAccounts: 1,
  getTokenAccountBalance: 1, getTokenSupply: 1, getTokenAccountsByOwner: 2, getBalance: 1, getBlockTime: 1,
  getMinimumBalanceForRentExemption: 1, getFeeForMessage: 1, requestAirdrop: 2,
};

/**
 * @typedef {object} Backend
 * @property {Record<string, (node: any, params: any) => unknown>} methods
 * @property {Record<string, (node: any, params: any) => unknown>} controls
 * @property {any} node what both are given
 * @property {import('./faults.mjs').Faults} faults
 */

/**
 * @param {Backend} backend
 * @returns {http.Server}
 */
export function createServer(backend) {
  const server = http.createServer({ requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS, noDelay: true },
    (request, response) => receive(backend, request, response));
  server.maxConnections = MAX_CONNECTIONS;
  server.keepAliveTimeout = IDLE_TIMEOUT_MS;
  return server;
}

function receive(backend, request, response) {
  response.on('error', () => {}); // a caller that went away
  if (request.method === 'OPTIONS') return void response.writeHead(204, CORS).end();
  if (request.method === 'GET' && request.url === '/health') return void health(backend, response);
  if (request.method !== 'POST') return void plain(response, 405, 'Used HTTP Method is not allowed. POST or OPTIONS is required\n');
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
    return void plain(response, 415, 'Supplied content type is not allowed. Content-Type: application/json is required\n');
  }
  const chunks = [];
  let size = 0;
  request.on('error', () => {});
  request.on('data', (chunk) => {
    size += chunk.length;
    if (size <= MAX_BODY) chunks.push(chunk);
    else if (!response.headersSent) plain(response, 413, `request of more than ${MAX_BODY} bytes\n`, { connection: 'close' });
  });
  request.on('end', () => {
    if (size <= MAX_BODY) respond(backend, Buffer.concat(chunks), response);
  });
}

function plain(response, status, text, headers = {}) {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers }).end(text);
}

function health(backend, response) {
  if (backend.faults.node !== 'up') return fail(backend, response);
  let text = 'ok';
  try {
    backend.methods.getHealth(backend.node, []);
  } catch (error) {
    text = error.data?.numSlotsBehind === null ? 'unknown' : 'behind';
  }
  plain(response, 200, text);
}

/** Answers a body, unless a fault says otherwise. Controls are above faults. */
function respond(backend, body, response) {
  const { faults } = backend;
  let request;
  try {
    request = JSON.parse(body.toString('utf8'));
  } catch {
    return finish(response, json.encode(errorAnswer(null, PARSE_ERROR, 'Parse error')));
  }
  if (isControl(request)) {
    const reply = encoded(answer(backend, request));
    response.on('finish', () => backend.node.afterControl());
    return finish(response, reply);
  }
  if (faults.node !== 'up') return fail(backend, response);
  const text = answerAll(backend, request);
  if (faults.takeLostAnswer()) return response.destroy();
  if (faults.garbage > 0) {
    faults.garbage--;
    return garble(faults.garbageKind, response, text);
  }
  if (faults.answerDelayMs > 0) setTimeout(() => finish(response, text), faults.answerDelayMs).unref();
  else finish(response, text);
}

function isControl(request) {
  return typeof request === 'object' && request !== null && typeof request.method === 'string' && request.method.startsWith(PREFIX);
}

function fail(backend, response) {
  switch (backend.faults.node) {
    case '503':
      return plain(response, 503, 'Service Unavailable\n', { 'retry-after': '1' });
    case 'hang': // no answer until the caller gives up or the node is up
      return backend.node.holdUp(response);
    default:
      return response.destroy();
  }
}

function finish(response, text) {
  if (text === null) return void response.writeHead(200, JSON_TYPE).end();
  const body = Buffer.from(text);
  response.writeHead(200, { ...JSON_TYPE, 'content-length': body.length });
  response.end(body);
}

function garble(kind, response, text) {
  switch (kind) {
    case 'empty':
      return finish(response, '');
    case 'truncated':
      return finish(response, (text ?? '').slice(0, Math.floor((text ?? '').length / 2)));
    case 'wrong_type':
      return finish(response, '{"jsonrpc":"2.0","result":"garbage","id":1}');
    default:
      return finish(response, '<html><body>Bad Gateway</body></html>');
  }
}

function answerAll(backend, request) {
  if (!Array.isArray(request)) return encoded(answer(backend, request));
  if (request.length === 0) return json.encode(errorAnswer(null, INVALID_REQUEST, 'Invalid request'));
  if (request.length > MAX_BATCH) {
    return json.encode(errorAnswer(null, INVALID_REQUEST, `Invalid request: more than ${MAX_BATCH} in a batch`));
  }
  const answers = request.map((one) => encoded(answer(backend, one))).filter((one) => one !== null);
  return answers.length === 0 ? null : `[${answers.join(',')}]`;
}

const encoded = (value) => (value === null ? null : json.encode(value));

/** @returns {object | null} null: a notification, which has no answer */
function answer(backend, request) {
  const bad = checkRequest(request);
  if (bad !== null) return bad;
  const { id, method } = request;
  let reply;
  try {
    reply = { jsonrpc: '2.0', result: call(backend, method, request.params), id };
  } catch (error) {
    reply = error instanceof RpcError
      ? errorAnswer(id, error.code, error.message, error.data)
      : internal(backend, id, method, error);
  }
  return id === undefined ? null : reply;
}

function checkRequest(request) {
  const isObject = typeof request === 'object' && request !== null && !Array.isArray(request);
  if (!isObject || typeof request.method !== 'string') return errorAnswer(null, INVALID_REQUEST, 'Invalid request');
  const { id } = request;
  if (id !== undefined && id !== null && typeof id !== 'string' && typeof id !== 'number') {
    return errorAnswer(null, INVALID_REQUEST, 'Invalid request');
  }
  return request.jsonrpc === '2.0' ? null : errorAnswer(id ?? null, INVALID_REQUEST, 'Unsupported JSON-RPC protocol version');
}

function call(backend, method, params) {
  if (method.startsWith(PREFIX) && Object.hasOwn(backend.controls, method)) {
    const given = Array.isArray(params) ? params[0] : params;
    if (given !== undefined && typeof given !== 'object') {
      throw new RpcError(INVALID_PARAMS, 'Invalid params: expected one object');
    }
    return backend.controls[method](backend.node, given ?? {});
  }
  if (!Object.hasOwn(backend.methods, method)) throw new RpcError(METHOD_NOT_FOUND, 'Method not found');
  const list = params ?? [];
  if (!Array.isArray(list)) throw new RpcError(INVALID_PARAMS, 'Invalid params: expected a sequence.');
  const least = REQUIRED[method] ?? 0;
  if (list.length < least) {
    throw new RpcError(INVALID_PARAMS, `\`params\` should have at least ${least} argument(s)`);
  }
  return backend.methods[method](backend.node, list);
}

function errorAnswer(id, code, message, data) {
  return { jsonrpc: '2.0', error: { code, message, data }, id };
}

function internal(backend, id, method, error) {
  backend.node.log(`${method}: ${error.stack}`);
  return errorAnswer(id, INTERNAL_ERROR, 'Internal error');
}
