package persist

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

func address(n byte) market.Address { return market.Address{31: n} }

// sampleRequests has every kind of request, with fields set and unset, and its dump.
func sampleRequests() []struct {
	request rfq.Request
	want    string
} {
	head := rfq.Header{RequestID: 1<<40 + 5, Operator: 2, Key: rfq.IdempotencyKey{ID: [16]byte{0xab}, Body: [8]byte{7: 0xcd}}, Ref: `a"b`}
	policy := rfq.Policy{
		QuoteTTL: 15e9, ClaimTTL: 300e9, LateWindow: 0, FeeBps: 500, Discounts: [market.FillCount]uint16{1, 2, 3, 4, 5, 6},
		WalletClaims: 9, USDCMint: address(1), PayTo: [market.RailCount]market.Address{market.RailSOL: address(2)},
	}
	pair := rfq.Pair{
		Instrument: 1, BaseMint: address(3), BaseDecimals: 6, Rails: market.AllRails, Source: rfq.SourceBook,
		CorridorBps: 250, MaxAge: 90e9, Via: 0,
	}
	dollar := pair
	dollar.Source, dollar.Via, dollar.Rails, dollar.MaxAge = 9, rfq.NoInstrument, 0, 0
	firm := dollar
	firm.FirmBps = [market.RailCount]uint16{1: 100, 2: 150}
	guarded := rfq.Policy{
		QuoteTTL: 15e9, Rules: rfq.RulesGuarded, Grace: 30e9, UnprovenTTL: 45e9, UnprovenPerClient: 1e9, UnprovenShareBps: 3000,
		Dust: [market.RailCount]uint64{1: 7, 2: 8},
	}
	proof := [32]byte{0: 1, 31: 2}
	return []struct {
		request rfq.Request
		want    string
	}{
		{&rfq.SetPolicy{Header: head, Policy: policy}, `{"kind":"set_policy","token":1099511627781,"operator":2,"key":"ab000000000000000000000000000000","body":"00000000000000cd","ref":"a\"b","quote_ttl":"15s","claim_ttl":"5m0s","fee_bps":500,"discounts_bps":[1,2,3,4,5,6],"wallet_claims":9,"usdc_mint":"11111111111111111111111111111112","pay_to_SOL":"11111111111111111111111111111113"}`},
		{&rfq.SetPair{Pair: pair}, `{"kind":"set_pair","token":0,"instrument":1,"base_mint":"11111111111111111111111111111114","base_decimals":6,"rails":["USDC","SOL"],"source":"book","corridor_bps":250,"max_age":"1m30s","via":0}`},
		{&rfq.SetPair{Pair: dollar}, `{"kind":"set_pair","token":0,"instrument":1,"base_mint":"11111111111111111111111111111114","base_decimals":6,"rails":[],"source":9,"corridor_bps":250}`},
		{&rfq.SetOperator{Of: rfq.Operator{ID: 3, Name: "anna"}}, `{"kind":"set_operator","token":0,"id":3,"name":"anna"}`},
		{&rfq.SetAnchor{Instrument: 1, Price: 1_005_000_000}, `{"kind":"set_anchor","token":0,"instrument":1,"price_usd":"1.005000000"}`},
		{&rfq.SetRailPrice{Rail: market.RailSOL, Price: 150e9, MaxAge: 60e9}, `{"kind":"set_rail_price","token":0,"rail":"SOL","price_usd":"150.000000000","max_age":"1m0s"}`},
		{&rfq.SetInventory{Atoms: 1 << 63}, `{"kind":"set_inventory","token":0,"instrument":0,"atoms":"9223372036854775808"}`},
		{&rfq.SetLock{Scope: rfq.LockAll, Locked: true, Reason: "drill"}, `{"kind":"set_lock","token":0,"scope":"all","locked":true,"reason":"drill"}`},
		{&rfq.SetLock{Scope: rfq.LockPair, Instrument: 1}, `{"kind":"set_lock","token":0,"scope":"pair","instrument":1,"locked":false}`},
		{&rfq.SetLock{Scope: rfq.LockRail, Rail: market.RailUSDC}, `{"kind":"set_lock","token":0,"scope":"rail","rail":"USDC","locked":false}`},
		{&rfq.PostTicket{Label: "first", Instrument: 1, Rails: 1, Priority: 4, Reference: 2e9, ExpiresAt: 1_700_000_000_000_000_000, Capacities: []market.USD{250e6, 1000_500_000}}, `{"kind":"post_ticket","token":0,"label":"first","instrument":1,"rails":["USDC"],"priority":4,"reference_usd":"2.000000000","expires_at":"2023-11-14T22:13:20Z","capacities_usd":["250.000000","1000.500000"]}`},
		{&rfq.PostTicket{}, `{"kind":"post_ticket","token":0,"instrument":0,"rails":[],"priority":0,"capacities_usd":[]}`},
		{&rfq.AmendTicket{Ticket: 7, Rails: 0x82}, `{"kind":"amend_ticket","token":0,"order_id":"T7","rails":130,"priority":0}`},
		{&rfq.SetTranche{Ticket: 7, Tranche: 2, Capacity: 1e6}, `{"kind":"set_tranche","token":0,"tranche_id":"T7-2","capacity_usd":"1.000000"}`},
		{&rfq.WithdrawTicket{Ticket: 7}, `{"kind":"withdraw_ticket","token":0,"order_id":"T7"}`},
		{&rfq.RequestQuote{Ticket: 7, Tranche: 1, Fill: 2, Rail: market.RailUSDC}, `{"kind":"request_quote","token":0,"tranche_id":"T7-1","fill_usd":"1000","rail":"USDC"}`},
		{&rfq.RequestQuote{Ticket: 7, Tranche: 1, Fill: 9, Rail: 8}, `{"kind":"request_quote","token":0,"tranche_id":"T7-1","fill_usd":9,"rail":8}`},
		{&rfq.TakeClaim{Ticket: 7, Tranche: 1, Fill: 1, Rail: market.RailSOL, Mode: rfq.Atomic, Quote: 33, Wallet: address(4), Participant: 6}, `{"kind":"take_claim","token":0,"tranche_id":"T7-1","fill_usd":"250","rail":"SOL","way":"atomic","quote_id":"Q0000000000011","wallet":"11111111111111111111111111111115","participant":6}`},
		{&rfq.ProvePayment{Claim: 32, Rail: market.RailUSDC, Signature: [64]byte{63: 1}, Payer: address(5), Amount: 250e6, Slot: 77}, `{"kind":"prove_payment","token":0,"claim_id":"C0000000000010","rail":"USDC","signature":"` + strings.Repeat("1", 63) + `2","payer":"11111111111111111111111111111116","amount_atoms":"250000000","slot":77}`},
		{&rfq.BeginDelivery{Claim: 32, Proof: proof}, `{"kind":"begin_delivery","token":0,"claim_id":"C0000000000010","proof":"01` + strings.Repeat("0", 60) + `02"}`},
		{&rfq.ExpireDelivery{Claim: 32, Proof: proof}, `{"kind":"lapse_delivery","token":0,"claim_id":"C0000000000010","proof":"01` + strings.Repeat("0", 60) + `02"}`},
		{&rfq.SettleClaim{Claim: 32, Proof: proof}, `{"kind":"settle_claim","token":0,"claim_id":"C0000000000010","proof":"01` + strings.Repeat("0", 60) + `02"}`},
		{&rfq.CosignClaim{Claim: 32, Proof: proof}, `{"kind":"cosign_claim","token":0,"claim_id":"C0000000000010","proof":"01` + strings.Repeat("0", 60) + `02"}`},
		{&rfq.ReleaseClaim{Claim: 32}, `{"kind":"release_claim","token":0,"claim_id":"C0000000000010"}`},
		{&rfq.AbandonDelivery{Claim: 32}, `{"kind":"abandon_delivery","token":0,"claim_id":"C0000000000010"}`},
		{&rfq.SetFirstTicket{First: 1_000_000_001}, `{"kind":"number_tickets","token":0,"first":"T1000000001"}`},
		{&rfq.SetPolicy{Policy: guarded}, `{"kind":"set_policy","token":0,"quote_ttl":"15s","fee_bps":0,"discounts_bps":[0,0,0,0,0,0],"wallet_claims":0,"rules":2,"grace":"30s","unproven_ttl":"45s","unproven_per_client_usd":"1000.000000","unproven_share_bps":3000,"dust_USDC":"7","dust_SOL":"8"}`},
		{&rfq.SetPair{Pair: firm}, `{"kind":"set_pair","token":0,"instrument":1,"base_mint":"11111111111111111111111111111114","base_decimals":6,"rails":[],"source":9,"corridor_bps":250,"firm_bps_USDC":100,"firm_bps_SOL":150}`},
		{&rfq.SetAnchor{Price: 1e9, Source: rfq.OriginPyth, Confidence: 1e6, PublishedAt: 1_700_000_000_000_000_000}, `{"kind":"set_anchor","token":0,"instrument":0,"price_usd":"1.000000000","source":"pyth","confidence_usd":"0.001000000","published_at":"2023-11-14T22:13:20Z"}`},
		{&rfq.SetRailPrice{Rail: market.RailSOL, Withdrawn: true, Source: rfq.OriginPool}, `{"kind":"set_rail_price","token":0,"rail":"SOL","source":"pool","withdrawn":true}`},
		{&rfq.SetLock{Scope: rfq.LockDeliveries, Locked: true}, `{"kind":"set_lock","token":0,"scope":"deliveries","locked":true}`},
		{&rfq.SetLock{Scope: rfq.LockClock, Locked: true}, `{"kind":"set_lock","token":0,"scope":"clock","locked":true}`},
		{&rfq.TakeClaim{Ticket: 7, Tranche: 1, Fill: 1, Rail: market.RailSOL, Mode: rfq.Modular, Client: 9, Proven: true}, `{"kind":"take_claim","token":0,"tranche_id":"T7-1","fill_usd":"250","rail":"SOL","way":"modular","client":9,"proven":true}`},
		{&rfq.ProvePayment{Claim: 32, Rail: market.RailUSDC, Payer: address(5), Amount: 1, BlockTime: 1_700_000_000}, `{"kind":"prove_payment","token":0,"claim_id":"C0000000000010","rail":"USDC","signature":"` + strings.Repeat("1", 64) + `","payer":"11111111111111111111111111111116","amount_atoms":"1","slot":0,"block_time":1700000000}`},
		{&rfq.AbandonDelivery{Claim: 32, Reason: event.ReasonPriceCorridor}, `{"kind":"abandon_delivery","token":0,"claim_id":"C0000000000010","reason":"price_corridor"}`},
		{&rfq.SeePayment{Claim: 32}, `{"kind":"see_payment","token":0,"claim_id":"C0000000000010"}`},
		{&rfq.ReleaseUnbuilt{Claim: 32}, `{"kind":"release_unbuilt","token":0,"claim_id":"C0000000000010"}`},
		{&rfq.BeginRefund{Signature: [64]byte{63: 1}, Proof: proof}, `{"kind":"begin_refund","token":0,"signature":"` + strings.Repeat("1", 63) + `2","proof":"01` + strings.Repeat("0", 60) + `02"}`},
		{&rfq.ExpireRefund{Signature: [64]byte{63: 1}, Proof: proof}, `{"kind":"expire_refund","token":0,"signature":"` + strings.Repeat("1", 63) + `2","proof":"01` + strings.Repeat("0", 60) + `02"}`},
		{&rfq.SetBalance{Instrument: 1, Atoms: 1 << 63, Slot: 9}, `{"kind":"set_balance","token":0,"instrument":1,"atoms":"9223372036854775808","slot":9}`},
		{&rfq.RefundPayment{Signature: [64]byte{63: 1}, Proof: proof}, `{"kind":"refund_payment","token":0,"signature":"` + strings.Repeat("1", 63) + `2","proof":"01` + strings.Repeat("0", 60) + `02"}`},
	}
}

