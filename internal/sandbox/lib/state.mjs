// The chain on disk. FILE is replaced whole at each save:
//
//   0   8  magic "BDSBOX01"
//   8   4  u32 little-endian, length of the JSON
//   12  …  JSON: slots, the history's frame, counters
//   …   …  the runtime's own snapshot
//   -32 32 SHA-256 of all before it
//
// FILE.history has a line of JSON for each transaction that landed. A save
// appends the new ones before it replaces FILE, so that lines after FILE's last
// sequence are of a save that did not end, and are dropped.

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import native from './native.mjs';
import * as json from './json.mjs';
import { replaceFile } from './setup.mjs';

const MAGIC = Buffer.from('BDSBOX01');
const SUM = 32;
const NEWLINE = 10;

export class State {
  /** @param {string} file */
  constructor(file) {
    this.file = file;
    this.lines = `${file}.history`;
    /** The last transaction in the lines. */
    this.sequence = 0;
    /** How many lines there are: at twice the history's limit they are rewritten. */
    this.count = 0;
  }

  /**
   * @param {import('./chain.mjs').Chain} chain
   * @returns {{bytes: number}} of FILE
   */
  save(chain) {
    const { history } = chain;
    const landed = history.since(this.sequence);
    if (this.count + landed.length > 2 * history.limit || !fs.existsSync(this.lines)) {
      this.rewrite(history.since(0));
    } else if (landed.length > 0) {
      const handle = fs.openSync(this.lines, 'a', 0o600);
      try {
        fs.writeFileSync(handle, textOf(landed));
        fs.fsyncSync(handle);
      } finally {
        fs.closeSync(handle);
      }
      this.count += landed.length;
    }
    this.sequence = history.sequence;
    const text = Buffer.from(json.encode({
      slots: chain.slots.save(), history: history.save(), submitted: chain.submitted, executed: chain.executed,
    }));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(text.length);
    const body = Buffer.concat([MAGIC, length, text, chain.svm.toBytes()]);
    replaceFile(this.file, Buffer.concat([body, createHash('sha256').update(body).digest()]), 0o600);
    return { bytes: body.length + SUM };
  }

  rewrite(landed) {
    replaceFile(this.lines, textOf(landed), 0o600);
    this.count = landed.length;
  }

  /**
   * Brings a chain to what the files have.
   * @param {import('./chain.mjs').Chain} chain a new one
   * @returns {boolean} false: there is none
   * @throws where they are damaged: the runtime would abort on it
   */
  load(chain) {
    if (!fs.existsSync(this.file)) {
      fs.rmSync(this.lines, { force: true }); // of another chain
      return false;
    }
    const all = fs.readFileSync(this.file);
    const body = all.subarray(0, Math.max(0, all.length - SUM));
    const intact = body.length > 12 && body.subarray(0, 8).equals(MAGIC) &&
      createHash('sha256').update(body).digest().equals(all.subarray(body.length));
    if (!intact) throw this.damage(this.file);
    const end = 12 + body.readUInt32LE(8);
    const saved = JSON.parse(body.subarray(12, end).toString());
    chain.use(native.LiteSvm.fromBytes(body.subarray(end)));
    chain.slots.load(saved.slots);
    const landed = this.readLines(saved.history.sequence).slice(-chain.history.limit);
    chain.history.load(saved.history, landed);
    this.rewrite(landed);
    this.sequence = saved.history.sequence;
    chain.submitted = saved.submitted;
    chain.executed = saved.executed;
    chain.openFaucet();
    chain.syncClock();
    return true;
  }

  /** The transactions up to one, and none after it. */
  readLines(last) {
    const landed = [];
    const bytes = fs.existsSync(this.lines) ? fs.readFileSync(this.lines) : Buffer.alloc(0);
    for (let at = 0, end; (end = bytes.indexOf(NEWLINE, at)) >= 0; at = end + 1) {
      let one;
      try {
        one = JSON.parse(bytes.subarray(at, end).toString());
      } catch {
        throw this.damage(this.lines);
      }
      if (one.sequence > last) break;
      landed.push({ ...one, wire: Buffer.from(one.wire, 'base64') });
    }
    if ((landed.at(-1)?.sequence ?? 0) !== last) throw this.damage(this.lines);
    return landed;
  }

  damage(file) {
    return new Error(`${file} is not a whole state file: remove ${this.file} to start a new chain`);
  }
}

function textOf(landed) {
  return landed.map((one) => `${json.encode({ ...one, wire: one.wire.toString('base64') })}\n`).join('');
}
