package httpgw

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// TestBuild: the answer to a build, byte for byte, the request to the desk, and the
// fee payer.
func TestBuild(t *testing.T) {
	rig := newDvPRig(t)
	want := `{"ok":true,"build_id":"B000000000002e","claim_id":"C000000000002e","transaction":"` +
		base64.StdEncoding.EncodeToString([]byte("transaction of 78")) + `","message_sha256":"ab` + strings.Repeat("0", 60) + `cd",` +
		`"required_signers":["` + gatewaytest.AddressText(gatewaytest.Address(60)) + `","` + taker + `"],` +
		`"payment":{"rail":"USDC","mint":"` + gatewaytest.AddressText(gatewaytest.Address(100)) + `","amount":"250.000001","amount_atoms":"250000001",` +
		`"pay_to":"` + gatewaytest.AddressText(gatewaytest.Address(120)) + `","reference":"` + gatewaytest.AddressText(gatewaytest.Address(200)) + `","memo":"claim \"78\" \\"},` +
		`"delivery":{"to":"` + taker + `","mint":"` + gatewaytest.AddressText(gatewaytest.Address(1)) + `","amount":"250.626566","amount_atoms":"250626566"},` +
		`"recent_blockhash":"` + gatewaytest.AddressText(gatewaytest.Address(90)) + `","last_valid_block_height":398214907,"preflight_commitment":"finalized","expires_at":"2026-11-20T12:02:04.123Z",` +
		`"quote":{"quote_id":null,"order_id":"T7","tranche_id":"T7-2","ticket_label":"spring block","pair":"SLUSD/USDC","fill_usd":"250",` +
		`"rail":"USDC","reference_price_usd":"1.000000000","discount_bps":25,"price_usd":"0.997500000","base_amount":"250.626566",` +
		`"base_amount_atoms":"250626566","fee_bps":500,"fee":{"included":true,"amount":"12.500000","amount_atoms":"12500000"}}}`
	got := rig.post(t, terms.PathBuild, buildBody, bearer)
	if got.status != 200 || string(got.body) != want {
		t.Fatalf("status %d: %s\nwant %s", got.status, got.body, want)
	}
	if got.header.Get("Cache-Control") != "no-store" || got.header.Get("ETag") != "" || got.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("headers %v", got.header)
	}
	for member, c := range map[string]struct {
		request rfq.TakeClaim
		payer   desk.FeePayer
	}{
		"":                     {rfq.TakeClaim{Rail: market.RailUSDC}, desk.DeskPays},
		`,"fee_payer":"desk"`:  {rfq.TakeClaim{Rail: market.RailUSDC}, desk.DeskPays},
		`,"fee_payer":null`:    {rfq.TakeClaim{Rail: market.RailUSDC}, desk.DeskPays},
		`,"fee_payer":"taker"`: {rfq.TakeClaim{Rail: market.RailUSDC}, desk.TakerPays},
		`,"quote_id":"Q000000000002d","rail":"SOL"`: {rfq.TakeClaim{Rail: market.RailSOL, Quote: 77}, desk.DeskPays},
	} {
		body := strings.Replace(buildBody, `,"rail":"USDC"`, "", 1)
		if !strings.Contains(member, "rail") {
			member += `,"rail":"USDC"`
		}
		if got := rig.post(t, terms.PathBuild, strings.Replace(body, "}", member+"}", 1), bearer); got.status != 200 {
			t.Errorf("%s: status %d: %s", member, got.status, got.body)
			continue
		}
		asked := c.request
		asked.Ticket, asked.Tranche, asked.Fill, asked.Mode, asked.Wallet = 7, 2, 1, rfq.Atomic, takerKey()
		asked.Client, asked.Proven = testClient, true
		if got := rig.desk.Last().(*rfq.TakeClaim); *got != asked {
			t.Errorf("%s: asked %+v, want %+v", member, got, asked)
		}
		if payer := rig.chain.payers[len(rig.chain.payers)-1]; payer != c.payer {
			t.Errorf("%s: payer %d", member, payer)
		}
	}
}