func TestDumpReportsRequests(t *testing.T) {
	kinds := map[rfq.RequestKind]bool{}
	for _, c := range sampleRequests() {
		kinds[c.request.Kind()] = true
		got := appendRequest(nil, rfq.AppendRequest(nil, c.request))
		if string(got) != c.want {
			t.Errorf("%T\ngot  %s\nwant %s", c.request, got, c.want)
		}
	}
	if len(kinds) != int(rfq.KindSetBalance) {
		t.Errorf("%d kinds of %d", len(kinds), rfq.KindSetBalance)
	}
	if got := string(appendRequest(nil, []byte{7, 1, 0xff})); got != `"0701ff"` {
		t.Errorf("what is no request: %s", got)
	}
}

// FuzzDumpRequest: whatever a Desk command carries, its line is JSON.
func FuzzDumpRequest(f *testing.F) {
	for _, c := range sampleRequests() {
		f.Add(rfq.AppendRequest(nil, c.request))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if line := appendRequest(nil, data); !json.Valid(line) {
			t.Fatalf("not JSON: %s", line)
		}
	})
}

// TestFramesKeepRequests: the commands of a request come out of a frame as they
// went in.
func TestFramesKeepRequests(t *testing.T) {
	var commands []engine.Command
	for _, c := range sampleRequests() {
		var err error
		if commands, err = engine.DeskCommands(commands, c.request); err != nil {
			t.Fatal(err)
		}
		last := &commands[len(commands)-1]
		last.Origin, last.Order.Participant = 3, 4
	}
	for i := range commands {
		commands[i].Seq, commands[i].At = uint64(i+1), int64(i/3)
	}
	data, err := AppendFrame(nil, &Frame{}, commands, nil)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := ParseFrame(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := frame.AppendCommands(nil)
	if err != nil || !slices.Equal(got, commands) {
		t.Errorf("%v\n%+v\nbecame\n%+v", err, commands, got)
	}
}

const wantDeskDump = `{"seq":2,"frame":2,"at":5,"time":"1970-01-01T00:00:00.000000005Z","kind":"attach","piece":1,"bytes":96}
{"seq":3,"frame":2,"at":5,"time":"1970-01-01T00:00:00.000000005Z","kind":"desk","piece":2,"bytes":10,"participant":4,"origin":3,"request":{"kind":"post_ticket","token":9,"operator":1,"label":"a block of some length","instrument":0,"rails":[],"priority":0,"capacities_usd":["250.000000","250.000000","250.000000","250.000000","250.000000","250.000000","250.000000","250.000000","250.000000","250.000000","250.000000","250.000000","250.000000","250.000000","250.000000"]}}
{"seq":4,"frame":4,"at":5,"time":"1970-01-01T00:00:00.000000005Z","kind":"attach","piece":0,"bytes":96}
{"seq":5,"frame":4,"at":5,"time":"1970-01-01T00:00:00.000000005Z","kind":"tick","instrument":0}
{"seq":6,"frame":4,"at":5,"time":"1970-01-01T00:00:00.000000005Z","kind":"attach","piece":1,"bytes":96,"torn":true}
`

// TestDumpJoinsRequests: the dump joins a request from all frames of its pieces, also
// if it begins inside the request, and marks an incomplete one.
func TestDumpJoinsRequests(t *testing.T) {
	r := &rfq.PostTicket{Label: "a block of some length", Capacities: slices.Repeat([]market.USD{250e6}, 15)}
	r.RequestID, r.Operator = 9, 1
	commands, err := engine.DeskCommands(nil, r)
	if err != nil || len(commands) != 3 {
		t.Fatalf("%d commands: %v", len(commands), err)
	}
	commands[2].Origin, commands[2].Order.Participant = 3, 4
	commands = append(commands, commands[0], engine.Command{Kind: engine.Tick}, commands[1])
	for i := range commands {
		commands[i].Seq, commands[i].At = uint64(i+1), 5
	}
	o := testOptions(vfs.NewMem())
	w := mustOpen(t, o, 0, nil)
	w.mustAppend(t, commands[:1], 1)
	w.mustAppend(t, commands[1:3], 2)
	w.mustAppend(t, commands[3:], 3)
	w.mustClose(t)
	var out bytes.Buffer
	if err := Dump(toolsFor(o), 2, 100, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != wantDeskDump {
		t.Errorf("dump:\n%s\nwant\n%s", out.String(), wantDeskDump)
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}
