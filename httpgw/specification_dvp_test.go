package httpgw

import (
	"errors"
	"strings"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
	"blockdesk/sdk/openapitest"
)

// TestDvPAnswersAreDescribed: every answer of the DvP routes conforms to the
// specification in status, code, reason, headers and members.
func TestDvPAnswersAreDescribed(t *testing.T) {
	deps, rig := dvpDependencies()
	c := newConformingOf(t, deps, nil)
	const key = "Idempotency-Key: k"
	post := func(path, body string, status int, headers ...string) *openapitest.Answer {
		t.Helper()
		a := c.send(t, path, postText(path, body, headers...), status)
		if status >= 300 {
			return a
		}
		if err := openapitest.Mutants(a.Body, func(what string, mutant []byte) bool {
			other := *a
			optional := what == "missing /preflight_commitment" // services before 0.2.0 lack it
			if other.Body = mutant; !optional && c.d.CheckAnswer(&other) == nil {
				t.Errorf("%s: %s is not noticed", path, what)
			}
			return true
		}); err != nil {
			t.Error(err)
		}
		return a
	}
	get := func(path, target, more string, status int) *openapitest.Answer {
		t.Helper()
		return c.send(t, path, "GET "+target+" HTTP/1.1\r\nHost: test\r\n"+more+"\r\n", status)
	}

	offered := get(terms.PathHandshake, terms.PathHandshake, "", 200)
	get(terms.PathHandshake, terms.PathHandshake, "If-None-Match: "+offered.Header.Get("ETag")+"\r\n", 304)
	post(terms.PathHandshake, challengeBody, 200)
	post(terms.PathHandshake, issueBody, 201)
	post(terms.PathHandshake, "{}", 400)
	post(terms.PathHandshake, strings.Replace(issueBody, proofText, "x", 1), 400)
	for _, failure := range []struct {
		err    error
		status int
	}{{desk.ErrBadKey, 400}, {desk.ErrBadNonce, 400}, {desk.ErrBadProof, 400}, {&desk.TooSoon{RetryAfter: time.Hour}, 429}, {desk.ErrTokensFull, 503}, {errors.New("x"), 500}} {
		rig.keys.failing = failure.err
		post(terms.PathHandshake, issueBody, failure.status)
	}
	rig.keys.failing = nil

	full := strings.Replace(buildBody, "}", `,"quote_id":"Q000000000002d","fee_payer":"taker"}`, 1)
	for _, body := range []string{buildBody, full, strings.Replace(buildBody, "USDC", "SOL", 1)} {
		post(terms.PathBuild, body, 200, bearer, key)
	}
	post(terms.PathBuild, strings.Replace(buildBody, taker, "", 1), 409, bearer)
	post(terms.PathBuild, strings.Replace(buildBody, taker, otherKey, 1), 403, bearer)
	post(terms.PathBuild, strings.Replace(full, `er"}`, `es"}`, 1), 400, bearer)
	post(terms.PathBuild, strings.Replace(buildBody, "T7", "T6", 1), 404, bearer)
	for stage := desk.BuildOpen; stage <= desk.BuildExpired; stage++ {
		rig.dvp.result.Stage, rig.dvp.result.Slot = stage, uint64(stage-1)
		post(terms.PathSubmit, submitBody, 200, bearer, key)
	}
	post(terms.PathSubmit, strings.Replace(submitBody, "B0", "C0", 1), 404, bearer)
	post(terms.PathSubmit, `{"build_id":"B000000000002e"}`, 409, bearer)
	post(terms.PathSubmit, strings.Replace(submitBody, "2e", "2f", 1), 409, bearer, key)
	for _, path := range []string{terms.PathBuild, terms.PathSubmit} {
		post(path, "{}", 403)
		post(path, "{}", 403, "Authorization: Basic x")
		post(path, "{}", 403, bearer+"x")
		post(path, "{}", 400, bearer)
		post(path, "{", 400, bearer)
		post(path, `{"x":1}`, 400, bearer)
		post(path, "{}", 400, bearer, "Idempotency-Key: "+strings.Repeat("k", wire.MaxIdempotencyKey+1))
		c.send(t, path, strings.Replace(postText(path, "{}", bearer), "application/json", "text/plain", 1), 415)
		post(path, strings.Repeat(" ", wire.DefaultMaxBodyBytes+1), 413, bearer)
		get(path, path, "", 405)
	}
	settlementFails(t, c, rig, post)
	buildStates(t, c, rig, get)
	for _, code := range []string{wire.CodeTokenRefused, wire.CodeTokenTooSoon, wire.CodeRefused, wire.CodeUnknownClaim, wire.CodeClaimExpired, wire.CodeIdempotencyConflict, wire.CodeChainUnavailable} {
		if !c.codes[code] {
			t.Errorf("%s was not seen", code)
		}
	}
}

