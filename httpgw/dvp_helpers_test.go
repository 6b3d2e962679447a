package httpgw

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Bodies and a token that are right for FixedView and dvpDependencies.
var (
	secret = "dvp_9qTGGRF9uBCzqxsvlxWuT0e6ChK82p5Uduhkz15bzYI"
	bearer = "Authorization: Bearer " + secret

	taker     = newTestWallet(-2).address
	otherKey  = base58.Encode(bytes.Repeat([]byte{7}, 32))
	nonceText = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("nonce"), 22))
	proofText = base58.Encode(bytes.Repeat([]byte{9}, 64))
	signedTx  = base64.StdEncoding.EncodeToString([]byte("a transaction with one signature"))

	challengeBody = `{"pubkey":"` + taker + `"}`
	issueBody     = `{"pubkey":"` + taker + `","nonce":"` + nonceText + `","signature":"` + proofText + `"}`
	buildBody     = `{"order_id":"T7","tranche_id":"T7-2","fill_usd":"250","rail":"USDC","taker":"` + taker + `"}`
	submitBody    = `{"build_id":"B000000000002e","transaction":"` + signedTx + `"}`
)

func takerKey() (a market.Address) {
	a, _ = wire.ParseAddress([]byte(taker))
	return a
}

// fakeHandshake admits one token and answers as the test configures.
type fakeHandshake struct {
	failing error

	mu     sync.Mutex
	issues []issueCall
}

type issueCall struct {
	key    market.Address
	nonce  string
	proof  [64]byte
	client [16]byte
}

func (h *fakeHandshake) Challenge(market.Address) (desk.Challenge, error) {
	return desk.Challenge{Nonce: nonceText, ExpiresAt: gatewaytest.ViewTime + 60e9}, h.failing
}

func (h *fakeHandshake) Issue(key market.Address, nonce string, proof [64]byte, client [16]byte) (desk.Grant, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.issues = append(h.issues, issueCall{key, nonce, proof, client})
	return desk.Grant{Secret: secret, ExpiresAt: gatewaytest.ViewTime + 7*86400e9}, h.failing
}

func (h *fakeHandshake) Admit(text []byte) (market.Address, bool) {
	return takerKey(), string(text) == secret
}

// fakeCosigner signs everything, or answers as the test configures.
type fakeCosigner struct {
	failing error
	result  desk.Submitted
	builds  map[market.ClaimID]desk.BuildState

	mu   sync.Mutex
	sent []desk.Submission
}

func (d *fakeCosigner) Submit(ctx context.Context, s *desk.Submission) (desk.Submitted, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return desk.Submitted{}, errors.New("no deadline")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent = append(d.sent, *s)
	if d.failing != nil {
		return desk.Submitted{}, d.failing
	}
	done := d.result
	done.Claim = s.Claim
	return done, nil
}

func (d *fakeCosigner) Build(ctx context.Context, id market.ClaimID) (desk.BuildState, bool, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return desk.BuildState{}, false, errors.New("no deadline")
	}
	b, ok := d.builds[id]
	return b, ok, d.failing
}

// dvpRig has the fakes of a gateway.
type dvpRig struct {
	*testWriter
	keys  *fakeHandshake
	dvp   *fakeCosigner
	chain *fakeChain
}

// dvpDependencies returns dependencies with all fakes.
func dvpDependencies() (Dependencies, *dvpRig) {
	rig := &dvpRig{
		keys: &fakeHandshake{}, chain: &fakeChain{},
		dvp: &fakeCosigner{
			result: desk.Submitted{Transaction: []byte("signed by all"), Signature: [64]byte{3, 1, 4}, Stage: desk.BuildBroadcast},
			builds: map[market.ClaimID]desk.BuildState{},
		},
	}
	deps := testDependencies()
	deps.Desk = &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}
	deps.Settlement, deps.Handshake, deps.Cosigner = rig.chain, rig.keys, rig.dvp
	return deps, rig
}

func newDvPRig(t testing.TB, mend ...func(*Dependencies, *Options)) *dvpRig {
	t.Helper()
	deps, rig := dvpDependencies()
	var o Options
	for _, change := range mend {
		change(&deps, &o)
	}
	rig.testWriter = newWriterOf(t, deps, func(all *Options) { all.Now = o.Now })
	return rig
}

// refusedAs sends a body with the token and checks the refusal.
func (rig *dvpRig) refusedAs(t *testing.T, path, body string, status int, code, reason, field string) reply {
	t.Helper()
	got := rig.post(t, path, body, bearer)
	e := gatewaytest.DecodeError(t, got.body)
	if got.status != status || e.Code != code || e.Reason != reason || e.Field != field {
		t.Errorf("%s %.300s: status %d: %s\nwant %d %s %s %s", path, body, got.status, got.body, status, code, reason, field)
	}
	if got.header.Get("Cache-Control") != "no-store" || strings.Contains(string(got.body), secret) {
		t.Errorf("%s: %v: %s", path, got.header, got.body)
	}
	return got
}
