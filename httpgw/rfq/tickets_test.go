package rfq

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// TestTextsAreShared: a claim renders one ticket; the texts of the others are the same
// memory.
func TestTextsAreShared(t *testing.T) {
	desk := gatewaytest.NewViewDesk(gatewaytest.LargeView(100))
	p := pagesOf(t, desk, gatewaytest.NewDeskClock())
	p.get(docTickets)
	before := p.tickets.newest.Load()
	desk.SetView(gatewaytest.WithClaim(desk.View(), 42))
	p.get(docCompact)
	after := p.tickets.newest.Load()
	for i := range before.list {
		same := &before.list[i].full[0] == &after.list[i].full[0]
		if same != (i != 42) {
			t.Errorf("ticket %d: the text before %t", i, same)
		}
	}
	// A ladder or a mint of its own changes every text.
	next := *desk.View()
	next.Policy.Discounts[0]++
	desk.SetView(&next)
	p.get(docTickets)
	if fresh := p.tickets.newest.Load(); &fresh.list[0].full[0] == &after.list[0].full[0] {
		t.Error("a text of the old ladder")
	}
}

// TestTextsAgainstFresh: after any changes, cached texts equal those of a server that
// has just started.
func TestTextsAgainstFresh(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		desk, clock := gatewaytest.NewViewDesk(gatewaytest.LargeView(8)), gatewaytest.NewDeskClock()
		p := pagesOf(t, desk, clock)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			desk.SetView(changeView(rt, desk.View()))
			clock.Ns.Add(rapid.Int64Range(0, 2*Refresh).Draw(rt, "time"))
			if rapid.Bool().Draw(rt, "skip") {
				continue
			}
			fresh := pagesOf(t, desk, clock)
			fresh.startedAt = p.startedAt
			for d := range documentCount {
				if got, want := p.get(d), fresh.get(d); !bytes.Equal(got.Body, want.Body) || !bytes.Equal(got.ETag, want.ETag) {
					rt.Fatalf("%v:\n got %s\nwant %s", d, got.Body, want.Body)
				}
			}
		}
	})
}

// TestTicketsAreTheDocuments: Tickets returns exactly the records of market-tickets in
// their order, with its seq, after any change.
func TestTicketsAreTheDocuments(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		desk, clock := gatewaytest.NewViewDesk(gatewaytest.FixedView()), gatewaytest.NewDeskClock()
		p := pagesOf(t, desk, clock)
		g := &Endpoints{own: p}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			desk.SetView(changeView(rt, desk.View()))
			clock.Ns.Add(rapid.Int64Range(0, 2*Refresh).Draw(rt, "time"))
			var list []string
			seq, at := g.Tickets(func(in market.InstrumentID, id market.TicketID, record []byte) {
				list = append(list, string(record))
				of := desk.View().Ticket(id)
				if of == nil || of.Instrument != in {
					rt.Errorf("ticket %d of instrument %d is not the desk's", id, in)
				}
			})
			if v := desk.View(); seq != v.Seq || at != v.At {
				rt.Errorf("seq %d at %d; the view has %d at %d", seq, at, v.Seq, v.At)
			}
			_, shown, _ := strings.Cut(string(p.get(docTickets).Body), `,"tickets":[`)
			if got, want := strings.Join(list, ","), strings.TrimSuffix(shown, "]}"); got != want {
				rt.Fatalf("\n got %s\nwant %s", got, want)
			}
		}
	})
}

