export { Client } from './client.js';
export { Book, GapError, MismatchError, OrdersBook } from './book.js';
export { crc32 } from './crc32.js';
export { addDecimals, compareDecimals, divideDecimals, fromAtoms, isDecimal, multiplyDecimals, subtractDecimals, toAtoms, } from './decimal.js';
export { ApiError, BlockdeskError, NotAdmittedError, NotFoundError, OtherGroupError, PaymentMismatchError, ProtocolError, RateLimitedError, RefusedError, RequestError, TimeoutError, TransportError, UnavailableError, VerificationError, } from './errors.js';
export { EventFeed, EventParser } from './events.js';
export { Feed } from './feed.js';
export { decodeMessage } from './messages.js';
export { Streams, TicketBoard } from './streams.js';
