package httpgw

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
)

// TestSubmit: what reaches the settlement, and the answer, byte for byte.
func TestSubmit(t *testing.T) {
	rig := newDvPRig(t)
	proof := [64]byte{9, 8, 63: 7}
	for _, c := range []struct {
		body string
		want desk.Submission
	}{
		{submitBody, desk.Submission{Transaction: []byte("a transaction with one signature")}},
		{strings.Replace(submitBody, "}", `,"signature":null}`, 1), desk.Submission{Transaction: []byte("a transaction with one signature")}},
		{strings.Replace(submitBody, "}", `,"signature":""}`, 1), desk.Submission{Transaction: []byte("a transaction with one signature")}},
		{`{"build_id":"B000000000002e","signature":"` + base58.Encode(proof[:]) + `"}`, desk.Submission{Signature: proof}},
		{`{"build_id":"B000000000002e","signature":"` + base64.StdEncoding.EncodeToString(proof[:]) + `","transaction":""}`, desk.Submission{Signature: proof}},
		{
			`{"build_id":"B000000000002e","transaction":"` + base64.StdEncoding.EncodeToString(make([]byte, wire.MaxTransaction)) + `"}`,
			desk.Submission{Transaction: make([]byte, wire.MaxTransaction)},
		},
	} {
		got := rig.post(t, terms.PathSubmit, c.body, bearer)
		want := `{"ok":true,"claim_id":"C000000000002e","signature":"` + base58.Encode(rig.dvp.result.Signature[:]) +
			`","state":"broadcast","slot":null,"transaction":"` + base64.StdEncoding.EncodeToString([]byte("signed by all")) + `"}`
		if got.status != 200 || string(got.body) != want || got.header.Get("Cache-Control") != "no-store" || got.header.Get("ETag") != "" {
			t.Errorf("%.200s: status %d %v: %s\nwant %s", c.body, got.status, got.header, got.body, want)
			continue
		}
		c.want.Claim, c.want.By = 78, takerKey()
		if sent := rig.dvp.sent[len(rig.dvp.sent)-1]; !reflect.DeepEqual(sent, c.want) {
			t.Errorf("%.200s: sent %+v", c.body, sent)
		}
	}
	for stage, word := range map[desk.BuildStage]string{desk.BuildFinalized: "finalized", desk.BuildFailed: "failed", desk.BuildExpired: "expired"} {
		rig.dvp.result.Stage, rig.dvp.result.Slot = stage, 4242
		got := rig.post(t, terms.PathSubmit, submitBody, bearer)
		if want := `"state":"` + word + `","slot":4242,`; got.status != 200 || !strings.Contains(string(got.body), want) {
			t.Errorf("%s: status %d: %s", word, got.status, got.body)
		}
	}
}

