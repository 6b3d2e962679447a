package fanout

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"blockdesk/persist"
)

const (
	// refillMessages and refillBytes bound what the server sends ahead of our reads.
	refillMessages = 512
	refillBytes    = 8 << 20
	// refillQuiet is how long the stream may be silent before it is checked again.
	refillQuiet = 500 * time.Millisecond
)

// errNotInStream: the missing frame is not in the stream and will never be.
var errNotInStream = errors.New("the stream does not have the frame")

// refill applies frames of the stream until target is the next Seq. It also returns nil
// if ctx has ended. Errors: ErrBehind, those of the applier.
func (f *Follower) refill(ctx context.Context, l *link, target uint64) error {
	from, since := f.at.Next, f.o.Clock()
	for try := 0; f.at.Next < target; try++ {
		before := f.at.Next
		if err := f.checkBehind(); err != nil {
			return err
		}
		err := f.read(ctx, l, target)
		var apply applyError
		switch {
		case ended(ctx):
			return nil
		case errors.As(err, &apply):
			return apply.error
		case errors.Is(err, errNotInStream):
			return fmt.Errorf("%w: seq %d: %w", ErrBehind, f.at.Next, err)
		case f.at.Next > before || !l.IsConnected():
			since, try = f.o.Clock(), 0
		case f.o.Clock().Sub(since) > f.o.RefillTimeout:
			return fmt.Errorf("%w: seq %d: not in the stream within %v: %w", ErrBehind, f.at.Next, f.o.RefillTimeout, errors.Join(err))
		}
		if f.at.Next < target && !sleep(ctx, pause(try)) {
			return nil
		}
	}
	f.o.Logger.Debug("frames refilled from the fan-out stream", "from_seq", from, "to_seq", f.at.Next-1)
	return nil
}

// applyError marks an error of the applier, not of the stream.
type applyError struct{ error }

func (e applyError) Unwrap() error { return e.error }

// read applies the stream's frames from f.at on until target is the next Seq or the
// stream has no more for now.
func (f *Follower) read(ctx context.Context, l *link, target uint64) error {
	js, err := jetstream.New(l.Conn)
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	stream, err := js.Stream(short, f.o.stream())
	if err != nil {
		return err
	}
	start, err := findFrame(short, stream, f.at.Next)
	if err != nil || start == 0 {
		return err
	}
	consumer, err := stream.OrderedConsumer(short, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: start,
		InactiveThreshold: 10 * time.Second, MaxResetAttempts: 1,
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(refillMessages, refillBytes))
	if err != nil {
		return err
	}
	defer messages.Stop()
	var parts assembly
	for f.at.Next < target {
		m, err := messages.Next(jetstream.NextMaxWait(refillQuiet))
		if errors.Is(err, nats.ErrTimeout) || ended(ctx) {
			return nil
		} else if err != nil {
			return err
		}
		if err := f.applyFromStream(&parts, m.Data()); err != nil {
			return err
		}
	}
	return nil
}

// applyFromStream handles a message of the stream. A frame that does not follow the applied
// ones ends the read with an error, but does not mean that the follower has diverged:
// only a live message can prove that.
func (f *Follower) applyFromStream(parts *assembly, data []byte) error {
	h, body, ok := f.parse(data)
	if !ok || h.kind != kindFramePiece {
		return nil
	}
	encoded, _ := parts.add(&h, body)
	frame, ok := f.frame(encoded)
	if !ok {
		return nil
	}
	before := f.at.Next
	err := f.applyNext(&frame, encoded)
	switch {
	case errors.Is(err, errFrameDiverged):
		f.stats.Foreign.Add(1)
		return fmt.Errorf("the stream has no seq %d: %w", f.at.Next, err)
	case err != nil:
		return applyError{err}
	case f.at.Next > before:
		f.stats.Refilled.Add(1)
	}
	return nil
}

// findFrame returns the stream sequence of the frame that begins at seq next; 0: it is
// not there yet. It searches by bisection, because stream sequences have no gaps and
// frames are in order. Errors: errNotInStream, also if next is inside a frame; those of
// the server, also if the stream drops its oldest message meanwhile.
func findFrame(ctx context.Context, stream jetstream.Stream, next uint64) (uint64, error) {
	info, err := stream.Info(ctx)
	if err != nil || info.State.Msgs == 0 {
		return 0, err
	}
	first, n := info.State.FirstSeq, info.State.LastSeq-info.State.FirstSeq+1
	read := func(i int) (head, []byte, error) {
		m, err := stream.GetMsg(ctx, first+uint64(i))
		if err != nil {
			return head{}, nil, err
		}
		return parseMessage(m.Data)
	}
	i := sort.Search(int(n), func(i int) bool {
		h, _, e := read(i)
		if e != nil {
			err = e
			return true
		}
		return h.seq >= next
	})
	if err != nil {
		return 0, err
	}
	h, body, err := read(min(i, int(n)-1))
	switch {
	case err != nil:
		return 0, err
	case i == int(n):
		return 0, beyond(body, next)
	case h.seq != next || h.offset != 0:
		return 0, fmt.Errorf("%w: it has the frame of seq %d, want seq %d", errNotInStream, h.seq, next)
	}
	return first + uint64(i), nil
}

// beyond returns an error if the stream's newest message is a whole frame that contains
// seq next: then no frame will begin there.
func beyond(body []byte, next uint64) error {
	if frame, err := persist.ParseFrame(body); err == nil && frame.Last() >= next {
		return fmt.Errorf("%w: seq %d is inside the frame of seq %d", errNotInStream, next, frame.First)
	}
	return nil
}
