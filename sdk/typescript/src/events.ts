import { OtherGroupError, ProtocolError, TransportError, apiError } from './errors.js';
import { Follower, type FollowOptions } from './follower.js';
import { otherGroup } from './group.js';
import { decodeMessage } from './messages.js';

/** EventFeedOptions are an EventFeed's. */
export interface EventFeedOptions extends FollowOptions {
  /** In place of the global fetch. */
  readonly fetch?: typeof fetch;
}

/** ServerEvent is one event of a stream. */
export interface ServerEvent {
  readonly type: string;
  readonly data: string;
}

const maxEvent = 16 << 20; // characters

/**
 * EventParser reads server-sent events as the WHATWG's HTML standard says
 * (section 9.2.6), but for an id without data, which it passes over.
 */
export class EventParser {
  /** The last id, which a reader sends when it comes back. */
  lastEventId: string;
  /** How long the server wants a reader to wait before it comes back, in ms; null where it has not said. */
  retryMs: number | null = null;
  readonly #dispatch: (event: ServerEvent) => void;
  #parts: string[] = []; // of the line that has not ended
  #held = 0; // characters of parts and data
  #begun = false;
  #afterCR = false;
  #type = '';
  #data: string[] = [];
  #id: string;

  constructor(lastEventId: string, dispatch: (event: ServerEvent) => void) {
    this.lastEventId = this.#id = lastEventId;
    this.#dispatch = dispatch;
  }

  /** feed takes more of the stream. It throws ProtocolError for an event without end. */
  feed(text: string): void {
    if (text === '') return;
    if (!this.#begun && text[0] === '\uFEFF') text = text.slice(1);
    this.#begun = true;
    if (this.#afterCR && text[0] === '\n') text = text.slice(1);
    this.#afterCR = text === '' ? false : text.endsWith('\r');
    const lines = text.split(/\r\n|\n|\r/);
    for (const [i, line] of lines.entries()) {
      this.#parts.push(line);
      this.#held += line.length;
      if (this.#held > maxEvent) throw new ProtocolError(`an event of more than ${maxEvent} characters`);
      if (i < lines.length - 1) this.#line(this.#parts.splice(0).join(''));
    }
  }

  #line(line: string): void {
    if (line === '') return this.#end();
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (field === 'event') this.#type = value;
    else if (field === 'data') this.#data.push(value);
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    else if (field === 'retry' && /^[0-9]{1,9}$/.test(value)) this.retryMs = Number(value);
  }

  #end(): void {
    const event = { type: this.#type || 'message', data: this.#data.join('\n') };
    const dispatched = this.#data.length > 0;
    [this.#type, this.#data, this.#held] = ['', [], 0];
    if (!dispatched) return;
    this.lastEventId = this.#id;
    this.#dispatch(event);
  }
}

/** EventFeed follows the market by server-sent events: for networks where a WebSocket does not get through. */
export class EventFeed extends Follower {
  readonly #fetch: typeof fetch;
  #lastEventId = '';
  #sent = false; // by one group to another, which sends it no further

  constructor({ fetch: given, ...options }: EventFeedOptions) {
    super(options);
    this.#fetch = given ?? ((...args) => globalThis.fetch(...args));
  }

  // A stream cannot be asked: to come back without an id begins everything anew.
  protected override recover(): void {
    this.restart();
  }

  protected override async connect(signal: AbortSignal): Promise<void> {
    const url = new URL(this.address);
    url.searchParams.set('symbols', this.options.symbols.join());
    url.searchParams.set('channels', this.options.channels.join());
    url.searchParams.set('depth', String(this.options.depth));
    if (!this.streams.whole) this.#lastEventId = '';
    const response = await this.#fetch(url, {
      headers: { accept: 'text/event-stream', ...(this.#lastEventId && { 'last-event-id': this.#lastEventId }) },
      signal, redirect: 'manual', credentials: 'omit', cache: 'no-store',
    });
    if (!response.ok) {
      const error = apiError(response.status, await response.json().catch(() => null), response.headers);
      if (response.status !== 307 || error.code !== otherGroup) throw error;
      this.#follow(response.headers.get('location') ?? '');
      return this.connect(signal);
    }
    const type = response.headers.get('content-type') ?? '';
    if (!type.startsWith('text/event-stream') || response.body === null) throw new ProtocolError(`${url}: no stream but ${type}`);
    await this.#read(response.body);
    throw new TransportError(`${url}: the stream has ended`);
  }

  // follow goes to the group that has all that is followed.
  #follow(url: string): void {
    const to = this.#sent ? null : this.elsewhere(url);
    if (to === null) throw new OtherGroupError(url, 'its host is not named in nodes or otherGroups');
    this.#sent = true;
    this.move(to);
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    const parser = new EventParser(this.#lastEventId, ({ data }) => {
      const m = decodeMessage(data);
      this.take(m);
      // A restart's retry spreads its readers; any other is for those that have none of their own.
      if (m?.channel === 'status' && m.type === 'restart') this.comeBackMs = parser.retryMs ?? 0;
    });
    const reader = body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      this.#lastEventId = parser.lastEventId;
    }
  }
}
