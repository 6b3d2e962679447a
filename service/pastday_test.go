package service

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/service/config"
	"blockdesk/service/demo"
)

// TestDemoHistory: the bots' hours are in the journal, a trade of each instrument in every
// half minute before now, no order is left, and a demo that has a journal keeps it.
func TestDemoHistory(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.DataDir, c.Demo, c.DemoHistory = t.TempDir(), true, 1
	demo.Fill(&c)
	list, err := demo.Participants(&c, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := newService(Options{Config: &c, Log: slog.New(slog.DiscardHandler), Inputs: &Inputs{Participants: list}})
	before := time.Now()
	if err := writeDemoHistory(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	journal, err := persist.Open(persist.Options{Dir: filepath.Join(c.DataDir, JournalFolder), State: c.StateOptions()})
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	trades := map[market.InstrumentID]int{}
	first, last := int64(0), int64(0)
	replica, err := journal.Recover(0, func(events []event.Event) {
		for i := range events {
			if e := &events[i]; e.Kind == event.Traded {
				trades[e.Instrument]++
				if first == 0 {
					first = e.At
				}
				last = e.At
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	steps := int(time.Hour / demo.SimulatedStep)
	for in := range market.InstrumentID(2) {
		if trades[in] < steps-1 {
			t.Errorf("instrument %d: %d trades in %d steps", in, trades[in], steps)
		}
	}
	if from := before.Add(-time.Hour).UnixNano(); first < from || first > from+int64(5*time.Minute) || last > time.Now().UnixNano() {
		t.Errorf("trades from %s to %s", time.Unix(0, first), time.Unix(0, last))
	}
	for in := range market.InstrumentID(2) {
		replica.State.Orders(in, func(o book.LiveOrder) {
			t.Errorf("instrument %d: order %d of participant %d is left", in, o.ID, o.Participant)
		})
	}
	// The journal is open: it could not be written again.
	if err := writeDemoHistory(t.Context(), s); err != nil {
		t.Errorf("a demo with a journal: %v", err)
	}
}
