// The depth of the book as a curve, with axes, a line in the middle and values under the
// pointer.
import { Decimal, grouped } from './decimal.ts';
import { setAttr, byId } from './dom.ts';
import type { Step } from './depth.ts';
import { middle, steps } from './depth.ts';
import type { Book } from './market.ts';

const edge = { bottom: 22, right: 62, top: 14 }; // pixels for the axes
const ticks = 5;

const svg = <K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>, text = ''): SVGElementTagNameMap[K] => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text) element.textContent = text;
  return element;
};

interface Scale {
  from: number;
  to: number;
  width: number;
  floor: number;
  deepest: Decimal;
}

const x = (s: Scale, price: number): number => ((price - s.from) / (s.to - s.from || 1)) * s.width;
const y = (s: Scale, total: Decimal): number => s.floor - total.share(s.deepest) * (s.floor - edge.top);

// abbreviate shortens a quantity of an axis: 1.5k, 2m.
function abbreviate(value: number): string {
  for (const [step, letter] of [[1e9, 'b'], [1e6, 'm'], [1e3, 'k']] as const) {
    if (value >= step) return `${Number((value / step).toPrecision(3))}${letter}`;
  }
  return String(Number(value.toPrecision(3)));
}

export class Curve {
  readonly #stage = byId('curve') as unknown as SVGSVGElement;
  #pointer: number | null = null; // x of the pointer
  #book: Book | null = null;
  #decimals = 0;

  constructor() {
    this.#stage.addEventListener('pointermove', (event) => this.#point(event.clientX - this.#stage.getBoundingClientRect().left));
    this.#stage.addEventListener('pointerleave', () => this.#point(null));
  }

  #point(at: number | null): void {
    this.#pointer = at;
    if (this.#book) this.paint(this.#book, this.#decimals);
  }

  /** paint draws the cumulative quantity of both sides over the price. */
  paint(book: Book, decimals: number): void {
    [this.#book, this.#decimals] = [book, decimals];
    const { width, height } = this.#stage.getBoundingClientRect();
    const [bids, asks] = [steps(book.bids()), steps(book.asks())];
    const [low, high] = [bids.at(-1), asks.at(-1)];
    this.#stage.setAttribute('viewBox', `0 0 ${width} ${height}`);
    if (!low || !high || width === 0) {
      this.#stage.replaceChildren();
      return;
    }
    const deepest = low.total.compare(high.total) > 0 ? low.total : high.total;
    const scale: Scale = { from: Number(low.price), to: Number(high.price), width: Math.max(1, width - edge.right), floor: height - edge.bottom, deepest };
    this.#stage.replaceChildren(...this.#axes(scale), ...sides(scale, bids, asks), ...center(scale, bids[0], asks[0]), ...this.#hover(scale, bids, asks));
    setAttr(this.#stage, 'aria-label', `Depth curve: ${low.total} bid from ${low.price}, ${high.total} asked up to ${high.price}`);
  }

  #axes(s: Scale): SVGElement[] {
    const parts: SVGElement[] = [];
    for (let i = 0; i <= ticks; i++) {
      const price = s.from + ((s.to - s.from) * i) / ticks;
      const anchor = i === 0 ? 'start' : i === ticks ? 'end' : 'middle';
      parts.push(svg('text', { x: x(s, price), y: s.floor + 15, 'text-anchor': anchor }, price.toFixed(Math.min(this.#decimals, 6))));
      const share = i / ticks;
      const at = s.floor - share * (s.floor - edge.top);
      parts.push(svg('line', { x1: 0, x2: s.width, y1: at, y2: at, class: 'axis' }));
      if (i > 0) parts.push(svg('text', { x: s.width + 6, y: at + 4 }, abbreviate(s.deepest.number * share)));
    }
    return parts;
  }

  #hover(s: Scale, bids: Step[], asks: Step[]): SVGElement[] {
    const at = this.#pointer;
    if (at === null || at > s.width) return [];
    const price = s.from + (at / s.width) * (s.to - s.from);
    const best = Number(bids[0]?.price ?? s.from);
    const side = price <= best ? bids : asks;
    const step = side.findLast((l) => (side === bids ? Number(l.price) >= price : Number(l.price) <= price));
    if (!step) return [];
    const top = y(s, step.total);
    const right = at < s.width / 2;
    return [
      svg('line', { x1: at, x2: at, y1: edge.top, y2: s.floor, class: 'pointer' }),
      svg('circle', { cx: at, cy: top, r: 3, class: side === bids ? 'dot-buy' : 'dot-sell' }),
      svg('text', { x: right ? at + 8 : at - 8, y: Math.max(edge.top + 10, top - 8), 'text-anchor': right ? 'start' : 'end', class: 'strong' },
        `${grouped(step.total.rounded(2).toString())} to ${grouped(step.price)}`),
    ];
  }
}

function sides(s: Scale, bids: Step[], asks: Step[]): SVGElement[] {
  const parts: SVGElement[] = [];
  for (const [name, side, end] of [['buy', bids, 0], ['sell', asks, s.width]] as const) {
    const first = side[0];
    if (!first) continue;
    let line = '';
    let last = s.floor;
    for (const l of side) {
      line += `${line ? 'L' : 'M'}${x(s, Number(l.price)).toFixed(1)} ${last.toFixed(1)}V${y(s, l.total).toFixed(1)}`;
      last = y(s, l.total);
    }
    line += `H${end}`;
    parts.push(svg('path', { d: `${line}V${s.floor}H${x(s, Number(first.price)).toFixed(1)}Z`, class: `area-${name}` }), svg('path', { d: line, class: `line-${name}` }));
  }
  return parts;
}

// center draws the line in the middle of the best prices.
function center(s: Scale, bid: Step | undefined, ask: Step | undefined): SVGElement[] {
  if (!bid || !ask) return [];
  const at = (x(s, Number(bid.price)) + x(s, Number(ask.price))) / 2;
  return [svg('line', { x1: at, x2: at, y1: edge.top, y2: s.floor, class: 'mid' }), svg('text', { x: at, y: edge.top - 3, 'text-anchor': 'middle', class: 'strong' }, middle(bid.price, ask.price))];
}
