// Package quorum is the journal of a group of nodes: what is acknowledged is on
// the disks of a majority. Consensus is hashicorp/raft's; ours are its log, what
// its entries mean, and what a leader begins with.
//
// A Node takes part in the group (Run). While it leads it has a Term, which
// stands in for persist.Store and persist.KV: a replica of everything committed
// (Recover), a journal that goes on there (Append), and replicated stores (Store)
// for what gateways must find again: FIX sequence numbers and messages, first
// answers to idempotency keys, settlement's records.
//
//	engine ─frame──▶ Term.Append ─┐                    ┌─▶ chain checked ─▶ warm replica, last events
//	gateway ─batch─▶ Store.Commit ┴▶ raft: a majority ─┴─▶ this node's copy of the stores
//
// A node's folder:
//
//	raft/            a persist.EntryLog: LOCK, mark, frames/, spare/
//	raft/snapshots/  raft's own files around our content (image.go)
//	stores/          a persist.KV: this node's copy of all replicated stores
//
// Invariants:
//  1. Append and a synced Commit return nil only when the entry is on the disks
//     of a majority and this node has judged it.
//  2. An entry is judged by the log before it alone, so alike on every node. What
//     was proposed in a reign that is over is refused (reign: what one Term
//     commits first; everything else that it proposes names it). So no leader of
//     the past, also not one on the same node, has anything acknowledged.
//  3. Frames follow each other (persist.Position), and the events before each are
//     those of the leader's engine, else the node fails.
//  4. Frames and commits of stores are one sequence. A gateway commits what it
//     has read of durable events, so on every node and after every failover its
//     store is as far as the frames or behind them, never ahead; what it lacks
//     Recover gives it (above a floor).
//  5. The first failure of a disk, or an entry that cannot be applied, is final:
//     the node says why, leaves, and does not try again.
//  6. A leader's engine runs ahead of the log. At the end of a term it is thrown
//     away with what was not committed; the next one begins from the warm
//     replica, which has seen committed frames alone.
//
// # Entries
//
// The data of a frame's entry are the frame, byte for byte as on disk and on
// NATS. What raft does not say, kind and reign, is in the entry's extensions
// (entry.go has the bytes; golden in a test). One synced write takes all entries
// that came together. Dropping the oldest ones excises them.
//
// # Followers
//
// A Term is what fanout.Publisher reads. Durable moves when Append returns, and
// Frames ends there, so a follower never gets what no majority has, also of a leader
// that is cut off and does not know it; frames are read from raft's log, where an
// index finds those that were judged good. What comes before the log is in raft's
// newest snapshot: ReadSnapshot gives its replica as a file of persist's, made on the
// first ask from raft's own file, so neither the engine nor the warm replica waits.
// The next leader's frames, epochs and hashes are the same, and its Number is higher,
// so a follower goes on: from the stream, where it has missed something.
//
// # Reads
//
// Verify is the barrier of a linearizable read: a majority has confirmed, after the
// call, that this term lasts. Calls share rounds, one at a time. The answers of a
// round are counted by us (witness): raft's VerifyLeader also counts those of
// non-voters, and those to heartbeats of before it, which may have waited in a socket
// while the process was stopped and another led. Without Verify a read on a leader
// that was deposed and does not know it may be old by the lease, 3/4 of Timeout.
//
// # Failover
//
// With Timeout T the others notice a dead leader after T to 2 T, vote, commit the
// new reign, and the first acknowledgement follows: the replica is warm, and the
// engine gets it, not a copy. What had no answer is committed or not; the client
// asks again with the same ClOrdID or idempotency key and gets the first answer,
// since those are in the stores or are made from the events above their floor.
// DeposedError says who leads. A peer that was away has what it lacks a moment after
// it is back; one that falls silent in the middle of a snapshot is given up after
// stallAfter times T, so that its taker can vote.
//
// Verify proves what a stopped node holds, by replaying its log as its machine would.
//
// # How cmd joins it
//
// `journal: raft` and `peers` open a Node instead of a Store and the KVs. Each
// Term starts the service's stack (gateways' stores from Term.Store, recover with
// Term.Recover, an engine on the term) and its Done ends it; readers stay. Where
// no term is, REST answers 307 with the leader's address or LEADER_CHANGED, FIX
// logs out with a text, WebSocket closes with 1012, readiness says no. The
// co-signing key is loaded by the leader alone and signs after the
// AuthorizeCosign is durable, which is now: after the quorum has it. Rolling
// upgrade, a node at a time: Transfer where it leads, stop, start, wait until
// Status has Applied at Committed.
//
// # Concurrency
//
// Append belongs to the engine's journaler, Recover comes before it. Everything
// else may be called from anywhere. A Commit without sync does not wait for the
// others; a read waits only for commits under way that touch what it reads. What
// must not be old is a command, or a read after Verify.
//
// # Cost
//
// Three nodes in one process on one disk that others used too: the acknowledgement
// of one command p50 3.4 times one fdatasync; 213,000 commands a second in frames
// of 1,000 one at a time, 304,000 through an engine (BenchmarkQuorum,
// BenchmarkEngine). So one frame is under way at a time, as on a single node.
// Each node applies every command a second time, for the warm replica. Verify costs
// a heartbeat to each peer and no disk.
//
// # Limits
//
// MaxPeers, MaxStores, MaxKeyBytes, MaxValueBytes, MaxCommitBytes, MaxTailEvents;
// maxPending commits under way; maxJobs frames ahead of the warm replica. A
// gateway may be behind by TailEvents events, else Recover says projection.ErrPruned.
// A snapshot's replica is encoded in memory, while frames wait in maxJobs. A leader
// whose snapshot was asked for has up to maxCachedSnapshots of them in memory until its term
// ends, made anew at most every snapshotRenew; frames are found by an index of at
// most maxIndexed. Raft's
// snapshot files are on the disk even where Options.FS is not. A node that has
// lost its disk must come back under another ID.
package quorum
