package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"blockdesk/persist/kv"
)

// rollTick is the pause between two looks at the clock.
const rollTick = 100 * time.Millisecond

// RollSequences starts the numbers of every session at 1 each day at Options.RollAt, until ctx
// ends. A session is rolled once for each such time, also if the service did not run then. One
// that was not known before it is not rolled.
func (v *Server) RollSequences(ctx context.Context) error {
	if v.options.RollAt == 0 || v.options.Leadership.Follower() {
		return nil
	}
	r := roller{server: v, rolled: make(map[uint16]int64)}
	if err := r.load(); err != nil {
		return err
	}
	tick := time.NewTicker(rollTick)
	defer tick.Stop()
	for {
		if err := r.roll(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// roller has the time of the last roll of each session, by its number.
type roller struct {
	server *Server
	rolled map[uint16]int64
}

func rolledKey(session uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{keyRolled}, session)
}

func (r *roller) load() error {
	return kv.Each(r.server.store, []byte{keyRolled}, []byte{keyRolled + 1}, func(key, value []byte) error {
		if len(key) != 3 || len(value) != 8 {
			return fmt.Errorf("%w: time of a roll: %d bytes", ErrLayout, len(value))
		}
		r.rolled[binary.BigEndian.Uint16(key[1:])] = int64(binary.BigEndian.Uint64(value))
		return nil
	})
}

// lastRoll returns the newest time of day at, an offset from 00:00 UTC, that is not after now.
func lastRoll(now time.Time, at time.Duration) int64 {
	due := now.UTC().Truncate(24 * time.Hour).Add(at)
	if due.After(now) {
		due = due.Add(-24 * time.Hour)
	}
	return due.UnixNano()
}

// roll rolls the sessions that are due, all at once, because each may wait for its client.
func (r *roller) roll() error {
	v := r.server
	due := lastRoll(v.options.Now(), v.options.RollAt)
	var mu sync.Mutex
	var group sync.WaitGroup
	var failed error
	done := make(map[uint16]int64)
	for _, s := range v.All() {
		last, known := r.rolled[s.Number]
		if known && last >= due {
			continue
		}
		group.Go(func() {
			var err error
			if known {
				err = v.reset(s, true, rollText)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				done[s.Number] = due
			case !errors.Is(err, ErrLoggedOn): // that one is tried again
				failed = err
			}
		})
	}
	group.Wait()
	if len(done) == 0 || failed != nil {
		return failed
	}
	for number := range done {
		r.rolled[number] = due
	}
	return v.store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		for number := range done {
			set(rolledKey(number), binary.BigEndian.AppendUint64(nil, uint64(due)))
		}
	}, true)
}