// settlementFails produces each guard and each failure of desk and settlement.
func settlementFails(t *testing.T, c *conforming, rig *dvpRig, post func(path, body string, status int, headers ...string) *openapitest.Answer) {
	t.Helper()
	refuse := func(word string, status int) {
		rig.chain.failing, rig.dvp.failing = &desk.Refusal{Reason: desk.RefusalReason(word)}, &desk.Refusal{Reason: desk.RefusalReason(word)}
		post(terms.PathBuild, buildBody, status, bearer)
		post(terms.PathSubmit, submitBody, status, bearer)
	}
	for _, word := range terms.GuardReasons() {
		refuse(word, 409)
	}
	refuse(terms.TokenWrongTaker, 403)
	refuse(`no "word"`, 409)
	rig.chain.failing, rig.dvp.failing = errors.New("no node"), errors.New("no node")
	post(terms.PathBuild, buildBody, 503, bearer)
	post(terms.PathSubmit, submitBody, 503, bearer)
	rig.chain.failing = nil
	for _, reason := range terms.RefusedReasons() {
		is := terms.Refusal(reason)
		if is.Field == "l1_signature" || reason == event.ReasonUnknownOperator { // of a payment, or of the admin address alone
			continue
		}
		c.desk.Result = func(rfq.Request) (*desk.Result, error) {
			return &desk.Result{Outcome: rfq.Outcome{Reason: reason}, Replayed: true}, nil
		}
		post(terms.PathBuild, buildBody, is.Status, bearer)
		rig.dvp.failing = &desk.Refusal{Reason: desk.RefusalReason(reason.String())}
		post(terms.PathSubmit, submitBody, is.Status, bearer)
	}
	for _, failure := range []error{desk.ErrBusy, desk.ErrReadOnly, desk.ErrUnknown} {
		c.desk.Result = func(rfq.Request) (*desk.Result, error) { return nil, failure }
		rig.dvp.failing = failure
		post(terms.PathBuild, buildBody, 503, bearer)
		post(terms.PathSubmit, submitBody, 503, bearer)
	}
}

// buildStates requests a build in each stage, and an unknown one.
func buildStates(t *testing.T, c *conforming, rig *dvpRig, get func(path, target, more string, status int) *openapitest.Answer) {
	t.Helper()
	const path = terms.PathBuilds + terms.BuildSegment
	claim := gatewaytest.Grant(c.desk.Current, &rfq.TakeClaim{Ticket: 7, Tranche: 2, Fill: 1, Rail: market.RailUSDC, Mode: rfq.Atomic, Wallet: takerKey()}).Claim
	c.desk.History[claim.ID] = &desk.History{Claim: *claim}
	rig.dvp.failing = nil
	target := terms.PathBuilds + string(market.AppendBuildID(nil, claim.ID))
	for stage := desk.BuildOpen; stage <= desk.BuildExpired; stage++ {
		rig.dvp.builds[claim.ID] = desk.BuildState{
			Claim: claim.ID, Taker: takerKey(), Stage: stage, Blockhash: gatewaytest.Address(90), LastValid: 7, BuiltAt: gatewaytest.ViewTime,
			Signature: [64]byte{byte(stage) - 1}, Slot: uint64(stage) - 1,
		}
		a := get(path, target, "", 200)
		get(path, target, "If-None-Match: "+a.Header.Get("ETag")+"\r\n", 304)
		if err := openapitest.Mutants(a.Body, func(what string, mutant []byte) bool {
			other := *a
			optional := what == "missing /preflight_commitment" // services before 0.2.0 lack it
			if other.Body = mutant; !optional && c.d.CheckAnswer(&other) == nil {
				t.Errorf("%s: %s is not noticed", path, what)
			}
			return true
		}); err != nil {
			t.Error(err)
		}
	}
	get(path, terms.PathBuilds+"B1", "", 404)
	rig.dvp.failing = errors.New("no store")
	get(path, target, "", 503)
}

