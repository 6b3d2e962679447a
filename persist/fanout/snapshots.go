package fanout

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"blockdesk/persist"
)

// serveSnapshots answers requests for snapshot pieces, one at a time. The queue is
// bounded; a follower repeats a dropped request.
func (p *Publisher) serveSnapshots(ctx context.Context, l *link, requests *nats.Subscription) error {
	var buf []byte
	chunk := make([]byte, MaxPieceBytes)
	for {
		m, err := requests.NextMsgWithContext(ctx)
		switch {
		case ended(ctx):
			return nil
		case errors.Is(err, nats.ErrSlowConsumer):
			continue // a dropped request is repeated
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

// piece appends the answer to a request, or nothing if there is none.
func (p *Publisher) piece(dst []byte, request *head, chunk []byte) []byte {
	next, offset := request.seq, request.snapshotOffset()
	newest, ok := p.journal.NewestSnapshot()
	if next == 0 && !ok {
		// The journal still begins with its first frame: there is no snapshot to send.
		return appendPiece(dst, p.term, 0, &piece{position: persist.Genesis()})
	}
	if next == 0 {
		next, offset = newest.Next, 0
	}
	n, size, err := p.journal.ReadSnapshot(next, int64(min(offset, persist.MaxSnapshotFile)), chunk)
	if errors.Is(err, persist.ErrNoSnapshot) {
		// The snapshot was pruned since the last request. The answer begins the newest
		// one, and its position shows the follower that it must start again.
		if newest, ok = p.journal.NewestSnapshot(); !ok {
			return dst
		}
		n, size, err = p.journal.ReadSnapshot(newest.Next, 0, chunk)
		next = newest.Next
	}
	if err != nil {
		p.o.Logger.Warn("reading a snapshot for a follower failed", "error", err)
		return dst
	}
	at := newest
	if next != newest.Next {
		at = persist.Position{Next: next} // an older one, whose file has the rest
	}
	return appendPiece(dst, p.term, offset, &piece{position: at, size: uint64(size), bytes: chunk[:n]})
}
