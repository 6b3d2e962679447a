// Package fanout carries a leader's durable frames to readers on other machines,
// over NATS. It is the only room that knows NATS; redelivery, storage and routing
// are the server's.
//
//	journal ─▶ live cursor ──────▶ <prefix>.live      core NATS: frames and beats
//	   │  └──▶ the cache's cursor ▶ <prefix>.cache    the stream <prefix>-cache
//	   └─────▶ snapshots ◀────────▶ <prefix>.snapshot  asked for in pieces
//
//	<prefix>.live ─▶ Follower ─▶ chain ─▶ Applier (engine.Follow) ─▶ its consumers
//	                    │ a gap
//	                    └──────▶ the stream, from the frame that is missing
//
// Invariants:
//  1. Nothing is published that is not durable: both cursors read Journal.Frames,
//     which ends at what is acknowledged; in a group, at what a majority has and the
//     leader has judged good (quorum.Term).
//  2. The engine and the journal wait for nothing here. The journal's one act is
//     a send to a channel that is dropped where it would wait.
//  3. A follower applies each frame once, in order. Its place holds the next Seq,
//     the hash of the frame before and the epoch; a frame must fit all three, its
//     own CRC32C and the digest of all events before it. What does not fit is a
//     gap (refilled), a duplicate (passed over), damage (dropped, so a gap) or
//     another history (ErrDiverged).
//  4. A loss at the end, after which nothing comes, is seen too: the leader beats,
//     and each beat names the place that it stands behind on the same connection.
//  5. The stream is a cache. Positions are acknowledged one after the other; where
//     one is not, or the newest message is no frame of this journal, the stream is
//     deleted and filled anew from the newest snapshot on. Losing it loses nothing.
//  6. A leader with a lower term than one that was heard is not heard. A follower
//     that has what the leader does not have stops with ErrDiverged.
//
// # Messages
//
// Version 1, little-endian, frozen by a golden test:
//
//	 0        4         5      6   8      16     24      28       32
//	┌────────┬─────────┬──────┬───┬──────┬──────┬───────┬────────┬────────┬────────┐
//	│ "BDFN" │ version │ kind │ 0 │ term │ seq  │ total │ offset │ body … │ CRC32C │
//	└────────┴─────────┴──────┴───┴──────┴──────┴───────┴────────┴────────┴────────┘
//
//	kind 1, a piece of a frame   seq is its first; total and offset are bytes of it;
//	                             the body is the bytes
//	kind 2, a beat               seq comes next; hash u64, epoch u64, durable u64,
//	                             the leader's clock i64 (Unix ns)
//	kind 3, an ask               seq comes after the snapshot, 0 = the newest; total
//	                             and offset are one u64, the offset; no body
//	kind 4, a snapshot's piece   as the ask; hash u64, epoch u64, size u64, the bytes
//
// A frame of more than MaxPieceBytes, or than the server takes, goes in pieces. A
// message in the stream has the id epoch/first seq/offset.
//
// # The next leader
//
// Each leader publishes with its own term: the epoch on a single node, raft's term in
// a group. The next one goes on with the same history: it finds the stream's last
// frame in its own log and fills on behind it, so who has missed the last live frames
// refills. A leader of the past that publishes on for a moment is not heard by who
// has heard the next one, and can add nothing but durable frames that are the same;
// where two write the stream at once, the acknowledged positions show it, and the
// leader fills it anew. cmd runs Publisher.RunWithRetry beside the service: its failures are
// logged and tried again, and end nothing.
//
// # Joining
//
// Join asks the leader for its newest snapshot in pieces and proves every checksum
// of the file and the hash of its state; a leader without one has a journal that
// begins with its first frame, and the follower an empty replica. From there on the
// stream has the frames, until the live ones follow. The object store of JetStream
// was not taken: it would hold every snapshot twice, whether or not anybody joins,
// and a leader with a full stream could not be joined.
//
// An engine cannot be moved under its consumers, so a follower that the stream does
// not reach any more (ErrBehind), or that followed what was no history (ErrDiverged),
// starts over: Join, a new engine, new views.
//
// # What a follower serves
//
// Its engine's consumers see the leader's events with the leader's Seq, At, epoch
// and trade ids, so books, trades, tickets and checksums are equal. Submit says
// ErrReadOnly. A view's Seqs (DepthSeq, TradesSeq) are the leader's too, wherever
// the follower joined: they are a function of the journal, counted as events are
// applied, once a batch, and part of the snapshot (engine.MarketData). That was
// taken before the leader's feed telling its counts beside the snapshot: nothing
// has to be told, a leader that merges what it is far behind in counts on, and a
// test needs no network. A client may move between leader and followers with
// `resume`; one that is ahead of where it comes to waits for what it has not had.
//
// Not comparable are the ticker's Seq, since a quiet market's minutes come of each
// machine's clock, and the Seq of tickets, which come of each machine's looks at
// its desk: neither is resumed, both begin with a snapshot.
//
// # Concurrency
//
// Publisher.Run has three goroutines, Follower.Run one; Stats, Lag and Ready are
// safe from anywhere.
//
// # Cost and limits
//
// See BenchmarkPublish and BenchmarkLag. Limits: those of Options and of the
// constants beside it; the window to the stream holds CacheWindow messages of
// MaxMessageBytes, a follower's live queue LiveQueueBytes. Whoever may publish on
// the subjects can stop followers with messages of a high term: the server's
// accounts keep others out (Auth, TLS).
package fanout
