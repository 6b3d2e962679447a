// Exact decimals. Money is text on the wire and bigint in arithmetic; nothing
// here is a float.

/** Rounding is what becomes of digits that do not fit: `down` is toward zero. */
export type Rounding = 'down' | 'up' | 'exact';

/** maxDigits bounds what is taken for a number: no amount of the desk comes near it. */
const maxDigits = 60;

/** isDecimal reports whether a text is a decimal as the desk writes it: no sign, no exponent, no leading zeros. */
export function isDecimal(text: unknown): text is string {
  return typeof text === 'string' && text.length <= maxDigits && /^(0|[1-9][0-9]*)(\.[0-9]+)?$/.test(text);
}

interface Parts {
  units: bigint;
  scale: number;
}

function parse(text: string): Parts {
  if (!isDecimal(text)) throw new RangeError(`${JSON.stringify(text)} is no decimal`);
  const point = text.indexOf('.');
  if (point < 0) return { units: BigInt(text), scale: 0 };
  return { units: BigInt(text.slice(0, point) + text.slice(point + 1)), scale: text.length - point - 1 };
}

// 10^n.
const power = (n: number): bigint => 10n ** BigInt(n);

function divide(a: bigint, b: bigint, rounding: Rounding): bigint {
  const quotient = a / b;
  if (quotient * b === a || rounding === 'down') return quotient;
  if (rounding === 'exact') throw new RangeError(`${a} / ${b} has a remainder`);
  return quotient + 1n;
}

/**
 * toAtoms turns units into atoms: `toAtoms('12.5', 6)` is 12500000n. It throws
 * RangeError for what is no decimal, and, without a rounding mode, for digits
 * beyond the atom.
 */
export function toAtoms(text: string, decimals: number, rounding: Rounding = 'exact'): bigint {
  const { units, scale } = parse(text);
  return scale <= decimals ? units * power(decimals - scale) : divide(units, power(scale - decimals), rounding);
}

/** fromAtoms turns atoms into units: `fromAtoms(12500000n, 6)` is `12.500000`. */
export function fromAtoms(atoms: bigint, decimals: number): string {
  if (atoms < 0n) return `-${fromAtoms(-atoms, decimals)}`;
  const digits = atoms.toString().padStart(decimals + 1, '0');
  return decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

/** compareDecimals returns a number below, of, or above zero, as a is below, equal to, or above b. */
export function compareDecimals(a: string, b: string): number {
  for (const text of [a, b]) parse(text);
  return comparePrices(a, b);
}

/** comparePrices is compareDecimals of what are surely decimals, as of a message that was decoded. */
export function comparePrices(a: string, b: string): number {
  // Of one precision, which a book's prices are, the longer text is the larger.
  const [pointA, pointB] = [a.indexOf('.'), b.indexOf('.')];
  if ((pointA < 0) === (pointB < 0) && a.length - pointA === b.length - pointB) {
    return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
  }
  const [x, y] = [parse(a), parse(b)];
  const scale = Math.max(x.scale, y.scale);
  const difference = x.units * power(scale - x.scale) - y.units * power(scale - y.scale);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** addDecimals returns a + b, exactly. */
export function addDecimals(a: string, b: string): string {
  const [x, y] = [parse(a), parse(b)];
  const scale = Math.max(x.scale, y.scale);
  return fromAtoms(x.units * power(scale - x.scale) + y.units * power(scale - y.scale), scale);
}

/** subtractDecimals returns a − b, exactly; it may be negative. */
export function subtractDecimals(a: string, b: string): string {
  const [x, y] = [parse(a), parse(b)];
  const scale = Math.max(x.scale, y.scale);
  return fromAtoms(x.units * power(scale - x.scale) - y.units * power(scale - y.scale), scale);
}

/** multiplyDecimals returns a × b, exactly. */
export function multiplyDecimals(a: string, b: string): string {
  const [x, y] = [parse(a), parse(b)];
  return fromAtoms(x.units * y.units, x.scale + y.scale);
}

/** divideDecimals returns a ÷ b with so many decimals. It throws RangeError for b = 0. */
export function divideDecimals(a: string, b: string, decimals: number, rounding: Rounding): string {
  const [x, y] = [parse(a), parse(b)];
  const scaled = x.units * power(y.scale + decimals);
  return fromAtoms(divide(scaled, y.units * power(x.scale), rounding), decimals);
}
