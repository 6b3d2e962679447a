package engine

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/engine/event"
	"blockdesk/internal/await"
	"blockdesk/market"
)

// TestStress: many producers, consumers of different speeds, a journal with random delays,
// small rings. Nothing is seen before it is durable, nothing is lost, duplicated or out of
// order, and the journal replays to the same digest and hash. The engine is stopped while
// producers still submit.
func TestStress(t *testing.T) {
	for name, o := range map[string]Options{
		"small rings": {IngressSize: 16, EgressSize: 32, MaxBatch: 5},
		"defaults":    {},
		"spin":        {Wait: Spin, IngressSize: 256, EgressSize: 512},
	} {
		t.Run(name, func(t *testing.T) {
			j := &slowJournal{delay: 200 * time.Microsecond}
			o.Journal = j
			stress(t, newEngine(t, o), j, false)
		})
	}
	t.Run("no journal", func(t *testing.T) {
		stress(t, newEngine(t, Options{IngressSize: 64, EgressSize: 128}), nil, false)
	})
	for name, o := range map[string]Options{
		"inline":                {InlineJournal: true},
		"inline, small rings":   {InlineJournal: true, IngressSize: 16, EgressSize: 512},
		"inline, journal waits": {},
	} {
		t.Run(name, func(t *testing.T) {
			j := &slowJournal{delay: 20 * time.Microsecond}
			o.Journal = j
			stress(t, newEngine(t, o), j, true)
		})
	}
}

// stress submits from many producers. With inline, every other command is enqueued and run
// inline if the engine sleeps.
func stress(t *testing.T, e *running, j *slowJournal, inline bool) {
	const producers = 4
	const each = 3_000
	var consumers []*Consumer
	for _, name := range []string{"all", "one", "few"} {
		consumers = append(consumers, e.Consumer(name))
	}
	e.mustSubmit(t, head()...)
	e.start(t)

	type seen struct {
		refs   [producers]int
		digest uint64
		last   uint64
		err    error
	}
	results := make([]seen, len(consumers))
	look := func(i int, ev *event.Event) error {
		s, c := &results[i], consumers[i]
		s.digest = event.Digest(s.digest, ev)
		switch {
		case ev.Seq < s.last:
			return errors.New("Seq falls")
		case j != nil && ev.Seq > j.durable.Load():
			return errors.New("an event is seen before it is durable")
		case c.CompleteSeq() < s.last && c.CompleteSeq()+1 < ev.Seq:
			return errors.New("Whole is behind what has been seen")
		}
		s.last = ev.Seq
		if ref, ok := ev.Reference(); ok {
			p := int(ref.Origin) - 1
			if n := int(ref.Text[0])<<8 | int(ref.Text[1]); n != s.refs[p] {
				return errors.New("a command is lost, doubled or out of order")
			}
			s.refs[p]++
		}
		return nil
	}
	step := func() {
		c := consumers[0]
		for events := c.Poll(); len(events) > 0; events = c.Poll() {
			for i := range events {
				if err := look(0, &events[i]); err != nil {
					t.Errorf("in RunInline: %v", err)
				}
			}
			c.Release(len(events))
		}
	}
	submit := e.Submit
	if inline {
		submit = func(c *Command) error {
			if c.Ref[1]%2 == 0 {
				return e.Submit(c)
			}
			err := e.Enqueue(c)
			if err == nil {
				e.RunInline(consumers[0], step)
			}
			return err
		}
	}
	var accepted [producers]int
	var sent atomic.Int64
	var wg sync.WaitGroup
	for p := range producers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			flow := newFlow(uint64(p))
			flow.head = nil
			flow.id = market.OrderID(p+1) << 32
			for n := range each {
				c := flow.next()
				c.Origin = uint16(p + 1)
				c.Ref, c.RefLen = [MaxRef]byte{}, 0
				c.SetRef([]byte{byte(n >> 8), byte(n)})
				err := submit(&c)
				for errors.Is(err, ErrFull) {
					time.Sleep(time.Microsecond) // sleep: the pace of a producer that finds the ring full
					err = submit(&c)
				}
				if inline && n%64 == 0 {
					time.Sleep(100 * time.Microsecond) // sleep: the engine may fall asleep, which only makes more inline runs
				}
				if errors.Is(err, ErrStopped) {
					return
				}
				if err != nil {
					t.Errorf("submit: %v", err)
					return
				}
				accepted[p]++
				sent.Add(1)
			}
		}()
	}
	var reading sync.WaitGroup
	for i, c := range consumers {
		reading.Add(1)
		go func() {
			defer reading.Done()
			_, results[i].err = drain(c, []int{0, 1, 7}[i], func(ev *event.Event) error { return look(i, ev) })
		}()
	}
	await.True(t, "half of the commands", func() bool { return sent.Load() > producers*each/2 })
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	reading.Wait()
	for i, s := range results {
		if s.err != nil {
			t.Fatalf("consumer %d: %v", i, s.err)
		}
		if s.refs != accepted {
			t.Fatalf("consumer %d saw %v commands, %v were accepted", i, s.refs, accepted)
		}
		if s.digest != e.replica.Digest {
			t.Fatalf("consumer %d: digest %x, the engine's %x", i, s.digest, e.replica.Digest)
		}
		if got, want := consumers[i].CompleteSeq(), e.replica.State.Seq(); got != want {
			t.Fatalf("consumer %d: CompleteSeq %d, want %d", i, got, want)
		}
	}
	if j == nil {
		return
	}
	r, err := j.replay(StateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Digest != e.replica.Digest || r.State.Hash() != e.replica.State.Hash() {
		t.Fatal("the journal replays to something else")
	}
}

// TestJournalFails: at whichever frame the journal fails, exactly the events of earlier
// frames are visible, and the engine stays up, read-only.
func TestJournalFails(t *testing.T) {
	for frame := 1; frame <= 12; frame++ {
		j := &slowJournal{delay: 100 * time.Microsecond, failAt: frame}
		e := newEngine(t, Options{Journal: j, IngressSize: 32, EgressSize: 64, MaxBatch: 4})
		c := e.Consumer("reader")
		e.start(t)
		events := collect(c)
		flow := newDeskFlow(uint64(frame)) // its frames end inside requests, too
		var err error
		for err == nil || errors.Is(err, ErrFull) {
			command := flow.next()
			err = e.Submit(&command)
		}
		if !errors.Is(err, ErrReadOnly) {
			t.Fatalf("frame %d: submit: %v, want ErrReadOnly", frame, err)
		}
		if failed := e.Stats().Failed; !errors.Is(failed, errDisk) || !errors.Is(failed, ErrJournal) {
			t.Fatalf("frame %d: Stats().Failed is %v", frame, failed)
		}
		select {
		case <-events:
			t.Fatalf("frame %d: the consumer ended before the engine was stopped", frame)
		case <-e.err:
			t.Fatalf("frame %d: Run returned before it was stopped", frame)
		default:
		}
		if err := e.finish(t); !errors.Is(err, ErrJournal) || !errors.Is(err, errDisk) {
			t.Fatalf("frame %d: Run: %v", frame, err)
		}
		r, err := j.replay(StateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := digestOf(<-events); got != r.Digest {
			t.Fatalf("frame %d: visible events are not those of the %d durable commands", frame, len(j.commands))
		}
		if got := e.Stats().Durable; got != r.State.Seq() {
			t.Fatalf("frame %d: durable %d, want %d", frame, got, r.State.Seq())
		}
	}
}
