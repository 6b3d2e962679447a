package fanout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"blockdesk/persist"
)

// Reasons to fill the stream again.
var (
	// errStreamMismatch: the stream has a message that this publisher did not put
	// there, or lacks one that it did.
	errStreamMismatch = errors.New("the stream differs from what this publisher stored")
	// errNotAcked: the stream did not acknowledge a message.
	errNotAcked = errors.New("the stream did not acknowledge a message")
)

// streamFiller publishes the journal's frames to the stream, so that the stream has the
// newest frames without gaps. The journal has everything that the stream has, so
// whenever the two may differ the stream is deleted and filled again.
type streamFiller struct {
	p  *Publisher
	l  *link
	js jetstream.JetStream

	at      persist.Position
	last    uint64 // stream sequence of the newest message; 0: unknown
	pending []sentPiece
}

// sentPiece is a message that the stream has not acknowledged.
type sentPiece struct {
	ack jetstream.PubAckFuture
	end uint64 // last Seq of its frame if it ends the frame, else 0
}

// fill runs a streamFiller until ctx ends, and a new one after every failure.
func (p *Publisher) fill(ctx context.Context, l *link) error {
	js, err := jetstream.New(l.Conn,
		jetstream.WithPublishAsyncMaxPending(CacheWindow+1), jetstream.WithPublishAsyncTimeout(answerTimeout))
	if err != nil {
		return fmt.Errorf("fan-out: %w", err)
	}
	// CleanupPublisher is not called: the connection ends with Run, and v1.55.0 may
	// leak a goroutine if the two come close together.
	recreate := false
	for try := 0; !ended(ctx); try++ {
		f := &streamFiller{p: p, l: l, js: js}
		err := f.run(ctx, recreate, func() { try = 0 })
		var disk journalError
		switch {
		case ended(ctx):
			return nil
		case errors.As(err, &disk):
			return fmt.Errorf("fan-out: reading the journal: %w", err)
		}
		recreate = errors.Is(err, errStreamMismatch)
		if try == 0 || recreate {
			p.o.Logger.Warn("filling the fan-out stream failed", "seq", f.at.Next, "recreate", recreate, "error", err)
		}
		if !sleep(ctx, pause(try)) {
			return nil
		}
	}
	return nil
}

// journalError is a failure of the journal, not of the stream.
type journalError struct{ error }

func (e journalError) Unwrap() error { return e.error }

// run fills the stream until something fails; stored is called when a message was
// stored.
func (f *streamFiller) run(ctx context.Context, recreate bool, stored func()) error {
	if err := f.begin(ctx, recreate); err != nil {
		return err
	}
	retry := time.NewTicker(f.p.o.Heartbeat)
	defer retry.Stop()
	for {
		more, err := f.step(ctx)
		if err == nil && !more {
			err = f.awaitAcks(ctx, 0)
		}
		if err != nil {
			return errors.Join(err, f.drainAcks(ctx))
		}
		if f.last > 0 {
			stored()
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.p.refresh:
		case <-retry.C:
		}
	}
}

// begin creates the stream if it is missing and finds its end in our journal.
func (f *streamFiller) begin(ctx context.Context, recreate bool) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	o := &f.p.o
	if recreate {
		// A purge is not enough: the server would remember the message ids and drop the
		// messages as duplicates.
		if err := f.js.DeleteStream(ctx, o.stream()); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
	}
	stream, err := f.js.CreateOrUpdateStream(ctx, o.streamConfig())
	if err != nil {
		return err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return err
	}
	if info.State.Msgs == 0 {
		f.p.stats.Fills.Add(1)
		f.at, f.last = f.start(), info.State.LastSeq
		o.Logger.Info("filling the fan-out stream", "from_seq", f.at.Next)
		return nil
	}
	m, err := stream.GetMsg(ctx, info.State.LastSeq)
	if err != nil {
		return err
	}
	f.last = info.State.LastSeq
	return f.resume(m.Data)
}

// start returns where filling an empty stream starts: where a follower with the newest
// snapshot continues.
func (f *streamFiller) start() persist.Position {
	if at, ok := f.p.journal.NewestSnapshot(); ok {
		return at
	}
	return persist.Genesis()
}

// resume finds the frame that ends the stream and continues after it.
// errStreamMismatch: the journal does not have it.
func (f *streamFiller) resume(last []byte) error {
	h, part, err := parseMessage(last)
	if err != nil || h.kind != kindFramePiece || int(h.offset)+len(part) != int(h.total) {
		return fmt.Errorf("%w: its last message does not end a frame", errStreamMismatch)
	}
	found := false
	err = f.p.journal.Frames(h.seq, func(frame *persist.Frame, encoded []byte) bool {
		if len(encoded) == int(h.total) && bytes.HasSuffix(encoded, part) {
			f.at = persist.Position{Next: frame.Last() + 1, Hash: persist.HashFrame(encoded), Epoch: frame.Epoch}
			found = true
		}
		return false
	})
	switch {
	case errors.Is(err, persist.ErrNoFrame) || err == nil && !found:
		return fmt.Errorf("%w: it ends with a frame of seq %d that the journal does not have", errStreamMismatch, h.seq)
	case err != nil:
		return journalError{err}
	}
	f.p.stats.StreamSeq.Store(f.at.Last())
	return nil
}

