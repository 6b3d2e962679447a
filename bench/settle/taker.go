package settle

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
)

const (
	handshakeTarget = "/api/v1/dvp/handshake"
	buildTarget     = "/api/v1/dvp/build"
	submitTarget    = "/api/v1/dvp/submit"
	modularTarget   = "/rfq-native/modular-claim-take"
	verifyTarget    = "/rfq-native/settlement/verify-payment"

	// settleFill is the size of every trade of the benchmark.
	settleFill = "250"
)

// taker is one wallet that buys, from an address of its own: a token is issued to
// an address once an hour.
type taker struct {
	base           string
	order, tranche string
	key            ed25519.PrivateKey
	address        string
	bearer         string
	client         *fasthttp.Client
}

// newTaker gets a token for a wallet of the sandbox by the handshake.
func newTaker(base string, host int, setup *sandbox.Setup, wallet sandbox.Party) (*taker, error) {
	key, err := setup.Key(wallet)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(host))}, Timeout: 5 * time.Second}
	t := &taker{base: base, key: key, address: wallet.Address, client: &fasthttp.Client{
		Dial: func(addr string) (net.Conn, error) { return dialer.Dial("tcp", addr) }, MaxConnsPerHost: 64,
	}}
	var challenge struct{ Nonce string }
	if err := t.post(handshakeTarget, map[string]string{"pubkey": t.address}, fasthttp.StatusOK, &challenge); err != nil {
		return nil, err
	}
	proof := base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(challenge.Nonce)))
	var grant struct {
		AccessToken string `json:"access_token"`
	}
	err = t.post(handshakeTarget, map[string]string{"pubkey": t.address, "nonce": challenge.Nonce, "signature": proof},
		fasthttp.StatusCreated, &grant)
	t.bearer = "Bearer " + grant.AccessToken
	return t, err
}

// post sends a JSON body with the taker's token and decodes the answer.
func (t *taker) post(target string, body any, status int, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI(t.base + target)
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetContentType("application/json")
	req.Header.Set("Authorization", t.bearer)
	req.SetBodyRaw(text)
	if err := t.client.DoTimeout(req, resp, 10*time.Second); err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	if resp.StatusCode() != status {
		return fmt.Errorf("%s: status %d, not %d: %s", target, resp.StatusCode(), status, resp.Body())
	}
	return json.Unmarshal(resp.Body(), into)
}

// buildBody returns the body of a request to build one trade.
func (t *taker) buildBody() map[string]string {
	return map[string]string{
		"order_id": t.order, "tranche_id": t.tranche, "fill_usd": settleFill, "rail": "USDC", "taker": t.address,
	}
}

// offered is the part of a build's or a claim's answer that is signed.
type offered struct {
	BuildID     string `json:"build_id"`
	ClaimID     string `json:"claim_id"`
	Transaction string `json:"transaction"`
}

func (t *taker) build() (o offered, err error) {
	return o, t.post(buildTarget, t.buildBody(), fasthttp.StatusOK, &o)
}

// submission is a build with the taker's signature.
func (t *taker) submission(o *offered) (map[string]string, error) {
	raw, err := t.sign(o.Transaction)
	if err != nil {
		return nil, err
	}
	return map[string]string{"build_id": o.BuildID, "transaction": base64.StdEncoding.EncodeToString(raw)}, nil
}

// sign puts the taker's signature into its slot of a transaction.
func (t *taker) sign(text string) ([]byte, error) {
	decoded, err := decodeTransaction(text)
	if err != nil {
		return nil, err
	}
	return t.signed(decoded)
}

// signVariant signs another transaction with the same effect, at a price of so many
// micro-lamports more for a compute unit.
func (t *taker) signVariant(text string, more uint64) ([]byte, error) {
	decoded, err := decodeTransaction(text)
	if err != nil {
		return nil, err
	}
	const setPrice = 3
	for i := range decoded.Message.Instructions {
		in := &decoded.Message.Instructions[i]
		if decoded.Message.ProgramOf(in) == solana.ComputeBudgetProgram && len(in.Data) == 9 && in.Data[0] == setPrice {
			price := binary.LittleEndian.Uint64(in.Data[1:])
			in.Data = binary.LittleEndian.AppendUint64([]byte{setPrice}, price+more)
		}
	}
	if decoded.Signed, err = decoded.Message.Append(nil); err != nil {
		return nil, err
	}
	return t.signed(decoded)
}

func decodeTransaction(text string) (*tx.Transaction, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return tx.Decode(raw)
}

func (t *taker) signed(decoded *tx.Transaction) ([]byte, error) {
	slot, ok := decoded.Message.Slot(solana.Address(t.key.Public().(ed25519.PublicKey)))
	if !ok {
		return nil, errors.New("the transaction has no slot for the taker")
	}
	decoded.Signatures[slot] = solana.Signature(ed25519.Sign(t.key, decoded.Signed))
	return decoded.Append(nil)
}

// settle is a whole atomic trade, up to the desk's signature.
func (t *taker) settle() error {
	o, err := t.build()
	if err != nil {
		return err
	}
	body, err := t.submission(&o)
	if err != nil {
		return err
	}
	var done struct{ Signature string }
	return t.post(submitTarget, body, fasthttp.StatusOK, &done)
}
