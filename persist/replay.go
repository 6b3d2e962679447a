package persist

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sync/errgroup"

	"blockdesk/engine"
	"blockdesk/engine/event"
)

// A replay reads, checks and decodes frames on one core and applies them on another.
const (
	blockCommands = 8192 // in a block, at least
	blocksAhead   = 3
	prefetchAhead = 16 // commands; more than the matcher's, because nothing else runs on that core
)

// block carries decoded frames from the reader to the applier.
type block struct {
	frames   []decodedFrame
	commands []engine.Command
}

// decodedFrame says where a frame ends in its block and which events came before it.
type decodedFrame struct {
	end       int // in block.commands
	eventHash uint64
	after     position
}

// replay applies the frames after a position to a replica.
type replay struct {
	db    *pebble.DB
	at    position
	to    uint64 // stops after the frame that holds it
	floor uint64 // visit gets the events of commands above it
	visit func([]event.Event)
	// each, if set, is called after each frame.
	each func(at position, count int) error

	full, empty chan *block
}

// run applies the frames to r and returns the position after the last one. Errors name
// the Seq.
func (p *replay) run(r *engine.Replica) (position, error) {
	p.full, p.empty = make(chan *block, blocksAhead), make(chan *block, blocksAhead)
	for range blocksAhead {
		p.empty <- &block{}
	}
	end := p.at
	g, ctx := errgroup.WithContext(context.Background())
	g.Go(func() error {
		defer close(p.full)
		return p.read(ctx)
	})
	g.Go(func() error {
		for b := range p.full {
			var err error
			if end, err = p.apply(r, b, end); err != nil {
				return err
			}
			p.empty <- b
		}
		return nil
	})
	err := g.Wait()
	return end, err
}

// read fills blocks until the journal ends or ctx does.
func (p *replay) read(ctx context.Context) error {
	at := p.at
	var b *block
	err := walk(p.db, at.Next, func(f *Frame, encoded []byte) (err error) {
		if f.First > p.to {
			return errStop
		}
		if err := at.advance(f, HashFrame(encoded)); err != nil {
			return err
		}
		if b == nil {
			select {
			case b = <-p.empty:
			case <-ctx.Done():
				return errStop
			}
			b.frames, b.commands = b.frames[:0], b.commands[:0]
		}
		if b.commands, err = f.AppendCommands(b.commands); err != nil {
			return err
		}
		b.frames = append(b.frames, decodedFrame{end: len(b.commands), eventHash: f.EventHash, after: at})
		if len(b.commands) >= blockCommands {
			p.full <- b
			b = nil
		}
		return nil
	})
	if b != nil {
		p.full <- b
	}
	return err
}

// apply applies one block and returns the position after its last good frame.
func (p *replay) apply(r *engine.Replica, b *block, end position) (position, error) {
	begin := 0
	for i := range b.frames {
		f := &b.frames[i]
		if r.Digest != f.eventHash {
			return end, fmt.Errorf("seq %d: %w", f.after.first, digestError(r.Digest, f.eventHash))
		}
		for j := begin; j < f.end; j++ {
			if j%prefetchAhead == 0 {
				prefetch(r.State, b.commands[j:])
			}
			c := &b.commands[j]
			if c.Seq > p.floor {
				r.Apply(c, p.visit)
			} else {
				r.Apply(c, nil)
			}
		}
		if p.each != nil {
			if err := p.each(f.after, f.end-begin); err != nil {
				return f.after, fmt.Errorf("seq %d: %w", f.after.Last(), err)
			}
		}
		begin, end = f.end, f.after
	}
	return end, nil
}

func prefetch(s *engine.State, next []engine.Command) {
	for i := range min(len(next), prefetchAhead) {
		s.Prefetch(&next[i])
	}
}

func digestError(got, want uint64) error {
	return fmt.Errorf("replay gives other events than those of the frame: digest %016x, the frame has %016x", got, want)
}
