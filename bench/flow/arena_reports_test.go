package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"

	"blockdesk/engine/event"
)

// ArenaReports turns a book's events into the flow's report text and hashes it.
// The commands' Seq must be the records'. The zero value is not ready: see
// NewArenaReports.
type ArenaReports struct {
	sum   hash.Hash
	lines int
	text  []byte
	held  []event.Event // of the command whose Seq is the last one seen
}

// NewArenaReports returns an empty report stream.
func NewArenaReports() *ArenaReports { return &ArenaReports{sum: sha256.New()} }

// Add takes in events, in order.
func (a *ArenaReports) Add(events []event.Event) {
	for i := range events {
		if len(a.held) > 0 && a.held[0].Seq != events[i].Seq {
			a.flush()
		}
		a.held = append(a.held, events[i])
	}
}

// Sum ends the stream and returns its SHA-256 in hex and its number of lines.
func (a *ArenaReports) Sum() (digest string, lines int) {
	a.flush()
	return hex.EncodeToString(a.sum.Sum(nil)), a.lines
}

// flush writes the reports of one command, sorted by their type.
func (a *ArenaReports) flush() {
	slices.SortStableFunc(a.held, func(x, y event.Event) int { return arenaType(x.Kind) - arenaType(y.Kind) })
	for i := range a.held {
		a.write(&a.held[i])
	}
	a.held = a.held[:0]
}

const noReport = 9

// arenaType is the report type of an event, noReport when it makes none.
func arenaType(k event.Kind) int {
	switch k {
	case event.Accepted:
		return 0
	case event.Traded:
		return 1
	case event.Cancelled:
		return 2
	case event.Amended:
		return 3
	case event.CancelRejected:
		return 4
	case event.AmendRejected:
		return 5
	default:
		return noReport
	}
}

func (a *ArenaReports) write(e *event.Event) {
	kind := arenaType(e.Kind)
	if kind == noReport {
		return
	}
	a.text = a.text[:0]
	if a.lines > 0 {
		a.text = append(a.text, '\n')
	}
	a.lines++
	a.text = append(a.text, '0'+byte(kind))
	a.number(int64(e.Seq))
	id, side := int64(e.OrderID)-1, int64(e.Side)-1
	switch kind {
	case 0, 3:
		a.number(side)
		a.number(id)
		a.number(int64(e.Price))
		a.number(int64(e.Qty))
	case 1:
		a.number(int64(e.Price))
		a.number(int64(e.Qty))
		a.number(int64(e.Other) - 1)
		a.number(id)
	case 2:
		a.number(side)
		a.number(id)
		a.number(int64(e.Price))
	default:
		a.number(id)
	}
	a.sum.Write(a.text)
}

func (a *ArenaReports) number(n int64) {
	a.text = append(a.text, ',')
	a.text = strconv.AppendInt(a.text, n, 10)
}