// TestWrongSubmissions: each member in each invalid form; the settlement is never
// called.
func TestWrongSubmissions(t *testing.T) {
	none := base58.Encode(make([]byte, 64))
	long := base64.StdEncoding.EncodeToString(make([]byte, wire.MaxTransaction+1))
	tx := `"` + signedTx + `"`
	signature := func(text string) string { return `{"build_id":"B000000000002e","signature":"` + text + `"}` }
	for _, c := range []struct {
		body                string
		status              int
		code, reason, field string
	}{
		{"", 400, wire.CodeInvalidJSON, "empty_body", ""},
		{"{}", 400, wire.CodeMissingField, "", "build_id"},
		{submitBody + "x", 400, wire.CodeInvalidJSON, "trailing_data", ""},
		{strings.Replace(submitBody, "}", `,"claim_id":"C000000000002e"}`, 1), 400, wire.CodeInvalidField, "unknown_field", "claim_id"},
		{strings.Replace(submitBody, "}", `,"transaction":`+tx+`}`, 1), 400, wire.CodeInvalidField, "repeated", "transaction"},
		{strings.Replace(submitBody, "}", `,"signature":"`+proofText+`"}`, 1), 400, wire.CodeInvalidField, "one_of_two", "signature"},
		{strings.Replace(submitBody, `"B000000000002e"`, `""`, 1), 400, wire.CodeInvalidField, "empty", "build_id"},
		{strings.Replace(submitBody, "B0", "C0", 1), 404, wire.CodeUnknownClaim, "unknown_build", "build_id"},
		{strings.Replace(submitBody, "B0", "b0", 1), 404, wire.CodeUnknownClaim, "unknown_build", "build_id"},
		{strings.Replace(submitBody, "B0", "B00", 1), 404, wire.CodeUnknownClaim, "unknown_build", "build_id"},
		// Not a transaction.
		{strings.Replace(submitBody, tx, "7", 1), 400, wire.CodeInvalidField, "wrong_type", "transaction"},
		{strings.Replace(submitBody, signedTx, "x", 1), 400, wire.CodeInvalidField, "not_base64", "transaction"},
		{strings.Replace(submitBody, signedTx, "====", 1), 400, wire.CodeInvalidField, "not_base64", "transaction"},
		{strings.Replace(submitBody, signedTx, signedTx+"AAAA", 1), 400, wire.CodeInvalidField, "not_base64", "transaction"},
		{strings.Replace(submitBody, signedTx, strings.TrimRight(signedTx, "="), 1), 400, wire.CodeInvalidField, "not_base64", "transaction"},
		{strings.Replace(submitBody, signedTx, signedTx[:4]+`\n\n\n\n`+signedTx[4:], 1), 400, wire.CodeInvalidField, "not_base64", "transaction"},
		{strings.Replace(submitBody, signedTx, "AB==", 1), 400, wire.CodeInvalidField, "not_base64", "transaction"},
		{strings.Replace(submitBody, signedTx, "_-__", 1), 400, wire.CodeInvalidField, "not_base64", "transaction"},
		{strings.Replace(submitBody, signedTx, long, 1), 400, wire.CodeInvalidField, "not_base64", "transaction"},
		{strings.Replace(submitBody, signedTx, long+"AAAA", 1), 400, wire.CodeInvalidField, "too_long", "transaction"},
		// Not a signature.
		{signature(proofText[2:]), 400, wire.CodeInvalidField, "not_a_signature", "signature"},
		{signature(none + "1"), 400, wire.CodeInvalidField, "not_a_signature", "signature"},
		{signature(none[1:]), 400, wire.CodeInvalidField, "not_a_signature", "signature"},
		{signature(strings.Repeat("A", 86) + "=="), 409, wire.CodeRefused, terms.GuardEmptyCounterparty, ""},
		{signature(none), 409, wire.CodeRefused, terms.GuardEmptyCounterparty, ""},
		{signature(""), 409, wire.CodeRefused, terms.GuardEmptyCounterparty, ""},
		{`{"build_id":"B000000000002e"}`, 409, wire.CodeRefused, terms.GuardEmptyCounterparty, ""},
		{`{"build_id":"B000000000002e","transaction":"","signature":""}`, 409, wire.CodeRefused, terms.GuardEmptyCounterparty, ""},
		{`{"build_id":"B000000000002e","transaction":null,"signature":null}`, 409, wire.CodeRefused, terms.GuardEmptyCounterparty, ""},
	} {
		rig := newDvPRig(t)
		rig.refusedAs(t, terms.PathSubmit, c.body, c.status, c.code, c.reason, c.field)
		if len(rig.dvp.sent) != 0 {
			t.Errorf("%.200s: the settlement was asked", c.body)
		}
	}
}

// TestSubmitRefusals: each guard and each failure of the settlement; none of their
// texts is published.
func TestSubmitRefusals(t *testing.T) {
	rig := newDvPRig(t)
	for _, word := range terms.GuardReasons() {
		rig.dvp.failing = fmt.Errorf("wrapped: %w", &desk.Refusal{Reason: desk.RefusalReason(word)})
		rig.refusedAs(t, terms.PathSubmit, submitBody, 409, wire.CodeRefused, word, "")
	}
	for _, c := range []struct {
		err                 error
		status              int
		code, reason, field string
		retry               string
	}{
		{&desk.Refusal{Reason: "locked"}, 409, wire.CodeRefused, "locked", "", ""},
		{&desk.Refusal{Reason: "price_corridor"}, 409, wire.CodeRefused, "price_corridor", "", ""},
		{&desk.Refusal{Reason: "claim_state"}, 409, wire.CodeClaimExpired, "claim_state", "build_id", ""},
		{&desk.Refusal{Reason: terms.TokenWrongTaker}, 403, wire.CodeTokenRefused, terms.TokenWrongTaker, "", ""},
		{fmt.Errorf("wrapped: %w", desk.ErrUnknownBuild), 404, wire.CodeUnknownClaim, "unknown_build", "build_id", ""},
		{desk.ErrBusy, 503, wire.CodeOverloaded, "busy", "", "1"},
		{desk.ErrReadOnly, 503, wire.CodeReadOnly, "", "", "10"},
		{desk.ErrUnknown, 503, wire.CodeOverloaded, "outcome_unknown", "", "1"},
		{errors.New("wrapped: no signer at /run/host-7"), 503, wire.CodeChainUnavailable, "", "", "10"},
	} {
		rig.dvp.failing = c.err
		got := rig.refusedAs(t, terms.PathSubmit, submitBody, c.status, c.code, c.reason, c.field)
		if got.header.Get("Retry-After") != c.retry || strings.Contains(string(got.body), "wrapped") || strings.Contains(string(got.body), "host-7") {
			t.Errorf("%v: %v: %s", c.err, got.header, got.body)
		}
		if challenged := got.header.Get("WWW-Authenticate") != ""; challenged != (c.status == 403) {
			t.Errorf("%v: %v", c.err, got.header)
		}
	}
	without := newDvPRig(t, func(d *Dependencies, _ *Options) { d.Cosigner = nil })
	if got := without.refusedAs(t, terms.PathSubmit, submitBody, 503, wire.CodeChainUnavailable, "", ""); got.header.Get("Retry-After") != "10" {
		t.Errorf("without a settlement: %v", got.header)
	}
}

