package engine

// Journal makes commands durable. persist implements it on Pebble and, for a
// cluster, on raft. The engine's journaler goroutine alone calls it, with one
// call outstanding.
type Journal interface {
	// Append writes one frame: the commands of a, then of b, which follow each
	// other in Seq and begin at a batch's first. prior is the digest of all
	// events that the commands before them caused. It returns when the frame is
	// durable by the journal's mode; then and only then may its events be seen.
	// The commands must not be kept. An error is final: the engine stops
	// acknowledging and goes read-only.
	Append(prior uint64, a, b []Command) error
}