// TestDvPLimitsAreDescribed: answers at the limits of DvP, and on an address without
// the routes.
func TestDvPLimitsAreDescribed(t *testing.T) {
	deps, _ := dvpDependencies()
	c := newConformingOf(t, deps, func(o *Options) { o.DvP, o.Handshake = wire.Window{PerMinute: 1}, wire.Rate{PerMinute: 1, Burst: 1} })
	c.post(t, terms.PathHandshake, challengeBody, 200)
	c.post(t, terms.PathHandshake, challengeBody, 429)
	c.post(t, terms.PathBuild, buildBody, 403)
	c.post(t, terms.PathBuild, buildBody, 429)
	c.post(t, terms.PathSubmit, submitBody, 429)
	closed := newConforming(t, nil, nil)
	for _, row := range []struct {
		path, body, code string
		status           int
	}{
		{terms.PathHandshake, challengeBody, wire.CodeChainUnavailable, 503}, {terms.PathBuild, buildBody, wire.CodeTokenRefused, 403}, {terms.PathSubmit, submitBody, wire.CodeTokenRefused, 403},
	} {
		if a := closed.send(t, row.path, postText(row.path, row.body, bearer), row.status); a.Code() != row.code {
			t.Errorf("%s without a settlement: %s", row.path, a.Body)
		}
	}
}

// TestDvPRequestsAreDescribed: the specification accepts exactly the bodies that the
// service accepts.
func TestDvPRequestsAreDescribed(t *testing.T) {
	rig := newDvPRig(t)
	d := gatewaytest.OpenAPI(t)
	operations := map[string]openapitest.Operation{}
	for _, o := range d.Operations() {
		operations[o.Method+" "+o.Path] = o
	}
	signatureOnly := `{"build_id":"B000000000002e","signature":"` + proofText + `"}`
	cases := map[string][]string{
		terms.PathHandshake: {challengeBody, issueBody, "{}", strings.Replace(challengeBody, "}", `,"nonce":"`+nonceText+`"}`, 1), strings.Replace(issueBody, nonceText, "", 1)},
		terms.PathBuild: {
			buildBody, strings.Replace(buildBody, `"250"`, "250", 1), strings.Replace(buildBody, "}", `,"fee_payer":"taker"}`, 1),
			strings.Replace(buildBody, "}", `,"fee_payer":"x"}`, 1), strings.Replace(buildBody, "USDC", "BTC", 1), strings.Replace(buildBody, taker, "", 1),
			strings.Replace(buildBody, "}", `,"x":1}`, 1), strings.Replace(buildBody, `,"rail":"USDC"`, "", 1),
		},
		terms.PathSubmit: {
			submitBody, signatureOnly, strings.Replace(signatureOnly, "}", `,"transaction":"`+signedTx+`"}`, 1), `{"build_id":"B000000000002e"}`,
			strings.Replace(submitBody, signedTx, "x", 1), strings.Replace(submitBody, "B0", "C0", 1), strings.Replace(signatureOnly, proofText, "x", 1),
		},
	}
	for path, bodies := range cases {
		o := operations["POST "+path]
		for _, body := range bodies {
			taken := rig.post(t, path, body, bearer).status < 300
			if err := d.CheckRequest(&o, []byte(body)); (err == nil) != taken {
				t.Errorf("%s %s: taken: %v, described: %v", path, body, taken, err)
			}
		}
	}
}