// TestSubmitWithKeys: a key belongs to one body from the call of the settlement until
// its refusal, or for a day.
func TestSubmitWithKeys(t *testing.T) {
	now := gatewaytest.ViewTime
	rig := newDvPRig(t, func(_ *Dependencies, o *Options) { o.Now = func() int64 { return now } })
	other := strings.Replace(submitBody, "2e", "2f", 1)
	send := func(body, key string, status int) {
		t.Helper()
		got := rig.post(t, terms.PathSubmit, body, bearer, "Idempotency-Key: "+key)
		if got.status != status || status == 409 && gatewaytest.DecodeError(t, got.body).Code != wire.CodeIdempotencyConflict {
			t.Errorf("status %d: %s", got.status, got.body)
		}
	}
	send(submitBody, "k", 200)
	send(submitBody, "k", 200)
	send(strings.Replace(submitBody, "}", " ,\"signature\":null}", 1), "k", 200)
	send(other, "k", 409)
	send(strings.Replace(submitBody, signedTx, signedTx[4:], 1), "k", 409)
	send(`{"build_id":"B000000000002e","signature":"`+proofText+`"}`, "k", 409)
	send(other, "K", 200)
	if n := len(rig.dvp.sent); n != 4 {
		t.Errorf("the settlement was asked %d times", n)
	}
	rig.dvp.failing = errors.New("no node")
	send(submitBody, "k2", 503)
	send(submitBody, "k", 503) // has been answered before, so it stays
	rig.dvp.failing = nil
	send(other, "k2", 200)
	send(other, "k", 409)
	now += int64(24*time.Hour) - 1
	send(other, "k", 409)
	now++
	send(other, "k", 200)
}

// TestSubmitAtOnce: of two concurrent bodies with one key, only one reaches the
// settlement.
func TestSubmitAtOnce(t *testing.T) {
	rig := newDvPRig(t)
	bodies := []string{submitBody, strings.Replace(submitBody, "2e", "2f", 1)}
	var group sync.WaitGroup
	var mu sync.Mutex
	seen := map[int]int{}
	for i := range 32 {
		group.Add(1)
		go func() {
			defer group.Done()
			got := rig.post(t, terms.PathSubmit, bodies[i%2], bearer, "Idempotency-Key: k")
			mu.Lock()
			defer mu.Unlock()
			seen[got.status]++
		}()
	}
	group.Wait()
	if seen[200] != 16 || seen[409] != 16 {
		t.Errorf("answers %v", seen)
	}
	for _, s := range rig.dvp.sent {
		if s.Claim != rig.dvp.sent[0].Claim {
			t.Fatal("both bodies have reached the settlement")
		}
	}
}

// TestNothingSecretIsLogged: no log line has a token, nonce, signature or transaction,
// whatever fails.
func TestNothingSecretIsLogged(t *testing.T) {
	deps, rig := dvpDependencies()
	b := gatewaytest.NewBooks(t)
	o := testOptions(b)
	var text syncText
	o.Logger = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	g := start(t, o, b, deps)
	send := func() {
		for path, bodies := range map[string][]string{
			terms.PathHandshake: {challengeBody, issueBody}, terms.PathBuild: {buildBody, "{"}, terms.PathSubmit: {submitBody, "{"},
		} {
			for _, body := range bodies {
				gatewaytest.Exchange(t, g.BaseAddr(), postText(path, body, bearer))
				gatewaytest.Exchange(t, g.BaseAddr(), postText(path, body, bearer+"x"))
			}
		}
	}
	send()
	rig.keys.failing, rig.dvp.failing, rig.chain.failing = errors.New("a"), errors.New("b"), errors.New("c")
	send()
	gatewaytest.Exchange(t, g.BaseAddr(), "POST "+terms.PathSubmit+" HTTP/1.1\r\n"+bearer+"\r\nContent-Length: x\r\n\r\n")
	logged := text.String()
	if !strings.Contains(logged, "http request failed") {
		t.Fatalf("nothing is logged at all: %q", logged)
	}
	for _, word := range []string{secret, nonceText, proofText, signedTx, taker} {
		if strings.Contains(logged, word) {
			t.Errorf("%s is logged: %s", word, logged)
		}
	}
}

// syncText is the text of a log.
type syncText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *syncText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *syncText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
