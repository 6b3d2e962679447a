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

// Journal is what a Publisher reads: persist.Store, or the leader's quorum.Term.
type Journal interface {
	// Durable returns the position up to which everything is acknowledged.
	Durable() persist.Position
	// SetWake sets the channel to which the journal sends a value when Durable moves.
	SetWake(wake chan<- struct{})
	// Frames visits the durable frames from the one that begins at from on.
	Frames(from uint64, visit func(f *persist.Frame, encoded []byte) bool) error
	// NewestSnapshot returns its position; false: there is none.
	NewestSnapshot() (persist.Position, bool)
	// ReadSnapshot reads a part of a snapshot's file and returns the file's length.
	ReadSnapshot(next uint64, offset int64, p []byte) (n int, size int64, err error)
}

// visitBytes bounds what one visit reads, because a visit pins the journal's tables.
const visitBytes = 1 << 20

// Publisher publishes a leader's durable frames. It has three goroutines, and nothing
// waits for them: one publishes what becomes durable, one fills the stream, one answers
// requests for snapshots. The first two each read the journal at their own position.
type Publisher struct {
	o       Options
	journal Journal
	// term orders leaders: a follower ignores a leader whose term is lower than one that
	// it has seen.
	term  uint64
	stats PublisherStats

	wake    chan struct{} // the journal wakes live
	refresh chan struct{} // live wakes fill
}

// PublisherStats counts since the start. Any goroutine may read it.
type PublisherStats struct {
	// Frames, Messages and Bytes were published live. Unsent frames were not, because
	// no server was connected: followers find them in the stream.
	Frames, Messages, Bytes, Unsent atomic.Uint64
	// LiveSeq is the last Seq published live or skipped, StreamSeq the last that the
	// stream has acknowledged.
	LiveSeq, StreamSeq atomic.Uint64
	// Acked messages are in the stream; Refused ones are not, or it is unknown. Fills
	// counts how often the stream was filled again.
	Acked, Refused, Fills atomic.Uint64
	// Pieces of snapshots were sent; Unanswered requests were not.
	Pieces, Unanswered atomic.Uint64
	LinkStats
}

// NewPublisher returns a publisher of journal for the leader of a term, which is at
// least 1 and higher than that of every leader before: the epoch on a single node,
// quorum.Term.Number in a group. Errors: those of Options.Validate.
func NewPublisher(o Options, journal Journal, term uint64) (*Publisher, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if term == 0 {
		return nil, errors.New("fan-out: term 0: a leader's term is at least 1")
	}
	return &Publisher{
		o: o.withDefaults(), journal: journal, term: term,
		wake: make(chan struct{}, 1), refresh: make(chan struct{}, 1),
	}, nil
}

// Stats returns the counters.
func (p *Publisher) Stats() *PublisherStats { return &p.stats }

// Run publishes until ctx ends; it survives any failure of the servers. It must end
// before the journal is closed. After an error the leader may continue without
// followers: see RunWithRetry. Only one Run at a time. Errors: an invalid option of the
// connection, those of the journal's disk.
func (p *Publisher) Run(ctx context.Context) error {
	l, err := dial(&p.o, "leader", &p.stats.LinkStats)
	if err != nil {
		return err
	}
	defer l.Close()
	requests, err := l.SubscribeSync(p.o.snapshotSubject())
	if err != nil {
		return fmt.Errorf("fan-out: subscribing: %w", err)
	}
	if err := requests.SetPendingLimits(RequestQueue, RequestQueue*MaxMessageBytes); err != nil {
		return fmt.Errorf("fan-out: setting the queue limit: %w", err)
	}
	p.journal.SetWake(p.wake)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.live(ctx, l) })
	g.Go(func() error { return p.fill(ctx, l) })
	g.Go(func() error { return p.serveSnapshots(ctx, l, requests) })
	return g.Wait()
}

// RunWithRetry calls Run until ctx ends and returns nil. It logs an error and calls Run
// again after a pause, because a failure of the fan-out must not stop the leader.
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
		p.o.Logger.Error("fan-out failed, trying again", "try", try, "error", err)
		if !sleep(ctx, pause(try)) {
			return nil
		}
	}
}

// live publishes what becomes durable, and heartbeats.
func (p *Publisher) live(ctx context.Context, l *link) error {
	at := p.journal.Durable()
	heartbeats := time.NewTicker(p.o.Heartbeat)
	defer heartbeats.Stop()
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
		case <-heartbeats.C:
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
		case <-heartbeats.C:
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
		// The journal was pruned up to here: followers have the stream.
		p.o.Logger.Warn("frames were pruned before they were published live", "from_seq", at.Next, "to_seq", p.journal.Durable().Next-1)
		*at, err = p.journal.Durable(), nil
	}
	if err = errors.Join(err, broken); err != nil {
		return false, fmt.Errorf("fan-out: reading the journal: %w", err)
	}
	p.stats.LiveSeq.Store(at.Last())
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

// sendHeartbeat publishes the position of live, after everything that live has
// published.
func (p *Publisher) sendHeartbeat(l *link, at persist.Position, buf *[]byte) {
	now := p.o.Clock().UnixNano() // read before durable, see Follower.onHeartbeat
	b := heartbeat{position: at, durable: p.journal.Durable().Next - 1, at: now}
	*buf = appendHeartbeat((*buf)[:0], p.term, &b)
	_ = l.Publish(p.o.liveSubject(), *buf) // fails only while no server is connected
}

// eachPiece calls give with pieces of a frame of at most most bytes, until give returns
// false.
func eachPiece(frame []byte, most int, give func(offset int, part []byte) bool) {
	for offset := 0; offset < len(frame); offset += most {
		if !give(offset, frame[offset:min(len(frame), offset+most)]) {
			return
		}
	}
}
