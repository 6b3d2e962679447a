//go:build feed_goroutines

package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"blockdesk/fixgw/fixclient"
)

// ledger has the reports that one session has received, and refuses what cannot be. One
// goroutine at a time.
type ledger struct {
	reports map[string]string // the content of a report, by ExecID
	orders  map[string]*order // by OrderID
	answers map[string]bool   // ClOrdIDs that were answered
}

// order is an order by its reports. Quantities in lots.
type order struct {
	clOrdID            string // of its D
	side               string
	total, cum, leaves int
	accepted, ended    bool
}

func newLedger() *ledger {
	return &ledger{reports: map[string]string{}, orders: map[string]*order{}, answers: map[string]bool{}}
}

// meaning returns a message without what may differ when it is repeated.
func meaning(m *fixclient.Message) string {
	var b strings.Builder
	m.Fields(func(tag int, value []byte) bool {
		if !slices.Contains([]int{8, 9, 10, 34, 43, 49, 52, 56, 97, 122}, tag) {
			fmt.Fprintf(&b, "%d=%s|", tag, value)
		}
		return true
	})
	return b.String()
}

// take notes an application message that has come in its turn.
func (l *ledger) take(m *fixclient.Message) error {
	switch m.Type() {
	case "8":
		return l.report(m)
	case "9", "r":
		l.answers[string(m.Get(11))] = true
	case "j":
		if string(m.Get(380)) == "4" { // the service stops: the request is repeated
			return nil
		}
		fallthrough
	case "3":
		return fmt.Errorf("a good message was rejected: %s", meaning(m))
	}
	return nil
}

func (l *ledger) report(m *fixclient.Message) error {
	kind := string(m.Get(150))
	if kind == "I" {
		return nil
	}
	id, text := string(m.Get(17)), meaning(m)
	if was, known := l.reports[id]; known {
		if was != text {
			return fmt.Errorf("ExecID %s said %s, now %s", id, was, text)
		}
		return nil
	}
	l.reports[id] = text
	l.answers[string(m.Get(11))] = true
	if strings.HasPrefix(id, "G") { // refused before the engine
		return nil
	}
	if err := l.follow(m, kind); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

func number(m *fixclient.Message, tag int) int {
	n, err := strconv.Atoi(string(m.Get(tag)))
	if err != nil {
		return -1
	}
	return n
}

// follow applies a new report to its order.
func (l *ledger) follow(m *fixclient.Message, kind string) error {
	id := string(m.Get(37))
	o := l.orders[id]
	switch {
	case (kind == "0" || kind == "8") && o != nil:
		return fmt.Errorf("order %s begins twice", id)
	case kind == "0" || kind == "8":
		o = &order{clOrdID: string(m.Get(11)), side: string(m.Get(54)), total: number(m, 38), leaves: number(m, 38), accepted: kind == "0"}
		l.orders[id] = o
	case o == nil:
		return fmt.Errorf("order %s has not begun", id)
	case o.ended:
		return fmt.Errorf("order %s goes on after its end", id)
	}
	switch kind {
	case "F":
		o.cum += number(m, 32)
		o.leaves = o.total - o.cum
		o.ended = o.leaves == 0
	case "5", "D":
		o.total = number(m, 38)
		o.leaves = o.total - o.cum
	case "4", "C", "8":
		o.leaves, o.ended = 0, true
	}
	if number(m, 14) != o.cum || number(m, 151) != o.leaves || o.leaves < 0 {
		return fmt.Errorf("order %s: %d filled and %d left are expected", id, o.cum, o.leaves)
	}
	return nil
}

// open returns the open orders: ClOrdIDs of their Ds and the open quantities, by OrderID.
func (l *ledger) open() map[string]int {
	open := map[string]int{}
	for id, o := range l.orders {
		if !o.ended {
			open[id] = o.leaves
		}
	}
	return open
}
