import { BlockdeskError } from './errors.js';
import type { BookMessage, BookOrder, Level, OrdersMessage, Place } from './messages.js';
/** GapError: a message in between was lost. */
export declare class GapError extends BlockdeskError {
    readonly name = "GapError";
}
/** MismatchError: a message does not fit what came before it, such as by its checksum. */
export declare class MismatchError extends BlockdeskError {
    readonly name = "MismatchError";
}
/** follow throws GapError where a message is not the next one. */
export declare function follow(m: Place & {
    readonly channel: string;
}, at: {
    readonly epoch: string;
    readonly seq: number;
}): void;
/**
 * Book is the order book of one symbol, made of messages alone. Each is held to
 * the one before by its number, and to the desk's own book by its checksum.
 */
export declare class Book {
    #private;
    readonly symbol: string;
    /** Levels a side at most. */
    readonly depth: number;
    constructor(symbol: string, depth: number);
    /** The service's run that the numbers belong to; empty before the first message. */
    get epoch(): string;
    /** The number of the last message. */
    get seq(): number;
    /** When the desk made the last message. */
    get ts(): string | null;
    /** Whether it is the desk's book. After an error it is not, until the next snapshot. */
    get whole(): boolean;
    /** Best first. A view: not to be kept over the next message. */
    get bids(): readonly Level[];
    /** Best first. A view: not to be kept over the next message. */
    get asks(): readonly Level[];
    /** apply takes one message. It throws GapError or MismatchError; then only a snapshot makes the book whole. */
    apply(m: BookMessage): void;
    /** checksum is Kraken's: CRC-32 over the digits of the ten best asks and then the ten best bids. */
    checksum(): number;
}
/** OrdersBook is the book of one symbol order by order, made of the messages of l3 alone. */
export declare class OrdersBook {
    #private;
    readonly symbol: string;
    constructor(symbol: string);
    get epoch(): string;
    /** The number of the last message; l2 has the same ones. */
    get seq(): number;
    /** When the desk made the last message. */
    get ts(): string | null;
    /** Best price first, each price in its priority. A view: not to be kept over the next message. */
    get bids(): readonly BookOrder[];
    /** Best price first, each price in its priority. A view: not to be kept over the next message. */
    get asks(): readonly BookOrder[];
    /** apply takes one message. It throws GapError or MismatchError; then only a snapshot makes it right. */
    apply(m: OrdersMessage): void;
    /** checksum is CRC-32 over the ids and digits of the first ten asks and then the first ten bids. */
    checksum(): number;
}
