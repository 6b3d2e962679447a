import { BlockdeskError, ProtocolError } from './errors.js';
import { EventFeed } from './events.js';
import { Feed } from './feed.js';
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
    constructor({ baseUrl, apiUrl, wsUrl, token, ...transport }) {
        super();
        this.baseUrl = new URL(baseUrl);
        this.apiUrl = apiUrl === undefined ? null : new URL(apiUrl);
        this.wsUrl = wsUrl === undefined ? socketUrl(this.baseUrl) : new URL(wsUrl);
        this.token = token ?? null;
        this.#transport = new Transport(transport);
    }
    /** feed follows the market over the WebSocket; it begins with its start. */
    feed(options) {
        return new Feed({ url: new URL('/ws/rfq', this.wsUrl).href, ...options });
    }
    /** events follows the market by server-sent events; it begins with its start. */
    events(options) {
        return new EventFeed({ url: new URL('/api/v1/market/stream', this.baseUrl).href, ...options });
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
            method: operation.method, url: this.#url(operation, input), headers,
            ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
            repeatable: operation.method === 'GET' || operation.keyed === true,
        }, options);
        if (typeof answer !== 'object' || answer === null)
            throw new ProtocolError(`${operation.path}: the answer is no object`);
        return answer;
    }
    #admission() {
        if (this.token === null)
            throw new BlockdeskError('no token: take the handshake first');
        return this.token;
    }
    #url(operation, input) {
        const base = operation.on === 'api' ? this.apiUrl : this.baseUrl;
        if (base === null)
            throw new BlockdeskError(`${operation.path} is on the api address alone: name apiUrl`);
        const path = operation.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(input.path?.[name] ?? ''));
        const url = new URL(path, base);
        for (const [name, value] of Object.entries(input.query ?? {})) {
            if (value !== undefined)
                url.searchParams.set(name, String(value));
        }
        return url;
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
