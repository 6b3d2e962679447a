import { ApiError, BlockdeskError, OtherGroupError, RequestError } from './errors.js';
import { Group } from './group.js';
import { Streams } from './streams.js';
import { backoff, sleep } from './wait.js';
/** Gaps since all was whole, after which a connection is given up: less than a service takes for abuse. */
const maxStrikes = 8;
/** The longest wait that a service may ask for, in ms. A timer of weeks would go off at once. */
const maxToldMs = 300_000;
/**
 * Follower keeps a copy of the market up to date over connections that break: it
 * comes back by itself, resumes where it was, and asks anew for what was lost.
 * It begins with start and ends with close, or by a service that has nothing of
 * what it asks for.
 */
export class Follower {
    options;
    streams;
    /** Where the next connection goes. */
    address;
    /** The node that the last connection has named as the leader. */
    leader = null;
    #group;
    /** What the service wants the next connection to wait at least. */
    comeBackMs = 0;
    #listeners = new Map();
    #closing = new AbortController();
    #running = null;
    #connection = null;
    #epoch = '';
    #heard = 0; // when the connection last said something; ms of performance.now
    #attempt = 0; // connections since one was good
    #strikes = 0; // gaps since a heartbeat found all whole
    #fault = null;
    #resting = null; // until wake
    #wake = () => { };
    constructor({ signal, ...options }) {
        this.options = {
            channels: ['l2', 'trades', 'ticker'], depth: 50, silenceMs: 5_000, connectMs: 10_000, retryMs: [250, 10_000], nodes: [], otherGroups: [],
            ...options,
        };
        this.#group = this.#groupOf([options.url, ...this.options.nodes]);
        this.address = this.#group.now;
        this.streams = new Streams(this.options.depth);
        this.streams.follow(product(this.options.channels, this.options.symbols));
        this.#closing.signal.addEventListener('abort', () => this.wake(), { once: true });
        signal?.addEventListener('abort', () => void this.close(), { once: true });
        if (signal?.aborted)
            void this.close();
    }
    /** start begins to follow. It returns at once. */
    start() {
        this.#running ??= this.#run();
        return this;
    }
    /** close ends it, and returns when nothing of it is left. */
    async close() {
        this.#closing.abort();
        this.#connection?.abort();
        await this.#running;
    }
    /** on listens for an event until what it returns is called. Errors that a listener throws are not caught. */
    on(event, listener) {
        const set = this.#listeners.get(event) ?? new Set();
        this.#listeners.set(event, set.add(listener));
        return () => void set.delete(listener);
    }
    /** Whether every copy is the desk's now. */
    get whole() { return this.streams.whole; }
    /** book returns the order book of a symbol, if it is followed. */
    book(symbol) { return this.streams.book(symbol); }
    /** orders returns the orders of a symbol, if they are followed. */
    orders(symbol) { return this.streams.orders(symbol); }
    /** tickets returns the tickets of a pair, if they are followed. */
    tickets(symbol) { return this.streams.board(symbol); }
    /**
     * books gives the order book of a symbol as it is, and then whenever it has
     * changed since the last look: a slow reader misses states, never the newest. It
     * starts the follower, and ends with it; it throws for a book that is not
     * followed, or that the service does not have.
     */
    async *books(symbol) {
        let [changed, wake] = [this.book(symbol)?.whole === true, () => { }];
        const note = () => {
            changed = true;
            wake();
        };
        const offs = [this.on('book', (book) => book.symbol === symbol && note()), this.on('rejected', note)];
        this.#closing.signal.addEventListener('abort', note);
        this.start();
        try {
            for (;;) {
                if (this.#fault !== null)
                    throw this.#fault;
                const book = this.book(symbol);
                if (book === undefined)
                    throw new BlockdeskError(`l2 of ${symbol} is not followed`);
                if (this.#closing.signal.aborted)
                    return;
                if (changed && book.whole) {
                    changed = false;
                    yield book;
                }
                else {
                    await new Promise((resolve) => (wake = resolve));
                }
            }
        }
        finally {
            for (const off of offs)
                off();
            this.#closing.signal.removeEventListener('abort', note);
        }
    }
    emit(event, value) {
        for (const listener of this.#listeners.get(event) ?? []) {
            try {
                listener(value);
            }
            catch (error) {
                // The listener's fault is not the feed's, and must not be hidden by it.
                queueMicrotask(() => { throw error; });
            }
        }
    }
    /** take takes one message; null is one of a kind that is not known. */
    take(m) {
        this.#heard = performance.now();
        if (m === null)
            return;
        switch (m.channel) {
            case 'mark':
                return;
            case 'status':
                return this.#status(m);
            case 'control':
                if (m.type === 'ack' && m.action === 'SUBSCRIBE_MARKET')
                    this.#acknowledged(m.subscribed ?? [], m.rejected ?? []);
                else if (m.type === 'error')
                    this.emit('refused', new BlockdeskError(`${m.code}: ${m.message ?? ''}`));
                return;
            case 'heartbeat':
                for (const change of this.streams.heartbeat(m.seqs))
                    this.#changed(change);
                if (this.streams.whole)
                    this.#attempt = this.#strikes = 0;
                return;
            default:
                this.#changed(this.streams.take(m));
        }
    }
    /** elsewhere returns the URL of another group from a received address; null: it must not be followed. */
    elsewhere(url) {
        const to = this.#group.moved(url, this.address);
        return to && new URL(this.address.pathname, to);
    }
    /** nodesAt are the nodes that were named of the group at an address. */
    nodesAt({ hostname }) {
        return this.options.otherGroups.find((group) => group.some((url) => new URL(url).hostname === hostname)) ?? [];
    }
    /** move makes another group's nodes those that it connects to. */
    move(to) {
        this.#group = this.#groupOf([to.href, ...this.nodesAt(to)]);
        this.address = this.#group.now;
    }
    /**
     * spread takes what is followed where it was sent to. It returns what stays rejected,
     * and why it may not go where that is.
     */
    spread(rejected) {
        return { left: rejected, fault: null };
    }
    /** closeOthers closes what follows at other groups. */
    async closeOthers() { }
    /** idle reports whether nothing at all is followed. */
    get idle() { return this.streams.names.length === 0; }
    /** rest ends the connection until wake: there is nothing for it to carry. */
    rest() {
        if (this.#closing.signal.aborted)
            return;
        this.#resting ??= new Promise((resolve) => (this.#wake = resolve));
        this.#connection?.abort(new BlockdeskError('there is nothing to follow here'));
    }
    /** wake connects again after rest. */
    wake() { this.#wake(); }
    /** end ends it for good: nothing would come of another connection. */
    end(fault) {
        this.#fault = fault;
        this.#closing.abort();
        this.#connection?.abort();
    }
    #groupOf(urls) {
        const parse = (url) => new URL(url);
        return new Group([...new Set(urls)].map(parse), [...this.options.nodes, ...this.options.otherGroups.flat()].map(parse));
    }
    /** restart gives the connection up, and begins every stream anew with the next one. */
    restart() {
        this.streams.restart();
        this.#connection?.abort(new BlockdeskError('begun anew'));
    }
    #status(m) {
        if (m.type === 'welcome')
            this.#epoch = m.epoch ?? '';
    }
    #acknowledged(subscribed, rejected) {
        const { left, fault } = this.spread(rejected);
        for (const r of left) {
            this.emit('rejected', r);
            this.streams.forget([{ channel: r.channel, symbol: r.symbol }]);
        }
        if (this.idle) {
            const [channels, symbols] = [new Set(left.map((r) => r.channel)), new Set(left.map((r) => r.symbol))];
            return this.end(fault ?? new BlockdeskError(`the service has none of ${[...channels]} of ${[...symbols]}`));
        }
        if (this.streams.names.length === 0)
            return this.rest();
        if (subscribed.length > 0)
            this.emit('open', { epoch: this.#epoch, subscribed });
    }
    #changed(change) {
        switch (change?.kind) {
            case undefined: return;
            case 'book': return this.emit('book', change.book);
            case 'orders': return this.emit('orders', change.orders);
            case 'trades': return this.emit('trades', change.prints);
            case 'ticker': return this.emit('ticker', change.ticker);
            case 'tickets': return this.emit('tickets', change.board);
            case 'rfq_trades': return this.emit('rfq_trades', change.prints);
            case 'gap':
                this.emit('gap', change);
                // What does not mend it by now never will: begin anew, and ever more slowly.
                if (++this.#strikes > maxStrikes)
                    this.restart();
                else
                    this.recover(change.stream);
        }
    }
    async #run() {
        const closing = this.#closing.signal;
        while (!closing.aborted) {
            const error = await this.#follow().then(() => null, (e) => e);
            if (error instanceof RequestError || error instanceof OtherGroupError)
                this.end(error); // server-sent events: they would be again
            await this.#resting;
            if (closing.aborted)
                break;
            if (this.#resting !== null) {
                this.#resting = null;
                continue;
            }
            this.#turn(error instanceof ApiError ? error.leader : this.leader);
            const told = Math.max(this.comeBackMs, error instanceof ApiError ? error.retryAfterMs ?? 0 : 0);
            const wait = Math.max(Math.min(told, maxToldMs), backoff(this.#attempt++, ...this.options.retryMs));
            this.comeBackMs = 0;
            this.emit('close', { error, retryMs: wait });
            await sleep(wait, closing).catch(() => { }); // close
        }
        await this.closeOthers();
        this.emit('close', { error: this.#fault, retryMs: null });
    }
    // turn takes the next connection to the leader, where one was named that may be
    // followed, else to the next node.
    #turn(leader) {
        this.leader = null;
        const to = this.#group.moved(leader, this.address);
        if (to === null)
            this.#group.failed(this.address);
        this.address = to === null ? this.#group.now : new URL(this.address.pathname, to);
    }
    // follow reads one connection, and gives it up when it falls silent.
    async #follow() {
        const connection = new AbortController();
        this.#connection = connection;
        if (this.#closing.signal.aborted)
            return;
        const { silenceMs, connectMs } = this.options;
        let looked = performance.now();
        this.#heard = looked + connectMs - silenceMs;
        const watch = setInterval(() => {
            const [now, before] = [performance.now(), looked];
            looked = now;
            // A program that was kept from running has not read yet what there is to hear.
            if (now - before > silenceMs / 2 || now - this.#heard <= silenceMs)
                return;
            connection.abort(new BlockdeskError(`nothing was heard for ${silenceMs} ms`));
        }, Math.min(silenceMs, 1_000) / 4);
        this.streams.reconnected();
        try {
            await this.connect(connection.signal);
        }
        finally {
            clearInterval(watch);
            connection.abort();
        }
    }
}
/** product is every channel of every symbol. */
export function product(channels, symbols) {
    return symbols.flatMap((symbol) => channels.map((channel) => ({ channel, symbol })));
}
