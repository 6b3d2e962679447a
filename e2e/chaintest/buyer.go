package chaintest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
)

// nextIP numbers the clients' addresses: each client IP gets one token an hour, and
// all of 127.0.0.0/8 is this machine.
type nextIP struct{ n atomic.Uint32 }

// ClientIPs is shared by the tests of a package, which run concurrently.
var ClientIPs = &nextIP{}

func (n *nextIP) Next() string {
	at := n.n.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 1+at/62_500%200, 1+at/250%250, 1+at%250)
}

// Buyer is a client that buys from the desk.
type Buyer struct {
	Rig     *Rig
	name    string
	Key     ed25519.PrivateKey
	Address solana.Address
	ip      string
	Token   string
	http    *http.Client
}

// Buyer returns a client with a key and an IP of its own.
func (r *Rig) Buyer(name string, key ed25519.PrivateKey) *Buyer {
	b := &Buyer{Rig: r, name: name, Key: key, Address: solana.Address(key[32:]), ip: ClientIPs.Next()}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(b.ip)}}
	b.http = &http.Client{
		Timeout:   runtest.HangTimeout,
		Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: 5 * time.Second},
	}
	r.T.Cleanup(b.http.CloseIdleConnections)
	return b
}

// Wallet returns one of the setup's wallets as a buyer, from 1.
func (r *Rig) Wallet(n int) *Buyer {
	r.T.Helper()
	key, err := r.Setup.Key(r.Setup.Wallets[n-1])
	if err != nil {
		r.T.Fatal(err)
	}
	return r.Buyer(fmt.Sprintf("wallet-%d", n), key)
}

// Answer is an HTTP response of the desk.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Code   string `json:"code"`
	Reason string `json:"reason"`
	Field  string `json:"field"`
	State  string `json:"state"`
}

func (a *Answer) String() string { return fmt.Sprintf("%d %.400s", a.Status, a.Body) }

// Into decodes the body.
func (a *Answer) Into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
}

// ErrNoAnswer means that the connection failed before there was a response.
var ErrNoAnswer = errors.New("no answer")

// Send sends a request; body is marshalled unless it is a string or nil.
func (b *Buyer) Send(ctx context.Context, method, url string, body any, headers ...string) (*Answer, error) {
	var text []byte
	switch body := body.(type) {
	case nil:
	case string:
		text = []byte(body)
	default:
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return nil, errors.Join(ErrNoAnswer, err)
	}
	defer resp.Body.Close()
	a := &Answer{Status: resp.StatusCode, Header: resp.Header}
	if a.Body, err = io.ReadAll(resp.Body); err != nil {
		return nil, errors.Join(ErrNoAnswer, err)
	}
	return a, json.Unmarshal(a.Body, a)
}

