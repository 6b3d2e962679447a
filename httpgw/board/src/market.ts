// Copies of the market data, built from the feed's messages.
import type { BookMessage, LevelText, Ticket, TicketsMessage, Trade, TradesMessage } from './messages.ts';

const table = new Uint32Array(256).map((_, n) => {
  let c = n;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});

/** crc32 returns the CRC-32 (IEEE 802.3) of ASCII text. */
export function crc32(text: string): number {
  let c = 0xffffffff;
  for (let i = 0; i < text.length; i++) c = (table[(c ^ text.charCodeAt(i)) & 0xff] ?? 0) ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

// Prices of a symbol have the same number of decimals and no leading zeros, so the longer
// text is the larger price.
const compare = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);

const digits = (decimal: string): string => decimal.replace('.', '').replace(/^0+/, '');

const checksumLevels = 10; // per side

/** StreamPosition says which state of a stream a panel shows. */
export interface StreamPosition {
  epoch: string;
  seq: number;
  ts: string;
}

/** Book is the order book of one symbol. Prices and quantities stay strings. */
export class Book {
  position: StreamPosition | null = null;
  readonly #bids = new Map<string, string>(); // quantity by price
  readonly #asks = new Map<string, string>();

  /** apply applies a message and reports whether the checksum matches. */
  apply(m: BookMessage): boolean {
    if (m.type === 'snapshot') {
      this.#bids.clear();
      this.#asks.clear();
    }
    for (const [side, levels] of [[this.#bids, m.bids], [this.#asks, m.asks]] as const) {
      for (const [price, qty] of levels) {
        if (qty === '0') side.delete(price);
        else side.set(price, qty);
      }
    }
    this.position = { epoch: m.epoch, seq: m.seq, ts: m.ts };
    return this.checksum() === m.checksum;
  }

  /** bids and asks are the levels, best first. */
  bids(): LevelText[] {
    return [...this.#bids].sort((a, b) => compare(b[0], a[0]));
  }

  asks(): LevelText[] {
    return [...this.#asks].sort((a, b) => compare(a[0], b[0]));
  }

  /** checksum is Kraken's CRC-32 of the ten best asks and bids. */
  checksum(): number {
    let text = '';
    for (const levels of [this.asks(), this.bids()]) {
      for (const [price, qty] of levels.slice(0, checksumLevels)) text += digits(price) + digits(qty);
    }
    return crc32(text);
  }
}

/** maxTrades bounds a tape; a snapshot has as many. */
export const maxTrades = 100;

/** Tape has the newest trades of one symbol, newest first. */
export class Tape {
  position: StreamPosition | null = null;
  trades: Trade[] = [];

  /** apply returns the trades that are new, oldest first. */
  apply(m: TradesMessage): Trade[] {
    const last = m.type === 'snapshot' ? 0 : (this.trades[0]?.trade_id ?? 0);
    const fresh = m.trades.filter((t) => t.trade_id > last);
    const kept = m.type === 'snapshot' ? [] : this.trades;
    this.trades = [...fresh.toReversed(), ...kept].slice(0, maxTrades);
    this.position = { epoch: m.epoch, seq: m.seq, ts: m.ts };
    return fresh;
  }
}

/** Tickets are the desk's tickets of all pairs. */
export class Tickets {
  readonly #byPair = new Map<string, Map<string, Ticket>>();

  apply(m: TicketsMessage): void {
    let pair = this.#byPair.get(m.symbol);
    if (!pair || m.type === 'snapshot') this.#byPair.set(m.symbol, (pair = new Map()));
    for (const t of m.tickets) pair.set(t.order_id, t);
    for (const id of m.gone ?? []) pair.delete(id);
  }

  find(id: string): Ticket | undefined {
    for (const pair of this.#byPair.values()) {
      const found = pair.get(id);
      if (found) return found;
    }
    return undefined;
  }

  /** open returns the open tickets, oldest first. */
  open(): Ticket[] {
    const all = [...this.#byPair.values()].flatMap((pair) => [...pair.values()]);
    return all.filter((t) => t.state === 'open').sort((a, b) => compare(a.order_id, b.order_id));
  }
}
