package gatewaytest

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// ViewTime is the time of the last change of FixedView, in Unix ns.
var ViewTime = time.Date(2026, 11, 20, 12, 0, 4, 123456789, time.UTC).UnixNano()

// DeskClock is a clock that a test sets.
type DeskClock struct{ Ns atomic.Int64 }

// NewDeskClock returns a clock that begins 3 s after ViewTime.
func NewDeskClock() *DeskClock {
	c := &DeskClock{}
	c.Ns.Store(ViewTime + 3e9)
	return c
}

// Now returns the time in Unix nanoseconds.
func (c *DeskClock) Now() int64 { return c.Ns.Load() }

// Move moves the clock by d.
func (c *DeskClock) Move(d time.Duration) { c.Ns.Add(int64(d)) }

// Address returns an address whose bytes count up from first.
func Address(first byte) (a market.Address) {
	for i := range a {
		a[i] = first + byte(i)
	}
	return a
}

// Dollar is one dollar.
const Dollar = market.USD(1_000_000)

// FixedView has a ticket of each kind: the sellable one, exhausted, withdrawn, expired,
// open with its own reference on the other pair and a label that tries to break out of
// its JSON string, outside the corridor, and SOL only.
func FixedView() *rfq.View {
	minute := int64(time.Minute)
	v := &rfq.View{
		Seq: 4711, At: ViewTime,
		Policy: rfq.Policy{
			QuoteTTL: 15e9, ClaimTTL: 120e9, LateWindow: 3600e9, FeeBps: 500,
			Discounts: [market.FillCount]uint16{0, 25, 100, 250, 400, 650}, WalletClaims: 8, USDCMint: Address(100),
			PayTo: [market.RailCount]market.Address{market.RailUSDC: Address(120), market.RailSOL: Address(140)},
		},
		Pairs: []rfq.Pair{
			{
				Instrument: 0, BaseMint: Address(1), BaseDecimals: 6, Rails: market.AllRails, Source: rfq.SourceBook,
				CorridorBps: 300, MaxAge: 60 * minute, Via: rfq.NoInstrument, Anchor: 1_000_000_000,
				AnchorAt: ViewTime - minute, Inventory: 5_000_000_000_000, Reserved: 250_000_000, Sold: 1_000_000_001,
			},
			{
				Instrument: 1, BaseMint: Address(50), BaseDecimals: 9, Rails: market.Rails(0).With(market.RailUSDC),
				Source: rfq.SourceOperator, CorridorBps: 1000, Via: rfq.NoInstrument, Anchor: 92_000_000_001,
				AnchorAt: ViewTime - 2*minute, Inventory: 1, Reserved: 2, Sold: 0,
			},
		},
		RailPrices: []rfq.RailPrice{{Rail: market.RailSOL, Price: 151_230_000_000, At: ViewTime - minute, MaxAge: minute * 5}},
		Locks: []rfq.Lock{
			{Scope: rfq.LockAll, Since: ViewTime - 10*minute, By: 1, Reason: "drill"},
			{Scope: rfq.LockRail, Rail: market.RailSOL, Locked: true, Since: ViewTime, By: 1, Reason: `pay_to "rotates" \ soon`},
		},
		Operators: []rfq.Operator{{ID: 1, Name: "ann"}},
		Tickets: []*rfq.Ticket{
			Ticket(7, 0, rfq.TicketOpen, "spring block", rfq.Tranche{Capacity: 250_000 * Dollar, Filled: 249_800 * Dollar},
				rfq.Tranche{Capacity: 2_500_000 * Dollar, Reserved: 250 * Dollar, Filled: 1000*Dollar + 1}),
			Ticket(8, 0, rfq.TicketExhausted, "gone", rfq.Tranche{Capacity: 1000 * Dollar, Filled: 1000 * Dollar}),
			Ticket(9, 0, rfq.TicketWithdrawn, "back", rfq.Tranche{Capacity: 1000 * Dollar}),
			Ticket(10, 1, rfq.TicketExpired, "late", rfq.Tranche{Capacity: 1000 * Dollar}),
			Ticket(11, 1, rfq.TicketOpen, `"},{"ok":false,"x":"\`, rfq.Tranche{Capacity: 1000 * Dollar}),
			Ticket(12, 0, rfq.TicketOpen, "off the corridor", rfq.Tranche{Capacity: 25_000 * Dollar}),
			Ticket(13, 0, rfq.TicketOpen, "SOL only", rfq.Tranche{Capacity: 25_000 * Dollar}),
		},
	}
	v.Tickets[0].ExpiresAt = ViewTime + 60*minute
	v.Tickets[4].Reference, v.Tickets[4].Rails = 93_000_000_000, market.Rails(0).With(market.RailUSDC)
	v.Tickets[5].Reference = 2_000_000_000
	v.Tickets[6].Rails = market.Rails(0).With(market.RailSOL)
	return v
}

// Ticket returns a ticket with all rails and the given tranches.
func Ticket(id market.TicketID, in market.InstrumentID, state rfq.TicketState, label string, tranches ...rfq.Tranche) *rfq.Ticket {
	for i := range tranches {
		tranches[i].ID = market.TrancheID(i + 1)
	}
	return &rfq.Ticket{
		ID: id, Label: label, Instrument: in, Rails: market.AllRails, State: state, Priority: 10,
		CreatedAt: ViewTime - 3600e9, UpdatedAt: ViewTime - int64(id), Seq: 4000 + uint64(id), By: 1, Tranches: tranches,
	}
}

// LargeView returns a view with n open tickets of three tranches each.
func LargeView(n int) *rfq.View {
	v := FixedView()
	v.Tickets = nil
	for i := range n {
		label := "block " + strings.Repeat("x", i%30)
		v.Tickets = append(v.Tickets, Ticket(market.TicketID(i+1), market.InstrumentID(i%2), rfq.TicketOpen, label,
			rfq.Tranche{Capacity: 250_000 * Dollar}, rfq.Tranche{Capacity: 25_000 * Dollar, Filled: 1000 * Dollar},
			rfq.Tranche{Capacity: 2_500_000 * Dollar, Reserved: 250 * Dollar}))
	}
	return v
}

// WithClaim returns the view after a claim on the ticket at index i. It shares the other
// tickets with v.
func WithClaim(v *rfq.View, i int) *rfq.View {
	next := *v
	next.Seq++
	next.At += 1000
	next.Tickets = append([]*rfq.Ticket(nil), v.Tickets...)
	t := *v.Tickets[i]
	t.Tranches = append([]rfq.Tranche(nil), t.Tranches...)
	last := &t.Tranches[len(t.Tranches)-1]
	last.Reserved += min(250*Dollar, last.Available())
	t.Seq, t.UpdatedAt = next.Seq, next.At
	next.Tickets[i] = &t
	return &next
}

// AddressText returns a in base58.
func AddressText(a market.Address) string { return base58.Encode(a[:]) }

// ClaimText returns a claim's public id.
func ClaimText(id market.ClaimID) string { return string(market.AppendClaimID(nil, id)) }
