// Base58 with Bitcoin's alphabet, as Solana writes keys, hashes and signatures.

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const DIGIT = new Int16Array(128).fill(-1);
for (let i = 0; i < ALPHABET.length; i++) DIGIT[ALPHABET.charCodeAt(i)] = i;

// Five base58 digits at a time: 58^5 × 2^32 would pass 2^53, so bytes go in by
// twos. 58^5 × 2^16 < 2^46 stays exact in a double.
const LIMB = 58 ** 5;

/**
 * Encodes bytes. Cost grows with the square of the length.
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export function encode(bytes) {
  let zeros = 0;
  while (zeros < bytes.length && bytes[zeros] === 0) zeros++;
  const limbs = [];
  let at = zeros;
  if ((bytes.length - at) % 2 === 1) carry(limbs, bytes[at++], 256);
  for (; at < bytes.length; at += 2) carry(limbs, bytes[at] * 256 + bytes[at + 1], 65536);
  let text = '';
  for (let i = 0; i < limbs.length; i++) {
    let limb = limbs[i];
    for (let k = 0; k < 5 && (limb > 0 || i < limbs.length - 1); k++) {
      text = ALPHABET[limb % 58] + text;
      limb = Math.floor(limb / 58);
    }
  }
  return '1'.repeat(zeros) + text;
}

function carry(limbs, add, factor) {
  let rest = add;
  for (let i = 0; i < limbs.length; i++) {
    const value = limbs[i] * factor + rest;
    rest = Math.floor(value / LIMB);
    limbs[i] = value - rest * LIMB;
  }
  while (rest > 0) {
    limbs.push(rest % LIMB);
    rest = Math.floor(rest / LIMB);
  }
}

/**
 * Decodes text.
 * @param {string} text
 * @returns {Uint8Array | null} null where a character is not of the alphabet
 */
export function decode(text) {
  let zeros = 0;
  while (zeros < text.length && text[zeros] === '1') zeros++;
  const bytes = []; // least significant first
  for (let i = zeros; i < text.length; i++) {
    const code = text.charCodeAt(i);
    let rest = code < 128 ? DIGIT[code] : -1;
    if (rest < 0) return null;
    for (let k = 0; k < bytes.length; k++) {
      rest += bytes[k] * 58;
      bytes[k] = rest & 255;
      rest >>= 8;
    }
    while (rest > 0) {
      bytes.push(rest & 255);
      rest >>= 8;
    }
  }
  const out = new Uint8Array(zeros + bytes.length);
  for (let i = 0; i < bytes.length; i++) out[zeros + i] = bytes[bytes.length - 1 - i];
  return out;
}

// A transaction names the same dozen keys as the last one.
const MAX_CACHED_KEYS = 20000;
const texts = new Map();

/**
 * encode for 32-byte keys, which come again and again: remembered.
 * @param {Uint8Array} key
 * @returns {string}
 */
export function encodeKey(key) {
  const name = Buffer.from(key.buffer, key.byteOffset, key.length).latin1Slice();
  let text = texts.get(name);
  if (text === undefined) {
    text = encode(key);
    if (texts.size >= MAX_CACHED_KEYS) texts.clear();
    texts.set(name, text);
  }
  return text;
}
