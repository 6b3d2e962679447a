// The order book as rows with cumulative bars, and as a curve.
import { Decimal, grouped } from './decimal.ts';
import { clock, create, setAttr, byId, rows, setText } from './dom.ts';
import type { Book, StreamPosition } from './market.ts';
import type { LevelText, Symbol, Trade } from './messages.ts';

const maxLevels = 25; // rows per side; the book has more
const minLevels = 5;

// fitting returns how many rows per side fit, so that the middle stays visible.
function fitting(): number {
  const table = byId('book');
  const row = byId('bids').firstElementChild?.getBoundingClientRect().height ?? 0;
  const rest = (table.querySelector('thead')?.clientHeight ?? 0) + (table.querySelector('.spread')?.clientHeight ?? 0);
  const room = row > 0 ? Math.floor(((table.parentElement?.clientHeight ?? 0) - rest) / 2 / row) : 0;
  return Math.max(minLevels, Math.min(maxLevels, room));
}

interface Step {
  price: string;
  qty: string;
  total: Decimal;
}

function steps(levels: LevelText[]): Step[] {
  let total = Decimal.zero;
  return levels.map(([price, qty]) => {
    total = total.plus(Decimal.parse(qty));
    return { price, qty, total };
  });
}

/** showPosition writes a panel's epoch and seq into data attributes, for tests. */
export function showPosition(panel: HTMLElement, position: StreamPosition | null): void {
  panel.dataset.epoch = position?.epoch ?? '';
  panel.dataset.seq = position ? String(position.seq) : '';
}

const bookRow = () => create('tr', {}, create('td'), create('td', { class: 'n' }), create('td', { class: 'n soft' }));

function paintSide(parent: HTMLElement, side: Step[], deepest: Decimal): void {
  const list = rows(parent, side.length, bookRow);
  for (const [i, step] of side.entries()) {
    const row = list[i];
    if (!row) continue;
    const texts = [grouped(step.price), grouped(step.qty), grouped(step.total.toString())];
    for (const [j, text] of texts.entries()) if (row.children[j]) setText(row.children[j], text);
    row.style.setProperty('--share', step.total.share(deepest).toFixed(4));
  }
}

const larger = (a: Decimal, b: Decimal): Decimal => (a.compare(b) > 0 ? a : b);

/** paintBook paints the order book with the best prices in the middle. */
export function paintBook(book: Book, symbol: Symbol): void {
  const count = fitting();
  const [bids, asks] = [steps(book.bids()).slice(0, count), steps(book.asks()).slice(0, count)];
  const deepest = larger(bids.at(-1)?.total ?? Decimal.zero, asks.at(-1)?.total ?? Decimal.zero);
  paintSide(byId('asks'), asks.toReversed(), deepest);
  paintSide(byId('bids'), bids, deepest);
  const [bid, ask] = [bids[0], asks[0]];
  setText(byId('mid'), bid && ask ? middle(bid.price, ask.price) : 'no middle');
  setText(byId('spread'), bid && ask ? spread(bid.price, ask.price) : '');
  setText(byId('book-quote'), symbol.quote);
  setText(byId('book-base'), symbol.base);
  showPosition(byId('book'), book.position);
  setText(byId('book-note'), book.position ? `${symbol.book_source} · seq ${book.position.seq}` : '');
}

const half = new Decimal(5n, 1);

function middle(bid: string, ask: string): string {
  return grouped(Decimal.parse(bid).plus(Decimal.parse(ask)).times(half).toString());
}

const basisPoint = new Decimal(10_000n, 0);

function spread(bid: string, ask: string): string {
  const [low, high] = [Decimal.parse(bid), Decimal.parse(ask)];
  const gap = high.plus(new Decimal(-low.units, low.scale));
  return `spread ${gap} · ${gap.times(basisPoint).over(low, 1)} bps`;
}

const tapeRow = () => create('tr', {}, create('td'), create('td', { class: 'n' }), create('td', { class: 'n' }));
const shownTrades = 60;

/** paintTape paints the newest trades. */
export function paintTape(trades: readonly Trade[], position: StreamPosition | null): void {
  const shown = trades.slice(0, shownTrades);
  const list = rows(byId('trades'), shown.length, tapeRow);
  for (const [i, t] of shown.entries()) {
    const [price, qty, at] = list[i]?.children ?? [];
    if (!price || !qty || !at) continue;
    setText(price, grouped(t.price));
    setAttr(price, 'data-side', t.side);
    setAttr(price, 'aria-label', `${t.price}, ${t.side}`);
    setText(qty, grouped(t.qty));
    setText(at, clock(t.ts));
  }
  showPosition(byId('tape'), position);
  setText(byId('tape-note'), position ? `seq ${position.seq}` : '');
}

const svg = <K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>): SVGElementTagNameMap[K] => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
};

/** paintCurve draws the cumulative quantity of both sides over the price. */
export function paintCurve(book: Book): void {
  const stage = byId('curve') as unknown as SVGSVGElement;
  const { width, height } = stage.getBoundingClientRect();
  const [bids, asks] = [steps(book.bids()), steps(book.asks())];
  const [low, high] = [bids.at(-1), asks.at(-1)];
  stage.setAttribute('viewBox', `0 0 ${width} ${height}`);
  if (!low || !high || width === 0) {
    stage.replaceChildren();
    return;
  }
  const [from, to] = [Number(low.price), Number(high.price)];
  const deepest = larger(low.total, high.total);
  const floor = height - 22;
  const x = (price: string) => ((Number(price) - from) / (to - from || 1)) * width;
  const y = (total: Decimal) => floor - total.share(deepest) * (floor - 18);
  const path = (side: Step[], end: number): string => {
    let d = '';
    let last = floor;
    for (const s of side) {
      d += `${d ? 'L' : 'M'}${x(s.price).toFixed(1)} ${last.toFixed(1)}V${y(s.total).toFixed(1)}`;
      last = y(s.total);
    }
    return `${d}H${end}`;
  };
  const parts: SVGElement[] = [svg('line', { x1: 0, x2: width, y1: floor + 0.5, y2: floor + 0.5, class: 'axis' })];
  for (const [name, side, end] of [['buy', bids, 0], ['sell', asks, width]] as const) {
    const line = path(side, end);
    const first = side[0];
    if (!first) continue;
    parts.push(svg('path', { d: `${line}V${floor}H${x(first.price).toFixed(1)}Z`, class: `area-${name}` }), svg('path', { d: line, class: `line-${name}` }));
  }
  const label = (at: number, anchor: string, text: string, top = height - 7) => {
    const element = svg('text', { x: at, y: top, 'text-anchor': anchor });
    element.textContent = text;
    parts.push(element);
  };
  label(6, 'start', grouped(low.price));
  label(width - 6, 'end', grouped(high.price));
  const [bid, ask] = [bids[0], asks[0]];
  if (bid && ask) label((x(bid.price) + x(ask.price)) / 2, 'middle', middle(bid.price, ask.price));
  label(6, 'start', grouped(low.total.toString()), 13);
  label(width - 6, 'end', grouped(high.total.toString()), 13);
  stage.replaceChildren(...parts);
  setAttr(stage, 'aria-label', `Depth curve: ${low.total} bid from ${low.price}, ${high.total} asked up to ${high.price}`);
}
