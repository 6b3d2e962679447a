package persist

import (
	"math/rand/v2"
	"testing"

	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// deskWorkload is a workload with desk requests between its orders, of one piece and of
// several, which frames and crashes may cut.
func deskWorkload(t testing.TB, n int, seed uint64) []engine.Command {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	var commands []engine.Command
	token := uint64(0)
	request := func(r rfq.Request) {
		token++
		r.Head().RequestID = token
		var err error
		if commands, err = engine.DeskCommands(commands, r); err != nil {
			t.Fatal(err)
		}
	}
	orders := workload(t, n, seed)
	head := len(orders) - n
	commands = append(commands, orders[:head]...)
	for _, r := range deskSetup() {
		request(r)
	}
	for i := range orders[head:] {
		commands = append(commands, orders[head+i])
		if rng.IntN(10) == 0 {
			request(deskRequest(rng, token))
		}
	}
	var at int64
	for i := range commands {
		at = max(at, commands[i].At)
		commands[i].Seq, commands[i].At = uint64(i+1), at
	}
	return commands
}

func deskSetup() []rfq.Request {
	return []rfq.Request{
		&rfq.SetPolicy{Policy: rfq.Policy{
			QuoteTTL: 1e9, ClaimTTL: 1e9, LateWindow: 1e9, WalletClaims: 1000, USDCMint: address(1),
			PayTo: [market.RailCount]market.Address{market.RailUSDC: address(2), market.RailSOL: address(3)},
		}},
		&rfq.SetPair{Pair: rfq.Pair{
			BaseMint: address(4), BaseDecimals: 6, Rails: market.AllRails, Source: rfq.SourceOperator,
			CorridorBps: 500, Via: rfq.NoInstrument,
		}},
		&rfq.SetAnchor{Price: 1e9},
		&rfq.SetInventory{Atoms: 1 << 50},
		&rfq.PostTicket{Label: "first", Capacities: []market.USD{10_000e6, 90_000e6, 1000e6}},
	}
}

func deskRequest(rng *rand.Rand, token uint64) rfq.Request {
	claim := market.ClaimID(token - rng.Uint64N(min(token, 4)))
	switch rng.IntN(10) {
	case 0:
		r := &rfq.PostTicket{Label: "another of them"}
		for range 1 + rng.IntN(rfq.MaxTranches) {
			r.Capacities = append(r.Capacities, market.USD(250e6*(1+rng.Uint64N(9))))
		}
		return r
	case 1, 2:
		proof := &rfq.ProvePayment{Claim: claim, Rail: market.RailUSDC, Payer: address(7), Amount: 250e6, Slot: token}
		proof.Signature[0], proof.Signature[1] = byte(token), byte(token>>8)
		return proof
	case 3:
		return &rfq.ReleaseClaim{Claim: claim}
	case 4:
		return &rfq.RequestQuote{Ticket: 1, Tranche: 2, Fill: 2, Rail: market.RailUSDC}
	default:
		return &rfq.TakeClaim{
			Ticket: market.TicketID(1 + rng.IntN(3)), Tranche: market.TrancheID(1 + rng.IntN(3)), Fill: 1,
			Rail: market.RailUSDC, Mode: rfq.Modular, Wallet: address(byte(10 + rng.IntN(9))),
		}
	}
}

// TestDeskWorkload: the workload has requests of one piece and of several.
func TestDeskWorkload(t *testing.T) {
	r := engine.NewReplica(smallState)
	kinds := map[engine.Kind]int{}
	for _, c := range deskWorkload(t, 2000, 3) {
		kinds[c.Kind]++
		r.Apply(&c, nil)
	}
	v := r.State.Desk().ReadModel().View()
	if len(v.Tickets) < 3 || v.Pair(0) == nil || v.Pair(0).Reserved == 0 || kinds[engine.Fragment] == 0 || kinds[engine.Desk] < 100 {
		t.Errorf("%d tickets, pair %+v, commands by kind %v", len(v.Tickets), v.Pair(0), kinds)
	}
}
