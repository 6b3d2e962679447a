package engine

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

var errDisk = errors.New("the disk is gone")

// slowJournal stores the frames with random delays, and fails on demand. It also checks the
// engine's side of the Journal contract.
type slowJournal struct {
	delay  time.Duration // longest
	failAt int           // frame that fails, from 1; 0 = none
	gate   chan struct{} // if not nil, every Append takes one token of it

	durable atomic.Uint64 // Seq up to which Append has returned or is about to

	mu       sync.Mutex
	frames   int
	commands []Command
	priors   map[int]uint64 // by number of commands before the frame
	broken   error
}

func (j *slowJournal) Append(prior uint64, a, b []Command) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.frames++
	if j.gate != nil {
		<-j.gate
	}
	if j.delay > 0 {
		time.Sleep(time.Duration(rand.Int64N(int64(j.delay)))) // sleep: the planted slow disk
	}
	if j.frames == j.failAt {
		return errDisk
	}
	if j.priors == nil {
		j.priors = map[int]uint64{}
	}
	j.priors[len(j.commands)] = prior
	if len(a) == 0 || len(a)+len(b) > MaxFrame || !a[0].first {
		j.broken = errors.New("a frame is empty, too long, or begins inside a batch")
	}
	for _, part := range [][]Command{a, b} {
		for i := range part {
			if n := len(j.commands); n > 0 && part[i].Seq != j.commands[n-1].Seq+1 {
				j.broken = errors.New("Seq has a gap")
			} else if n > 0 && (part[i].At < j.commands[n-1].At || part[i].first != (part[i].At > j.commands[n-1].At)) {
				j.broken = errors.New("At falls, or stands still over a batch's end")
			}
			j.commands = append(j.commands, part[i])
		}
	}
	j.durable.Store(j.commands[len(j.commands)-1].Seq)
	return nil
}

// replay applies the journal to a new replica, checking the digests.
func (j *slowJournal) replay(o StateOptions) (*Replica, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := NewReplica(o)
	for i := range j.commands {
		if prior, starts := j.priors[i]; starts && prior != r.Digest {
			return nil, errors.New("a frame's prior digest is not that of the events before it")
		}
		r.Apply(&j.commands[i], nil)
	}
	return r, j.broken
}