// TestTicketsHold: records stay as they are for as long as TicketsHold says, to the
// nanosecond.
func TestTicketsHold(t *testing.T) {
	v := gatewaytest.FixedView()
	v.Tickets = v.Tickets[:1]
	clock := gatewaytest.NewDeskClock()
	v.Pairs[0].PublishedAt = clock.Now() - v.Pairs[0].MaxAge + int64(time.Minute)
	g := &Endpoints{own: pagesOf(t, gatewaytest.NewViewDesk(v), clock)}
	priced := func() bool {
		var record string
		g.Tickets(func(_ market.InstrumentID, _ market.TicketID, text []byte) { record = string(text) })
		return !strings.Contains(record, `"reference_price_usd":null`)
	}
	clock.Ns.Add(int64(g.TicketsHold()) - 1)
	if !priced() {
		t.Error("the price ended too early")
	}
	if hold := g.TicketsHold(); hold != 1 {
		t.Errorf("it holds for %v more, want 1ns", hold)
	}
	clock.Ns.Add(1)
	if priced() {
		t.Error("an old price is in the record")
	}
	if hold := g.TicketsHold(); hold <= 0 {
		t.Errorf("it holds for %v", hold)
	}
}

// changeView changes a view in one of the ways that a desk does.
func changeView(t *rapid.T, v *rfq.View) *rfq.View {
	next := *v
	next.Seq++
	which := rapid.IntRange(0, len(v.Tickets)).Draw(t, "which")
	switch kind := rapid.IntRange(0, 8).Draw(t, "change"); {
	case kind == 0:
		next.Policy.Discounts[which%market.FillCount] += 5
	case kind == 1:
		next.Pairs = append([]rfq.Pair(nil), v.Pairs...)
		next.Pairs[which%2].BaseMint[0]++
	case kind == 2:
		next.Pairs = append([]rfq.Pair(nil), v.Pairs...)
		next.Pairs[which%2].Anchor += 1e7
	case kind == 3:
		next.Locks = []rfq.Lock{{Scope: rfq.LockScope(1 + which%3), Instrument: 1, Rail: market.RailUSDC, Locked: which%2 == 0}}
	case kind == 4:
		id := v.Tickets[len(v.Tickets)-1].ID + 1
		next.Tickets = append(append([]*rfq.Ticket(nil), v.Tickets...), gatewaytest.Ticket(id, 0, rfq.TicketOpen, "new", rfq.Tranche{Capacity: 250 * gatewaytest.Dollar}))
	case kind == 5 && which < len(v.Tickets) && len(v.Tickets) > 1: // forgotten
		next.Tickets = append(append([]*rfq.Ticket(nil), v.Tickets[:which]...), v.Tickets[which+1:]...)
	case which < len(v.Tickets):
		return gatewaytest.WithClaim(v, which)
	}
	return &next
}

// TestCompactRows: the rows are the tranches that can be claimed, computed from the
// documents' own members.
func TestCompactRows(t *testing.T) {
	p := pagesOf(t, gatewaytest.NewViewDesk(gatewaytest.FixedView()), gatewaytest.NewDeskClock())
	var compact struct {
		OK  bool
		Seq uint64
		T   [][]any
	}
	var book struct {
		Tickets []struct {
			ID       string `json:"order_id"`
			Pair     string
			State    string
			Tranches []struct {
				ID        string `json:"tranche_id"`
				Available string `json:"available_usd"`
				State     string
			}
		}
	}
	decode := func(d document, into any) {
		if err := json.Unmarshal(p.get(d).Body, into); err != nil {
			t.Fatal(err)
		}
	}
	decode(docCompact, &compact)
	decode(docTickets, &book)
	var want [][]any
	for _, ticket := range book.Tickets {
		for _, tranche := range ticket.Tranches {
			if tranche.State == "open" {
				want = append(want, []any{ticket.ID, tranche.ID, ticket.Pair, tranche.Available})
			}
		}
	}
	if len(want) != 4 || len(want) != len(compact.T) || !compact.OK || compact.Seq != 4711 {
		t.Fatalf("%d rows of %d, seq %d", len(compact.T), len(want), compact.Seq)
	}
	for i, row := range compact.T {
		if len(row) != 6 {
			t.Fatalf("row %v", row)
		}
		for j := range want[i] {
			if row[j] != want[i][j] {
				t.Errorf("row %d column %d: %v, want %v", i, j, row[j], want[i][j])
			}
		}
	}
}

