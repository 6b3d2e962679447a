var _a;
import { BlockdeskError, OtherGroupError, ProtocolError, TransportError } from './errors.js';
import { Follower, product } from './follower.js';
import { leaderChanged, maxOtherGroups, otherGroup } from './group.js';
import { decodeMessage } from './messages.js';
const maxMessage = 16 << 20; // characters
const maxRequest = 100; // symbols of a request
const restarting = 1012; // the close code of a node that restarts, or does not lead
/** The events of another group's feed that are the whole feed's too. */
const shared = ['open', 'book', 'trades', 'ticker', 'tickets', 'rfq_trades', 'gap', 'rejected', 'refused'];
/**
 * Feed follows the market over the WebSocket. Symbols that another group of nodes
 * serves it follows there, by a feed of their own, and passes on its events.
 */
export class Feed extends Follower {
    #Socket;
    #others = new Map(); // by the address that the service reported
    #sent = false; // by one group to another, which sends it no further
    #socket = null; // one that is open
    #requests = 0;
    constructor({ WebSocket: socketClass, ...options }) {
        super(options);
        this.#Socket = socketClass;
    }
    /** subscribe follows more; it may be called at any time. */
    subscribe(symbols, channels = this.options.channels) {
        for (const [feed, some] of this.#carriers(symbols)) {
            feed.streams.follow(product(channels, some));
            feed.#subscribe(some, channels);
            feed.wake();
        }
    }
    /** unsubscribe follows them no more. */
    unsubscribe(symbols, channels = this.options.channels) {
        for (const [feed, some] of this.#carriers(symbols)) {
            feed.streams.forget(product(channels, some));
            feed.#request('UNSUBSCRIBE_MARKET', some, channels);
        }
        for (const [url, feed] of this.#others) {
            if (feed.streams.names.length > 0)
                continue;
            this.#others.delete(url);
            void feed.close();
        }
    }
    get whole() { return super.whole && [...this.#others.values()].every((feed) => feed.whole); }
    book(symbol) {
        return super.book(symbol) ?? [...this.#others.values()].map((feed) => feed.book(symbol)).find((book) => book !== undefined);
    }
    tickets(symbol) {
        return super.tickets(symbol) ?? [...this.#others.values()].map((feed) => feed.tickets(symbol)).find((board) => board !== undefined);
    }
    async closeOthers() {
        await Promise.all([...this.#others.values()].map((feed) => feed.close()));
    }
    get idle() { return super.idle && this.#others.size === 0; }
    spread(rejected) {
        const places = new Map();
        const left = [];
        const followed = new Set(this.streams.names.map((n) => `${n.channel}:${n.symbol}`));
        for (const r of rejected) {
            const elsewhere = r.code === otherGroup && typeof r.ws_url === 'string' && followed.has(`${r.channel}:${r.symbol}`);
            if (!elsewhere)
                left.push(r);
            else if (!places.get(r.ws_url)?.push(r))
                places.set(r.ws_url, [r]);
        }
        let fault = null;
        for (const [url, rows] of places) {
            const feed = this.#other(url);
            if (feed instanceof OtherGroupError) {
                fault = feed;
                this.emit('refused', fault);
                left.push(...rows);
                continue;
            }
            const names = rows.map((r) => ({ channel: r.channel, symbol: r.symbol }));
            this.streams.forget(names);
            for (const channel of new Set(names.map((n) => n.channel))) {
                feed.subscribe(names.filter((n) => n.channel === channel).map((n) => n.symbol), [channel]);
            }
            feed.start();
        }
        return { left, fault };
    }
    // other is the feed of the group at an address, or why there is none.
    #other(url) {
        const there = this.#others.get(url);
        if (there !== undefined)
            return there;
        const to = this.#sent ? null : this.elsewhere(url);
        if (to === null)
            return new OtherGroupError(url, 'its host is not named in nodes or otherGroups');
        if (this.#others.size === maxOtherGroups)
            return new OtherGroupError(url, `a feed goes to ${maxOtherGroups} other groups at most`);
        const feed = new _a({ ...this.options, ...(this.#Socket && { WebSocket: this.#Socket }), url: to.href, nodes: this.nodesAt(to), symbols: [] });
        feed.#sent = true;
        for (const event of shared)
            feed.on(event, (value) => this.emit(event, value));
        feed.on('close', ({ error, retryMs }) => {
            if (retryMs !== null)
                this.emit('close', { error, retryMs });
            else if (error instanceof BlockdeskError)
                this.#lost(url, error);
        });
        this.#others.set(url, feed);
        return feed;
    }
    // lost leaves out a group that has nothing of what it was asked for.
    #lost(url, fault) {
        this.#others.delete(url);
        if (this.idle)
            this.end(fault);
    }
    // carriers are the feeds that follow symbols, or would: those of other groups, and this one.
    #carriers(symbols) {
        const carriers = new Map();
        for (const symbol of symbols) {
            const feed = [...this.#others.values()].find((other) => other.streams.names.some((n) => n.symbol === symbol)) ?? this;
            if (!carriers.get(feed)?.push(symbol))
                carriers.set(feed, [symbol]);
        }
        return [...carriers];
    }
    recover({ channel, symbol }) {
        this.#request('RESYNC', [symbol], [channel]);
    }
    async connect(signal) {
        const Socket = this.#Socket ?? (await socketClass());
        signal.throwIfAborted();
        const socket = new Socket(this.address.href);
        try {
            await this.#read(socket, signal);
        }
        finally {
            this.#socket = null;
            // A dead connection would take its time to say goodbye: ws can do without.
            const { terminate } = socket;
            if (terminate)
                terminate.call(socket);
            else
                socket.close();
        }
    }
    // read takes messages until the connection ends.
    #read(socket, signal) {
        return new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason), { once: true });
            socket.onopen = () => {
                this.#socket = socket;
                this.#subscribeAll();
            };
            const fail = (why) => reject(new TransportError(`${this.address}: ${why}`));
            socket.onerror = ({ message = 'cannot connect' }) => fail(message);
            socket.onclose = ({ code, reason }) => {
                if (code === restarting && reason.startsWith(`${leaderChanged}: `))
                    this.leader = reason.slice(leaderChanged.length + 2);
                fail(`closed with ${code} ${reason}`);
            };
            socket.onmessage = ({ data }) => {
                if (signal.aborted)
                    return;
                try {
                    if (typeof data !== 'string')
                        throw new ProtocolError('a message that is no text');
                    if (data.length > maxMessage)
                        throw new ProtocolError(`a message of ${data.length} characters`);
                    this.take(decodeMessage(data));
                }
                catch (error) {
                    reject(error);
                }
            };
        });
    }
    // subscribeAll begins all streams, where it can from where they were.
    #subscribeAll() {
        const groups = new Map(); // of symbols with the same channels
        for (const symbol of new Set(this.streams.names.map((n) => n.symbol))) {
            const channels = this.streams.names.filter((n) => n.symbol === symbol).map((n) => n.channel).sort();
            const group = groups.get(channels.join()) ?? { channels, symbols: [] };
            groups.set(channels.join(), group);
            group.symbols.push(symbol);
        }
        const resume = this.streams.resume();
        for (const { channels, symbols } of groups.values())
            this.#subscribe(symbols, channels, resume && { resume });
    }
    #subscribe(symbols, channels, more = {}) {
        this.#request('SUBSCRIBE_MARKET', symbols, channels, { depth: this.options.depth, heartbeat: true, ...more });
    }
    // request asks for something, if there is a connection: a new one begins with all that is followed.
    #request(action, symbols, channels, more = {}) {
        for (let at = 0; this.#socket !== null && at < symbols.length; at += maxRequest) {
            const page = symbols.slice(at, at + maxRequest);
            this.#socket.send(JSON.stringify({ action, channels, symbols: page, id: String(++this.#requests), ...more }));
        }
    }
}
_a = Feed;
// socketClass is the platform's own WebSocket, or that of ws on a Node without.
async function socketClass() {
    if (globalThis.WebSocket)
        return globalThis.WebSocket;
    const { WebSocket } = await import('ws');
    return class extends WebSocket {
        constructor(url) {
            super(url, { maxPayload: 4 * maxMessage });
        }
    };
}
