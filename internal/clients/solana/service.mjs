// The desk's HTTP surfaces, with node:http alone: the address that we come from
// can be chosen, since the desk counts clients by it.
import http from 'node:http';
import { base58 } from './wallet.mjs';

const patience = 240_000;

/** An Unexpected answer has another status than the one that was hoped for. */
export class Unexpected extends Error {
  constructor(method, path, answer, want) {
    super(`${method} ${path}: status ${answer.status}, expected ${want}: ${JSON.stringify(answer.body)}`);
    this.answer = answer;
  }
}

export class Service {
  constructor({ base, api, from, token }) {
    Object.assign(this, { base, api, from, token });
  }

  /** call returns {status, headers, body}, whatever the status is. */
  call(method, path, body, { on = this.base, bearer = false } = {}) {
    const headers = {};
    const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    if (sent) Object.assign(headers, { 'content-type': 'application/json', 'content-length': sent.length });
    if (bearer) headers.authorization = `Bearer ${this.token}`;
    return new Promise((resolve, reject) => {
      const request = http.request(new URL(path, on), { method, headers, localAddress: this.from, timeout: patience }, (response) => {
        const parts = [];
        response.on('data', (part) => parts.push(part));
        response.on('error', reject);
        response.on('end', () => {
          try {
            resolve({ status: response.statusCode, headers: response.headers, body: JSON.parse(Buffer.concat(parts)) });
          } catch (error) {
            reject(error);
          }
        });
      });
      request.on('timeout', () => request.destroy(new Error(`${method} ${path}: no answer in ${patience} ms`)));
      request.on('error', reject);
      request.end(sent);
    });
  }

  /** ask is call of what must be answered with this status; it returns the body. */
  async ask(want, method, path, body, options) {
    const answer = await this.call(method, path, body, options);
    if (answer.status !== want) throw new Unexpected(method, path, answer, want);
    return answer.body;
  }

  /** handshake gets a token for a wallet that proves its key. */
  async handshake(wallet) {
    const path = '/api/v1/dvp/handshake';
    const terms = await this.ask(200, 'GET', path);
    if (terms.protocol !== 'svc_dvp_handshake_v1' || terms.algorithm !== 'ed25519') throw new Error(`terms: ${JSON.stringify(terms)}`);
    const challenge = await this.ask(200, 'POST', path, { pubkey: wallet.address });
    const inside = Buffer.from(challenge.nonce, 'base64');
    if (inside.toString('base64') !== challenge.nonce || inside.length < 64) throw new Error('the nonce is no base64 of 64 bytes or more');
    const signature = base58(await wallet.prove(challenge.nonce));
    const granted = await this.ask(201, 'POST', path, { pubkey: wallet.address, nonce: challenge.nonce, signature });
    if (granted.token_type !== 'Bearer' || granted.expires_in !== 604_800 || granted.pubkey !== wallet.address) {
      throw new Error('the token is not one of seven days for this wallet');
    }
    this.token = granted.access_token;
    return granted;
  }
}