// TestCapacityForTheSmallestFill: 250 dollars are for sale, a millionth less is not.
func TestCapacityForTheSmallestFill(t *testing.T) {
	for available, want := range map[market.USD]bool{250 * gatewaytest.Dollar: true, 250*gatewaytest.Dollar - 1: false, 0: false} {
		if got := sellable(&rfq.Tranche{Capacity: 1000 * gatewaytest.Dollar, Filled: 1000*gatewaytest.Dollar - available}); got != want {
			t.Errorf("%d: sellable %t", available, got)
		}
	}
}

// TestHostileLabels: any printable ASCII in a label, a lock's reason or the operator's
// name gives valid JSON with the same text.
func TestHostileLabels(t *testing.T) {
	printable := rapid.StringOfN(rapid.RuneFrom([]rune(`"\/{}[],:<>&'abc `+"~\x7e!")), 1, rfq.MaxText, -1)
	rapid.Check(t, func(rt *rapid.T) {
		label, reason, operator := printable.Draw(rt, "label"), printable.Draw(rt, "reason"), printable.Draw(rt, "operator")
		v := gatewaytest.FixedView()
		v.Tickets[0].Label, v.Locks[0].Reason = label, reason
		p := pagesOf(t, gatewaytest.NewViewDesk(v), gatewaytest.NewDeskClock())
		p.about.Operator, p.about.QualificationLabel, p.about.Service = operator, label, reason
		for d := range documentCount {
			if !json.Valid(p.get(d).Body) {
				rt.Fatalf("%v: %s", d, p.get(d).Body)
			}
		}
		var board struct {
			Offers []struct {
				Label    string `json:"ticket_label"`
				Declared struct {
					Operator string `json:"operateur"`
				} `json:"operator_declared"`
				By struct {
					Label string `json:"libelle"`
				} `json:"guaranteed_by"`
			}
		}
		var desk struct{ Locks []struct{ Reason string } }
		if json.Unmarshal(p.get(docBoard).Body, &board) != nil || json.Unmarshal(p.get(docDesk).Body, &desk) != nil {
			rt.Fatal("other types")
		}
		offer := board.Offers[0]
		if offer.Label != label || offer.Declared.Operator != operator || offer.By.Label != label || desk.Locks[0].Reason != reason {
			rt.Fatalf("%q %q %q came back as %+v %q", label, operator, reason, offer, desk.Locks[0].Reason)
		}
	})
}

// BenchmarkBook reads the book of 1,000 tickets with three tranches each: cached,
// after a claim, and on a server that has just started.
func BenchmarkBook(b *testing.B) {
	desk := gatewaytest.NewViewDesk(gatewaytest.LargeView(1000))
	p := pagesOf(b, desk, gatewaytest.NewDeskClock())
	size := func(b *testing.B, d document) {
		b.Helper()
		b.ReportAllocs()
		b.ReportMetric(float64(len(p.get(d).Body)), "body-B")
	}
	b.Run("cached", func(b *testing.B) {
		p.get(docTickets)
		for b.Loop() {
			p.get(docTickets)
		}
		size(b, docTickets)
	})
	for _, d := range []document{docTickets, docCompact, docBoard} {
		b.Run("claim/"+d.String(), func(b *testing.B) {
			v := [2]*rfq.View{gatewaytest.WithClaim(desk.View(), 500)}
			v[1] = gatewaytest.WithClaim(v[0], 500)
			for i := 0; b.Loop(); i++ {
				desk.SetView(v[i&1])
				p.get(d)
			}
			size(b, d)
		})
		b.Run("start/"+d.String(), func(b *testing.B) {
			for b.Loop() {
				p.tickets.newest.Store(nil)
				p.cache[d] = wire.PageCache[*snapshot]{}
				p.get(d)
			}
			size(b, d)
		})
	}
}
