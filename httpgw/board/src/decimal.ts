// Money is exact: a decimal is an integer of units × 10^-scale. Floats are only for
// pixels.

export class Decimal {
  static readonly zero = new Decimal(0n, 0);

  constructor(
    readonly units: bigint,
    readonly scale: number,
  ) {}

  /** parse parses digits with an optional sign and decimal point, or throws. */
  static parse(text: string): Decimal {
    const match = /^(-?)(\d{1,40})(?:\.(\d{1,20}))?$/.exec(text);
    if (!match) throw new RangeError(`not a decimal: ${text.slice(0, 40)}`);
    const [, sign, whole, part = ''] = match;
    const units = BigInt(`${whole}${part}`);
    return new Decimal(sign ? -units : units, part.length);
  }

  plus(other: Decimal): Decimal {
    const scale = Math.max(this.scale, other.scale);
    return new Decimal(this.at(scale) + other.at(scale), scale);
  }

  times(other: Decimal): Decimal {
    return new Decimal(this.units * other.units, this.scale + other.scale);
  }

  compare(other: Decimal): number {
    const scale = Math.max(this.scale, other.scale);
    const [a, b] = [this.at(scale), other.at(scale)];
    return a < b ? -1 : a > b ? 1 : 0;
  }

  get positive(): boolean {
    return this.units > 0n;
  }

  /** at returns the units at a scale that is not smaller than this one's. */
  at(scale: number): bigint {
    return this.units * 10n ** BigInt(scale - this.scale);
  }

  /** rounded returns the decimal with fewer digits, towards zero or, if up, away from it. */
  rounded(scale: number, up = false): Decimal {
    if (scale >= this.scale) return new Decimal(this.at(scale), scale);
    const step = 10n ** BigInt(this.scale - scale);
    const rest = this.units % step;
    const away = up && rest !== 0n ? (this.units < 0n ? -1n : 1n) : 0n;
    return new Decimal(this.units / step + away, scale);
  }

  /** over returns this / divisor at a scale, rounded towards zero. */
  over(divisor: Decimal, scale: number): Decimal {
    const grow = 10n ** BigInt(scale + divisor.scale);
    return new Decimal((this.units * grow) / (divisor.units * 10n ** BigInt(this.scale)), scale);
  }

  /** share returns this / whole as a number, for drawing. */
  share(whole: Decimal): number {
    if (whole.units === 0n) return 0;
    return Number(this.over(whole, 4).units) / 1e4;
  }

  /** number is the value as a double, for charts. */
  get number(): number {
    return Number(this.toString());
  }

  toString(): string {
    const digits = (this.units < 0n ? -this.units : this.units).toString().padStart(this.scale + 1, '0');
    const cut = digits.length - this.scale;
    return (this.units < 0n ? '-' : '') + digits.slice(0, cut) + (this.scale > 0 ? `.${digits.slice(cut)}` : '');
  }
}

const groups = /\B(?=(\d{3})+$)/g;

/** grouped adds thousands separators to a decimal. */
export function grouped(text: string): string {
  const [whole = '', part] = text.split('.');
  return whole.replace(groups, ',') + (part === undefined ? '' : `.${part}`);
}

/** short is grouped without trailing zeros. */
export function short(text: string): string {
  return grouped(text.includes('.') ? text.replace(/\.?0+$/, '') : text);
}

const scales: readonly [bigint, string][] = [[1_000_000_000n, 'b'], [1_000_000n, 'm'], [1_000n, 'k']];

/** size abbreviates a fill size: 250, 1k, 2.5m. */
export function size(text: string): string {
  const value = Decimal.parse(text);
  for (const [step, letter] of scales) {
    const scaled = value.over(new Decimal(step, 0), 1);
    if (scaled.compare(new Decimal(1n, 0)) >= 0 && scaled.times(new Decimal(step, 0)).compare(value) === 0) return short(scaled.toString()) + letter;
  }
  return short(text);
}
