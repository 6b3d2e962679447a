import { ProtocolError, TransportError } from './errors.js';
import { Follower, product, type FollowOptions } from './follower.js';
import { decodeMessage, type Channel } from './messages.js';
import type { StreamName } from './streams.js';

/** Socket is what is needed of a WebSocket: each platform has its own types of the events. */
export interface Socket {
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  send(text: string): void;
  close(): void;
}

/** SocketClass is a WebSocket's, as browsers have it. */
export type SocketClass = new (url: string) => Socket;

/** FeedOptions are a Feed's. */
export interface FeedOptions extends FollowOptions {
  /** In place of the global WebSocket, or, where there is none, of the package ws. */
  readonly WebSocket?: SocketClass;
}

const maxMessage = 16 << 20; // characters
const maxRequest = 100; // symbols of a request

/** Feed follows the market over the WebSocket. */
export class Feed extends Follower {
  readonly #Socket: SocketClass | undefined;
  #socket: Socket | null = null; // one that is open
  #requests = 0;

  constructor({ WebSocket: socketClass, ...options }: FeedOptions) {
    super(options);
    this.#Socket = socketClass;
  }

  /** subscribe follows more; it may be called at any time. */
  subscribe(symbols: readonly string[], channels: readonly Channel[] = this.options.channels): void {
    this.streams.follow(product(channels, symbols));
    this.#subscribe(symbols, channels);
  }

  /** unsubscribe follows them no more. */
  unsubscribe(symbols: readonly string[], channels: readonly Channel[] = this.options.channels): void {
    this.streams.forget(product(channels, symbols));
    this.#request('UNSUBSCRIBE_MARKET', symbols, channels);
  }

  protected override recover({ channel, symbol }: StreamName): void {
    this.#request('RESYNC', [symbol], [channel]);
  }

  protected override async connect(signal: AbortSignal): Promise<void> {
    const Socket = this.#Socket ?? (await socketClass());
    signal.throwIfAborted();
    const socket = new Socket(this.options.url);
    try {
      await this.#read(socket, signal);
    } finally {
      this.#socket = null;
      // A dead connection would take its time to say goodbye: ws can do without.
      const { terminate } = socket as { terminate?: () => void };
      if (terminate) terminate.call(socket);
      else socket.close();
    }
  }

  // read takes messages until the connection ends.
  #read(socket: Socket, signal: AbortSignal): Promise<void> {
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      socket.onopen = () => {
        this.#socket = socket;
        this.#subscribeAll();
      };
      const fail = (why: unknown): void => reject(new TransportError(`${this.options.url}: ${why}`));
      socket.onerror = ({ message = 'cannot connect' }: { message?: string }) => fail(message);
      socket.onclose = ({ code, reason }: { code: number; reason: string }) => fail(`closed with ${code} ${reason}`);
      socket.onmessage = ({ data }: { data: unknown }) => {
        if (signal.aborted) return;
        try {
          if (typeof data !== 'string') throw new ProtocolError('a message that is no text');
          if (data.length > maxMessage) throw new ProtocolError(`a message of ${data.length} characters`);
          this.take(decodeMessage(data));
        } catch (error) {
          reject(error);
        }
      };
    });
  }

  // subscribeAll begins all streams, where it can from where they were.
  #subscribeAll(): void {
    const groups = new Map<string, { channels: Channel[]; symbols: string[] }>(); // of symbols with the same channels
    for (const symbol of new Set(this.streams.names.map((n) => n.symbol))) {
      const channels = this.streams.names.filter((n) => n.symbol === symbol).map((n) => n.channel).sort();
      const group = groups.get(channels.join()) ?? { channels, symbols: [] };
      groups.set(channels.join(), group);
      group.symbols.push(symbol);
    }
    const resume = this.streams.resume();
    for (const { channels, symbols } of groups.values()) this.#subscribe(symbols, channels, resume && { resume });
  }

  #subscribe(symbols: readonly string[], channels: readonly Channel[], more: object = {}): void {
    this.#request('SUBSCRIBE_MARKET', symbols, channels, { depth: this.options.depth, heartbeat: true, ...more });
  }

  // request asks for something, if there is a connection: a new one begins with all that is followed.
  #request(action: string, symbols: readonly string[], channels: readonly Channel[], more: object = {}): void {
    for (let at = 0; this.#socket !== null && at < symbols.length; at += maxRequest) {
      const page = symbols.slice(at, at + maxRequest);
      this.#socket.send(JSON.stringify({ action, channels, symbols: page, id: String(++this.#requests), ...more }));
    }
  }
}

// socketClass is the platform's own WebSocket, or that of ws on a Node without.
async function socketClass(): Promise<SocketClass> {
  if (globalThis.WebSocket) return globalThis.WebSocket;
  const { WebSocket } = await import('ws');
  return class extends WebSocket {
    constructor(url: string) {
      super(url, { maxPayload: 4 * maxMessage });
    }
  };
}