// step publishes the next frames and reports whether there are more.
func (f *streamFiller) step(ctx context.Context) (more bool, err error) {
	size, most := 0, f.l.pieceBytes()
	var broken error
	err = f.p.journal.Frames(f.at.Next, func(frame *persist.Frame, encoded []byte) bool {
		if broken = f.at.Advance(frame, persist.HashFrame(encoded)); broken != nil {
			broken = journalError{broken}
			return false
		}
		broken = f.put(ctx, frame, encoded, most)
		size += len(encoded)
		// A visit pins the journal's tables: it must not wait for acknowledgements.
		more = broken == nil && (size >= visitBytes || len(f.pending) >= CacheWindow)
		return broken == nil && !more
	})
	switch {
	case broken != nil:
		return false, broken
	case errors.Is(err, persist.ErrNoFrame):
		return false, fmt.Errorf("%w: seq %d was pruned before it was published", errStreamMismatch, f.at.Next)
	case err != nil:
		return false, journalError{err}
	}
	return more, f.awaitAcks(ctx, CacheWindow/2)
}

// put publishes one frame. A frame has at most MaxFrameBytes/MinPieceBytes pieces, so
// it may exceed the window.
func (f *streamFiller) put(ctx context.Context, frame *persist.Frame, encoded []byte, most int) (err error) {
	eachPiece(encoded, most, func(offset int, part []byte) bool {
		h := head{kind: kindFramePiece, term: f.p.term, seq: frame.First, total: uint32(len(encoded)), offset: uint32(offset)}
		end := uint64(0)
		if offset+len(part) == len(encoded) {
			end = frame.Last()
		}
		if len(f.pending) > CacheWindow {
			if err = f.awaitAck(ctx); err != nil {
				return false
			}
		}
		var ack jetstream.PubAckFuture
		m := nats.NewMsg(f.p.o.cacheSubject())
		m.Data = appendMessage(nil, &h, part) // in use until it is acknowledged
		ack, err = f.js.PublishMsgAsync(m, jetstream.WithMsgID(messageID(frame, offset)), jetstream.WithRetryAttempts(0))
		if err != nil {
			err = fmt.Errorf("%w: %w", errNotAcked, err)
			return false
		}
		f.pending = append(f.pending, sentPiece{ack: ack, end: end})
		return true
	})
	return err
}

// messageID identifies a piece of a frame, so that the server drops a duplicate.
func messageID(frame *persist.Frame, offset int) string {
	b := strconv.AppendUint(nil, frame.Epoch, 10)
	b = strconv.AppendUint(append(b, '/'), frame.First, 10)
	b = strconv.AppendInt(append(b, '/'), int64(offset), 10)
	return string(b)
}

// awaitAcks waits until at most most messages are not acknowledged.
func (f *streamFiller) awaitAcks(ctx context.Context, most int) error {
	for len(f.pending) > most {
		if err := f.awaitAck(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitAck waits for the oldest acknowledgement. Its stream sequence must follow that
// of the one before: otherwise another publisher writes, or a message is missing.
func (f *streamFiller) awaitAck(ctx context.Context) error {
	s := f.pending[0]
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-s.ack.Err():
		f.pending = f.pending[1:]
		f.p.stats.Refused.Add(1)
		return fmt.Errorf("%w: %w", errNotAcked, err)
	case a := <-s.ack.Ok():
		f.pending = f.pending[1:]
		if a.Duplicate || a.Sequence != f.last+1 {
			return fmt.Errorf("%w: it acknowledged message %d after message %d", errStreamMismatch, a.Sequence, f.last)
		}
		f.last = a.Sequence
		f.p.stats.Acked.Add(1)
		if s.end > 0 {
			f.p.stats.StreamSeq.Store(s.end)
		}
		return nil
	}
}

// drainAcks waits, after a failure, for the acknowledgements that are still missing. It
// returns errStreamMismatch if the stream stored a message after the one that failed.
func (f *streamFiller) drainAcks(ctx context.Context) (err error) {
	for _, s := range f.pending {
		select {
		case <-ctx.Done():
			return nil
		case cause := <-s.ack.Err():
			f.p.stats.Refused.Add(1)
			f.p.o.Logger.Debug("message is not stored in the fan-out stream", "seq", s.end, "error", cause)
		case <-s.ack.Ok():
			err = errStreamMismatch
		}
	}
	f.pending = nil
	return err
}

// streamConfig returns the configuration of the stream, a cache that drops its oldest
// messages.
func (o *Options) streamConfig() jetstream.StreamConfig {
	storage := jetstream.FileStorage
	if o.StreamInMemory {
		storage = jetstream.MemoryStorage
	}
	return jetstream.StreamConfig{
		Name: o.stream(), Description: "durable frames, a cache: may be deleted at any time",
		Subjects: []string{o.cacheSubject()}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
		MaxBytes: o.StreamBytes, MaxAge: o.StreamAge, MaxMsgSize: MaxMessageBytes,
		Storage: storage, Replicas: o.StreamReplicas, AllowDirect: true,
		Duplicates: duplicateWindow,
	}
}

// duplicateWindow is how long the server remembers a message's id: longer than a
// message can be under way.
const duplicateWindow = 2 * answerTimeout