// TestWrongBuilds: each member in each invalid form; the desk is never called.
func TestWrongBuilds(t *testing.T) {
	zero := strings.Repeat("1", 32)
	takerIs := `,"taker":"` + taker + `"`
	for _, c := range []struct {
		from, to            string
		status              int
		code, reason, field string
	}{
		{buildBody, "", 400, wire.CodeInvalidJSON, "empty_body", ""},
		{buildBody, "[]", 400, wire.CodeInvalidJSON, "not_an_object", ""},
		{buildBody, "{}", 400, wire.CodeMissingField, "", "order_id"},
		{"}", ",}", 400, wire.CodeInvalidJSON, "syntax", ""},
		{"}", `,"x":1}`, 400, wire.CodeInvalidField, "unknown_field", "x"},
		{"}", `,"bot_wallet":"` + taker + `"}`, 400, wire.CodeInvalidField, "unknown_field", "bot_wallet"},
		{"}", takerIs + "}", 400, wire.CodeInvalidField, "repeated", "taker"},
		{`,"rail":"USDC"`, "", 400, wire.CodeMissingField, "", "rail"},
		{`"USDC"`, `"usdc"`, 400, wire.CodeInvalidField, "unknown_rail", "rail"},
		{`"250"`, `"251"`, 400, wire.CodeInvalidField, "not_on_ladder", "fill_usd"},
		{`"250"`, `250.0`, 400, wire.CodeInvalidField, "not_whole", "fill_usd"},
		{`"T7"`, `"T6"`, 404, wire.CodeUnknownTicket, "unknown_ticket", "order_id"},
		{`"T7-2"`, `"T7-3"`, 404, wire.CodeUnknownTicket, "unknown_tranche", "tranche_id"},
		{`"T7-2"`, `"T8-1"`, 404, wire.CodeUnknownTicket, "unknown_tranche", "tranche_id"},
		{"}", `,"quote_id":"Q1"}`, 400, wire.CodeInvalidField, "not_an_id", "quote_id"},
		{"}", `,"fee_payer":"client"}`, 400, wire.CodeInvalidField, "unknown_fee_payer", "fee_payer"},
		{"}", `,"fee_payer":"Desk"}`, 400, wire.CodeInvalidField, "unknown_fee_payer", "fee_payer"},
		{"}", `,"fee_payer":""}`, 400, wire.CodeInvalidField, "empty", "fee_payer"},
		{"}", `,"fee_payer":1}`, 400, wire.CodeInvalidField, "wrong_type", "fee_payer"},
		// No counterparty.
		{takerIs, "", 409, wire.CodeRefused, terms.GuardEmptyCounterparty, "taker"},
		{`"` + taker + `"`, `""`, 409, wire.CodeRefused, terms.GuardEmptyCounterparty, "taker"},
		{`"` + taker + `"`, "null", 409, wire.CodeRefused, terms.GuardEmptyCounterparty, "taker"},
		{taker, zero, 409, wire.CodeRefused, terms.GuardEmptyCounterparty, "taker"},
		// A counterparty that is none.
		{taker, taker[3:], 400, wire.CodeInvalidField, "not_an_address", "taker"},
		{taker, zero + "1", 400, wire.CodeInvalidField, "not_an_address", "taker"},
		{taker, strings.Replace(taker, taker[:1], "0", 1), 400, wire.CodeInvalidField, "not_an_address", "taker"},
		{taker, strings.Repeat("z", 45), 400, wire.CodeInvalidField, "too_long", "taker"},
		{`"` + taker + `"`, `{}`, 400, wire.CodeInvalidField, "wrong_type", "taker"},
		// Another one.
		{taker, otherKey, 403, wire.CodeTokenRefused, terms.TokenWrongTaker, "taker"},
		// An error in the form is reported before an error in the taker.
		{`"250","rail":"USDC","taker":"` + taker, `"251","rail":"USDC","taker":"`, 400, wire.CodeInvalidField, "not_on_ladder", "fill_usd"},
	} {
		rig := newDvPRig(t)
		got := rig.refusedAs(t, terms.PathBuild, strings.Replace(buildBody, c.from, c.to, 1), c.status, c.code, c.reason, c.field)
		want := ""
		if c.status == 403 {
			want = `Bearer realm="dvp", error="insufficient_scope"`
		}
		if got.header.Get("WWW-Authenticate") != want {
			t.Errorf("%s: WWW-Authenticate %q", c.to, got.header.Get("WWW-Authenticate"))
		}
		if rig.desk.Last() != nil || len(rig.chain.payers) != 0 {
			t.Errorf("%s: the desk or the settlement was asked", c.to)
		}
	}
}

