// The WebSocket: it subscribes, resumes where it was, sees gaps, and comes back
// by itself. What a message means is its handler's matter.
import type { Heartbeat, MarketMessage, Message } from './messages.ts';

export interface Link {
  up: boolean;
  /** Monotonic milliseconds of the last message, 0 before the first. */
  heardAt: number;
  /** Monotonic milliseconds of the next try, while it is down. */
  retryAt: number;
  resumed: number;
  gaps: number;
  connections: number;
}

interface Handlers {
  /** message takes what fits; false asks for a fresh snapshot. */
  message(m: MarketMessage): boolean;
  link(): void;
}

interface Position {
  epoch: string;
  seq: number;
  /** A snapshot has been asked for: updates until then are not for us. */
  waiting: boolean;
  /** The number that a heartbeat has named and we have not seen. */
  missing: number;
}

const firstRetry = 250; // ms, doubled each time
const lastRetry = 8_000;
const silence = 5_000; // ms without a heartbeat: the connection is dead
const openWithin = 5_000;
const watchEvery = 500;

export class Feed {
  readonly link: Link = { up: false, heardAt: 0, retryAt: 0, resumed: 0, gaps: 0, connections: 0 };
  #socket: WebSocket | null = null;
  #openedAt = 0;
  #failures = 0;
  #detail = ''; // the symbol whose book and trades are followed
  readonly #at = new Map<string, Position>(); // by channel:symbol

  constructor(
    readonly url: string,
    readonly symbols: readonly string[],
    readonly depth: number,
    readonly handlers: Handlers,
  ) {
    window.setInterval(() => this.#watch(), watchEvery);
    window.addEventListener('online', () => this.#retryNow());
  }

  /** follow begins the book and the trades of a symbol, and ends those of the last one. */
  follow(symbol: string): void {
    if (symbol === this.#detail) return;
    const old = this.#detail;
    this.#detail = symbol;
    for (const channel of ['l2', 'trades']) this.#at.delete(`${channel}:${old}`);
    if (!this.#socket) this.#open();
    else if (this.link.up) {
      if (old) this.#send({ action: 'UNSUBSCRIBE_MARKET', channels: ['l2', 'trades'], symbols: [old] });
      this.#begin(['l2', 'trades'], [symbol]);
    }
  }

  #open(): void {
    const socket = new WebSocket(this.url);
    this.#socket = socket;
    this.#openedAt = performance.now();
    socket.onopen = () => this.#subscribe();
    socket.onmessage = (event) => this.#take(String(event.data));
    socket.onclose = () => this.#closed(socket);
  }

  #subscribe(): void {
    this.link.connections++;
    this.#begin(['ticker', 'tickets'], this.symbols);
    this.#begin(['l2', 'trades'], [this.#detail]);
  }

  // begin subscribes, from where we are. All that is kept is of one epoch: a
  // service that has started anew sends snapshots, whatever we say.
  #begin(channels: readonly string[], symbols: readonly string[]): void {
    const resume: Record<string, string | number> = {};
    for (const key of channels.flatMap((channel) => symbols.map((symbol) => `${channel}:${symbol}`))) {
      const at = this.#at.get(key);
      if (at && !at.waiting && !key.startsWith('ticker:')) Object.assign(resume, { epoch: at.epoch, [key]: at.seq });
    }
    this.#send({
      action: 'SUBSCRIBE_MARKET', channels, symbols, depth: this.depth, heartbeat: true, ...('epoch' in resume ? { resume } : {}),
    });
  }

  #send(value: object): void {
    this.#socket?.send(JSON.stringify(value));
  }

  #take(text: string): void {
    this.link.heardAt = performance.now();
    const m = JSON.parse(text) as Message;
    if (!this.link.up) {
      this.link.up = true;
      this.#failures = 0;
      this.handlers.link();
    }
    switch (m.channel) {
      case 'l2':
      case 'trades':
      case 'ticker':
      case 'tickets':
        this.#market(m);
        break;
      case 'heartbeat':
        this.#hold(m);
        break;
      case 'control':
        if ('subscribed' in m) this.#count(m.subscribed as { resumed?: boolean }[]);
        break;
      case 'status':
        break;
    }
  }

  #count(subscribed: { resumed?: boolean }[]): void {
    this.link.resumed += subscribed.filter((s) => s.resumed).length;
  }

  #market(m: MarketMessage): void {
    const key = `${m.channel}:${m.symbol}`;
    const detail = m.channel === 'l2' || m.channel === 'trades';
    if (detail && m.symbol !== this.#detail) return; // sent before it knew
    const at = this.#at.get(key);
    if (m.channel !== 'ticker' && m.type === 'update') {
      if (!at || at.waiting) return;
      if (m.epoch !== at.epoch || m.prev_seq !== at.seq) {
        this.#lost(m.channel, m.symbol, at);
        return;
      }
    }
    this.#at.set(key, { epoch: m.epoch, seq: m.seq, waiting: false, missing: 0 });
    if (!this.handlers.message(m)) this.#lost(m.channel, m.symbol, this.#at.get(key));
  }

  // lost asks for a snapshot of what does not fit.
  #lost(channel: string, symbol: string, at: Position | undefined): void {
    this.link.gaps++;
    if (at) at.waiting = true;
    this.#send({ action: 'RESYNC', channels: [channel], symbols: [symbol] });
    this.handlers.link();
  }

  // hold compares the heartbeat's numbers with ours. What is on its way may be
  // newer than what is here: it is lost only if the next heartbeat misses it too.
  #hold(m: Heartbeat): void {
    for (const [key, seq] of Object.entries(m.seqs)) {
      const at = this.#at.get(key);
      if (!at || at.waiting || key.startsWith('ticker:')) continue;
      if (at.missing > at.seq) {
        const colon = key.indexOf(':');
        this.#lost(key.slice(0, colon), key.slice(colon + 1), at);
      } else at.missing = seq > at.seq ? seq : 0;
    }
  }

  #closed(socket: WebSocket): void {
    if (socket !== this.#socket) return;
    this.#socket = null;
    const wait = Math.min(lastRetry, firstRetry * 2 ** this.#failures++) * (0.5 + Math.random() / 2);
    this.link.up = false;
    this.link.retryAt = performance.now() + wait;
    this.handlers.link();
    window.setTimeout(() => this.#retryNow(), wait);
  }

  #retryNow(): void {
    if (!this.#socket && this.#detail) this.#open();
  }

  // watch ends a connection that does not open, or says nothing: some networks
  // drop one without a word.
  #watch(): void {
    const socket = this.#socket;
    if (!socket) return;
    const now = performance.now();
    const dead = this.link.up ? now - this.link.heardAt > silence : now - this.#openedAt > openWithin;
    if (!dead) return;
    socket.close();
    this.#closed(socket);
  }
}
