import { BlockdeskError, ProtocolError } from './errors.js';
import { EventFeed } from './events.js';
import { Feed } from './feed.js';
import { Group } from './group.js';
import { Operations } from './generated/operations.js';
import { Transport } from './transport.js';
/**
 * Client asks the desk: a method for each endpoint, by the operationId that the
 * OpenAPI document gives it. Answers are as they are on the wire, typed.
 *
 * What only reads is repeated after a failure; what changes something goes out
 * with an Idempotency-Key and is repeated under the same key. The handshake has
 * none, and is repeated only where it was surely not carried out.
 */
export class Client extends Operations {
    baseUrl;
    apiUrl;
    wsUrl;
    /** Goes out with DvP's build and submit alone; null: there is none. */
    token;
    #transport;
    #nodes;
    #otherGroups;
    #base;
    #api;
    constructor({ baseUrl, apiUrl, wsUrl, nodes = [], otherGroups = [], token, ...transport }) {
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
    feed(options) {
        const at = (node) => new URL('/ws/rfq', socketUrl(node)).href;
        const nodes = this.#nodes.slice(1).map(at);
        return new Feed({ url: new URL('/ws/rfq', this.wsUrl).href, nodes, otherGroups: this.#otherGroups.map((group) => group.map(at)), ...options });
    }
    /** events follows the market by server-sent events; it begins with its start. All symbols have to be of one group. */
    events(options) {
        const at = (node) => new URL('/api/v1/market/stream', node).href;
        const [url, ...nodes] = this.#nodes.map(at);
        return new EventFeed({ url: url, nodes, otherGroups: this.#otherGroups.map((group) => group.map(at)), ...options });
    }
    async call(operation, input, options = {}) {
        const headers = { accept: 'application/json' };
        if (operation.keyed)
            headers['idempotency-key'] = options.idempotencyKey ?? randomKey();
        if (operation.bearer)
            headers['authorization'] = `Bearer ${this.#admission()}`;
        if (input.body !== undefined)
            headers['content-type'] = 'application/json';
        const answer = await this.#transport.send({
            method: operation.method, target: this.#target(operation, input), nodes: this.#group(operation), headers,
            ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
            repeatable: operation.method === 'GET' || operation.keyed === true,
        }, options);
        const right = operation.number ? typeof answer === 'number' : typeof answer === 'object' && answer !== null;
        if (!right)
            throw new ProtocolError(`${operation.path}: the answer is no ${operation.number ? 'number' : 'object'}`);
        return answer;
    }
    #admission() {
        if (this.token === null)
            throw new BlockdeskError('no token: take the handshake first');
        return this.token;
    }
    #group(operation) {
        const group = operation.on === 'api' ? this.#api : this.#base;
        if (group === null)
            throw new BlockdeskError(`${operation.path} is on the api address alone: name apiUrl`);
        return group;
    }
    #target(operation, input) {
        const path = operation.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(input.path?.[name] ?? ''));
        const url = new URL(path, this.baseUrl);
        for (const [name, value] of Object.entries(input.query ?? {})) {
            if (value !== undefined)
                url.searchParams.set(name, String(value));
        }
        return url.pathname + url.search;
    }
}
function socketUrl(base) {
    const url = new URL(base);
    url.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:';
    return url;
}
/** randomKey is an Idempotency-Key. crypto.randomUUID is not there on pages without TLS. */
export function randomKey() {
    return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');
}
