// Package persist makes commands durable: the write-ahead journal on Pebble, its
// snapshots and their recovery, backups, the key-value stores of the gateways (KV), and
// the log of a raft group (EntryLog; see persist/quorum). It is the only package that
// imports Pebble.
//
// A store is a folder:
//
//	LOCK          one process at a time
//	mark          the high-water mark
//	frames/       a Pebble database: key = first Seq, big-endian; value = one frame
//	frames/log/   Pebble's own write-ahead logs
//	snapshots/    <seq>.snap, replicas of the state; *.damaged were set aside
//	spare/        log files written ahead
//	unsynced-a,b  in mode Interval, the frames acknowledged and not yet synced
//
// Invariants:
//  1. In mode Sync, Append returns nil only when its frame is on disk and the
//     high-water mark names it. In mode Interval it returns when the operating
//     system has the frame, and Health.Durable says what is on disk.
//  2. Frames form a chain: Seq has no gap, and each frame has the hash of the frame
//     before and the digest of all events before its first command.
//  3. After the first failed write or sync nothing is acknowledged or retried, and the
//     files of Pebble stay as they are; Pebble continues in memory. So no call waits
//     for a disk that has failed: writes and Close return ErrFailed, reads go on.
//  4. Open and Recover either return everything acknowledged, or refuse with a
//     *DamageError and change nothing.
//  5. A snapshot is at the end of a durable frame. Frames are pruned only if
//     KeepSnapshots snapshots exist, the oldest of them was read and is valid, and
//     every consumer is past it (SetFloor).
//
// # Frame
//
// A frame is one record with all commands that became durable together. It has the same
// bytes on disk, in a raft log and on the wire. Schema version 1, little-endian, frozen
// by a golden test:
//
//	 0        4         6        8       16      24      28        32        40       48
//	┌────────┬─────────┬────────┬───────┬───────┬───────┬─────────┬─────────┬────────┬─────────┬────────┐
//	│ "BDFJ" │ version │ header │ epoch │ first │ count │ payload │ previous│ event  │ payload │ CRC32C │
//	│        │    1    │  = 48  │       │  seq  │       │  bytes  │  hash   │  hash  │    …    │        │
//	└────────┴─────────┴────────┴───────┴───────┴───────┴─────────┴─────────┴────────┴─────────┴────────┘
//
// epoch is the one after the last command; previous hash is the XXH64 of the whole frame
// before (0 for the first); event hash is engine.Replica.Digest before the first
// command; CRC32C covers all bytes before it. The payload has count records, one a
// command. Seq is not stored: it counts up from first.
//
//	 0        1         2      3        4      5      6     7       8     9
//	┌────────┬─────────┬──────┬────────┬──────┬──────┬─────┬───────┬─────┬─────────┐
//	│ record │ present │ kind │ status │ side │ type │ TIF │ flags │ STP │ ref len │
//	│  bytes │  bits   │      │        │      │      │     │       │     │         │
//	├────────┴─────────┼──────┴────────┼──────┴──────┼─────┴───────┴─────┴─────────┤
//	│ 10 participant   │ 12 instrument │ 14 origin   │ 16 words … then the ref …   │
//	└──────────────────┴───────────────┴─────────────┴─────────────────────────────┘
//
// The words are 8 bytes each, in this order, each present only if its bit of present
// (from bit 0) is set: At, order id, price, stop, qty, display, expire at, arg. At is
// left out if it equals that of the record before (0 before the first), the others if
// they are zero. So a command has one encoding; a usual one takes 34 to 50 bytes.
//
// # High-water mark
//
// Pebble takes the end of its log for the end of the data: a log that was cut short, or
// damaged near its end, opens without an error and with less content. The high-water
// mark is a record outside Pebble that detects this. Its file has three slots, each 64
// bytes at the start of a 4096-byte block; the valid one with the highest count is the
// newest:
//
//	 0        4         6       7   8       16         24            32         40      48    60
//	┌────────┬─────────┬───────┬───┬───────┬──────────┬─────────────┬──────────┬───────┬─────┬────────┐
//	│ "BDFM" │ version │ phase │ 0 │ count │ last seq │ first seq   │ hash of  │ epoch │  0  │ CRC32C │
//	│        │    1    │       │   │       │ durable  │ of its frame│ its frame│       │     │        │
//	└────────┴─────────┴───────┴───┴───────┴──────────┴─────────────┴──────────┴───────┴─────┴────────┘
//
// It is written after the frame is on disk and before the acknowledgement, into the page
// cache. Run syncs it within HighWaterMarkInterval (5 ms), at once when the journal is idle.
// So the next Open detects:
//
//	after a kill or a close     any loss of anything acknowledged
//	after a power failure       the same, unless the disk loses synced frames of the last
//	                            HighWaterMarkInterval only, and the mark with them
//
// SyncHighWaterMark closes that gap: it syncs the mark before each acknowledgement. The two
// syncs must follow each other, because a mark that becomes durable together with its
// frame cannot tell a lost frame from one that never existed. (Two parallel
// syncs, with the frame's bytes in the side file, cost 1.5 to 1.7 of one.)
//
// Open cuts an incomplete tail, a frame that was never acknowledged, at the last complete
// frame and logs it.
//
// # Snapshot
//
// A snapshot has a header of 96 bytes (magic "BDFS", version, seq, epoch, hash of the
// frame that ends there, event digest, SHA-256 of the state, length and XXH64 of the
// content, CRC32C), then chunks of 256 KiB, each with its length and CRC32C. The content
// is engine.Replica.AppendSnapshot. A second replica makes it, which reads the durable
// frames back from Pebble in its own goroutine, so the live engine never stops.
//
// # Concurrency
//
// The engine's journaler calls Append, one call at a time. Run's goroutines sync the
// high-water mark and, in mode Interval, the frames, make snapshots and watch the disk.
// Health, SetFloor, Backup, Durable, SetWake, Frames, NewestSnapshot and ReadSnapshot may
// be called from any goroutine; persist/fanout reads the journal with them.
//
// # Cost
//
// Encoding takes 15 to 22 ns a command, decoding 33 to 44, hashing 4. The high-water mark
// costs one pwrite of 64 bytes a frame, and in mode Interval each frame one pwrite more.
// Spare logs make the first syncs as fast as the
// later ones. BenchmarkJournal compares with a plain file; see also BenchmarkRecovery.
//
// # Limits
//
// MaxFrameCommands, MaxFrameBytes, MaxSnapshotBytes; MaxEntryBytes; MaxKeyBytes,
// MaxValueBytes and MaxCommitBytes of a KV; those of Options. After a failure, memory
// holds what Pebble's write buffers held, as tables: at most five times MemTableBytes. A
// hung disk, which neither succeeds nor fails, blocks the caller.
package persist
