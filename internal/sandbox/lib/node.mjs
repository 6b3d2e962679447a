// A whole node: the chain, its clock, its faults and its HTTP server.

import { Chain } from './chain.mjs';
import { controls } from './controls.mjs';
import { Faults } from './faults.mjs';
import { createServer } from './http.mjs';
import { invalidParams } from './errors.mjs';
import { methods as accounts } from './rpc/accounts.mjs';
import { methods as cluster } from './rpc/cluster.mjs';
import { methods as send } from './rpc/send.mjs';
import { methods as transactions } from './rpc/transactions.mjs';
import { setup } from './setup.mjs';
import { BLOCKHASH_SLOTS } from './slots.mjs';
import { State } from './state.mjs';
import { Timer } from './timer.mjs';

export const methods = { ...cluster, ...accounts, ...send, ...transactions };

/**
 * @typedef {object} Options
 * @property {string} host
 * @property {number} port 0: any free one
 * @property {number} slotMs 0: slots advance by hand
 * @property {number} confirmSlots
 * @property {number} finalizeSlots
 * @property {number} blockhashSlots how long a blockhash lives, and an outcome stays in the status cache
 * @property {number} history transactions kept
 * @property {string} [seed]
 * @property {string} [state] file
 * @property {number} saveSeconds
 * @property {string} [setup] folder
 * @property {number} wallets
 * @property {(line: string) => void} log
 */

export const DEFAULTS = {
  host: '127.0.0.1', port: 8899, slotMs: 400, confirmSlots: 1, finalizeSlots: 31, blockhashSlots: BLOCKHASH_SLOTS,
  history: 20000, saveSeconds: 10, wallets: 3,
};

export class Node {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.log = options.log;
    this.chain = new Chain({ ...options, slotMs: options.slotMs || 400 });
    this.state = options.state === undefined ? null : new State(options.state);
    this.restored = this.state?.load(this.chain) ?? false;
    this.faults = new Faults(this.chain);
    this.timer = new Timer(this.chain, options.slotMs);
    this.server = createServer({ methods, controls, node: this, faults: this.faults });
    this.refusal = null;
    /** Requests that get no answer. @type {Set<import('node:http').ServerResponse>} */
    this.hung = new Set();
    /** @type {(() => void) | null} */
    this.deferred = null;
    this.saver = null;
    this.saved = '';
  }

  /**
   * Opens the port and makes the setup.
   * @returns {Promise<string>} the URL
   */
  async start() {
    const { options } = this;
    this.port = await listen(this.server, options.port, options.host);
    this.url = `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${this.port}`;
    if (options.setup !== undefined) {
      this.setup = setup(this.chain, { dir: options.setup, wallets: options.wallets, seed: options.seed, url: this.url });
      for (let i = options.finalizeSlots; i >= 0 && !this.restored; i--) this.chain.advance(); // what is set up is final
    }
    if (this.state !== null && options.saveSeconds > 0) {
      this.saver = setInterval(() => this.saveIfChanged(), 1000 * options.saveSeconds);
    }
    return this.url;
  }

  /** Saves where the chain has moved since. */
  saveIfChanged() {
    const now = `${this.chain.executed} ${this.chain.slots.slot}`;
    if (now !== this.saved) this.state.save(this.chain);
    this.saved = now;
  }

  save() {
    if (this.state === null) throw invalidParams('Invalid params: the sandbox runs without --state');
    return this.state.save(this.chain);
  }

  fund(wallet, symbol, amount) {
    if (this.setup === undefined) throw invalidParams('Invalid params: the sandbox runs without --setup');
    return this.setup.fund(wallet, symbol, amount);
  }

  /** @param {'up' | '503' | 'reset' | 'hang'} mode */
  setMode(mode) {
    this.faults.node = mode;
    if (mode !== 'hang') for (const response of this.hung) response.destroy(); // nobody will answer them
  }

  /** Leaves a request without an answer until the node does something else than hang. */
  holdUp(response) {
    this.hung.add(response);
    response.on('close', () => this.hung.delete(response));
  }

  /** Closes the port, as a dead node would, and opens it again after forMs. */
  refuse(forMs) {
    this.deferred = () => {
      clearTimeout(this.refusal);
      this.server.close();
      this.server.closeAllConnections();
      this.refusal = setTimeout(() => this.server.listen(this.port, this.options.host), forMs);
    };
  }

  /** Does what must wait until the caller who asked for it has its answer. */
  afterControl() {
    const { deferred } = this;
    this.deferred = null;
    deferred?.();
  }

  /** Saves and closes. Requests at work are cut off. */
  async stop() {
    this.timer.stop();
    clearInterval(this.saver);
    clearTimeout(this.refusal);
    this.state?.save(this.chain);
    if (!this.server.listening) return;
    await new Promise((resolve) => {
      this.server.close(resolve);
      this.server.closeAllConnections();
    });
  }
}

function listen(server, port, host) {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve(server.address().port);
    });
  });
}
