// The order book as rows with cumulative bars, and the trades.
import { Decimal, grouped } from './decimal.ts';
import { clock, create, setAttr, byId, rows, setText } from './dom.ts';
import type { Book, StreamPosition } from './market.ts';
import type { LevelText, Symbol, Trade } from './messages.ts';

const maxLevels = 40; // rows per side; the book has more
const minLevels = 5;

// fitting returns how many rows per side fit, so that the middle stays visible.
function fitting(): number {
  const table = byId('book');
  const row = byId('bids').firstElementChild?.getBoundingClientRect().height ?? 0;
  const rest = (table.querySelector('thead')?.clientHeight ?? 0) + (table.querySelector('.spread')?.clientHeight ?? 0);
  const room = row > 0 ? Math.floor(((table.parentElement?.clientHeight ?? 0) - rest) / 2 / row) : 0;
  return Math.max(minLevels, Math.min(maxLevels, room));
}

/** Step is a level with the quantity up to it. */
export interface Step {
  price: string;
  qty: string;
  total: Decimal;
}

/** steps adds up the quantities of levels, best first. */
export function steps(levels: LevelText[]): Step[] {
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

/**
 * group joins levels, best first, to steps of 10^-scale. Prices are rounded away from the
 * middle, so that a group never looks better than its levels.
 */
export function group(levels: LevelText[], scale: number, up: boolean): LevelText[] {
  const joined = new Map<string, Decimal>();
  for (const [price, qty] of levels) {
    const at = rounded(Decimal.parse(price), scale, up).toString();
    joined.set(at, (joined.get(at) ?? Decimal.zero).plus(Decimal.parse(qty)));
  }
  return [...joined].map(([price, qty]) => [price, qty.toString()]);
}

// rounded rounds to a scale, which may be negative: -1 is tens.
function rounded(d: Decimal, scale: number, up: boolean): Decimal {
  if (scale >= 0) return d.rounded(scale, up);
  const step = new Decimal(10n ** BigInt(-scale), 0);
  const down = d.over(step, 0);
  const exact = down.times(step).compare(d) === 0;
  return (up && !exact ? down.plus(new Decimal(1n, 0)) : down).times(step);
}

const steepest = 5; // groupings beyond the finest

/** groupings fills the select of groupings for a symbol, and returns the chosen scale. */
export function groupings(symbol: Symbol): number {
  const select = byId<HTMLSelectElement>('book-group');
  if (select.dataset.symbol !== symbol.symbol) {
    select.dataset.symbol = symbol.symbol;
    const scales = Array.from({ length: steepest }, (_, i) => symbol.price_decimals - i);
    select.replaceChildren(...scales.map((s) => create('option', { value: String(s) }, s >= 0 ? new Decimal(1n, s).toString() : String(10 ** -s))));
  }
  return Number(select.value);
}

/** places returns how many decimals of quantities are worth showing. */
export function places(quantities: readonly string[], most: number): number {
  const largest = quantities.reduce((digits, qty) => Math.max(digits, qty.replace(/\..*/, '').replace(/^0+/, '').length), 0);
  return Math.min(most, largest > 4 ? 0 : largest > 1 ? 2 : largest > 0 ? 3 : most);
}

/** brief shows a quantity with fewer decimals; the exact one stays in the element. */
export function brief(element: HTMLElement, exact: string, decimals: number): void {
  const shown = Decimal.parse(exact).rounded(decimals);
  setText(element, shown.units === 0n && /[1-9]/.test(exact) ? `<${new Decimal(1n, decimals)}` : grouped(shown.toString()));
  if (element.dataset.exact !== exact) {
    element.dataset.exact = exact;
    element.title = exact;
  }
}

const bookRow = () => create('tr', {}, create('td'), create('td', { class: 'n' }), create('td', { class: 'n soft' }), create('td', { class: 'share', 'aria-hidden': 'true' }, create('i')));

function paintSide(parent: HTMLElement, side: Step[], deepest: Decimal, decimals: number): void {
  const list = rows(parent, side.length, bookRow);
  for (const [i, step] of side.entries()) {
    const row = list[i];
    if (!row) continue;
    const [price, qty, total] = row.children;
    if (!price || !qty || !total) continue;
    setText(price, grouped(step.price));
    brief(qty as HTMLElement, step.qty, decimals);
    brief(total as HTMLElement, step.total.toString(), decimals);
    row.style.setProperty('--share', step.total.share(deepest).toFixed(4));
  }
}

const larger = (a: Decimal, b: Decimal): Decimal => (a.compare(b) > 0 ? a : b);

/** paintBook paints the order book with the best prices in the middle. */
export function paintBook(book: Book, symbol: Symbol): void {
  const count = fitting();
  const scale = groupings(symbol);
  const finest = scale === symbol.price_decimals;
  const grouping = (levels: LevelText[], up: boolean) => (finest ? levels : group(levels, scale, up));
  const [bids, asks] = [steps(grouping(book.bids(), false)).slice(0, count), steps(grouping(book.asks(), true)).slice(0, count)];
  const decimals = places([...bids, ...asks].map((s) => s.qty), symbol.qty_decimals);
  const deepest = larger(bids.at(-1)?.total ?? Decimal.zero, asks.at(-1)?.total ?? Decimal.zero);
  paintSide(byId('asks'), asks.toReversed(), deepest, decimals);
  paintSide(byId('bids'), bids, deepest, decimals);
  const [[bidText], [askText]] = [book.bids(), book.asks()];
  const [bid, ask] = [bidText && { price: bidText[0] }, askText && { price: askText[0] }];
  setText(byId('mid'), bid && ask ? middle(bid.price, ask.price) : 'no middle');
  setText(byId('spread'), bid && ask ? spread(bid.price, ask.price) : '');
  setText(byId('book-quote'), symbol.quote);
  setText(byId('book-base'), symbol.base);
  showPosition(byId('book'), book.position);
  setText(byId('book-note'), book.position ? `${symbol.book_source} · seq ${book.position.seq}` : '');
}

const half = new Decimal(5n, 1);

/** middle returns the middle of two prices. */
export function middle(bid: string, ask: string): string {
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
export function paintTape(trades: readonly Trade[], position: StreamPosition | null, symbol: Symbol): void {
  const shown = trades.slice(0, shownTrades);
  const decimals = places(shown.map((t) => t.qty), symbol.qty_decimals);
  const list = rows(byId('trades'), shown.length, tapeRow);
  for (const [i, t] of shown.entries()) {
    const [price, qty, at] = list[i]?.children ?? [];
    if (!price || !qty || !at) continue;
    setText(price, grouped(t.price));
    setAttr(price, 'data-side', t.side);
    setAttr(price, 'aria-label', `${t.price}, ${t.side}`);
    brief(qty as HTMLElement, t.qty, decimals);
    setText(at, clock(t.ts));
  }
  showPosition(byId('tape'), position);
  setText(byId('tape-note'), position ? `seq ${position.seq}` : '');
}
