export type { CallOptions, KeyedOptions } from './call.js';
export { Client, type ClientOptions } from './client.js';
export { Book, GapError, MismatchError, OrdersBook } from './book.js';
export { crc32 } from './crc32.js';
export {
  addDecimals, compareDecimals, divideDecimals, fromAtoms, isDecimal, multiplyDecimals, subtractDecimals, toAtoms, type Rounding,
} from './decimal.js';
export {
  ApiError, BlockdeskError, NotAdmittedError, NotFoundError, OtherGroupError, PaymentMismatchError, ProtocolError, RateLimitedError,
  RefusedError, RequestError, TimeoutError, TransportError, UnavailableError, VerificationError,
} from './errors.js';
export { EventFeed, EventParser, type EventFeedOptions, type ServerEvent } from './events.js';
export { Feed, type FeedOptions, type Socket, type SocketClass } from './feed.js';
export type { FollowEvents, FollowOptions } from './follower.js';
export type * from './generated/schemas.js';
export { decodeMessage } from './messages.js';
export type {
  BookMessage, BookOrder, Channel, ControlMessage, HeartbeatMessage, Level, MarketMessage, MarkMessage, Message, OrdersMessage, StatusMessage, TickerMessage,
  RfqTradesMessage, TicketsMessage, TradesMessage,
} from './messages.js';
export { Streams, TicketBoard, type Change, type Prints } from './streams.js';
export type { TransportOptions } from './transport.js';
