package fanout

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/persist"
)

// Journal is what a Publisher reads: persist.Store, or the quorum.Term of who leads.
type Journal interface {
	// Durable is the place up to which everything is acknowledged.
	Durable() persist.Position
	// SetWake names a channel that is sent to when Durable has moved.
	SetWake(wake chan<- struct{})
	// Frames visits the durable frames from the one that begins at a Seq on.
	Frames(from uint64, visit func(f *persist.Frame, encoded []byte) bool) error
	// NewestSnapshot returns its place; false: there is none.
	NewestSnapshot() (persist.Position, bool)
	// ReadSnapshot reads a part of a snapshot's file and tells the file's length.
	ReadSnapshot(next uint64, offset int64, p []byte) (n int, size int64, err error)
}

// visitBytes is how much one visit of the journal reads before it lets go of it.
const visitBytes = 1 << 20

// Publisher carries a leader's durable frames to its followers. Three goroutines,
// each with its own cursor, none of which anybody waits for: the live one
// publishes what becomes durable, the cache's one fills the stream, the third
// answers who asks for a snapshot.
type Publisher struct {
	o       Options
	journal Journal
	// term orders leaders: a follower that has heard of a higher one hears
	// nothing of this.
	term  uint64
	stats PublisherStats

	wake    chan struct{} // of the live cursor, by the journal
	refresh chan struct{} // of the cache's, by the live one
}

// PublisherStats count since the start. Safe to read at any time.
type PublisherStats struct {
	// Frames, Messages and Bytes were published live; Unsent frames were not, for
	// want of a server: followers find them in the stream.
	Frames, Messages, Bytes, Unsent atomic.Uint64
	// LiveSeq is the last Seq that the live cursor has passed, CachedSeq the last
	// that the stream has acknowledged.
	LiveSeq, CachedSeq atomic.Uint64
	// Acked messages are in the stream; Refused ones are not, or nobody knows;
	// Fills counts how often the stream was filled anew.
	Acked, Refused, Fills atomic.Uint64
	// Pieces of snapshots were given out; Asks that could not be answered are in
	// Unanswered.
	Pieces, Unanswered atomic.Uint64
	LinkStats
}

// NewPublisher prepares a publisher of journal for the leader of a term, which is
// at least 1 and higher than that of every leader before: the epoch, on a single
// node; quorum.Term's Number, in a group. Errors: those of Options.Validate.
func NewPublisher(o Options, journal Journal, term uint64) (*Publisher, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if term == 0 {
		return nil, errors.New("fan-out: a leader's term is at least 1")
	}
	return &Publisher{
		o: o.withDefaults(), journal: journal, term: term,
		wake: make(chan struct{}, 1), refresh: make(chan struct{}, 1),
	}, nil
}

// Stats returns the counters.
func (p *Publisher) Stats() *PublisherStats { return &p.stats }

// Run publishes until ctx ends, whatever becomes of the servers. It must end
// before the journal is closed. An error of it is none of the leader's, which goes
// on without followers: see Keep. One at a time. Errors: that of an option of the
// connection, those of the journal's disk.
func (p *Publisher) Run(ctx context.Context) error {
	l, err := dial(&p.o, "leader", &p.stats.LinkStats)
	if err != nil {
		return err
	}
	defer l.Close()
	asks, err := l.SubscribeSync(p.o.snapshotSubject())
	if err != nil {
		return fmt.Errorf("fan-out: subscribing: %w", err)
	}
	if err := asks.SetPendingLimits(RequestQueue, RequestQueue*MaxMessageBytes); err != nil {
		return fmt.Errorf("fan-out: limiting a queue: %w", err)
	}
	p.journal.SetWake(p.wake)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.live(ctx, l) })
	g.Go(func() error { return p.fill(ctx, l) })
	g.Go(func() error { return p.serveSnapshots(ctx, l, asks) })
	return g.Wait()
}

// Keep is Run for a leader that goes on whatever becomes of its followers: an error
// is logged, and Run begun again after a pause. It returns nil when ctx ends.
func (p *Publisher) RunWithRetry(ctx context.Context) error {
	for try := 0; ; try++ {
		began := p.o.Clock()
		err := p.Run(ctx)
		if ended(ctx) {
			return nil
		}
		if p.o.Clock().Sub(began) > lastPause {
			try = 0
		}
		p.o.Logger.Error("the fan-out has failed: followers wait", "try", try, "error", err)
		if !sleep(ctx, pause(try)) {
			return nil
		}
	}
}

// live publishes what becomes durable, and beats.
func (p *Publisher) live(ctx context.Context, l *link) error {
	at := p.journal.Durable()
	beats := time.NewTicker(p.o.Heartbeat)
	defer beats.Stop()
	var buf []byte
	for {
		more, err := p.publish(l, &at, &buf)
		if err != nil {
			return err
		}
		select {
		case p.refresh <- struct{}{}:
		default:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-beats.C:
			p.sendHeartbeat(l, at, &buf)
			continue
		default:
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-beats.C:
			p.sendHeartbeat(l, at, &buf)
		}
	}
}

// publish sends the next durable frames and reports whether there are more.
func (p *Publisher) publish(l *link, at *persist.Position, buf *[]byte) (more bool, err error) {
	bytes, most := 0, l.pieceBytes()
	var broken error
	err = p.journal.Frames(at.Next, func(f *persist.Frame, encoded []byte) bool {
		if broken = at.Advance(f, persist.HashFrame(encoded)); broken != nil {
			return false
		}
		sent := true
		eachPiece(encoded, most, func(offset int, part []byte) bool {
			h := head{kind: kindFramePiece, term: p.term, seq: f.First, total: uint32(len(encoded)), offset: uint32(offset)}
			*buf = appendMessage((*buf)[:0], &h, part)
			sent = l.Publish(p.o.liveSubject(), *buf) == nil
			return sent
		})
		p.sent(f, len(encoded), most, sent)
		bytes += len(encoded)
		more = bytes >= visitBytes
		return !more
	})
	if errors.Is(err, persist.ErrNoFrame) {
		// So far behind that the journal was pruned: followers have the stream.
		p.o.Logger.Warn("live frames passed over", "from_seq", at.Next, "to_seq", p.journal.Durable().Next-1)
		*at, err = p.journal.Durable(), nil
	}
	if err = errors.Join(err, broken); err != nil {
		return false, fmt.Errorf("fan-out: reading the journal: %w", err)
	}
	p.stats.LiveSeq.Store(at.Next - 1)
	return more, nil
}

func (p *Publisher) sent(f *persist.Frame, bytes, most int, ok bool) {
	if !ok {
		p.stats.Unsent.Add(1)
		return
	}
	p.stats.Frames.Add(1)
	p.stats.Messages.Add(uint64((bytes + most - 1) / most))
	p.stats.Bytes.Add(uint64(bytes))
}

// beat tells where the live cursor is, behind all that it has published.
func (p *Publisher) sendHeartbeat(l *link, at persist.Position, buf *[]byte) {
	now := p.o.Clock().UnixNano() // before durable: see Follower.onHeartbeat
	b := heartbeat{position: at, durable: p.journal.Durable().Next - 1, at: now}
	*buf = appendHeartbeat((*buf)[:0], p.term, &b)
	_ = l.Publish(p.o.liveSubject(), *buf) // without a server there is nobody to hear it
}

// eachPiece cuts a frame into pieces of at most most bytes until give says no.
func eachPiece(frame []byte, most int, give func(offset int, part []byte) bool) {
	for offset := 0; offset < len(frame); offset += most {
		if !give(offset, frame[offset:min(len(frame), offset+most)]) {
			return
		}
	}
}
