package quorum

import (
	"fmt"

	"blockdesk/engine/event"
	"blockdesk/persist/projection"
)

// tail has the newest events of the committed frames: all above floor. When a new leader
// starts, it replays them to a gateway whose store is slightly behind.
type tail struct {
	limit  int // events kept; up to twice as many are in memory
	events []event.Event
	floor  uint64 // Seq of the last command whose events were dropped
}

func (t *tail) add(events []event.Event) {
	if len(t.events)+len(events) > 2*t.limit {
		t.drop(len(t.events) - t.limit)
	}
	t.events = append(t.events, events...)
}

// drop drops at least n of the oldest events, all of a command or none.
func (t *tail) drop(n int) {
	if n <= 0 {
		return
	}
	t.floor = t.events[n-1].Seq
	for n < len(t.events) && t.events[n].Seq == t.floor {
		n++
	}
	t.events = t.events[:copy(t.events, t.events[n:])]
}

// replay calls visit with the events of each command above floor, in order. The error
// is projection.ErrPruned.
func (t *tail) replay(floor uint64, visit func([]event.Event)) error {
	if floor < t.floor {
		return fmt.Errorf("%w: cursor at seq %d, this node has the events from seq %d on", projection.ErrPruned, floor, t.floor+1)
	}
	if visit == nil {
		return nil
	}
	for i := 0; i < len(t.events); {
		j := i + 1
		for j < len(t.events) && t.events[j].Seq == t.events[i].Seq {
			j++
		}
		if t.events[i].Seq > floor {
			visit(t.events[i:j:j])
		}
		i = j
	}
	return nil
}