// Call is Send to a path of the base address that must be answered.
func (b *Buyer) Call(method, path string, body any, headers ...string) *Answer {
	b.Rig.T.Helper()
	a, err := b.Send(b.Rig.T.Context(), method, b.Rig.Server.Addresses.Base+path, body, headers...)
	if err != nil {
		b.Rig.T.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// Want is Call that must be answered with this status.
func (b *Buyer) Want(status int, method, path string, body any, headers ...string) *Answer {
	b.Rig.T.Helper()
	a := b.Call(method, path, body, headers...)
	if a.Status != status {
		b.Rig.T.Fatalf("%s %s: %s, want %d", method, path, a, status)
	}
	return a
}

// Bearer returns the header with the buyer's token.
func (b *Buyer) Bearer() []string {
	if b.Token == "" {
		return nil
	}
	return []string{"Authorization", "Bearer " + b.Token}
}

const (
	PathHandshake = "/api/v1/dvp/handshake"
	PathBuild     = "/api/v1/dvp/build"
	PathSubmit    = "/api/v1/dvp/submit"
	PathBuilds    = "/api/v1/dvp/builds/"
	PathClaims    = "/api/v1/rfq/claims/"
	PathAtomic    = "/rfq-native/atomic-claim-ticket"
	PathModular   = "/rfq-native/modular-claim-take"
)

// Handshake gets a token.
func (b *Buyer) Handshake() *Buyer {
	b.Rig.T.Helper()
	var challenge struct{ Nonce string }
	b.Want(200, "POST", PathHandshake, map[string]string{"pubkey": solana.Base58(b.Address)}).Into(b.Rig.T, &challenge)
	var granted struct {
		AccessToken string `json:"access_token"`
	}
	b.Want(201, "POST", PathHandshake, map[string]string{
		"pubkey": solana.Base58(b.Address), "nonce": challenge.Nonce,
		"signature": base58.Encode(ed25519.Sign(b.Key, []byte(challenge.Nonce))),
	}).Into(b.Rig.T, &granted)
	b.Token = granted.AccessToken
	return b
}

// Deal is what a client buys.
type Deal struct {
	Ticket string // T1 or T2
	Fill   string
	Rail   string
	Payer  string // desk or taker; empty = the default
}

// Built is an unsigned transaction of both legs, or of a payment.
type Built struct {
	BuildID     string   `json:"build_id"`
	ClaimID     string   `json:"claim_id"`
	State       string   `json:"state"`
	Transaction string   `json:"transaction"`
	Digest      string   `json:"message_sha256"`
	Signers     []string `json:"required_signers"`
	LastValid   uint64   `json:"last_valid_block_height"`
	Payment     struct {
		AmountAtoms string `json:"amount_atoms"`
		Memo        string `json:"memo"`
		Reference   string `json:"reference"`
	} `json:"payment"`
	Submit struct { // of an atomic claim
		BuildID string `json:"build_id"`
	} `json:"submit"`

	Raw, Message []byte
	Slots        []solana.Address // the signers, in order
}

// Open decodes the transaction.
func (b *Built) Open(t *testing.T) *Built {
	t.Helper()
	var err error
	if b.Raw, err = base64.StdEncoding.DecodeString(b.Transaction); err != nil {
		t.Fatal(err)
	}
	x, err := tx.Decode(b.Raw)
	if err != nil {
		t.Fatal(err)
	}
	b.Slots = x.Message.Signers()
	b.BuildID = cmp.Or(b.BuildID, b.Submit.BuildID)
	b.Message = b.Raw[1+64*len(b.Slots):]
	if sum := sha256.Sum256(b.Message); b.Digest != "" && b.Digest != hex.EncodeToString(sum[:]) {
		t.Fatalf("message_sha256 is %s, of the message it is %x", b.Digest, sum)
	}
	return b
}

// Order returns the body of a request to the path way.
func (b *Buyer) Order(d Deal, way string) map[string]string {
	body := map[string]string{"order_id": d.Ticket, "tranche_id": d.Ticket + "-1", "fill_usd": d.Fill}
	if way == PathBuild {
		body["rail"], body["taker"] = d.Rail, solana.Base58(b.Address)
	} else {
		body["payment_rail"], body["bot_wallet"] = d.Rail, solana.Base58(b.Address)
	}
	if d.Payer != "" && way == PathBuild { // other paths have no such field
		body["fee_payer"] = d.Payer
	}
	return body
}

// Build takes a claim and returns its transaction, by the path way: DvP's build, the
// atomic claim ticket or the modular claim.
func (b *Buyer) Build(d Deal, way string) *Built {
	b.Rig.T.Helper()
	out := &Built{}
	b.Want(200, "POST", way, b.Order(d, way), b.Bearer()...).Into(b.Rig.T, out)
	return out.Open(b.Rig.T)
}

// Signed returns a transaction with the buyer's signature in its slot.
func (b *Buyer) Signed(x *Built) []byte {
	out := slices.Clone(x.Raw)
	slot := slices.Index(x.Slots, b.Address)
	copy(out[1+64*slot:], ed25519.Sign(b.Key, x.Message))
	return out
}

// Submission returns the body of a submit.
func Submission(x *Built, raw []byte) map[string]string {
	return map[string]string{"build_id": x.BuildID, "transaction": base64.StdEncoding.EncodeToString(raw)}
}

// Submit signs a build and submits it.
func (b *Buyer) Submit(x *Built) *Answer {
	b.Rig.T.Helper()
	return b.Call("POST", PathSubmit, Submission(x, b.Signed(x)), b.Bearer()...)
}

// Claim returns a claim's state and the whole response.
func (b *Buyer) Claim(id string) (string, *Answer) {
	b.Rig.T.Helper()
	a := b.Want(200, "GET", PathClaims+id, nil)
	return a.State, a
}

// AwaitClaim waits until a claim is in one of the states.
func (b *Buyer) AwaitClaim(id string, states ...string) string {
	b.Rig.T.Helper()
	return await.Value(b.Rig.T, fmt.Sprintf("claim %s in %v", id, states), func() string {
		state, _ := b.Claim(id)
		return state
	}, func(state string) bool { return slices.Contains(states, state) })
}
