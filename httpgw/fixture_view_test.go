package httpgw

import (
	"strings"
	"sync/atomic"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// deskDay is when the fixed view changed last; the hand clocks begin 3 s later.
var deskDay = time.Date(2026, 11, 20, 12, 0, 4, 123456789, time.UTC).UnixNano()

// deskClock is a clock that a test moves.
type deskClock struct{ ns atomic.Int64 }

func newDeskClock() *deskClock {
	c := &deskClock{}
	c.ns.Store(deskDay + 3e9)
	return c
}

func (c *deskClock) now() int64           { return c.ns.Load() }

func (c *deskClock) move(d time.Duration) { c.ns.Add(int64(d)) }

func address(first byte) (a market.Address) {
	for i := range a {
		a[i] = first + byte(i)
	}
	return a
}

const dollar = market.USD(1_000_000)

// fixedView has a ticket of each kind: open and sold first, exhausted, withdrawn,
// expired, open with its own reference on the other pair, and one whose label
// tries to break out.
func fixedView() *rfq.View {
	minute := int64(time.Minute)
	v := &rfq.View{
		Seq: 4711, At: deskDay,
		Policy: rfq.Policy{
			QuoteTTL: 15e9, ClaimTTL: 120e9, LateWindow: 3600e9, FeeBps: 500,
			Discounts: [market.FillCount]uint16{0, 25, 100, 250, 400, 650}, WalletClaims: 8, USDCMint: address(100),
			PayTo: [market.RailCount]market.Address{market.RailUSDC: address(120), market.RailSOL: address(140)},
		},
		Pairs: []rfq.Pair{
			{
				Instrument: 0, BaseMint: address(1), BaseDecimals: 6, Rails: market.AllRails, Source: rfq.SourceBook,
				CorridorBps: 300, MaxAge: 60 * minute, Via: rfq.NoInstrument, Anchor: 1_000_000_000,
				AnchorAt: deskDay - minute, Inventory: 5_000_000_000_000, Reserved: 250_000_000, Sold: 1_000_000_001,
			},
			{
				Instrument: 1, BaseMint: address(50), BaseDecimals: 9, Rails: market.Rails(0).With(market.RailUSDC),
				Source: rfq.SourceOperator, CorridorBps: 1000, Via: rfq.NoInstrument, Anchor: 92_000_000_001,
				AnchorAt: deskDay - 2*minute, Inventory: 1, Reserved: 2, Sold: 0,
			},
		},
		RailPrices: []rfq.RailPrice{{Rail: market.RailSOL, Price: 151_230_000_000, At: deskDay - minute, MaxAge: minute * 5}},
		Locks: []rfq.Lock{
			{Scope: rfq.LockAll, Since: deskDay - 10*minute, By: 1, Reason: "drill"},
			{Scope: rfq.LockRail, Rail: market.RailSOL, Locked: true, Since: deskDay, By: 1, Reason: `pay_to "rotates" \ soon`},
		},
		Operators: []rfq.Operator{{ID: 1, Name: "ann"}},
		Tickets: []*rfq.Ticket{
			ticket(7, 0, rfq.TicketOpen, "spring block", rfq.Tranche{Capacity: 250_000 * dollar, Filled: 249_800 * dollar},
				rfq.Tranche{Capacity: 2_500_000 * dollar, Reserved: 250 * dollar, Filled: 1000*dollar + 1}),
			ticket(8, 0, rfq.TicketExhausted, "gone", rfq.Tranche{Capacity: 1000 * dollar, Filled: 1000 * dollar}),
			ticket(9, 0, rfq.TicketWithdrawn, "back", rfq.Tranche{Capacity: 1000 * dollar}),
			ticket(10, 1, rfq.TicketExpired, "late", rfq.Tranche{Capacity: 1000 * dollar}),
			ticket(11, 1, rfq.TicketOpen, `"},{"ok":false,"x":"\`, rfq.Tranche{Capacity: 1000 * dollar}),
			ticket(12, 0, rfq.TicketOpen, "off the corridor", rfq.Tranche{Capacity: 25_000 * dollar}),
			ticket(13, 0, rfq.TicketOpen, "SOL only", rfq.Tranche{Capacity: 25_000 * dollar}),
		},
	}
	v.Tickets[0].ExpiresAt = deskDay + 60*minute
	v.Tickets[4].Reference, v.Tickets[4].Rails = 93_000_000_000, market.Rails(0).With(market.RailUSDC)
	v.Tickets[5].Reference = 2_000_000_000
	v.Tickets[6].Rails = market.Rails(0).With(market.RailSOL)
	v.Sellable = v.Tickets[0]
	return v
}

func ticket(id market.TicketID, in market.InstrumentID, state rfq.TicketState, label string, tranches ...rfq.Tranche) *rfq.Ticket {
	for i := range tranches {
		tranches[i].ID = market.TrancheID(i + 1)
	}
	return &rfq.Ticket{
		ID: id, Label: label, Instrument: in, Rails: market.AllRails, State: state, Priority: 10,
		CreatedAt: deskDay - 3600e9, UpdatedAt: deskDay - int64(id), Seq: 4000 + uint64(id), By: 1, Tranches: tranches,
	}
}

// largeView has n open tickets of three tranches.
func largeView(n int) *rfq.View {
	v := fixedView()
	v.Tickets = nil
	for i := range n {
		label := "block " + strings.Repeat("x", i%30)
		v.Tickets = append(v.Tickets, ticket(market.TicketID(i+1), market.InstrumentID(i%2), rfq.TicketOpen, label,
			rfq.Tranche{Capacity: 250_000 * dollar}, rfq.Tranche{Capacity: 25_000 * dollar, Filled: 1000 * dollar},
			rfq.Tranche{Capacity: 2_500_000 * dollar, Reserved: 250 * dollar}))
	}
	v.Sellable = v.Tickets[0]
	return v
}

// claimed returns the view after a claim on the ticket at index i: a new view
// and a new ticket, the others shared.
func claimed(v *rfq.View, i int) *rfq.View {
	next := *v
	next.Seq++
	next.At += 1000
	next.Tickets = append([]*rfq.Ticket(nil), v.Tickets...)
	t := *v.Tickets[i]
	t.Tranches = append([]rfq.Tranche(nil), t.Tranches...)
	last := &t.Tranches[len(t.Tranches)-1]
	last.Reserved += min(250*dollar, last.Available())
	t.Seq, t.UpdatedAt = next.Seq, next.At
	next.Tickets[i] = &t
	if v.Sellable == v.Tickets[i] {
		next.Sellable = &t
	}
	return &next
}

func addressText(a market.Address) string { return strings.Trim(string(appendAccount(nil, a)), `"`) }

func claimText(id market.ClaimID) string { return string(market.AppendClaimID(nil, id)) }
