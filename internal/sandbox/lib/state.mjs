// The chain on disk: one file, replaced whole.
//
//   0   8  magic "BDSBOX01"
//   8   4  u32 little-endian, length of the JSON
//   12  …  JSON: slots, history (its newest), counters
//   …   …  the runtime's own snapshot
//   -32 32 SHA-256 of all before it

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import native from './native.mjs';
import * as json from './json.mjs';
import { replaceFile } from './setup.mjs';

const MAGIC = Buffer.from('BDSBOX01');
const SUM = 32;

/**
 * @param {import('./chain.mjs').Chain} chain
 * @param {string} file
 * @returns {{bytes: number}}
 */
export function save(chain, file) {
  const text = Buffer.from(json.encode({
    slots: chain.slots.save(), history: chain.history.save(), submitted: chain.submitted, executed: chain.executed,
  }));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  const body = Buffer.concat([MAGIC, length, text, chain.svm.toBytes()]);
  replaceFile(file, Buffer.concat([body, createHash('sha256').update(body).digest()]), 0o600);
  return { bytes: body.length + SUM };
}

/**
 * Brings a chain to what the file has.
 * @param {import('./chain.mjs').Chain} chain a new one
 * @param {string} file
 * @returns {boolean} false: there is no file
 * @throws where the file is damaged: the runtime would abort on it
 */
export function load(chain, file) {
  if (!fs.existsSync(file)) return false;
  const all = fs.readFileSync(file);
  const body = all.subarray(0, Math.max(0, all.length - SUM));
  const intact = body.length > 12 && body.subarray(0, 8).equals(MAGIC) &&
    createHash('sha256').update(body).digest().equals(all.subarray(body.length));
  if (!intact) throw new Error(`${file} is not a whole state file: remove it to start a new chain`);
  const end = 12 + body.readUInt32LE(8);
  const saved = JSON.parse(body.subarray(12, end).toString());
  chain.use(native.LiteSvm.fromBytes(body.subarray(end)));
  chain.slots.load(saved.slots);
  chain.history.load(saved.history);
  chain.submitted = saved.submitted;
  chain.executed = saved.executed;
  chain.openFaucet();
  chain.syncClock();
  return true;
}
