package dvp

import (
	"cmp"
	"context"
	"time"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Lifetimes that the terms of the handshake state (docs/specification.md 8 and C.5). The
// implementation of [Handshake] has the same; a test compares them.
const (
	NonceLifetime = time.Minute
	TokenLifetime = 7 * 24 * time.Hour
	TokenWindow   = time.Hour // a client IP gets one token per window, unless Options.TokenWindow is set
)

// Handshake issues DvP tokens to clients that prove possession of an address's key
// (docs/specification.md 5). Implementations are safe for concurrent use.
type Handshake interface {
	// Challenge returns a nonce for the key to sign. desk.ErrBadKey: signatures of this
	// key are never accepted.
	Challenge(key market.Address) (desk.Challenge, error)
	// Issue returns a token for the key, if signature is the key's signature of the UTF-8
	// bytes of nonce. client is the client as the rate limits count it. Errors: ErrBadKey,
	// ErrBadNonce, ErrBadProof, *TooSoon, ErrTokensFull of package desk; any other error is
	// internal.
	Issue(key market.Address, nonce string, signature [64]byte, client [16]byte) (desk.Grant, error)
	// Admit returns the key that a token was issued to. ok is false if the token is
	// unknown, expired or revoked. It does not retain secret and must not block.
	Admit(secret []byte) (key market.Address, ok bool)
}

// Cosigner co-signs the atomic transactions that Settlement.Package builds.
// Implementations are safe for concurrent use.
type Cosigner interface {
	// Submit signs and broadcasts a build that its taker has signed. A build is signed at
	// most once; a repeated submission returns its present state. A *desk.Refusal says why
	// the desk did not sign; no signature exists then. Other errors are
	// desk.ErrUnknownBuild, errors of package desk, or temporary failures, after which the
	// build may still be signed; repeating the submission shows whether it is.
	Submit(ctx context.Context, s *desk.Submission) (desk.Submitted, error)
	// Build returns the state of a build. ok is false if it does not exist.
	Build(ctx context.Context, id market.ClaimID) (b desk.BuildState, ok bool, err error)
}

// Options configures the endpoints.
type Options struct {
	Backend terms.Backend
	// Handshake issues and checks tokens. Nil: no token is valid.
	Handshake Handshake
	Cosigner  Cosigner // nil = the chain is unavailable
	URLs      catalog.URLs
	// HandshakeLimit and Limit are published in the terms of the handshake. Nil: no limit.
	HandshakeLimit *wire.Rate
	Limit          *wire.Window
	// TokenWindow is the time in which a client address gets one token; 0: the constant.
	TokenWindow time.Duration
	Now         func() int64 // Unix nanoseconds
}

// Endpoints serves the DvP surface (docs/specification.md 4.4 and 5). It is safe for
// concurrent use.
type Endpoints struct {
	backend    terms.Backend
	handshake  Handshake
	cosigner   Cosigner
	submitKeys *submitKeys
	terms      *wire.Page // of the handshake
	window     time.Duration
}

// New returns the endpoints.
func New(o Options) *Endpoints {
	o.TokenWindow = cmp.Or(o.TokenWindow, TokenWindow)
	return &Endpoints{
		window:  o.TokenWindow,
		backend: o.Backend, handshake: o.Handshake, cosigner: o.Cosigner, submitKeys: newSubmitKeys(o.Now),
		terms: wire.NewPage(wire.Encode(newHandshakeTerms(&o))),
	}
}

// Routes returns the routes of the surface.
func (e *Endpoints) Routes() []wire.Route {
	row := func(path string, limit wire.LimitClass, in wire.Group, do func(*wire.Post) (*wire.Answer, *wire.Problem)) wire.Route {
		return wire.Route{
			Path: path, Method: wire.MethodPost, On: wire.OnBase, Cache: wire.NeverCached, Limit: limit, Group: in,
			Bearer: limit == wire.DvPLimit, LeaderOnly: true, Post: do,
		}
	}
	return []wire.Route{
		wire.Get(terms.PathHandshake, wire.OnBase, wire.ConfigData, wire.MarketLimit, wire.GroupHandshake, e.terms.Serve),
		row(terms.PathHandshake, wire.HandshakeLimit, wire.GroupHandshake, e.postHandshake),
		row(terms.PathBuild, wire.DvPLimit, wire.GroupDvP, e.postBuild),
		row(terms.PathSubmit, wire.DvPLimit, wire.GroupDvP, e.postSubmit),
		{
			Path: terms.PathBuilds + terms.BuildSegment, Method: wire.MethodGet, On: wire.OnBase, Cache: wire.LiveData, Limit: wire.MarketLimit,
			Group: wire.GroupDvP, LeaderOnly: true, ReadOne: e.serveBuild,
		},
	}
}
