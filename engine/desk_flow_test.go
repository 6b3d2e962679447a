package engine

import (
	"fmt"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// deskFlow adds desk requests to a flow: most of them sensible, some of several pieces,
// some with a client's id, and a few with a missing piece.
type deskFlow struct {
	queue  []Command // to be sent next, without anything between
	token  uint64
	claims []taken // asked for last
	quote  market.QuoteID
	posted int // tickets, or a few more
	locked bool
}

// taken is a requested claim: its id is the request's token.
type taken struct {
	id    market.ClaimID
	rail  market.Rail
	steps int // taken since
}

// newDeskFlow is newFlow with a desk on both instruments.
func newDeskFlow(seed uint64) *flow {
	f := newFlow(seed)
	f.desk = &deskFlow{}
	requests := []rfq.Request{
		&rfq.SetPolicy{Policy: testPolicy(second, second)},
		&rfq.SetOperator{Of: rfq.Operator{ID: 1, Name: "anna"}},
	}
	for in := range market.InstrumentID(2) {
		p := testPair(in)
		if in == 1 {
			p.Source, p.CorridorBps = rfq.SourceBook, 5000
		}
		requests = append(requests, &rfq.SetPair{Pair: p},
			&rfq.SetAnchor{Instrument: in, Price: 1_020_000_000_000}, // $1020: see flow.price
			&rfq.SetInventory{Instrument: in, Atoms: 1 << 60})
	}
	requests = append(requests, &rfq.SetRailPrice{Rail: market.RailSOL, Price: 150_000_000_000})
	for range 4 {
		requests = append(requests, f.ticket())
	}
	for _, r := range requests {
		f.head = append(f.head, f.desk.pack(r)...)
	}
	return f
}

func (d *deskFlow) pack(r rfq.Request) []Command {
	d.token++
	r.Head().RequestID = d.token
	cs, err := DeskCommands(nil, r)
	if err != nil {
		panic(err)
	}
	return cs
}

func (f *flow) ticket() rfq.Request {
	f.desk.posted++
	r := &rfq.PostTicket{Label: "block", Instrument: market.InstrumentID(f.rng.IntN(2)), Priority: uint16(f.rng.IntN(3))}
	for range 1 + f.rng.IntN(rfq.MaxTranches) {
		r.Capacities = append(r.Capacities, market.USD(250_000_000*(1+f.rng.Uint64N(40))))
	}
	return r
}

// request queues the commands of one request.
func (f *flow) request() {
	d := f.desk
	ticket, tranche := market.TicketID(max(d.posted*9/10-f.rng.IntN(8), 1)), market.TrancheID(1+f.rng.IntN(3))
	fill, rail := market.FillUSD(1+f.rng.IntN(3)), market.Rail(1+f.rng.IntN(2))
	var r rfq.Request
	switch roll := f.rng.IntN(1000); {
	case d.locked && roll < 300 || roll < 10:
		d.locked = !d.locked
		r = &rfq.SetLock{Scope: rfq.LockAll, Locked: d.locked, Reason: "drill"}
	case roll < 350:
		take := &rfq.TakeClaim{Ticket: ticket, Tranche: tranche, Fill: fill, Rail: rail, Mode: rfq.SettlementMode(1 + f.rng.IntN(2)), Wallet: testAddress(byte(f.rng.IntN(5)))}
		if f.rng.IntN(4) == 0 {
			take.Quote = d.quote
		}
		d.claims = append(d.claims[max(len(d.claims)-4, 0):], taken{id: market.ClaimID(d.token + 1), rail: rail})
		r = take
	case roll < 420:
		d.quote = market.QuoteID(d.token + 1)
		r = &rfq.RequestQuote{Ticket: ticket, Tranche: tranche, Fill: fill, Rail: rail}
	case roll < 900 && len(d.claims) > 0:
		r = f.step(&d.claims[f.rng.IntN(len(d.claims))])
	case roll < 905:
		r = &rfq.WithdrawTicket{Ticket: ticket}
	case roll < 950:
		r = f.ticket()
	case roll < 980:
		r = &rfq.SetAnchor{Instrument: market.InstrumentID(f.rng.IntN(2)), Price: market.USDPrice(1_000_000_000_000 + f.rng.Uint64N(40_000_000_000))}
	default:
		r = &rfq.SetOperator{Of: rfq.Operator{ID: 2, Name: "a program of the desk's own"}}
	}
	if f.rng.IntN(4) == 0 {
		r.Head().Ref = fmt.Sprintf("rfq-%d", f.rng.IntN(1000))
	}
	d.queue = d.pack(r)
	if n := len(d.queue); n > 1 && f.rng.IntN(12) == 0 {
		i := f.rng.IntN(n)
		d.queue = append(d.queue[:i:i], d.queue[i+1:]...)
	}
}

// step returns the next request about a claim, or sometimes another one.
func (f *flow) step(c *taken) rfq.Request {
	next := c.steps
	c.steps++
	if f.rng.IntN(6) == 0 {
		next = f.rng.IntN(4)
	}
	switch next {
	case 0:
		proof := &rfq.ProvePayment{Claim: c.id, Rail: c.rail, Payer: testAddress(1), Amount: 1 << 50, Slot: 9}
		proof.Signature[0], proof.Signature[1] = byte(f.desk.token), byte(f.desk.token>>8)
		return proof
	case 1:
		return &rfq.BeginDelivery{Claim: c.id, Proof: [32]byte{1}}
	case 2:
		return &rfq.SettleClaim{Claim: c.id, Proof: [32]byte{1}}
	default:
		return &rfq.ReleaseClaim{Claim: c.id}
	}
}
