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
  /** The service's time of the last message of the market, RFC 3339; empty before it. */
  lastWord: string;
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
  /** Heartbeats since then. */
  waited: number;
  /** The number that a heartbeat has named and we have not seen. */
  missing: number;
}

const firstRetry = 250; // ms, doubled each time
const lastRetry = 8_000;
const silence = 5_000; // ms without a heartbeat: the connection is dead
const openWithin = 5_000;
const watchEvery = 500;
const patience = 3; // heartbeats that a snapshot may take
const mostGaps = 8; // since a heartbeat found all well: fewer than the service takes for abuse

export class Feed {
  readonly link: Link = { up: false, heardAt: 0, retryAt: 0, resumed: 0, gaps: 0, connections: 0, lastWord: '' };
  #socket: WebSocket | null = null;
  #openedAt = 0;
  #failures = 0;
  #retry = 0; // the timer of the next try
  #strikes = 0; // gaps since a heartbeat found all well
  #begun = false;
  #detail = ''; // the symbol whose book and trades are followed; empty: of none
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

  /**
   * follow begins the book and the trades of a symbol, and ends those of the last one.
   * Without a symbol there are none. The first time begins the rest too.
   */
  follow(symbol: string): void {
    if (symbol === this.#detail && this.#begun) return;
    const old = this.#detail;
    [this.#detail, this.#begun] = [symbol, true];
    for (const channel of ['l2', 'trades']) this.#at.delete(`${channel}:${old}`);
    if (!this.#socket) this.#open();
    else if (this.link.up) {
      if (old) this.#send({ action: 'UNSUBSCRIBE_MARKET', channels: ['l2', 'trades'], symbols: [old] });
      if (symbol) this.#begin(['l2', 'trades'], [symbol]);
    }
  }

  #open(): void {
    let socket: WebSocket;
    try {
      socket = new WebSocket(this.url);
    } catch (error) {
      console.warn(`no connection to ${this.url}:`, error); // a page of TLS may not go to plain text
      this.#later();
      return;
    }
    this.#socket = socket;
    this.#openedAt = performance.now();
    socket.onopen = () => this.#subscribe();
    socket.onmessage = (event) => this.#hear(socket, String(event.data));
    socket.onclose = () => this.#closed(socket);
  }

  #subscribe(): void {
    this.link.connections++;
    this.#begin(['ticker', 'tickets'], this.symbols);
    if (this.#detail) this.#begin(['l2', 'trades'], [this.#detail]);
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

  // hear takes a message; one that cannot be read ends the connection.
  #hear(socket: WebSocket, text: string): void {
    if (socket !== this.#socket) return;
    try {
      this.#take(text);
    } catch (error) {
      console.error('a message that is none of the service:', text.slice(0, 200), error);
      this.link.gaps++;
      this.#at.clear();
      this.#drop();
    }
  }

  #take(text: string): void {
    this.link.heardAt = performance.now();
    const m = JSON.parse(text) as Message;
    if (!this.link.up) {
      this.link.up = true;
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
    this.link.lastWord = m.ts;
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
    this.#at.set(key, { epoch: m.epoch, seq: m.seq, waiting: false, waited: 0, missing: 0 });
    if (!this.handlers.message(m)) this.#lost(m.channel, m.symbol, this.#at.get(key));
  }

  // lost asks for a snapshot of what does not fit. What that does not mend, time and
  // again, is left with its connection: the next one begins anew, and later each time.
  #lost(channel: string, symbol: string, at: Position | undefined): void {
    this.link.gaps++;
    if (at) Object.assign(at, { waiting: true, waited: 0 });
    if (++this.#strikes > mostGaps) this.#drop();
    else this.#send({ action: 'RESYNC', channels: [channel], symbols: [symbol] });
    this.handlers.link();
  }

  // hold compares the heartbeat's numbers with ours. What is on its way may be
  // newer than what is here: it is lost only if the next heartbeat misses it too.
  #hold(m: Heartbeat): void {
    let well = true;
    for (const [key, at] of this.#at) {
      const seq = m.seqs[key] ?? 0;
      const late = at.waiting ? ++at.waited >= patience : at.missing > at.seq && !key.startsWith('ticker:');
      well &&= !at.waiting && !late;
      if (late) {
        const colon = key.indexOf(':');
        this.#lost(key.slice(0, colon), key.slice(colon + 1), at);
      } else at.missing = seq > at.seq ? seq : 0;
    }
    if (well) [this.#failures, this.#strikes] = [0, 0];
  }

  #closed(socket: WebSocket): void {
    if (socket !== this.#socket) return;
    this.#socket = null;
    this.#strikes = 0;
    this.#later();
  }

  // later tries again, later each time.
  #later(): void {
    const wait = Math.min(lastRetry, firstRetry * 2 ** this.#failures++) * (0.5 + Math.random() / 2);
    this.link.up = false;
    this.link.retryAt = performance.now() + wait;
    this.handlers.link();
    window.clearTimeout(this.#retry);
    this.#retry = window.setTimeout(() => this.#retryNow(), wait);
  }

  #retryNow(): void {
    if (!this.#socket && this.#begun) this.#open();
  }

  // watch ends a connection that does not open, or says nothing: some networks
  // drop one without a word.
  #watch(): void {
    const socket = this.#socket;
    if (!socket) return;
    const now = performance.now();
    const dead = this.link.up ? now - this.link.heardAt > silence : now - this.#openedAt > openWithin;
    if (dead) this.#drop();
  }

  // drop ends a connection without waiting for its goodbye.
  #drop(): void {
    const socket = this.#socket;
    if (!socket) return;
    socket.close();
    this.#closed(socket);
  }
}
