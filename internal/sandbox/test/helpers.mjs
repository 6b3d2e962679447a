// A node in this process, and transactions made without any library.

import { generateKeyPairSync, sign } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import * as base58 from '../lib/base58.mjs';
import { compile, publicKey } from '../lib/chain.mjs';
import { DEFAULTS, Node } from '../lib/node.mjs';
import { SYSTEM } from '../lib/programs.mjs';

export const SOL = 10n ** 9n;

/** Starts a node with slots by hand; it stops with the test. */
export async function startNode(t, options = {}) {
  const node = new Node({ ...DEFAULTS, port: 0, slotMs: 0, seed: 'test', log: () => {}, ...options });
  await node.start();
  t.after(() => node.stop());
  return new Client(node);
}

export class Client {
  constructor(node) {
    this.node = node;
    this.chain = node.chain;
    this.url = node.url;
  }

  async post(body, headers = { 'content-type': 'application/json' }) {
    return fetch(this.url, { method: 'POST', headers, body });
  }

  /** The result; an error is thrown with its code and data. */
  async call(method, ...params) {
    const response = await this.post(JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }));
    const answer = await response.json();
    if (answer.id !== 7) throw new Error(`answer to ${answer.id}`);
    if (answer.error !== undefined) throw Object.assign(new Error(answer.error.message), answer.error);
    return answer.result;
  }

  send(bytes, config = {}) {
    return this.call('sendTransaction', bytes.toString('base64'), { encoding: 'base64', ...config });
  }

  async status(signature) {
    return (await this.call('getSignatureStatuses', [signature])).value[0];
  }

  async blockhash(commitment = 'finalized') {
    return (await this.call('getLatestBlockhash', { commitment })).value.blockhash;
  }

  /** A key with some SOL. */
  rich(lamports = 100n * SOL) {
    const key = newKey();
    this.chain.airdrop(key.pub, lamports);
    return key;
  }

  /** A signed transaction with the newest finalized blockhash. */
  transaction(signers, instructions, hash = this.chain.slots.latestBlockhash('finalized').blockhash) {
    return signedTransaction(signers, instructions, hash);
  }
}

export function newKey() {
  const { privateKey } = generateKeyPairSync('ed25519');
  const pub = publicKey(privateKey);
  return { privateKey, pub, address: base58.encode(pub) };
}

export function signedTransaction(signers, instructions, hash) {
  const message = compile(signers[0].pub, instructions, base58.decode(hash));
  const signatures = message.signers.map((pub) =>
    sign(null, message.bytes, signers.find((s) => s.pub.equals(pub)).privateKey));
  return Buffer.concat([Buffer.from([signatures.length]), ...signatures, message.bytes]);
}

export const signatureOf = (bytes) => base58.encode(bytes.subarray(1, 65));

export const account = (key, signer, writable) => ({ key, signer, writable });

export function transfer(from, to, lamports) {
  const data = Buffer.alloc(12);
  data.writeUInt32LE(2);
  data.writeBigUInt64LE(BigInt(lamports), 4);
  return { program: SYSTEM, accounts: [account(from, true, true), account(to, false, true)], data };
}

/** A folder that goes with the process: a node of the test may still save. */
export function tempDir() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sandbox-'));
  process.on('exit', () => fs.rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A file of the shared test data, or null where that is absent. */
export function testData(name) {
  const here = path.dirname(fileURLToPath(import.meta.url));
  const root = process.env.BLOCKDESK_TESTDATA ?? path.join(here, '..', '..', '..', '..', 'shared', 'data');
  const file = path.join(root, name);
  return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : null;
}
