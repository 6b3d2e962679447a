package engine

import (
	"fmt"
	"strconv"
	"strings"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

const second = int64(1_000_000_000)

// deskCommands packs a transcript's request to the desk.
func (a arguments) deskCommands(kind string) ([]Command, error) {
	r := a.deskRequest(kind)
	if r == nil {
		return nil, fmt.Errorf("no request %q", kind)
	}
	h := r.Head()
	h.RequestID, h.Operator, h.Ref = uint64(a.number("token", 0)), market.OperatorID(a.number("by", 0)), a["ref"]
	cs, err := DeskCommands(nil, r)
	if err != nil {
		return nil, err
	}
	last := &cs[len(cs)-1]
	last.Origin, last.Order.Participant = uint16(a.number("session", 0)), market.ParticipantID(a.number("who", 0))
	return a.pieces(cs)
}

// pieces returns the commands of a request to send.
func (a arguments) pieces(cs []Command) ([]Command, error) {
	if a["pieces"] == "" {
		return cs, nil
	}
	var some []Command
	for n := range strings.SplitSeq(a["pieces"], ",") {
		i, err := strconv.Atoi(n)
		if err != nil || i < 0 || i >= len(cs) {
			return nil, fmt.Errorf("piece %s of %d", n, len(cs))
		}
		some = append(some, cs[i])
	}
	return some, nil
}

// deskRequest reads a request. Prices are dollars with up to nine decimals
// without a point, capacities whole dollars with commas between them.
func (a arguments) deskRequest(kind string) rfq.Request {
	in := market.InstrumentID(a.number("in", 0))
	ticket, tranche := market.TicketID(a.number("ticket", 1)), market.TrancheID(a.number("tranche", 1))
	claim := market.ClaimID(a.number("claim", 0))
	price := market.USDPrice(a.number("price", 0))
	rail, _ := market.ParseRail([]byte(a["rail"]))
	fill, _ := market.ParseFill([]byte(a["fill"]))
	switch kind {
	case "set-policy":
		return &rfq.SetPolicy{Policy: testPolicy(a.number("quote-ttl", second), a.number("claim-ttl", second))}
	case "set-pair":
		p := testPair(in)
		p.CorridorBps = uint16(a.number("corridor", 1000))
		if a["source"] == "book" {
			p.Source = rfq.SourceBook
		}
		return &rfq.SetPair{Pair: p}
	case "set-operator":
		return &rfq.SetOperator{Of: rfq.Operator{ID: market.OperatorID(a.number("of", 1)), Name: a["name"]}}
	case "set-anchor":
		return &rfq.SetAnchor{Instrument: in, Price: price}
	case "set-inventory":
		return &rfq.SetInventory{Instrument: in, Atoms: uint64(a.number("atoms", 0))}
	case "set-lock":
		return &rfq.SetLock{Scope: rfq.LockAll, Locked: a["open"] == "", Reason: a["reason"]}
	case "post-ticket":
		r := &rfq.PostTicket{Label: a["label"], Instrument: in, ExpiresAt: a.number("expires", 0)}
		for text := range strings.SplitSeq(a["capacities"], ",") {
			n, _ := strconv.ParseUint(text, 10, 32)
			r.Capacities = append(r.Capacities, market.USD(n*1_000_000))
		}
		return r
	case "withdraw-ticket":
		return &rfq.WithdrawTicket{Ticket: ticket}
	case "request-quote":
		return &rfq.RequestQuote{Ticket: ticket, Tranche: tranche, Fill: fill, Rail: rail}
	case "take-claim":
		return &rfq.TakeClaim{
			Ticket: ticket, Tranche: tranche, Fill: fill, Rail: rail, Mode: rfq.Modular,
			Quote: market.QuoteID(a.number("quote", 0)), Wallet: testAddress(byte(a.number("wallet", 1))), Participant: market.ParticipantID(a.number("as", 0)),
		}
	case "prove-payment":
		r := &rfq.ProvePayment{Claim: claim, Rail: rail, Payer: testAddress(1), Amount: uint64(a.number("amount", 0)), Slot: 5}
		r.Signature[0] = byte(a.number("signature", 1))
		return r
	case "begin-delivery":
		return &rfq.BeginDelivery{Claim: claim, Proof: [32]byte{1}}
	case "settle-claim":
		return &rfq.SettleClaim{Claim: claim, Proof: [32]byte{1}}
	}
	return nil
}

func testAddress(n byte) market.Address { return market.Address{0: n, 31: 1} }

func testPolicy(quoteTTL, claimTTL int64) rfq.Policy {
	return rfq.Policy{
		QuoteTTL: quoteTTL, ClaimTTL: claimTTL, LateWindow: 3600 * second, FeeBps: 500,
		Discounts:    [market.FillCount]uint16{100, 200, 300, 400, 500, 600},
		WalletClaims: 1<<16 - 1, USDCMint: testAddress(200),
		PayTo: [market.RailCount]market.Address{market.RailUSDC: testAddress(201), market.RailSOL: testAddress(202)},
	}
}

func testPair(in market.InstrumentID) rfq.Pair {
	return rfq.Pair{
		Instrument: in, BaseMint: testAddress(byte(100 + in)), BaseDecimals: 6, Rails: market.AllRails,
		Source: rfq.SourceOperator, CorridorBps: 1000, Via: rfq.NoInstrument,
	}
}

var tagWords = map[rfq.Tag]string{
	rfq.TagPolicy: "policy", rfq.TagPair: "pair", rfq.TagOperator: "operator", rfq.TagLock: "lock",
	rfq.TagPayment: "payment", rfq.TagRailPrice: "rail-price", rfq.TagKeyUsed: "key-used",
}

// describeRecord prints the records that the engine's transcripts show; package rfq has the
// desk's own.
func describeRecord(record rfq.Record) string {
	switch r := record.(type) {
	case *rfq.Outcome:
		word := "done"
		if r.Reason != 0 {
			word = r.Reason.String()
		}
		return fmt.Sprintf("outcome token=%d kind=%d %s", r.RequestID, r.Kind, word)
	case *rfq.Ticket:
		return fmt.Sprintf("ticket %d state=%d", r.ID, r.State)
	case *rfq.TicketTranche:
		return fmt.Sprintf("tranche %d-%d capacity=%d reserved=%d filled=%d", r.Ticket, r.ID, r.Capacity, r.Reserved, r.Filled)
	case *rfq.Quote:
		return fmt.Sprintf("quote %d reference=%d until=%d", r.ID, r.Terms.Reference, r.ValidUntil)
	case *rfq.Claim:
		return fmt.Sprintf("claim %d state=%d reference=%d deadline=%d", r.ID, r.State, r.Terms.Reference, r.Deadline)
	case *rfq.Removed:
		return fmt.Sprintf("gone what=%d id=%d", r.What, r.ID)
	}
	return tagWords[record.Tag()]
}
