// Package wallet is a client's side of a settlement, as an integrator has it in a program
// of its own: it signs a claim's transaction, pays, and proves its key in the DvP
// handshake. `blockdesk wallet` and the demo use it.
//
// It is there to try the service with, not to hold money: it trusts the service's terms,
// and checks only that the wallet is a signer of what it signs. It stores nothing, so a
// payment that was interrupted must be looked up on the chain before it is repeated. The
// key is used in this process only.
package wallet

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
	"blockdesk/service/operator"
)

const (
	// payTimeout bounds how long a payment takes to be final: 150 blocks, after which
	// it cannot land, and 32 more.
	payTimeout = 2 * time.Minute
	payPoll    = 500 * time.Millisecond
	maxAnswer  = 1 << 20 // of the service, in bytes
)

// Wallet is a key, with the service and the chain that it is used on.
type Wallet struct {
	Key   ed25519.PrivateKey
	Base  string // the service's URL
	Chain string // a node's URL; empty: not known
	HTTP  *http.Client
}

func (w *Wallet) address() solana.Address { return solana.Address(w.Key[ed25519.SeedSize:]) }

// answer is an answer of the service with a transaction. A build has its own build_id,
// an atomic claim names its build in submit.
type answer struct {
	BuildID string `json:"build_id"`
	Submit  struct {
		BuildID string `json:"build_id"`
	} `json:"submit"`
	Transaction []byte `json:"transaction"` // base64
}

// Submit is the body of POST /api/v1/dvp/submit.
type Submit struct {
	BuildID     string `json:"build_id,omitempty"`
	Transaction []byte `json:"transaction"`
}

// signed reads an answer of the service and puts the wallet's signature into its
// transaction. Nothing else of the bytes changes.
func (w *Wallet) signed(in io.Reader) (*answer, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxAnswer))
	if err != nil {
		return nil, err
	}
	a := &answer{}
	if err := json.Unmarshal(text, a); err != nil || len(a.Transaction) == 0 {
		refused := &operator.RefusedError{}
		if json.Unmarshal(text, refused) == nil && refused.Code != "" {
			return nil, refused
		}
		return nil, errors.New("standard input: want the JSON of a build or a claim with a transaction")
	}
	t, err := tx.Decode(a.Transaction)
	if err != nil {
		return nil, err
	}
	slot, ok := t.Message.Slot(w.address())
	if !ok {
		return nil, fmt.Errorf("%s is not a signer of this transaction", solana.Base58(w.address()))
	}
	t.Signatures[slot] = solana.Signature(ed25519.Sign(w.Key, t.Signed))
	a.Transaction, err = t.Append(nil)
	return a, err
}

// Sign reads a build or an atomic claim and returns the body of its submit.
func (w *Wallet) Sign(in io.Reader) (Submit, error) {
	a, err := w.signed(in)
	if err != nil {
		return Submit{}, err
	}
	return Submit{cmp.Or(a.BuildID, a.Submit.BuildID), a.Transaction}, nil
}

// Pay reads a claim, signs and sends its payment, and returns the signature once the
// payment is final.
func (w *Wallet) Pay(ctx context.Context, in io.Reader) (string, error) {
	a, err := w.signed(in)
	if err != nil {
		return "", err
	}
	if w.Chain == "" {
		return "", errors.New("no Solana node: the service runs no local chain; name a node with --chain")
	}
	client, err := rpc.New(rpc.Options{Upstreams: []rpc.Upstream{{URL: w.Chain}}})
	if err != nil {
		return "", err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, payTimeout)
	defer cancel()
	signature, err := client.Send(ctx, a.Transaction, rpc.SendOptions{})
	if err != nil {
		return "", err
	}
	for {
		status, _, err := client.Statuses(ctx, []solana.Signature{signature}, false)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: sent; %w", signature, err)
		case status[0].Failed:
			return "", fmt.Errorf("%s: failed on the chain: %s", signature, status[0].Error)
		case status[0].Known && status[0].Level == rpc.Finalized:
			return signature.String(), nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%s: sent, and not final: %w", signature, ctx.Err())
		case <-time.After(payPoll):
		}
	}
}

// Login takes the three steps of the DvP handshake and returns the access token.
func (w *Wallet) Login(ctx context.Context) (string, error) {
	const path = "/api/v1/dvp/handshake"
	pubkey := solana.Base58(w.address())
	var challenge struct {
		Nonce string `json:"nonce"`
	}
	if err := w.post(ctx, path, map[string]string{"pubkey": pubkey}, &challenge); err != nil {
		return "", err
	}
	// The wallet signs the nonce's text, not the decoded bytes. Any other text could be
	// something else that the key signs.
	if _, err := base64.StdEncoding.DecodeString(challenge.Nonce); err != nil {
		return "", fmt.Errorf("the service's nonce is no base64: %w", err)
	}
	proof := base58.Encode(ed25519.Sign(w.Key, []byte(challenge.Nonce)))
	var grant struct {
		Token string `json:"access_token"`
	}
	if err := w.post(ctx, path, map[string]string{"pubkey": pubkey, "nonce": challenge.Nonce, "signature": proof}, &grant); err != nil {
		return "", err
	}
	return grant.Token, nil
}

// post sends JSON to the service and reads its answer into v.
func (w *Wallet) post(ctx context.Context, path string, in, v any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.HTTP.Do(req)
	if err != nil {
		return operator.Unreachable(w.Base, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusOK && resp.StatusCode < http.StatusMultipleChoices {
		return json.Unmarshal(text, v)
	}
	refused := &operator.RefusedError{}
	if err := json.Unmarshal(text, refused); err != nil || refused.Code == "" {
		return fmt.Errorf("%s%s answers %s", w.Base, path, resp.Status)
	}
	return refused
}
