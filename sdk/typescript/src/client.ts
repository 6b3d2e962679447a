import type { CallOptions, Input, KeyedOptions, Operation } from './call.js';
import { BlockdeskError, ProtocolError } from './errors.js';
import { EventFeed, type EventFeedOptions } from './events.js';
import { Feed, type FeedOptions } from './feed.js';
import { Group } from './group.js';
import { Operations } from './generated/operations.js';
import { Transport, type TransportOptions } from './transport.js';

/** ClientOptions are where the desk is and how it is asked. */
export interface ClientOptions extends TransportOptions {
  /** The base address, such as `http://127.0.0.1:8080`. */
  readonly baseUrl: string;
  /** The api address, for the operations that are only there. */
  readonly apiUrl?: string;
  /** The WebSocket's address; the base address serves it too. */
  readonly wsUrl?: string;
  /**
   * The base addresses of the other nodes, where a group of them serves. One that does
   * not answer is left for the next. One that sends to the leader is followed, to hosts
   * that are named in these options alone, since a token may go with it.
   */
  readonly nodes?: readonly string[];
  /**
   * Where instruments are split over groups, the base addresses of each other group's
   * nodes. A feed of their symbols goes there, to hosts that are named here or in nodes,
   * or to its own, and nowhere else. Requests need none: any group answers them.
   */
  readonly otherGroups?: readonly (readonly string[])[];
  /** A token of a handshake before. */
  readonly token?: string;
}

/**
 * Client asks the desk: a method for each endpoint, by the operationId that the
 * OpenAPI document gives it. Answers are as they are on the wire, typed.
 *
 * What only reads is repeated after a failure; what changes something goes out
 * with an Idempotency-Key and is repeated under the same key. The handshake has
 * none, and is repeated only where it was surely not carried out.
 */
export class Client extends Operations {
  readonly baseUrl: URL;
  readonly apiUrl: URL | null;
  readonly wsUrl: URL;
  /** Goes out with DvP's build and submit alone; null: there is none. */
  token: string | null;
  readonly #transport: Transport;
  readonly #nodes: readonly URL[];
  readonly #otherGroups: readonly (readonly URL[])[];
  readonly #base: Group;
  readonly #api: Group | null;

  constructor({ baseUrl, apiUrl, wsUrl, nodes = [], otherGroups = [], token, ...transport }: ClientOptions) {
    super();
    this.baseUrl = new URL(baseUrl);
    this.apiUrl = apiUrl === undefined ? null : new URL(apiUrl);
    this.wsUrl = wsUrl === undefined ? socketUrl(this.baseUrl) : new URL(wsUrl);
    this.token = token ?? null;
    this.#nodes = [this.baseUrl, ...nodes.map((node) => new URL(node))];
    this.#otherGroups = otherGroups.map((group) => group.map((node) => new URL(node)));
    this.#base = new Group(this.#nodes);
    this.#api = this.apiUrl && new Group([this.apiUrl], this.#nodes);
    this.#transport = new Transport(transport);
  }

  /** feed follows the market over the WebSocket; it begins with its start. */
  feed(options: Omit<FeedOptions, 'url'>): Feed {
    const at = (node: URL): string => new URL('/ws/rfq', socketUrl(node)).href;
    const nodes = this.#nodes.slice(1).map(at);
    return new Feed({ url: new URL('/ws/rfq', this.wsUrl).href, nodes, otherGroups: this.#otherGroups.map((group) => group.map(at)), ...options });
  }

  /** events follows the market by server-sent events; it begins with its start. All symbols have to be of one group. */
  events(options: Omit<EventFeedOptions, 'url'>): EventFeed {
    const at = (node: URL): string => new URL('/api/v1/market/stream', node).href;
    const [url, ...nodes] = this.#nodes.map(at);
    return new EventFeed({ url: url!, nodes, otherGroups: this.#otherGroups.map((group) => group.map(at)), ...options });
  }

  protected override async call<T>(operation: Operation, input: Input, options: KeyedOptions = {}): Promise<T> {
    const headers: Record<string, string> = { accept: 'application/json' };
    if (operation.keyed) headers['idempotency-key'] = options.idempotencyKey ?? randomKey();
    if (operation.bearer) headers['authorization'] = `Bearer ${this.#admission()}`;
    if (input.body !== undefined) headers['content-type'] = 'application/json';
    const answer = await this.#transport.send({
      method: operation.method, target: this.#target(operation, input), nodes: this.#group(operation), headers,
      ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
      repeatable: operation.method === 'GET' || operation.keyed === true,
    }, options satisfies CallOptions);
    const right = operation.number ? typeof answer === 'number' : typeof answer === 'object' && answer !== null;
    if (!right) throw new ProtocolError(`${operation.path}: the answer is no ${operation.number ? 'number' : 'object'}`);
    return answer as T;
  }

  #admission(): string {
    if (this.token === null) throw new BlockdeskError('no token: take the handshake first');
    return this.token;
  }

  #group(operation: Operation): Group {
    const group = operation.on === 'api' ? this.#api : this.#base;
    if (group === null) throw new BlockdeskError(`${operation.path} is on the api address alone: name apiUrl`);
    return group;
  }

  #target(operation: Operation, input: Input): string {
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(input.path?.[name] ?? ''));
    const url = new URL(path, this.baseUrl);
    for (const [name, value] of Object.entries(input.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    return url.pathname + url.search;
  }
}

function socketUrl(base: URL): URL {
  const url = new URL(base);
  url.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:';
  return url;
}

/** randomKey is an Idempotency-Key. crypto.randomUUID is not there on pages without TLS. */
export function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');
}