// TestBuildRefusals: refusals of the desk and of the settlement with this route's
// field names; none of their texts is published.
func TestBuildRefusals(t *testing.T) {
	rig := newDvPRig(t)
	for _, c := range []struct {
		reason event.Reason
		status int
		code   string
		field  string
	}{
		{event.ReasonLocked, 409, wire.CodeRefused, ""},
		{event.ReasonPriceCorridor, 409, wire.CodeRefused, ""},
		{event.ReasonInventory, 409, wire.CodeRefused, ""},
		{event.ReasonWalletClaims, 409, wire.CodeRefused, "taker"},
		{event.ReasonCapacityExhausted, 409, wire.CodeCapacityExhausted, ""},
		{event.ReasonQuoteExpired, 409, wire.CodeClaimExpired, "quote_id"},
		{event.ReasonQuoteMismatch, 400, wire.CodeInvalidField, "quote_id"},
		{event.ReasonRailNotAccepted, 400, wire.CodeInvalidField, "rail"},
		{event.ReasonDeskFull, 503, wire.CodeOverloaded, ""},
	} {
		rig.desk.Result = func(rfq.Request) (*desk.Result, error) {
			return &desk.Result{Outcome: rfq.Outcome{Reason: c.reason}, Replayed: true}, nil
		}
		if got := rig.refusedAs(t, terms.PathBuild, buildBody, c.status, c.code, c.reason.String(), c.field); got.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: not replayed", c.reason)
		}
	}
	rig.desk.Result = func(rfq.Request) (*desk.Result, error) { return nil, desk.ErrBusy }
	rig.refusedAs(t, terms.PathBuild, buildBody, 503, wire.CodeOverloaded, "busy", "")
	rig.desk.Result = nil
	for _, c := range []struct {
		err          error
		status       int
		code, reason string
	}{
		{&desk.Refusal{Reason: "taker_funds"}, 409, wire.CodeRefused, "taker_funds"},
		{fmt.Errorf("wrapped: %w", &desk.Refusal{Reason: "simulation_failed"}), 409, wire.CodeRefused, "simulation_failed"},
		{&desk.Refusal{Reason: "expired"}, 409, wire.CodeRefused, "expired"},
		{&desk.Refusal{Reason: "of_tomorrow_7"}, 409, wire.CodeRefused, "of_tomorrow_7"},
		{&desk.Refusal{Reason: `no "word"`}, 409, wire.CodeRefused, "refused"},
		{&desk.Refusal{}, 409, wire.CodeRefused, "refused"},
		{&desk.Refusal{Reason: desk.RefusalReason(strings.Repeat("x", wire.MaxSegment+1))}, 409, wire.CodeRefused, "refused"},
		{&desk.Refusal{Reason: "capacity_exhausted"}, 409, wire.CodeCapacityExhausted, "capacity_exhausted"},
		{errors.New("10.0.0.7 refuses"), 503, wire.CodeChainUnavailable, ""},
	} {
		rig.chain.failing = c.err
		for _, path := range []string{terms.PathBuild, rfqapi.PathAtomic} {
			body := map[string]string{terms.PathBuild: buildBody, rfqapi.PathAtomic: strings.Replace(claimBody, wallet, taker, 1)}[path]
			got := rig.refusedAs(t, path, body, c.status, c.code, c.reason, "")
			if strings.Contains(string(got.body), "10.0.0.7") || strings.Contains(string(got.body), "wrapped") {
				t.Errorf("%v: %s", c.err, got.body)
			}
		}
	}
	rig.chain.failing, rig.chain.down = nil, errors.New("no node answers")
	asked := len(rig.desk.Requests)
	if got := rig.refusedAs(t, terms.PathBuild, buildBody, 503, wire.CodeChainUnavailable, "", ""); got.header.Get("Retry-After") != "10" {
		t.Errorf("not ready: %v", got.header)
	}
	without := newDvPRig(t, func(d *Dependencies, _ *Options) { d.Settlement = nil })
	without.refusedAs(t, terms.PathBuild, buildBody, 503, wire.CodeChainUnavailable, "", "")
	without.refusedAs(t, terms.PathBuild, strings.Replace(buildBody, taker, "", 1), 409, wire.CodeRefused, terms.GuardEmptyCounterparty, "taker")
	if len(rig.desk.Requests) != asked || len(without.desk.Requests) != 0 {
		t.Error("something was reserved without a chain")
	}
}

