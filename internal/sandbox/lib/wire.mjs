// Transactions on the wire: legacy, version 0 and version 1 (SIMD-0385).
//
// The runtime aborts the whole process on bytes that it cannot decode, so what
// passes here is complete, canonical and within its own indexes.

import { createHash } from 'node:crypto';

/** Largest legacy and version 0 transaction: one network packet. */
export const MAX_PACKET = 1232;
/** Largest version 1 transaction. */
export const MAX_V1 = 4096;

const MAX_V1_SIGNATURES = 12;
const MAX_V1_ACCOUNTS = 64;
const MAX_V1_INSTRUCTIONS = 64;
const V1_CONFIG_WORDS = [1, 1, 1, 1, 1]; // bits 0 and 1: one u64; 2, 3, 4: a u32 each

/**
 * @typedef {{program: number, accounts: number[], data: Buffer}} Instruction
 * @typedef {{table: Buffer, writable: number[], readonly: number[]}} Lookup
 * @typedef {object} Transaction
 * @property {'legacy' | 0 | 1} version
 * @property {Buffer[]} signatures
 * @property {number} required signatures that the header asks for
 * @property {number} readonlySigned
 * @property {number} readonlyUnsigned
 * @property {Buffer[]} keys the static ones
 * @property {Buffer} blockhash
 * @property {Instruction[]} instructions
 * @property {Lookup[]} lookups
 * @property {{priorityFee?: bigint, unitLimit?: number, dataLimit?: number, heap?: number}} config of version 1
 * @property {Buffer} message the signed bytes
 * @property {Buffer} wire the whole transaction, nothing after it
 */

class Reader {
  /** @param {Buffer} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  take(length) {
    if (this.at + length > this.bytes.length) throw new RangeError('io error: failed to fill whole buffer');
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  u8() {
    return this.take(1)[0];
  }

  /** A compact-u16, refused where a shorter form exists. */
  short() {
    let value = 0;
    for (let i = 0; i < 3; i++) {
      const byte = this.u8();
      if (byte === 0 && i > 0) throw new RangeError('invalid value: alias encoding of a length');
      value |= (byte & 127) << (7 * i);
      if (byte < 128) {
        if (value > 65535) throw new RangeError('invalid value: length above u16');
        return value;
      }
    }
    throw new RangeError('invalid value: length of more than three bytes');
  }

  list(length, read) {
    const out = [];
    for (let i = 0; i < length; i++) out.push(read());
    return out;
  }

  key() {
    return this.take(32);
  }
}

/**
 * Decodes a transaction; bytes after its end are passed over, as Agave does.
 * @param {Buffer} bytes
 * @returns {Transaction}
 * @throws {RangeError} where the bytes end early or are not canonical
 */
export function decodeTransaction(bytes) {
  const reader = new Reader(bytes);
  if (bytes.length > 0 && bytes[0] === 0x81) {
    const body = readMessage(reader);
    const message = bytes.subarray(0, reader.at);
    const signatures = reader.list(body.required, () => reader.take(64));
    return { ...body, signatures, message, wire: bytes.subarray(0, reader.at) };
  }
  const signatures = reader.list(reader.short(), () => reader.take(64));
  const start = reader.at;
  const body = readMessage(reader);
  if (body.version === 1) throw new RangeError('invalid value: version 1 puts its message first');
  return { ...body, signatures, message: bytes.subarray(start, reader.at), wire: bytes.subarray(0, reader.at) };
}

/**
 * Decodes a message alone, as getFeeForMessage is given it.
 * @param {Buffer} bytes
 * @returns {Transaction} with no signatures
 */
export function decodeMessage(bytes) {
  const reader = new Reader(bytes);
  const body = readMessage(reader);
  const message = bytes.subarray(0, reader.at);
  return { ...body, signatures: [], message, wire: message };
}

function readMessage(reader) {
  let first = reader.u8();
  let version = 'legacy';
  if (first >= 128) {
    version = first & 127;
    if (version > 1) throw new RangeError(`invalid value: integer \`${version}\`, expected a valid transaction message version`);
    first = reader.u8();
  }
  const header = { required: first, readonlySigned: reader.u8(), readonlyUnsigned: reader.u8() };
  return version === 1 ? { version, ...header, ...readV1(reader) } : { version, ...header, ...readBody(reader, version) };
}

function readBody(reader, version) {
  const keys = reader.list(reader.short(), () => reader.key());
  const blockhash = reader.key();
  const instructions = reader.list(reader.short(), () => ({
    program: reader.u8(),
    accounts: [...reader.take(reader.short())],
    data: reader.take(reader.short()),
  }));
  const lookups = version === 'legacy' ? [] : reader.list(reader.short(), () => ({
    table: reader.key(),
    writable: [...reader.take(reader.short())],
    readonly: [...reader.take(reader.short())],
  }));
  return { keys, blockhash, instructions, lookups, config: {} };
}

function readV1(reader) {
  const mask = reader.take(4).readUInt32LE();
  if (mask >>> V1_CONFIG_WORDS.length !== 0 || (mask & 3) === 1 || (mask & 3) === 2) {
    throw new RangeError('invalid value: config mask');
  }
  const blockhash = reader.key();
  const instructionCount = reader.u8();
  const keys = reader.list(reader.u8(), () => reader.key());
  const config = {};
  if (mask & 3) config.priorityFee = reader.take(8).readBigUInt64LE();
  if (mask & 4) config.unitLimit = reader.take(4).readUInt32LE();
  if (mask & 8) config.dataLimit = reader.take(4).readUInt32LE();
  if (mask & 16) config.heap = reader.take(4).readUInt32LE();
  const heads = reader.list(instructionCount, () => ({
    program: reader.u8(), accounts: reader.u8(), data: reader.take(2).readUInt16LE(),
  }));
  const instructions = heads.map((head) => ({
    program: head.program, accounts: [...reader.take(head.accounts)], data: reader.take(head.data),
  }));
  return { keys, blockhash, instructions, lookups: [], config };
}

/**
 * Checks the message against itself, as Agave's sanitize does.
 * @param {Transaction} tx
 * @returns {boolean} false: answer SanitizeFailure
 */
export function isSane(tx) {
  const loaded = tx.lookups.reduce((n, l) => n + l.writable.length + l.readonly.length, 0);
  const total = tx.keys.length + loaded;
  const version1 = tx.version !== 1 || (tx.required <= MAX_V1_SIGNATURES && tx.keys.length <= MAX_V1_ACCOUNTS &&
    tx.instructions.length <= MAX_V1_INSTRUCTIONS && tx.wire.length <= MAX_V1);
  return version1 && tx.signatures.length === tx.required && tx.required > tx.readonlySigned &&
    tx.required + tx.readonlyUnsigned <= tx.keys.length && total <= 256 &&
    tx.lookups.every((l) => l.writable.length + l.readonly.length > 0) &&
    tx.instructions.every((i) => i.program > 0 && i.program < tx.keys.length && i.accounts.every((a) => a < total));
}

/**
 * Whether the message lets the transaction write its static key.
 * @param {Transaction} tx
 * @param {number} index
 */
export function isWritable(tx, index) {
  return index < tx.required
    ? index < tx.required - tx.readonlySigned
    : index < tx.keys.length - tx.readonlyUnsigned;
}

/**
 * The name of a message: one message runs once, whatever its signatures.
 * @param {Transaction} tx
 * @returns {string}
 */
export function messageHash(tx) {
  return createHash('sha256').update(tx.message).digest('base64');
}
