// Package fanout publishes a leader's durable frames to followers on other machines,
// over NATS. It is the only package that imports NATS; redelivery, storage and routing
// are the server's.
//
//	journal ─▶ live ─────────────▶ <prefix>.live      core NATS: frames and heartbeats
//	   │  └──▶ filler ───────────▶ <prefix>.cache     the stream <prefix>-cache
//	   └─────▶ snapshots ◀───────▶ <prefix>.snapshot  requested in pieces
//
//	<prefix>.live ─▶ Follower ─▶ chain ─▶ Applier (engine.Follow) ─▶ its consumers
//	                    │ a gap
//	                    └──────▶ the stream, from the missing frame on
//
// Invariants:
//  1. Only durable frames are published: live and filler read Journal.Frames, which ends
//     at what is acknowledged; in a group, at what a majority has and the leader has
//     applied (quorum.Term).
//  2. The engine and the journal never wait for the fan-out. The journal only sends to a
//     channel, without blocking.
//  3. A follower applies each frame once, in order. A frame must fit the follower's
//     position (next Seq, hash of the frame before, epoch), its own CRC32C and the digest
//     of all events before it. Otherwise it is a gap (refilled), a duplicate (skipped),
//     damaged (dropped, so a gap) or from another history (ErrDiverged).
//  4. A loss at the end, with no frame after it, is detected too: each heartbeat has the
//     position up to which the leader has published on the same connection.
//  5. The stream is a cache. Stream sequences are acknowledged one after the other; if one
//     is missing, or the newest message is not a frame of this journal, the stream is
//     deleted and filled again from the newest snapshot on. Losing it loses nothing.
//  6. A follower ignores a leader with a lower term than one that it has heard. A follower
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
//	kind 2, a heartbeat          seq comes next; hash u64, epoch u64, durable u64,
//	                             the leader's clock i64 (Unix ns)
//	kind 3, a snapshot request   seq comes after the snapshot, 0 = the newest; total
//	                             and offset are one u64, the offset; no body
//	kind 4, a snapshot's piece   as the request; hash u64, epoch u64, size u64, the bytes
//
// A frame longer than MaxPieceBytes, or than the server accepts, is sent in pieces. A
// message in the stream has the id epoch/first seq/offset.
//
// # The next leader
//
// Each leader publishes with its own term: the epoch on a single node, raft's term in a
// group. The next leader continues the same history: it finds the stream's last frame in
// its own log and fills the stream from there, so a follower that has missed the last live
// frames refills. Followers that have heard the next leader ignore a former one that still
// publishes; what it adds are durable frames, which are the same. If two write the stream
// at once, the acknowledged sequences show it and the leader fills the stream again. The
// service runs Publisher.RunWithRetry, whose failures are logged and end nothing.
//
// # Joining
//
// Join requests the leader's newest snapshot in pieces and verifies every checksum of the
// file and the hash of its state. A leader without a snapshot has a journal that begins
// with its first frame, so the follower starts with an empty replica. The stream has the
// frames from there on, until the live ones follow. JetStream's object store is not used:
// it would hold every snapshot twice whether or not anyone joins, and nobody could join a
// leader whose stream is full.
//
// An engine cannot be replaced under its consumers, so a follower that the stream does not
// reach any more (ErrBehind), or that has diverged (ErrDiverged), starts over: Join, a new
// engine, new views.
//
// # What a follower serves
//
// Its engine's consumers see the leader's events with the leader's Seq, At, epoch and trade
// ids, so books, trades, tickets and checksums are equal. Submit returns ErrReadOnly. A
// view's Seqs (DepthSeq, TradesSeq) are the leader's too, wherever the follower joined,
// because they are a function of the journal and part of the snapshot
// (marketdata.Data). So a client may move between leader and followers with `resume`; if
// it is ahead of the new server it waits.
//
// Not comparable are the ticker's Seq, because a quiet market's minutes depend on each
// machine's clock, and the Seq of tickets, which counts each machine's reads of its desk.
// Neither is resumed; both begin with a snapshot.
//
// # Concurrency
//
// Publisher.Run has three goroutines, Follower.Run one. Stats, Lag and Ready may be called
// from any goroutine.
//
// # Cost and limits
//
// See BenchmarkPublish and BenchmarkLag. The limits are those of Options and the constants
// beside it; CacheWindow messages of MaxMessageBytes are on their way to the stream,
// LiveQueueBytes wait at a follower. A client that may publish on the subjects can stop
// followers with messages of a high term: NATS accounts must keep others out (Auth, TLS).
package fanout
