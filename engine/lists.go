package engine

import (
	"fmt"

	"blockdesk/engine/lists"
)

// ListCommands appends to dst the 1..MaxPieces commands that carry l, for one SubmitAll, and
// returns the extended slice. The caller sets Origin (the session) and Order.Participant of the
// last one. Errors wrap lists.ErrInvalid.
//
// The encoding of lists.List is split like a desk request (DeskCommands), with the last piece in
// an OrderList. The engine rejects what it cannot decode with ReasonInvalidCommand. State rule 9
// says how it applies a list.
func ListCommands(dst []Command, l *lists.List) ([]Command, error) {
	if err := l.Validate(); err != nil {
		return dst, fmt.Errorf("order list %q: %w", l.Ref, err)
	}
	var buf [lists.MaxBytes]byte
	dst = appendPieces(dst, l.Append(buf[:0]), OrderList, uint64(len(l.Entries)))
	if l.Cancel {
		dst[len(dst)-1].Order.Flags = flagReducesRisk
	}
	return dst, nil
}

// A list fits the pieces of one request. MaxPieces is no function of lists.MaxBytes, because
// it is part of the form of older commands.
var _ [MaxPieces*MaxPiece - lists.MaxBytes]byte
