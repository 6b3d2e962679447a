// Base58 as Solana writes addresses and signatures.

const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

export function encode(bytes: Uint8Array): string {
  let value = 0n;
  for (const byte of bytes) value = value * 256n + BigInt(byte);
  let text = '';
  for (; value > 0n; value /= 58n) text = (alphabet[Number(value % 58n)] ?? '') + text;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return '1'.repeat(zeros < 0 ? bytes.length : zeros) + text;
}

/** decode decodes canonical base58 of exactly size bytes, or throws. */
export function decode(text: string, size: number): Uint8Array<ArrayBuffer> {
  if (text.length > size * 2) throw new RangeError('base58: too long');
  let value = 0n;
  for (const letter of text) {
    const digit = alphabet.indexOf(letter);
    if (digit < 0) throw new RangeError('base58: not a digit');
    value = value * 58n + BigInt(digit);
  }
  const out = new Uint8Array(size);
  for (let i = size - 1; i >= 0; i--, value /= 256n) out[i] = Number(value % 256n);
  if (value > 0n || encode(out) !== text) throw new RangeError(`base58: not ${size} bytes`);
  return out;
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

export function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
