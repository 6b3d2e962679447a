import { crc32 } from './crc32.js';
import { comparePrices } from './decimal.js';
import { BlockdeskError } from './errors.js';
/** GapError: a message in between was lost. */
export class GapError extends BlockdeskError {
    name = 'GapError';
}
/** MismatchError: a message does not fit what came before it, such as by its checksum. */
export class MismatchError extends BlockdeskError {
    name = 'MismatchError';
}
/** follow throws GapError where a message is not the next one. */
export function follow(m, at) {
    if (m.epoch === at.epoch && m.prev_seq === at.seq && m.seq > m.prev_seq)
        return;
    throw new GapError(`${m.channel} ${m.symbol}: at ${at.epoch || 'nothing'} ${at.seq}, then ${m.epoch} ${m.prev_seq} -> ${m.seq}`);
}
const checksumLevels = 10; // a side
/** Side is one side's levels, best first. */
class Side {
    levels = [];
    #sign;
    constructor(sign) {
        this.#sign = sign;
    }
    /** set changes one level, and reports whether there was one to delete. */
    set(level) {
        const [price, quantity] = level;
        let [low, high] = [0, this.levels.length];
        while (low < high) {
            const middle = (low + high) >>> 1;
            const order = this.#sign * comparePrices(this.levels[middle][0], price);
            if (order === 0)
                return this.#replace(middle, level);
            if (order < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (isZero(quantity))
            return false;
        this.levels.splice(low, 0, level);
        return true;
    }
    #replace(at, level) {
        if (isZero(level[1]))
            this.levels.splice(at, 1);
        else
            this.levels[at] = level;
        return true;
    }
}
const isZero = (quantity) => /^0(\.0+)?$/.test(quantity);
// digits are a decimal's as the checksum takes it.
const digits = (decimal) => decimal.replace('.', '').replace(/^0+/, '');
/**
 * Book is the order book of one symbol, made of messages alone. Each is held to
 * the one before by its number, and to the desk's own book by its checksum.
 */
export class Book {
    symbol;
    /** Levels a side at most. */
    depth;
    #epoch = '';
    #seq = 0;
    #ts = null;
    #whole = false;
    #bids = new Side(-1);
    #asks = new Side(1);
    constructor(symbol, depth) {
        this.symbol = symbol;
        this.depth = depth;
    }
    /** The service's run that the numbers belong to; empty before the first message. */
    get epoch() { return this.#epoch; }
    /** The number of the last message. */
    get seq() { return this.#seq; }
    /** When the desk made the last message. */
    get ts() { return this.#ts; }
    /** Whether it is the desk's book. After an error it is not, until the next snapshot. */
    get whole() { return this.#whole; }
    /** Best first. A view: not to be kept over the next message. */
    get bids() { return this.#bids.levels; }
    /** Best first. A view: not to be kept over the next message. */
    get asks() { return this.#asks.levels; }
    /** apply takes one message. It throws GapError or MismatchError; then only a snapshot makes the book whole. */
    apply(m) {
        if (m.type === 'snapshot')
            [this.#bids, this.#asks] = [new Side(-1), new Side(1)];
        else
            this.#hold(() => follow(m, this));
        [this.#epoch, this.#seq, this.#ts] = [m.epoch, m.seq, m.ts];
        this.#hold(() => {
            this.#change(this.#bids, m.bids);
            this.#change(this.#asks, m.asks);
            const sum = this.checksum();
            if (sum !== m.checksum)
                throw new MismatchError(`l2 ${this.symbol} ${this.seq}: checksum ${sum}, the desk has ${m.checksum}`);
        });
        this.#whole = this.#whole || m.type === 'snapshot';
    }
    // hold does a step after whose failure the book is no longer the desk's.
    #hold(step) {
        try {
            step();
        }
        catch (error) {
            this.#whole = false;
            throw error;
        }
    }
    #change(side, levels) {
        for (const level of levels) {
            if (!side.set(level))
                throw new MismatchError(`l2 ${this.symbol} ${this.seq}: ${level[0]} is deleted and was not there`);
        }
        if (side.levels.length > this.depth) {
            throw new MismatchError(`l2 ${this.symbol} ${this.seq}: ${side.levels.length} levels, ${this.depth} were asked for`);
        }
    }
    /** checksum is Kraken's: CRC-32 over the digits of the ten best asks and then the ten best bids. */
    checksum() {
        const best = [...this.asks.slice(0, checksumLevels), ...this.bids.slice(0, checksumLevels)];
        return crc32(best.map(([price, quantity]) => digits(price) + digits(quantity)).join(''));
    }
}
/** Queue is one side's orders, best price first, each price in its priority. */
class Queue {
    orders = [];
    #sign;
    constructor(sign) {
        this.#sign = sign;
    }
    /** set changes one order, and reports whether it fits what is there. */
    set(order) {
        const [id, price, quantity] = order;
        const at = this.orders.findIndex((o) => o[0] === id);
        if (isZero(quantity))
            return at >= 0 && this.orders.splice(at, 1).length === 1;
        if (at >= 0) {
            const same = comparePrices(this.orders[at][1], price) === 0;
            this.orders[at] = order;
            return same;
        }
        const worse = this.orders.findIndex((o) => this.#sign * comparePrices(o[1], price) > 0);
        this.orders.splice(worse < 0 ? this.orders.length : worse, 0, order);
        return true;
    }
}
/** OrdersBook is the book of one symbol order by order, made of the messages of l3 alone. */
export class OrdersBook {
    symbol;
    #epoch = '';
    #seq = 0;
    #ts = null;
    #bids = new Queue(-1);
    #asks = new Queue(1);
    constructor(symbol) {
        this.symbol = symbol;
    }
    get epoch() { return this.#epoch; }
    /** The number of the last message; l2 has the same ones. */
    get seq() { return this.#seq; }
    /** When the desk made the last message. */
    get ts() { return this.#ts; }
    /** Best price first, each price in its priority. A view: not to be kept over the next message. */
    get bids() { return this.#bids.orders; }
    /** Best price first, each price in its priority. A view: not to be kept over the next message. */
    get asks() { return this.#asks.orders; }
    /** apply takes one message. It throws GapError or MismatchError; then only a snapshot makes it right. */
    apply(m) {
        if (m.type === 'snapshot')
            [this.#bids, this.#asks] = [new Queue(-1), new Queue(1)];
        else
            follow(m, this);
        [this.#epoch, this.#seq, this.#ts] = [m.epoch, m.seq, m.ts];
        this.#change(this.#bids, m.bids);
        this.#change(this.#asks, m.asks);
        const sum = this.checksum();
        if (sum !== m.checksum)
            throw new MismatchError(`l3 ${this.symbol} ${this.seq}: checksum ${sum}, the desk has ${m.checksum}`);
    }
    #change(side, orders) {
        for (const order of orders) {
            if (!side.set(order))
                throw new MismatchError(`l3 ${this.symbol} ${this.seq}: order ${order[0]} does not fit`);
        }
    }
    /** checksum is CRC-32 over the ids and digits of the first ten asks and then the first ten bids. */
    checksum() {
        const first = [...this.asks.slice(0, checksumLevels), ...this.bids.slice(0, checksumLevels)];
        return crc32(first.map(([id, price, quantity]) => id + digits(price) + digits(quantity)).join(''));
    }
}
