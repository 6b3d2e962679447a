// Package quorum is the journal of a raft group: what is acknowledged is on the disks of
// a majority. hashicorp/raft is the consensus; this package has its log store, the
// meaning of its entries, and the state that a new leader starts with.
//
// A Node is a member of the group (Run). While it leads it has a Term, which replaces
// persist.Store and persist.KV: a replica of everything committed (Recover), a journal
// that continues there (Append), and replicated stores (Store) for what gateways must
// find again: FIX sequence numbers and messages, first answers to idempotency keys,
// settlement's records.
//
//	engine ─frame──▶ Term.Append ─┐                    ┌─▶ chain checked ─▶ standby replica, last events
//	gateway ─batch─▶ Store.Commit ┴▶ raft: a majority ─┴─▶ this node's copy of the stores
//
// A node's folder:
//
//	raft/            a persist.EntryLog: LOCK, mark, frames/, spare/
//	raft/snapshots/  raft's own files around our content (snapshot.go)
//	stores/          a persist.KV: this node's copy of all replicated stores
//
// Invariants:
//  1. Append and a synced Commit return nil only when the entry is on the disks of a
//     majority and this node has applied it.
//  2. Whether an entry is accepted depends on the log before it alone, so all nodes
//     decide alike. The first entry that a Term commits starts it, and every other entry
//     of the Term names that one; entries of a Term that is over are refused. So no
//     former leader, not even one on the same node, can get anything acknowledged.
//  3. Frames form a chain (persist.Position), and the events before each frame are those
//     of the leader's engine, else the node fails.
//  4. Frames and commits of stores are one sequence. A gateway commits what it has read
//     of durable events, so on every node and after every failover its store is as far
//     as the frames or behind them, never ahead. Recover replays what it lacks (above a
//     floor).
//  5. The first failure of a disk, or an entry that cannot be applied, is final: the
//     node logs why, leaves and does not retry.
//  6. A leader's engine runs ahead of the log. At the end of a term it is discarded, with
//     what was not committed; the next one starts from the standby replica, which has
//     applied committed frames alone.
//
// # Entries
//
// The data of a frame's entry are the frame, byte for byte as on disk and on NATS. The
// kind of an entry and the start of its term are in the entry's extensions (entry.go has
// the bytes; a golden test freezes them). One synced write takes all entries that arrived
// together. Deleting the oldest ones excises them.
//
// # Followers
//
// fanout.Publisher reads a Term. Durable moves when Append returns, and Frames ends
// there, so a follower never gets a frame that no majority has, even from a leader that
// is cut off and does not know it. Frames are read from raft's log, with an index of the
// accepted ones. Older commands are in raft's newest snapshot: ReadSnapshot converts its
// replica to a file of persist, at the first request, from raft's own file, so neither
// the engine nor the standby replica waits. The next leader has the same frames, epochs
// and hashes, and a higher Number, so a follower continues; it reads from the stream what
// it has missed.
//
// # Reads
//
// VerifyLeader is the barrier of a linearizable read: a majority has confirmed, after the
// call, that this term lasts. Concurrent calls share a round. This package counts the
// answers itself (ackTransport), because raft's VerifyLeader also counts those of
// non-voters, and those to earlier heartbeats, which may have waited in a socket while the
// process was stopped and another node led. Without VerifyLeader a read on a leader that
// was deposed and does not know it may be stale by the lease, 3/4 of Timeout.
//
// # Formats
//
// The log has a format (format.go). A group whose nodes are upgraded one by one keeps that
// of its oldest program until Finalize, which asks every member by a probe (probe.go) and
// raises it with an entry of its own; a program that does not know a format stops at that
// entry. In format 1 a Term refuses to append what release 0.1.0 does not read.
//
// # An empty folder
//
// A node without a log asks its peers before it begins a group or votes (admission.go). It
// has forgotten its votes if one of them has the group's log, unless that peer saw the same
// folder empty when the group began. Then Admission returns ErrEmptyFolder, the node takes no
// part, and asks on.
//
// # Failover
//
// With Timeout T the peers notice a dead leader after T to 2 T and vote; the new leader
// commits the start of its term, and the first acknowledgement follows, because the
// standby replica is up to date and the engine gets it, not a copy. A command without an
// answer is committed or not: the client sends it again with the same ClOrdID or
// idempotency key and gets the first answer, which is in the stores or is made from the
// events above their floor. DeposedError names the leader. A peer that was away catches
// up a moment after it is back. A peer that falls silent in the middle of a snapshot is
// given up after stallAfter times T, so that the receiver can vote.
//
// Verify checks what a stopped node has, by applying its log as its machine would.
//
// # Use in the service
//
// With `journal: raft` and `peers` the service opens a Node instead of a Store and the
// KVs. Each Term starts the service (gateways' stores from Term.Store, recovery with
// Term.Recover, an engine on the term), and its Done stops it; readers stay. Without a
// term, REST answers 307 with the leader's address or LEADER_CHANGED, FIX logs out with a
// text, WebSocket closes with 1012, and readiness fails. Only the leader loads the signing
// key, and it signs when the CosignClaim or BeginDelivery is durable, which here means on
// a majority. A rolling upgrade takes one node at a time: Transfer if it leads, stop,
// start, wait until Status has Applied at Committed.
//
// # Concurrency
//
// The engine's journaler calls Append; Recover comes before it. All other methods may be
// called from any goroutine. A Commit without sync does not wait for the peers. A read
// waits only for commits under way that touch what it reads. A read that must not be stale
// calls VerifyLeader first, or is a command.
//
// # Cost
//
// With three nodes in one process on one shared disk, the acknowledgement of one command
// takes, at p50, 3.4 times one fdatasync; 213,000 commands a second pass in frames of 1,000
// one at a time, 304,000 through an engine (BenchmarkQuorum, BenchmarkEngine). So one frame
// is under way at a time, as on a single node. Each node applies every command a second
// time, for the standby replica. VerifyLeader costs a heartbeat to each peer and no disk.
//
// # Limits
//
// MaxPeers, MaxStores, MaxKeyBytes, MaxValueBytes, MaxCommitBytes, MaxTailEvents;
// maxPending commits under way; maxJobs frames waiting for the standby replica. A gateway
// may be behind by TailEvents events, else Recover returns projection.ErrPruned. The
// replica of a snapshot is encoded in memory, while frames wait in maxJobs. A leader whose
// snapshot is requested has up to maxCachedSnapshots of them in memory until its term ends,
// renewed at most every snapshotRenew. The index has at most maxIndexed frames. Raft's
// snapshot files are on the disk even if Options.FS is not. The first nodes of a group begin
// when all of them run. maxGreeted incoming connections may have sent nothing yet.
package quorum
