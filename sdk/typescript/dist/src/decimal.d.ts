/** Rounding is what becomes of digits that do not fit: `down` is toward zero. */
export type Rounding = 'down' | 'up' | 'exact';
/** isDecimal reports whether a text is a decimal as the desk writes it: no sign, no exponent, no leading zeros. */
export declare function isDecimal(text: unknown): text is string;
/**
 * toAtoms turns units into atoms: `toAtoms('12.5', 6)` is 12500000n. It throws
 * RangeError for what is no decimal, and, without a rounding mode, for digits
 * beyond the atom.
 */
export declare function toAtoms(text: string, decimals: number, rounding?: Rounding): bigint;
/** fromAtoms turns atoms into units: `fromAtoms(12500000n, 6)` is `12.500000`. */
export declare function fromAtoms(atoms: bigint, decimals: number): string;
/** compareDecimals returns a number below, of, or above zero, as a is below, equal to, or above b. */
export declare function compareDecimals(a: string, b: string): number;
/** comparePrices is compareDecimals of what are surely decimals, as of a message that was decoded. */
export declare function comparePrices(a: string, b: string): number;
/** addDecimals returns a + b, exactly. */
export declare function addDecimals(a: string, b: string): string;
/** subtractDecimals returns a − b, exactly; it may be negative. */
export declare function subtractDecimals(a: string, b: string): string;
/** multiplyDecimals returns a × b, exactly. */
export declare function multiplyDecimals(a: string, b: string): string;
/** divideDecimals returns a ÷ b with so many decimals. It throws RangeError for b = 0. */
export declare function divideDecimals(a: string, b: string, decimals: number, rounding: Rounding): string;
