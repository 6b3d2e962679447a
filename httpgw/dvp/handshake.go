package dvp

import (
	"errors"
	"strconv"
	"time"

	"blockdesk/desk"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// handshakeProtocol is the name of the protocol (docs/specification.md C.5).
const handshakeProtocol = "svc_dvp_handshake_v1"

// retryTokensS is the Retry-After, in seconds, if all tokens are in use.
const retryTokensS = 600

// Members of the body of a handshake, as indexes of handshakeMembers. A key alone asks for
// a nonce, all three for a token.
const (
	handshakeKey = iota
	handshakeNonce
	handshakeProof
)

var handshakeMembers = []wire.Member{
	handshakeKey:   {Name: "pubkey", Kind: wire.TextMember, MaxLen: wire.MaxAddressText},
	handshakeNonce: {Name: "nonce", Kind: wire.LongMember, MaxLen: 512, Optional: true},
	handshakeProof: {Name: "signature", Kind: wire.TextMember, MaxLen: wire.MaxSignatureText, Optional: true},
}

// postHandshake returns a nonce, or a token for a signed nonce. It ignores an
// Idempotency-Key: it would have to store the token itself, and a nonce is valid once.
func (e *Endpoints) postHandshake(p *wire.Post) (*wire.Answer, *wire.Problem) {
	var m wire.Members
	if problem := wire.DecodeObject(p.Body, handshakeMembers, &m); problem != nil {
		return nil, problem
	}
	name := func(i int) string { return handshakeMembers[i].Name }
	key, ok := wire.ParseAddress(m.Get(handshakeKey))
	if !ok {
		return nil, wire.InvalidMember(name(handshakeKey), "not_a_key")
	}
	nonce, text := m.Get(handshakeNonce), m.Get(handshakeProof)
	var proof [64]byte
	switch {
	case nonce == nil && text != nil:
		return nil, wire.MissingMember(name(handshakeNonce))
	case nonce != nil && text == nil:
		return nil, wire.MissingMember(name(handshakeProof))
	case text != nil:
		if proof, ok = wire.ParseAnySignature(text); !ok {
			return nil, wire.InvalidMember(name(handshakeProof), "not_a_signature")
		}
	}
	if e.handshake == nil {
		return nil, terms.ChainUnavailable("No token is issued now.")
	}
	if nonce == nil {
		return e.challenge(key)
	}
	return e.issue(key, string(nonce), proof, p.Client)
}

// challenge renders a nonce.
func (e *Endpoints) challenge(key market.Address) (*wire.Answer, *wire.Problem) {
	c, err := e.handshake.Challenge(key)
	if err != nil {
		return nil, e.handshakeProblem(err)
	}
	dst := append(make([]byte, 0, 512), `{"ok":true,"pubkey":`...)
	dst = append(wire.AppendAddress(dst, key), `,"nonce":`...)
	dst = append(wire.AppendText(dst, c.Nonce), `,"expires_at":`...)
	return &wire.Answer{Status: 200, Body: append(wire.AppendMillis(dst, c.ExpiresAt), '}')}, nil
}

// issue renders a token, which exists nowhere else in clear text.
func (e *Endpoints) issue(key market.Address, nonce string, proof [64]byte, client ratelimit.Client) (*wire.Answer, *wire.Problem) {
	grant, err := e.handshake.Issue(key, nonce, proof, client)
	if err != nil {
		return nil, e.handshakeProblem(err)
	}
	dst := append(make([]byte, 0, 512), `{"ok":true,"access_token":`...)
	dst = append(wire.AppendText(dst, grant.Secret), `,"token_type":"Bearer","expires_in":`...)
	dst = strconv.AppendInt(dst, int64(TokenLifetime/time.Second), 10)
	dst = wire.AppendMillis(append(dst, `,"expires_at":`...), grant.ExpiresAt)
	dst = wire.AppendAddress(append(dst, `,"pubkey":`...), key)
	return &wire.Answer{Status: 201, Body: append(dst, '}')}, nil
}

// handshakeProblem returns the HTTP error for an error of the handshake.
func (e *Endpoints) handshakeProblem(err error) *wire.Problem {
	var soon *desk.TooSoon
	switch {
	case errors.As(err, &soon):
		return &wire.Problem{
			Status: 429, Code: wire.CodeTokenTooSoon, Reason: "issuance", RetryS: int(max(1, ratelimit.Seconds(int64(soon.RetryAfter)))),
			Text: "A client address gets one token in " + strconv.Itoa(int(e.window/time.Second)) + " s. Use the token that it got before (it is valid for 7 days), or wait for the seconds in Retry-After.",
		}
	case errors.Is(err, desk.ErrBadKey):
		return wire.InvalidMember(handshakeMembers[handshakeKey].Name, "not_a_key")
	case errors.Is(err, desk.ErrBadNonce):
		problem := wire.InvalidMember(handshakeMembers[handshakeNonce].Name, "bad_nonce")
		problem.Text = "The nonce was not issued for this key, has expired, or was used. Ask for a new one."
		return problem
	case errors.Is(err, desk.ErrBadProof):
		problem := wire.InvalidMember(handshakeMembers[handshakeProof].Name, "bad_signature")
		problem.Text = "The signature does not prove the nonce's text with this key. Ask for a new nonce."
		return problem
	case errors.Is(err, desk.ErrTokensFull):
		return &wire.Problem{
			Status: 503, Code: wire.CodeOverloaded, Reason: "tokens_full", RetryS: retryTokensS,
			Text: "The maximum number of tokens is in use. Try again later.",
		}
	default:
		return &wire.Problem{
			Status: 500, Code: wire.CodeInternal, Text: "The handshake failed. The log has details under the request_id.", Cause: err,
		}
	}
}

// handshakeTerms is GET /api/v1/dvp/handshake (docs/specification.md C.5). The shapes of
// steps and limits are our choice.
type handshakeTerms struct {
	OK        bool            `json:"ok"`
	Protocol  string          `json:"protocol"`
	Steps     []handshakeStep `json:"steps"`
	Algorithm string          `json:"algorithm"`
	Encodings struct {
		Key       string `json:"pubkey"`
		Nonce     string `json:"nonce"`
		Signature string `json:"signature"`
	} `json:"encodings"`
	Signs    string `json:"signs"`
	NonceTTL int64  `json:"nonce_ttl_s"`
	Token    struct {
		Type     string `json:"type"`
		Lifetime int64  `json:"lifetime_s"`
		Issuance struct {
			PerIP  int   `json:"per_ip"`
			Window int64 `json:"window_s"`
		} `json:"issuance"`
	} `json:"token"`
	Limits struct {
		Handshake *limitTerms `json:"handshake"` // null: none
		DvP       *limitTerms `json:"build_submit"`
	} `json:"limits"`
}

// handshakeStep is one of the four steps (docs/specification.md 5). Signing is a step
// without a request.
type handshakeStep struct {
	Step    int      `json:"step"`
	Action  string   `json:"action"`
	Method  *string  `json:"method"`
	URL     *string  `json:"url"`
	Sends   []string `json:"sends"`
	Status  *int     `json:"status"`
	Returns []string `json:"returns"`
}

// limitTerms is a limit of PerIP requests in any window or, with Burst, a token bucket
// that gets PerIP tokens per window.
type limitTerms struct {
	PerIP  int   `json:"per_ip"`
	Window int64 `json:"window_s"`
	Burst  *int  `json:"burst"` // null: any window
}

func newHandshakeTerms(o *Options) *handshakeTerms {
	url := o.URLs.Base + terms.PathHandshake
	request := func(step int, action, method string, status int, sends, returns []string) handshakeStep {
		return handshakeStep{step, action, &method, &url, sends, &status, returns}
	}
	none, key := []string{}, handshakeMembers[handshakeKey].Name
	nonce, proof := handshakeMembers[handshakeNonce].Name, handshakeMembers[handshakeProof].Name
	t := &handshakeTerms{
		OK: true, Protocol: handshakeProtocol, Algorithm: "ed25519",
		Signs:    "the UTF-8 bytes of the nonce's base64 text, as it was sent",
		NonceTTL: int64(NonceLifetime / time.Second),
		Steps: []handshakeStep{
			request(1, "read the terms", "GET", 200, none, none),
			request(2, "ask for a nonce", "POST", 200, []string{key}, []string{key, nonce, "expires_at"}),
			{Step: 3, Action: "sign the nonce", Sends: none, Returns: []string{proof}},
			request(4, "ask for the token", "POST", 201, []string{key, nonce, proof},
				[]string{"access_token", "token_type", "expires_in", "expires_at", key}),
		},
	}
	t.Encodings.Key, t.Encodings.Nonce, t.Encodings.Signature = "base58", "base64", "base58 or base64"
	t.Token.Type, t.Token.Lifetime = "Bearer", int64(TokenLifetime/time.Second)
	t.Token.Issuance.PerIP, t.Token.Issuance.Window = 1, int64(o.TokenWindow/time.Second)
	if l := o.HandshakeLimit; l != nil {
		t.Limits.Handshake = &limitTerms{l.PerMinute, int64(ratelimit.Span / time.Second), &l.Burst}
	}
	if l := o.Limit; l != nil {
		t.Limits.DvP = &limitTerms{l.PerMinute, int64(ratelimit.Span / time.Second), nil}
	}
	return t
}
