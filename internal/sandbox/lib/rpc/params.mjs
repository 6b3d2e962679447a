// What callers pass, checked, with the answers that Agave gives to nonsense.

import * as base58 from '../base58.mjs';
import { invalidParams, MIN_CONTEXT_SLOT, RpcError } from '../errors.mjs';

/** What getVersion and every context tell. */
export const API_VERSION = '3.0.0';

const COMMITMENTS = new Map([
  ['processed', 'processed'], ['confirmed', 'confirmed'], ['finalized', 'finalized'],
  ['recent', 'processed'], ['single', 'confirmed'], ['singleGossip', 'confirmed'], ['root', 'finalized'], ['max', 'finalized'],
]);

/**
 * @param {unknown} value
 * @returns {Buffer}
 */
export function pubkey(value) {
  return Buffer.from(fixed(string(value), 32));
}

/**
 * @param {unknown} value
 * @returns {string} as given: base58 of 64 bytes
 */
export function signature(value) {
  const text = string(value);
  fixed(text, 64);
  return text;
}

function fixed(text, size) {
  if (text.length > 2 * size) throw invalidParams('Invalid param: WrongSize');
  const bytes = base58.decode(text);
  if (bytes === null) throw invalidParams('Invalid param: Invalid');
  if (bytes.length !== size) throw invalidParams('Invalid param: WrongSize');
  return bytes;
}

/** @param {unknown} value */
export function string(value) {
  if (typeof value !== 'string') throw invalidParams(`Invalid params: invalid type: ${nameOf(value)}, expected a string.`);
  return value;
}

/**
 * A whole number from 0; most is its largest.
 * @param {unknown} value
 * @param {number} [most]
 */
export function whole(value, most = Number.MAX_SAFE_INTEGER) {
  if (!Number.isSafeInteger(value) || value < 0 || value > most) {
    throw invalidParams(`Invalid params: invalid value: ${nameOf(value)}, expected an integer from 0 to ${most}.`);
  }
  return value;
}

/** @param {unknown} value */
export function list(value) {
  if (!Array.isArray(value)) throw invalidParams(`Invalid params: invalid type: ${nameOf(value)}, expected a sequence.`);
  return value;
}

/**
 * An options object; none is an empty one.
 * @param {unknown} value
 * @returns {Record<string, any>}
 */
export function options(value) {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw invalidParams(`Invalid params: invalid type: ${nameOf(value)}, expected struct.`);
  }
  return value;
}

/** @param {unknown} value */
export function flag(value) {
  if (value === undefined || value === null) return false;
  if (typeof value !== 'boolean') throw invalidParams(`Invalid params: invalid type: ${nameOf(value)}, expected a boolean.`);
  return value;
}

/**
 * @param {Record<string, any>} config
 * @param {string} [name]
 * @returns {import('../slots.mjs').Commitment} finalized where there is none
 */
export function commitment(config, name = 'commitment') {
  const text = config[name];
  if (text === undefined || text === null) return 'finalized';
  const found = COMMITMENTS.get(text);
  if (found === undefined) {
    throw invalidParams(`Invalid params: unknown variant \`${nameOf(text)}\`, expected one of \`processed\`, \`confirmed\`, \`finalized\`.`);
  }
  return found;
}

/** A commitment level of the methods that read the ledger. */
export function ledgerCommitment(config) {
  const level = commitment(config);
  if (level === 'processed') throw invalidParams('Method does not support commitment below `confirmed`');
  return level;
}

/**
 * The context of an answer, after minContextSlot was checked.
 * @param {any} node
 * @param {Record<string, any>} config
 */
export function context(node, config, level = commitment(config)) {
  const slot = node.chain.slots.at(level);
  checkContext(slot, config);
  return { slot, apiVersion: API_VERSION };
}

/** @param {number} slot */
export function checkContext(slot, config) {
  const least = config.minContextSlot;
  if (least !== undefined && least !== null && slot < whole(least)) {
    throw new RpcError(MIN_CONTEXT_SLOT, 'Minimum context slot has not been reached', { contextSlot: slot });
  }
}

/**
 * Standard base64, refused where it is not canonical: Buffer would guess.
 * @param {string} text
 * @returns {Buffer}
 */
export function base64(text) {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) {
    const at = text.search(/[^A-Za-z0-9+/=]/);
    const why = at >= 0 ? `InvalidByte(${at}, ${text.charCodeAt(at)})` : 'InvalidPadding';
    throw invalidParams(`invalid base64 encoding: ${why}`);
  }
  return bytes;
}

function nameOf(value) {
  const text = typeof value === 'object' && value !== null ? (Array.isArray(value) ? 'sequence' : 'map') : String(value);
  return text.slice(0, 100);
}
