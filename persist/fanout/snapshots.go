package fanout

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"blockdesk/persist"
)

// answer gives pieces of snapshots to who asks, one at a time: what waits is
// bounded, and what is too much is asked for again.
func (p *Publisher) serveSnapshots(ctx context.Context, l *link, asks *nats.Subscription) error {
	var buf []byte
	chunk := make([]byte, MaxPieceBytes)
	for {
		m, err := asks.NextMsgWithContext(ctx)
		switch {
		case ended(ctx):
			return nil
		case errors.Is(err, nats.ErrSlowConsumer):
			continue // what was dropped is asked for again
		case err != nil:
			return err
		}
		h, _, err := parseMessage(m.Data)
		if err != nil || h.kind != kindSnapshotRequest || m.Reply == "" {
			p.stats.Unanswered.Add(1)
			continue
		}
		if buf = p.piece(buf[:0], &h, chunk[:l.pieceBytes()]); len(buf) == 0 || m.Respond(buf) != nil {
			p.stats.Unanswered.Add(1)
			continue
		}
		p.stats.Pieces.Add(1)
	}
}

// piece appends the answer to an ask; nothing where there is none.
func (p *Publisher) piece(dst []byte, ask *head, chunk []byte) []byte {
	next, offset := ask.seq, ask.snapshotOffset()
	place, ok := p.journal.NewestSnapshot()
	if next == 0 && !ok {
		// The journal still begins with its first frame: nothing to carry.
		return appendPiece(dst, p.term, 0, &piece{position: persist.Genesis()})
	}
	if next == 0 {
		next, offset = place.Next, 0
	}
	n, size, err := p.journal.ReadSnapshot(next, int64(min(offset, persist.MaxSnapshotFile)), chunk)
	if errors.Is(err, persist.ErrNoSnapshot) {
		// Pruned meanwhile: an answer of another snapshot says so.
		if place, ok = p.journal.NewestSnapshot(); !ok {
			return dst
		}
		n, size, err = p.journal.ReadSnapshot(place.Next, 0, chunk)
		next = place.Next
	}
	if err != nil {
		p.o.Logger.Warn("a snapshot's piece cannot be read", "error", err)
		return dst
	}
	if next != place.Next {
		place = persist.Position{Next: next} // an older one, whose file says the rest
	}
	return appendPiece(dst, p.term, offset, &piece{position: place, size: uint64(size), bytes: chunk[:n]})
}
