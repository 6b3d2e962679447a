// The WebSocket feed: it subscribes, resumes, detects gaps and reconnects. The handlers
// interpret the messages.
import type { Heartbeat, MarketMessage, Message } from './messages.ts';

export interface Link {
  up: boolean;
  /** Monotonic milliseconds of the last message, 0 before the first. */
  lastMessageAt: number;
  /** Monotonic milliseconds of the next attempt, while it is down. */
  retryAt: number;
  resumed: number;
  gaps: number;
  connections: number;
  /** The ts of the last market message, RFC 3339; empty before the first. */
  lastMarketTs: string;
}

interface Handlers {
  /** message applies a message; false requests a snapshot. */
  message(m: MarketMessage): boolean;
  link(): void;
}

interface Position {
  epoch: string;
  seq: number;
  /** A snapshot was requested; updates before it are ignored. */
  waiting: boolean;
  /** Heartbeats since the request. */
  waited: number;
  /** A seq that a heartbeat named and that has not arrived; 0 = none. */
  missing: number;
}

const firstRetry = 250; // ms, doubled each time
const lastRetry = 8_000;
const silence = 5_000; // ms without a heartbeat: the connection is dead
const openWithin = 5_000;
const watchEvery = 500;
const patience = 3; // heartbeats that a snapshot may take
const maxGaps = 8; // since the last good heartbeat; below the service's limit for abuse

