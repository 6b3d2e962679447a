// Package persist makes commands durable: the write-ahead journal on Pebble, its
// snapshots and their recovery, backup, the FIX gateway's store (KV), and the log
// that a group of nodes keeps for its consensus (EntryLog; persist/quorum). It is
// the only room that knows Pebble.
//
// A store is a folder:
//
//	LOCK          one process at a time
//	mark          the high-water mark
//	frames/       a Pebble database: key = first Seq, big-endian; value = one frame
//	frames/log/   Pebble's own write-ahead logs
//	snapshots/    <seq>.snap, replicas of the state; *.damaged were set aside
//	spare/        log files written ahead
//
// Invariants:
//  1. In mode Sync, Append returns nil only when its frame is on disk and the
//     mark names it. In mode Interval it returns when the frame is written, and
//     Health.Durable says what is on disk.
//  2. Frames follow each other: no gap in Seq, each names the hash of the one
//     before and the digest of all events before its first command.
//  3. After the first failed write or sync nothing is acknowledged, nothing is
//     retried and Pebble's folder is frozen as it is; Pebble goes on in memory.
//     So no call waits for what the disk did not do: what writes returns
//     ErrFailed, Close too, and reading goes on.
//  4. Open and Recover either give back everything acknowledged, or refuse with
//     a *DamageError and change nothing.
//  5. A snapshot stands at the end of a durable frame; frames go only when as
//     many snapshots as are to be kept are there, the oldest of them has been
//     read whole, and every consumer is past it (SetFloor).
//
// # Frame
//
// One record a frame, all commands that became durable together; the same bytes
// on disk, in a raft log and on the wire. Schema version 1, little-endian,
// frozen by a golden test:
//
//	 0        4         6        8       16      24      28        32        40       48
//	┌────────┬─────────┬────────┬───────┬───────┬───────┬─────────┬─────────┬────────┬─────────┬────────┐
//	│ "BDFJ" │ version │ header │ epoch │ first │ count │ payload │ previous│ event  │ payload │ CRC32C │
//	│        │    1    │  = 48  │       │  seq  │       │  bytes  │  hash   │  hash  │    …    │        │
//	└────────┴─────────┴────────┴───────┴───────┴───────┴─────────┴─────────┴────────┴─────────┴────────┘
//
// epoch is that in force after the last command; previous hash is the XXH64 of
// the whole frame before (0 for the first); event hash is engine.Replica.Digest
// before the first command; CRC32C covers all bytes before it. The payload is
// count records, one a command; Seq is not stored, it counts up from first:
//
//	 0        1         2      3        4      5      6     7       8     9
//	┌────────┬─────────┬──────┬────────┬──────┬──────┬─────┬───────┬─────┬─────────┐
//	│ record │ present │ kind │ status │ side │ type │ TIF │ flags │ STP │ ref len │
//	│  bytes │  bits   │      │        │      │      │     │       │     │         │
//	├────────┴─────────┼──────┴────────┼──────┴──────┼─────┴───────┴─────┴─────────┤
//	│ 10 participant   │ 12 instrument │ 14 origin   │ 16 words … then the ref …   │
//	└──────────────────┴───────────────┴─────────────┴─────────────────────────────┘
//
// The words are 8 bytes each, in this order, each there only if its bit of
// present (from bit 0) is set: At, order id, price, stop, qty, display,
// expire at, arg. At is left out when it is that of the record before (0 before
// the first), the others when they are zero. So a command has one encoding, and
// a usual one takes 34 to 50 bytes.
//
// # Mark
//
// Pebble takes the end of its log for the end of the data: a log that was cut
// short, or damaged near its end, opens without a word and with less in it. The
// mark is the witness outside. Three slots, each 64 bytes at the start of a
// 4096-byte block; the whole one with the highest count is the newest:
//
//	 0        4         6       7   8       16         24            32         40      48    60
//	┌────────┬─────────┬───────┬───┬───────┬──────────┬─────────────┬──────────┬───────┬─────┬────────┐
//	│ "BDFM" │ version │ phase │ 0 │ count │ last seq │ first seq   │ hash of  │ epoch │  0  │ CRC32C │
//	│        │    1    │       │   │       │ durable  │ of its frame│ its frame│       │     │        │
//	└────────┴─────────┴───────┴───┴───────┴──────────┴─────────────┴──────────┴───────┴─────┴────────┘
//
// It is written after the frame is on disk and before the acknowledgement, into
// the page cache; Run syncs it within WatermarkInterval (5 ms), at once when the
// journal rests. Hence, what is seen at the next Open:
//
//	the process is killed, or closes     any loss of anything acknowledged, exactly
//	power fails                          the same, except where the disk at the same
//	                                     time loses synced frames of the last
//	                                     WatermarkInterval and nothing before them
//
// That last case is closed by SyncWatermark, which syncs the mark before each
// acknowledgement: two syncs that must follow each other, since a mark that is
// made durable together with its frame cannot tell a frame that was lost from one
// that never was. Tried: the two syncs in parallel (with the frame's bytes in the
// side file) cost 1.5 to 1.7 of one.
//
// A torn tail, a frame that was never acknowledged, is cut at the last whole
// frame, and said in the log.
//
// # Snapshot
//
// Header of 96 bytes (magic "BDFS", version, seq, epoch, hash of the frame that
// ends there, event digest, SHA-256 of the state, length and XXH64 of the
// content, CRC32C), then chunks of 256 KiB, each with its length and CRC32C. The
// content is engine.Replica.AppendSnapshot. A second engine makes it: it reads
// the durable frames back from Pebble in its own goroutine.
//
// # Concurrency
//
// Append belongs to the engine's journaler, with one call outstanding. Run's
// goroutines keep the mark, the second engine, the interval and the disk watch.
// Health, SetFloor and Backup are safe from anywhere, and so are Durable, SetWake,
// Frames, NewestSnapshot and ReadSnapshot, by which package fanout reads along.
//
// # Cost
//
// Encoding 15 to 22 ns a command, decoding 33 to 44, hashing 4. One pwrite of 64
// bytes a frame for the mark. A spare log makes the first syncs as cheap as the
// later ones. See BenchmarkJournal for the ratio to a plain file and
// BenchmarkRecovery.
//
// # Limits
//
// MaxFrameCommands, MaxFrameBytes, MaxSnapshotBytes; MaxEntryBytes; MaxKeyBytes, MaxValueBytes
// and MaxCommitBytes of a KV; those of Options. After a failure the memory holds,
// as tables, what Pebble's write buffers held: five times MemTableBytes at most.
// A disk that neither does nor fails holds up who asked it.
package persist
