// Package feed turns durable events into market data and carries it to readers:
// the current view of every instrument behind an atomic pointer, market-data
// sinks such as the FIX gateway, the WebSocket /ws/rfq, and server-sent events at
// /api/v1/market/stream.
//
//	events ─▶ Run (one goroutine) ─▶ MarketData ─▶ View pointers, sinks
//	                  │ each update encoded once per (symbol, channel, depth)
//	                  ├──▶ shard 0: owns its connections, does all their writes
//	                  └──▶ shard n
//	desk ─▶ tickets (one goroutine) ─▶ shards
//	sockets ─▶ reader (one a shard) ─▶ the shard
//
// Invariants:
//  1. Every message is built from durable events alone: Run sees nothing else,
//     and tickets are those that the desk has stored.
//  2. A message is encoded once per (symbol, channel, depth) for all
//     subscribers; they share its bytes.
//  3. Only a connection's shard writes to its socket, and a write never waits: a
//     full socket is retried later, so a slow reader delays nobody.
//  4. What a subscriber receives of one (symbol, channel) is a snapshot, then
//     updates whose prev_seq is the seq before, without gap or overlap, until
//     the next snapshot, which replaces all. A shard takes the snapshot from the
//     view at which it stands and then hands on what follows that view, so no
//     lock joins the two. So it is with a pair's tickets, which are in a book of
//     records in place of a view.
//  5. A client's book of depth d equals the view's first d levels a side after
//     every message, and the message's checksum is that book's.
//  6. Run never waits for a shard: a shard whose inbox is full loses the
//     inbox's updates and gives its subscribers snapshots instead.
//  7. A client that has applied a message of the channel tickets has the records
//     of market-tickets as they were at its engine_seq, byte for byte.
//  8. A connection at rest holds its socket, its subscriptions and what waits for
//     it, about 1.5 KB; no goroutine, no buffer, nothing of the library's. Where
//     a client stands within a message is kept only while it is within one.
//  9. The numbers, epochs, checksums and times of l2 and trades are functions of
//     the journal (engine.MarketData): a view is made at the end of a batch and of
//     all of it. So a client may come back to any feed of the same journal, and
//     one that is not as far as the client waits for what the client has not had.
//     Tickets and ticker count what one process has told, and begin with a
//     snapshot.
//  10. An id of a stream is sent when all that the commands up to it have done to
//     the markets is on its way to that connection, and no snapshot is owed. Who
//     comes back with it misses nothing; what it may get again has a seq that it
//     knows.
//
// A stream of server-sent events is a connection in another dialect: the shard,
// the limits, the collapse and the bytes shared by all are the WebSocket's, and
// the reader throws away what it says. Its id is a mark in the engine's order
// (epoch and Seq), which each hand-over of publications carries; a command whose
// events have not all come is behind the mark. Histories keep the engine_seq of
// each update, so that a mark leads to a seq. The ticker, which also ages by the
// clock, and the tickets, which come on another way, begin with a snapshot.
//
// The channel tickets (our choice) is off unless asked for. Its messages come of
// the desk's commands alone, so a reference price that moves by itself is told
// with the next change; its sequence numbers are by pair and epoch, from 1. The
// desk tells that it has something new, and a goroutine of its own looks, once in
// ticketsInterval at most.
//
// Cost: a delivery is one pointer appended and its share of one write(2);
// what is pending on a connection goes out in one write. Batches that come
// together reach the shards together, at most maxGather at a time. An update
// allocates nothing but the bytes that its subscribers share.
//
// Reading: the reader of a shard waits for all its sockets at once (epoll, on
// Linux; elsewhere, or with the build tag feed_goroutines, a goroutine a
// connection does the same work) and reads at most 16 KiB of one before the
// others have their turn. Frames are held to RFC 6455 to the letter; what breaks
// it ends the connection with 1002, text that is not UTF-8 or does not
// decompress with 1007, and a message that is not whole after 5 s with 1008 (our
// choice), as is the limit of 1,024 frames to a message (4029).
//
// Compression (RFC 7692, no state outlives a message) is for snapshots: one of 100
// levels a side takes 40 µs, once for all who asked for it on a shard, and comes
// out at 0.35 of its size; an update would gain nothing. The window is 256 bytes
// (our choice), which suits a book best and every client's offer. A shard that
// compresses holds 1 MiB for it, a reader that decompresses 100 KiB. What a client
// compresses is held to MaxFrame when it is decompressed too, and counts once more
// for each KiB in its message rate (our choice).
//
// Limits: see Options, and the constants beside it. Connections must be plain
// TCP: TLS ends in front of the service (our choice), because a write that may
// not wait needs the socket itself.
package feed