export class Feed {
  readonly link: Link = { up: false, lastMessageAt: 0, retryAt: 0, resumed: 0, gaps: 0, connections: 0, lastMarketTs: '' };
  #socket: WebSocket | null = null;
  #openedAt = 0;
  #failures = 0;
  #retry = 0; // timer of the next attempt
  #gapsInRow = 0; // gaps since the last good heartbeat
  #started = false;
  #followed = ''; // symbol whose book and trades are subscribed; empty = none
  readonly #positions = new Map<string, Position>(); // by channel:symbol

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
   * follow subscribes to the book and the trades of a symbol, or of none if it is empty,
   * and unsubscribes those of the last one. The first call also opens the connection.
   */
  follow(symbol: string): void {
    if (symbol === this.#followed && this.#started) return;
    const old = this.#followed;
    [this.#followed, this.#started] = [symbol, true];
    for (const channel of ['l2', 'trades']) this.#positions.delete(`${channel}:${old}`);
    if (!this.#socket) this.#open();
    else if (this.link.up) {
      if (old) this.#send({ action: 'UNSUBSCRIBE_MARKET', channels: ['l2', 'trades'], symbols: [old] });
      if (symbol) this.#subscribeTo(['l2', 'trades'], [symbol]);
    }
  }

  #open(): void {
    let socket: WebSocket;
    try {
      socket = new WebSocket(this.url);
    } catch (error) {
      console.warn(`no connection to ${this.url}:`, error); // an https page may not open ws://
      this.#retryLater();
      return;
    }
    this.#socket = socket;
    this.#openedAt = performance.now();
    socket.onopen = () => this.#subscribe();
    socket.onmessage = (event) => this.#receive(socket, String(event.data));
    socket.onclose = () => this.#closed(socket);
  }

  #subscribe(): void {
    this.link.connections++;
    this.#subscribeTo(['ticker', 'tickets'], this.symbols);
    if (this.#followed) this.#subscribeTo(['l2', 'trades'], [this.#followed]);
  }

  // subscribeTo subscribes and resumes from the stored positions, which are all of one
  // epoch. A service that has restarted ignores them and sends snapshots.
  #subscribeTo(channels: readonly string[], symbols: readonly string[]): void {
    const resume: Record<string, string | number> = {};
    for (const key of channels.flatMap((channel) => symbols.map((symbol) => `${channel}:${symbol}`))) {
      const at = this.#positions.get(key);
      if (at && !at.waiting && !key.startsWith('ticker:')) Object.assign(resume, { epoch: at.epoch, [key]: at.seq });
    }
    this.#send({
      action: 'SUBSCRIBE_MARKET', channels, symbols, depth: this.depth, heartbeat: true, ...('epoch' in resume ? { resume } : {}),
    });
  }

  #send(value: object): void {
    this.#socket?.send(JSON.stringify(value));
  }

  // receive handles a message; an unreadable one closes the connection.
  #receive(socket: WebSocket, text: string): void {
    if (socket !== this.#socket) return;
    try {
      this.#handle(text);
    } catch (error) {
      console.error('unreadable message:', text.slice(0, 200), error);
      this.link.gaps++;
      this.#positions.clear();
      this.#drop();
    }
  }

  #handle(text: string): void {
    this.link.lastMessageAt = performance.now();
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
        this.#checkHeartbeat(m);
        break;
      case 'control':
        if ('subscribed' in m) this.#countResumed(m.subscribed as { resumed?: boolean }[]);
        break;
      case 'status':
        break;
    }
  }

  #countResumed(subscribed: { resumed?: boolean }[]): void {
    this.link.resumed += subscribed.filter((s) => s.resumed).length;
  }

  #market(m: MarketMessage): void {
    this.link.lastMarketTs = m.ts;
    const key = `${m.channel}:${m.symbol}`;
    const detail = m.channel === 'l2' || m.channel === 'trades';
    if (detail && m.symbol !== this.#followed) return; // sent before the service had processed the unsubscribe
    const at = this.#positions.get(key);
    if (m.channel !== 'ticker' && m.type === 'update') {
      if (!at || at.waiting) return;
      if (m.epoch !== at.epoch || m.prev_seq !== at.seq) {
        this.#resync(m.channel, m.symbol, at);
        return;
      }
    }
    this.#positions.set(key, { epoch: m.epoch, seq: m.seq, waiting: false, waited: 0, missing: 0 });
    if (!this.handlers.message(m)) this.#resync(m.channel, m.symbol, this.#positions.get(key));
  }

  // resync requests a snapshot after a gap. After too many gaps in a row it closes the
  // connection; the next one starts from snapshots.
  #resync(channel: string, symbol: string, at: Position | undefined): void {
    this.link.gaps++;
    if (at) Object.assign(at, { waiting: true, waited: 0 });
    if (++this.#gapsInRow > maxGaps) this.#drop();
    else this.#send({ action: 'RESYNC', channels: [channel], symbols: [symbol] });
    this.handlers.link();
  }

  // checkHeartbeat compares the heartbeat's seqs with ours. A newer message may still be
  // in transit, so it is missing only if the next heartbeat does not find it either.
  #checkHeartbeat(m: Heartbeat): void {
    let well = true;
    for (const [key, at] of this.#positions) {
      const seq = m.seqs[key] ?? 0;
      const late = at.waiting ? ++at.waited >= patience : at.missing > at.seq && !key.startsWith('ticker:');
      well &&= !at.waiting && !late;
      if (late) {
        const colon = key.indexOf(':');
        this.#resync(key.slice(0, colon), key.slice(colon + 1), at);
      } else at.missing = seq > at.seq ? seq : 0;
    }
    if (well) [this.#failures, this.#gapsInRow] = [0, 0];
  }

  #closed(socket: WebSocket): void {
    if (socket !== this.#socket) return;
    this.#socket = null;
    this.#gapsInRow = 0;
    this.#retryLater();
  }

  // retryLater schedules the next attempt with exponential backoff.
  #retryLater(): void {
    const wait = Math.min(lastRetry, firstRetry * 2 ** this.#failures++) * (0.5 + Math.random() / 2);
    this.link.up = false;
    this.link.retryAt = performance.now() + wait;
    this.handlers.link();
    window.clearTimeout(this.#retry);
    this.#retry = window.setTimeout(() => this.#retryNow(), wait);
  }

  #retryNow(): void {
    if (!this.#socket && this.#started) this.#open();
  }

  // watch closes a connection that does not open or stays silent: some networks drop
  // connections without closing them.
  #watch(): void {
    const socket = this.#socket;
    if (!socket) return;
    const now = performance.now();
    const dead = this.link.up ? now - this.link.lastMessageAt > silence : now - this.#openedAt > openWithin;
    if (dead) this.#drop();
  }

  // drop closes a connection without waiting for the close handshake.
  #drop(): void {
    const socket = this.#socket;
    if (!socket) return;
    socket.close();
    this.#closed(socket);
  }
}
