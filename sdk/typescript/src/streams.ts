import { Book, GapError, MismatchError, OrdersBook, follow } from './book.js';
import type { RfqTrade, Ticket } from './generated/schemas.js';
import type { BookMessage, Channel, MarketMessage, OrdersMessage, RfqTradesMessage, TickerMessage, TicketsMessage, Trade, TradesMessage } from './messages.js';

/** Prints is what a trades message has brought. */
export interface Prints<T = Trade> {
  readonly symbol: string;
  /** Oldest first, each once. */
  readonly trades: readonly T[];
  /** Whether they come of a snapshot: the first one has up to 100 trades from before. */
  readonly snapshot: boolean;
  /**
   * Where trades may be missing, because a snapshot begins later than the last
   * one ended: GET /api/v1/market/trades (of the desk's sales:
   * /api/v1/rfq/trades) with `before` has those with an id between the two.
   */
  readonly hole: { readonly after: number; readonly before: number } | null;
}

/** Tape numbers the trades, or the desk's sales, of one symbol. */
class Tape<T extends { readonly trade_id: number }> {
  readonly symbol: string;
  epoch = '';
  seq = 0;
  #last = 0; // trade_id
  #begun = false;

  constructor(symbol: string) {
    this.symbol = symbol;
  }

  /** apply returns what is new. It throws GapError or MismatchError. */
  apply(m: TradesMessage | RfqTradesMessage, all: readonly T[]): Prints<T> {
    if (m.type === 'update') follow(m, this);
    else if (m.epoch !== this.epoch && (all.at(-1)?.trade_id ?? 0) < this.#last) this.#begin(); // a desk restored from before
    const before = this.#last;
    const trades = all.filter((t) => t.trade_id > before);
    if (m.type === 'update' && trades.length < all.length) {
      throw new MismatchError(`trades ${m.symbol} ${m.seq}: a trade that was there before`);
    }
    let last = before;
    for (const { trade_id } of trades) {
      if (trade_id <= last) throw new MismatchError(`trades ${m.symbol} ${m.seq}: ${trade_id} after ${last}`);
      last = trade_id;
    }
    this.#last = last;
    const first = all[0]?.trade_id ?? 0;
    const hole = this.#begun && m.type === 'snapshot' && first > before ? { after: before, before: first } : null;
    [this.epoch, this.seq, this.#begun] = [m.epoch, m.seq, true];
    return { symbol: this.symbol, trades, snapshot: m.type === 'snapshot', hole };
  }

  #begin(): void {
    [this.#last, this.#begun] = [0, false];
  }
}

/** TicketBoard is the desk's tickets of one pair. */
export class TicketBoard {
  readonly symbol: string;
  #epoch = '';
  #seq = 0;
  #tickets = new Map<string, Ticket>();

  constructor(symbol: string) {
    this.symbol = symbol;
  }

  get epoch(): string { return this.#epoch; }
  get seq(): number { return this.#seq; }
  /** By order_id. */
  get tickets(): ReadonlyMap<string, Ticket> { return this.#tickets; }

  /** apply takes one message. It throws GapError or MismatchError. */
  apply(m: TicketsMessage): void {
    if (m.type === 'snapshot') this.#tickets = new Map();
    else follow(m, this);
    [this.#epoch, this.#seq] = [m.epoch, m.seq];
    for (const ticket of m.tickets) this.#tickets.set(ticket.order_id, ticket);
    for (const id of m.gone ?? []) {
      if (!this.#tickets.delete(id)) throw new MismatchError(`tickets ${m.symbol} ${m.seq}: ${id} is gone and was not there`);
    }
  }
}

/** Change is what a message has changed. */
export type Change =
  | { readonly kind: 'book'; readonly book: Book }
  | { readonly kind: 'orders'; readonly orders: OrdersBook }
  | { readonly kind: 'trades'; readonly prints: Prints }
  | { readonly kind: 'ticker'; readonly ticker: TickerMessage }
  | { readonly kind: 'tickets'; readonly board: TicketBoard }
  | { readonly kind: 'rfq_trades'; readonly prints: Prints<RfqTrade> }
  | { readonly kind: 'gap'; readonly stream: StreamName; readonly error: GapError | MismatchError };

/** StreamName is a channel of a symbol. */
export interface StreamName {
  readonly channel: Channel;
  readonly symbol: string;
}

interface Stream extends StreamName {
  /** Whether the copy is the desk's; false: it waits for a snapshot. */
  whole: boolean;
  /** What the last heartbeat said of it. */
  promised: number;
  /** Heartbeats that have found it waiting for its snapshot. */
  waited: number;
  state: { readonly epoch: string; readonly seq: number };
  take(m: MarketMessage): Change;
}

function open({ channel, symbol }: StreamName, depth: number): Stream {
  const waiting = { channel, symbol, whole: false, promised: 0, waited: 0 };
  switch (channel) {
    case 'l2': {
      const state = new Book(symbol, depth);
      return { ...waiting, state, take: (m) => (state.apply(m as BookMessage), { kind: 'book', book: state }) };
    }
    case 'l3': {
      const state = new OrdersBook(symbol);
      return { ...waiting, state, take: (m) => (state.apply(m as OrdersMessage), { kind: 'orders', orders: state }) };
    }
    case 'trades': {
      const state = new Tape<Trade>(symbol);
      return { ...waiting, state, take: (m) => ({ kind: 'trades', prints: state.apply(m as TradesMessage, (m as TradesMessage).trades) }) };
    }
    case 'rfq_trades': {
      const state = new Tape<RfqTrade>(symbol);
      return { ...waiting, state, take: (m) => ({ kind: 'rfq_trades', prints: state.apply(m as RfqTradesMessage, (m as RfqTradesMessage).rfq_trades) }) };
    }
    case 'tickets': {
      const state = new TicketBoard(symbol);
      return { ...waiting, state, take: (m) => (state.apply(m as TicketsMessage), { kind: 'tickets', board: state }) };
    }
    case 'ticker': {
      const stream: Stream = { ...waiting, state: { epoch: '', seq: 0 }, take };
      function take(m: MarketMessage): Change {
        stream.state = m;
        return { kind: 'ticker', ticker: m as TickerMessage };
      }
      return stream;
    }
  }
}

const patience = 3; // heartbeats that a snapshot may take

const nameOf = (channel: string, symbol: string): string => `${channel}:${symbol}`;

/**
 * Streams is the copy of all that is followed, whichever way the messages come.
 * It holds each stream to its chain of numbers, to its checksums and to the
 * heartbeats. It does no input or output: pure but for its state.
 */
export class Streams {
  readonly depth: number;
  readonly #streams = new Map<string, Stream>();

  constructor(depth: number) {
    this.depth = depth;
  }

  /** follow adds streams; those that are there stay as they are. */
  follow(names: Iterable<StreamName>): void {
    for (const name of names) {
      const key = nameOf(name.channel, name.symbol);
      if (!this.#streams.has(key)) this.#streams.set(key, open(name, this.depth));
    }
  }

  /** forget leaves streams out from now on. */
  forget(names: Iterable<StreamName>): void {
    for (const { channel, symbol } of names) this.#streams.delete(nameOf(channel, symbol));
  }

  /** names are what is followed. */
  get names(): StreamName[] {
    return [...this.#streams.values()].map(({ channel, symbol }) => ({ channel, symbol }));
  }

  /** whole reports whether every copy is the desk's. */
  get whole(): boolean {
    return [...this.#streams.values()].every((s) => s.whole);
  }

  /** book returns the order book of a symbol, if it is followed. */
  book(symbol: string): Book | undefined {
    const state = this.#streams.get(nameOf('l2', symbol))?.state;
    return state instanceof Book ? state : undefined;
  }

  /** orders returns the orders of a symbol, if they are followed. */
  orders(symbol: string): OrdersBook | undefined {
    const state = this.#streams.get(nameOf('l3', symbol))?.state;
    return state instanceof OrdersBook ? state : undefined;
  }

  /** board returns the tickets of a pair, if they are followed. */
  board(symbol: string): TicketBoard | undefined {
    const state = this.#streams.get(nameOf('tickets', symbol))?.state;
    return state instanceof TicketBoard ? state : undefined;
  }

  /** resume is where each stream is, for a subscription that goes on from there; undefined where none can. */
  resume(): Record<string, string | number> | undefined {
    const able = [...this.#streams.values()].filter((s) => s.whole && s.channel !== 'ticker');
    const epoch = able[0]?.state.epoch;
    if (epoch === undefined) return undefined;
    const points = able.filter((s) => s.state.epoch === epoch).map((s) => [nameOf(s.channel, s.symbol), s.state.seq] as const);
    return { epoch, ...Object.fromEntries(points) };
  }

  /**
   * take takes one message: null where it changes nothing, being of a stream that
   * waits for its snapshot, or repeated as server-sent events may.
   */
  take(m: MarketMessage): Change | null {
    const stream = this.#streams.get(nameOf(m.channel, m.symbol));
    if (stream === undefined || (!stream.whole && m.type !== 'snapshot')) return null;
    if (m.type === 'update' && m.epoch === stream.state.epoch && m.seq <= stream.state.seq) return null;
    try {
      const change = stream.take(m);
      stream.whole = true;
      return change;
    } catch (error) {
      if (error instanceof GapError || error instanceof MismatchError) return this.#lose(stream, error);
      throw error;
    }
  }

  /**
   * heartbeat finds the streams whose last messages were lost, which no later message
   * shows: those that have not reached the numbers of the heartbeat before, and
   * those whose snapshot does not come.
   */
  heartbeat(seqs: Readonly<Record<string, number>>): Change[] {
    const lost: Change[] = [];
    for (const [name, s] of this.#streams) {
      if (s.whole && s.state.seq < s.promised) {
        lost.push(this.#lose(s, new GapError(`${s.channel} ${s.symbol}: at ${s.state.seq}, the desk was at ${s.promised}`)));
      } else if (!s.whole && ++s.waited >= patience) {
        lost.push(this.#lose(s, new GapError(`${s.channel} ${s.symbol}: no snapshot came`)));
      }
      s.promised = Object.hasOwn(seqs, name) ? seqs[name]! : 0;
    }
    return lost;
  }

  /** reconnected forgets what heartbeats of another connection have said. */
  reconnected(): void {
    for (const s of this.#streams.values()) s.promised = s.waited = 0;
  }

  /** restart lets every stream wait for a snapshot. */
  restart(): void {
    for (const s of this.#streams.values()) s.whole = false;
  }

  #lose(stream: Stream, error: GapError | MismatchError): Change {
    [stream.whole, stream.waited] = [false, 0];
    return { kind: 'gap', stream: { channel: stream.channel, symbol: stream.symbol }, error };
  }
}
