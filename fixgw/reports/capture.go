package reports

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// A TradeCaptureReport (35=AE) from the gateway reports one side of a trade to its owner.
// Every session that requests drop copies (9406=Y) gets one for each fill of its
// participant, whichever session the order came from, and one for each settled claim. The
// session that took the claim gets one in any case. It has nothing of the other side.
//
// It comes after the ExecutionReport (35=8) of the same event, and is in the session's message
// store before the position passes the event, also while the session is logged out. After a
// crash it is made again under the same TradeReportID (571), the ExecID (17).

// DropCopies are the sessions that request drop copies, by their number. The
// reporter reads the list at every fill; sessions join and leave as they log on. A new
// session joins when it is in the registry and quickfix has it: until then a copy could
// not be delivered.
type DropCopies struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*Session] // immutable; nil = none
}

// Update adds or removes s, according to its present logon flags.
func (d *DropCopies) Update(s *Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in := s.DropCopy.Load()
	if in == slices.Contains(d.all(), s) {
		return
	}
	list := slices.DeleteFunc(slices.Clone(d.all()), func(other *Session) bool { return other == s })
	if in {
		list = append(list, s)
		slices.SortFunc(list, func(a, b *Session) int { return cmp.Compare(a.Number, b.Number) })
	}
	d.list.Store(&list)
}

// None reports whether no session requests drop copies.
func (d *DropCopies) None() bool { return len(d.all()) == 0 }

func (d *DropCopies) all() []*Session {
	if list := d.list.Load(); list != nil {
		return *list
	}
	return nil
}
