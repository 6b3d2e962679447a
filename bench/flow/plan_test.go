package flow

import (
	"os"
	"path/filepath"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/engine/book/naive"
	"blockdesk/engine/event"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// runPlan sends the planner's actions to a book and returns how many rows came
// out exact, and how many were unaided.
func runPlan(t *testing.T, rows []LobsterRow, levels int) (exact, unaided int) {
	t.Helper()
	b := naive.New(book.Options{MaxOrders: 1 << 20})
	out := event.NewGrowingSink(64)
	seq := uint64(0)
	do := func(actions []Action) {
		for _, a := range actions {
			seq++
			o := book.Order{
				ID: market.OrderID(a.Order), Side: a.Side, Price: market.Price(a.Price), Qty: market.Qty(a.Qty),
				Type: book.Limit, TIF: book.GTC, STP: book.STPCancelNewest, Participant: market.ParticipantID(a.Side),
			}
			switch a.Act {
			case TakeIOC:
				o.TIF = book.IOC
				b.Submit(&o, 0, seq, out)
			case Rest:
				b.Submit(&o, 0, seq, out)
			case Shrink:
				o.Qty = market.Qty(a.Total)
				b.Amend(&o, 0, seq, out)
			case Remove:
				b.Cancel(o.ID, o.Participant, 0, seq, out)
			}
			for _, e := range out.Events() {
				switch e.Kind {
				case event.Rejected, event.AmendRejected, event.CancelRejected, event.Unrested:
					t.Fatalf("action %+v: %v %v", a, e.Kind, event.Reason(e.Code))
				}
			}
			out.Reset()
		}
	}
	p := NewPlanner()
	do(p.Start(&rows[0]))
	buffer := make([]market.Level, 0, levels)
	shows := func(side market.Side, want []LobsterLevel) bool {
		got := b.Depth(side, buffer[:0])
		if len(got) != len(want) {
			return false
		}
		for i := range got {
			if int64(got[i].Price) != want[i].Price || int64(got[i].Qty) != want[i].Size {
				return false
			}
		}
		return true
	}
	for i := 1; i < len(rows); i++ {
		actions, alone := p.Step(&rows[i-1], &rows[i])
		do(actions)
		if alone {
			unaided++
		}
		if shows(market.Buy, rows[i].Bids) && shows(market.Sell, rows[i].Asks) {
			exact++
		}
	}
	return exact, unaided
}

func TestPlannerRebuildsOwnRecording(t *testing.T) {
	for seed := range uint64(20) {
		rows := NewLobster(seed, 120, 5)
		exact, unaided := runPlan(t, rows, 5)
		if exact != len(rows)-1 {
			t.Errorf("seed %d: %d of %d rows exact", seed, exact, len(rows)-1)
		}
		if unaided == 0 || unaided == len(rows)-1 {
			t.Errorf("seed %d: %d of %d rows unaided: the recording does not try both", seed, unaided, len(rows)-1)
		}
	}
}

func TestPlannerRebuildsRecordedDays(t *testing.T) {
	dir := os.Getenv("BLOCKDESK_TESTDATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	archive := filepath.Join(dir, "orderflow/lobster/LOBSTER_SampleFile_AMZN_2012-06-21_5.zip")
	if _, err := os.Stat(archive); err != nil {
		runtest.SkipMissing(t, "recorded flow", "BLOCKDESK_TESTDATA must name the folder of the recorded data")
	}
	rows, err := OpenLobsterZip(archive, 5)
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		rows = rows[:20_000]
	}
	exact, unaided := runPlan(t, rows, 5)
	t.Logf("AMZN level 5: %d of %d rows exact, %d unaided", exact, len(rows)-1, unaided)
	if exact*1000 < (len(rows)-1)*995 {
		t.Errorf("%d of %d rows exact, want 99.5 %%", exact, len(rows)-1)
	}
}
