package engine

import (
	"fmt"

	"blockdesk/engine/quotes"
)

// MassQuoteCommands appends to dst the 1..MaxPieces commands that carry q, for one
// SubmitAll, and returns the extended slice. The caller sets Origin (the session) and
// Order.Participant of the last one. Errors wrap quotes.ErrInvalid.
//
// The encoding of quotes.Mass is split like a desk request (DeskCommands), with the last piece
// in a QuoteMass. The engine rejects what it cannot decode with ReasonInvalidCommand. A refused
// entry has no quote afterwards, the others are in force: see State rule 7.
func MassQuoteCommands(dst []Command, q *quotes.Mass) ([]Command, error) {
	if err := q.Validate(); err != nil {
		return dst, fmt.Errorf("mass quote %q: %w", q.Ref, err)
	}
	var buf [quotes.MaxBytes]byte
	dst = appendPieces(dst, q.Append(buf[:0]), QuoteMass, uint64(len(q.Entries)))
	if q.CancelAll || q.Cancel {
		dst[len(dst)-1].Order.Flags = flagReducesRisk
	}
	return dst, nil
}
