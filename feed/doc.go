// Package feed turns durable events into market data and publishes it: the current view of
// every instrument behind an atomic pointer, market-data sinks such as the FIX gateway, the
// WebSocket /ws/rfq, and server-sent events at /api/v1/market/stream.
//
//	events ─▶ Run (one goroutine) ─▶ MarketData ─▶ View pointers, sinks
//	                  │ each update encoded once per (symbol, channel, depth)
//	                  ├──▶ shard 0: owns its connections, does all their writes
//	                  └──▶ shard n
//	desk ─▶ ticket publisher (one goroutine) ─▶ shards
//	sockets ─▶ reader (one a shard) ─▶ its shard
//
// Invariants:
//  1. Every message is built from durable events only: Run sees no others, and the desk
//     returns only stored tickets.
//  2. A message is encoded once per (symbol, channel, depth). All subscribers share its
//     bytes.
//  3. Only a connection's shard writes to its socket, and a write never waits: a full
//     socket is tried again later, so a slow client delays no other.
//  4. A subscriber to a (symbol, channel) receives a snapshot, then updates whose prev_seq
//     is the seq before, without gap or overlap, until the next snapshot. The shard takes
//     the snapshot from its current view and then sends the updates after that view, so no
//     lock is needed. A pair's tickets work the same, with the list of the pair's tickets in place of the view.
//  5. After every message, a client's book of depth d equals the view's first d levels a
//     side, and the message's checksum is that book's.
//  6. Run never waits for a shard. A shard whose inbox overflows loses the updates in it
//     and sends snapshots instead.
//  7. A client that has applied a message of the channel tickets has the records of
//     market-tickets as of its engine_seq, byte for byte.
//  8. An idle connection holds its socket, its subscriptions and its pending messages,
//     about 1.5 KB, and no goroutine or buffer. It has a decoder's state only while a
//     message is incomplete.
//  9. The sequence numbers, epochs, checksums and times of l2 and trades are functions of
//     the journal (marketdata.Data), because a view is made of whole batches. So a client
//     may resume at any feed of the same journal. A feed that is behind the client sends
//     nothing until it has caught up. Tickets and ticker count the publications of one
//     process, and resume with a snapshot.
//  10. Between two updates of l3 a client has the orders of the view, in the engine's priority, and
//     the message's checksum is theirs. A view has its orders only while a client subscribes to l3.
//  11. The id of a mark event is sent when all market data of the commands up to it was
//     queued on that connection and no snapshot is missing. A client that resumes from it
//     misses nothing; an update that it gets twice has a seq that it knows.
//
// A stream of server-sent events is a connection with another encoding. Shard, limits,
// snapshots in place of pending updates, and shared bytes are the WebSocket's; the reader discards the client's input.
// Its event id is a position in the engine's order, epoch and Seq, which comes with each
// publication to the shards and covers only complete batches. Histories keep the
// engine_seq of each update, so that a position leads to a seq.
//
// The channel tickets (our choice) is sent only to clients that name it. Commands of the
// desk cause its messages, and a reference price that grows too old; one that moves by itself
// is published with the next change. Its sequence numbers are per pair and epoch, from 1. The desk wakes a
// goroutine of the feed, which reads the tickets at most once in ticketsInterval.
//
// Cost: a delivery appends one pointer and takes a share of one write(2), because all
// pending messages of a connection go out in one write. Batches of one slice of events reach
// the shards together, at most about maxGather at a time. An update allocates only the bytes
// that its subscribers share.
//
// Reading: a shard's reader waits for all its sockets at once with epoll (on other systems,
// or with the build tag feed_goroutines, on a goroutine for each connection) and reads at
// most 16 KiB of one before the next. A violation of RFC 6455 closes the connection with
// 1002; text that is not UTF-8 or does not decompress, with 1007; a message that takes
// longer than 5 s, with 1008 (our choice); one of more than 1,024 frames, with 4029 (our
// choice).
//
// Compression (RFC 7692, without state between messages) is for snapshots: one of 100 levels
// a side takes 40 µs, once for all its subscribers on a shard, and shrinks to 0.35 of its
// size; an update would not shrink. The window is 256 bytes (our choice), which is best for
// a book and fits every client's offer. A compressing shard holds 1 MiB for it, a
// decompressing reader 100 KiB. A client's compressed message may have at most MaxFrame bytes
// when decompressed, and each KiB of it counts as another message of its rate (our choice).
//
// Limits: see Options and the constants next to it. Connections must be plain TCP, because a
// write that never waits needs the socket itself; a proxy terminates TLS (our choice).
package feed
