package session

// draft is an application message without header: its body is fields as
// "tag=value" with SOH between them, without firstTag's name and the last SOH.
type draft struct {
	msgType    string
	firstTag   int
	possResend bool
	from, to   int // of the body in batch.bodies
}

// Batch is messages of one session that go out together. One goroutine at a time.
type Batch struct {
	Drafts []draft
	bodies []byte
	// Before is called under the mutex of the session's outbound, right before the batch gets its
	// numbers; nil = nothing is.
	Before func()
}

// maxKeptBodies is the largest buffer that an empty batch keeps.
const maxKeptBodies = 64 << 10

// Add copies body.
func (b *Batch) Add(msgType string, firstTag int, body []byte, possResend bool) {
	from := len(b.bodies)
	b.bodies = append(b.bodies, body...)
	b.Drafts = append(b.Drafts, draft{msgType, firstTag, possResend, from, len(b.bodies)})
}

// Clear empties the batch for reuse.
func (b *Batch) Clear() {
	b.Drafts = b.Drafts[:0]
	if b.bodies = b.bodies[:0]; cap(b.bodies) > maxKeptBodies {
		b.bodies = nil
	}
}

// number is called when the batch is about to get its numbers.
func (b *Batch) number() {
	if b.Before != nil {
		b.Before()
	}
}