// TestBuildKeys: which builds are the same request to the desk.
func TestBuildKeys(t *testing.T) {
	rig := newDvPRig(t)
	keyOf := func(body, key string) rfq.IdempotencyKey {
		t.Helper()
		if got := rig.post(t, terms.PathBuild, body, bearer, "Idempotency-Key: "+key); got.status != 200 {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
		return rig.desk.Last().Head().Key
	}
	with := func(member string) string { return strings.Replace(buildBody, "}", member+"}", 1) }
	one := keyOf(buildBody, "k")
	if one == (rfq.IdempotencyKey{}) {
		t.Fatal("no key")
	}
	spaced := ` {"taker":"` + taker + `", "rail":"USDC","fill_usd":250,"tranche_id":"T7-2","order_id":"\u00547","quote_id":null} `
	for _, same := range []string{spaced, with(`,"fee_payer":"desk"`)} {
		if got := keyOf(same, "k"); got != one {
			t.Errorf("%s: %x, want %x", same, got, one)
		}
	}
	bodies := map[[8]byte]string{one.Body: buildBody}
	for _, other := range []string{
		strings.Replace(buildBody, `"T7-2"`, `"T7-1"`, 1), strings.Replace(buildBody, `"T7","tranche_id":"T7-2"`, `"T12","tranche_id":"T12-1"`, 1),
		strings.Replace(buildBody, "250", "1000", 1), strings.Replace(buildBody, "USDC", "SOL", 1),
		with(`,"quote_id":"Q000000000002d"`), with(`,"fee_payer":"taker"`),
	} {
		got := keyOf(other, "k")
		if got.ID != one.ID || bodies[got.Body] != "" {
			t.Errorf("%s: %x, as %s", other, got, bodies[got.Body])
		}
		bodies[got.Body] = other
	}
	if other := keyOf(buildBody, "K"); other.ID == one.ID {
		t.Error("another key has the same id")
	}
	rig.post(t, terms.PathBuild, buildBody, bearer)
	if none := rig.desk.Last().Head().Key; none != (rfq.IdempotencyKey{}) {
		t.Errorf("without the header: %x", none)
	}
	rig.desk.Result = func(r rfq.Request) (*desk.Result, error) {
		result := gatewaytest.Grant(rig.desk.Current, r)
		result.Replayed = true
		return result, nil
	}
	first := rig.post(t, terms.PathBuild, buildBody, bearer, "Idempotency-Key: k")
	second := rig.post(t, terms.PathBuild, spaced, bearer, "Idempotency-Key: k")
	if first.header.Get("Idempotency-Replayed") != "true" || !slices.Equal(first.body, second.body) {
		t.Errorf("replayed: %s\n%s", first.body, second.body)
	}
	rig.desk.Result = func(rfq.Request) (*desk.Result, error) { return nil, desk.ErrConflict }
	rig.refusedAs(t, terms.PathBuild, buildBody, 409, wire.CodeIdempotencyConflict, "", wire.IdempotencyHeader)
}

// TestBuildState: each stage of a build, and unknown builds.
func TestBuildState(t *testing.T) {
	rig := newDvPRig(t)
	claim := gatewaytest.Grant(rig.desk.Current, &rfq.TakeClaim{Ticket: 7, Tranche: 2, Fill: 1, Rail: market.RailUSDC, Mode: rfq.Atomic, Wallet: takerKey()}).Claim
	b := desk.BuildState{
		Claim: claim.ID, Taker: takerKey(), Stage: desk.BuildOpen, Hash: [32]byte{0xab}, Blockhash: gatewaytest.Address(90), LastValid: 4711, BuiltAt: gatewaytest.ViewTime + 1e6,
	}
	get := func(segment, more string) reply {
		t.Helper()
		return do(t, rig.handlers[0], "GET "+terms.PathBuilds+segment+" HTTP/1.1\r\nHost: test\r\n"+more+"\r\n")
	}
	head := `{"ok":true,"build_id":"B000000000002e","claim_id":"C000000000002e","state":"%s","claim_state":"%s","taker":"` + taker +
		`","message_sha256":"ab` + strings.Repeat("0", 62) + `","recent_blockhash":"` + gatewaytest.AddressText(gatewaytest.Address(90)) +
		`","last_valid_block_height":4711,"signature":%s,"slot":%s,"built_at":"2026-11-20T12:00:04.124Z",` +
		`"expires_at":"2026-11-20T12:02:04.123Z","changed_at":"2026-11-20T12:00:04.123Z"}`
	signed := string(wire.AppendSignature(nil, &[64]byte{1, 2}))
	for _, c := range []struct {
		stage               desk.BuildStage
		state               rfq.ClaimState
		slot                uint64
		NullText, claimWord string
	}{
		{desk.BuildOpen, rfq.ClaimReserved, 0, "open", "reserved"},
		{desk.BuildBroadcast, rfq.ClaimCosigned, 0, "broadcast", "cosigned"},
		{desk.BuildFinalized, rfq.ClaimSettled, 7, "finalized", "settled"},
		{desk.BuildFailed, rfq.ClaimReleased, 8, "failed", "released"},
		{desk.BuildExpired, rfq.ClaimExpired, 0, "expired", "expired"},
	} {
		later, state := *claim, b
		later.State, state.Stage, state.Slot = c.state, c.stage, c.slot
		signature, slot := "null", "null"
		if c.state == rfq.ClaimCosigned || c.slot != 0 {
			state.Signature, signature = [64]byte{1, 2}, signed
		}
		if c.slot != 0 {
			slot = fmt.Sprint(c.slot)
		}
		rig.dvp.builds[claim.ID], rig.desk.History[claim.ID] = state, &desk.History{Claim: later}
		got := get("B000000000002e", "")
		if want := fmt.Sprintf(head, c.NullText, c.claimWord, signature, slot); got.status != 200 || string(got.body) != want {
			t.Errorf("%s: status %d: %s\nwant %s", c.NullText, got.status, got.body, want)
		}
		if again := get("B000000000002e", "If-None-Match: "+got.header.Get("ETag")+"\r\n"); again.status != 304 {
			t.Errorf("%s: with its ETag %q: status %d", c.NullText, got.header.Get("ETag"), again.status)
		}
	}
	rig.dvp.builds[gatewaytest.UnreadableClaim] = b
	for segment, code := range map[string]string{
		"B0000000000001": wire.CodeUnknownClaim, "C000000000002e": wire.CodeUnknownClaim, "b000000000002e": wire.CodeUnknownClaim, "B2e": wire.CodeUnknownClaim,
		strings.Repeat("x", wire.MaxSegment): wire.CodeUnknownClaim, strings.Repeat("x", wire.MaxSegment+1): wire.CodeUnknownRoute, "": wire.CodeUnknownRoute, "..": wire.CodeUnknownRoute,
		string(market.AppendBuildID(nil, gatewaytest.UnreadableClaim)): wire.CodeInternal,
	} {
		got := get(segment, "")
		e := gatewaytest.DecodeError(t, got.body)
		status := map[string]int{wire.CodeUnknownClaim: 404, wire.CodeUnknownRoute: 404, wire.CodeInternal: 500}[code]
		if got.status != status || e.Code != code || code == wire.CodeUnknownClaim && (e.Reason != "unknown_build" || e.Field != "build_id") {
			t.Errorf("%q: status %d: %s", segment, got.status, got.body)
		}
	}
	rig.dvp.builds[79] = b // the desk does not know its claim
	if got := get(string(market.AppendBuildID(nil, 79)), ""); got.status != 404 {
		t.Errorf("without a claim: status %d: %s", got.status, got.body)
	}
	rig.dvp.failing = errors.New("store of host-7")
	if got := get("B000000000002e", ""); got.status != 503 || gatewaytest.DecodeError(t, got.body).Code != wire.CodeChainUnavailable || strings.Contains(string(got.body), "host-7") {
		t.Errorf("failing: status %d: %s", got.status, got.body)
	}
	rig = newDvPRig(t, func(d *Dependencies, _ *Options) { d.Cosigner = nil })
	if got := get("B000000000002e", ""); got.status != 503 || got.header.Get("Retry-After") != "10" {
		t.Errorf("without a settlement: status %d: %s", got.status, got.body)
	}
	if got := get("B2e", ""); got.status != 404 {
		t.Errorf("no build, without a settlement: status %d: %s", got.status, got.body)
	}
}
