package dvp

import (
	"context"
	"time"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// What the handshake promises (contract, section E). The implementation of
// [Handshake] keeps it; a test compares the two.
const (
	NonceLifetime = time.Minute
	TokenLifetime = 7 * 24 * time.Hour
	TokenWindow   = time.Hour // a client IP gets one token in it (spec, 5.3)
)

// Handshake gives DvP tokens to those who prove that they have the key of an
// address (spec, part 5). Any goroutine may call it.
type Handshake interface {
	// Challenge returns a nonce for the key to sign. desk.ErrBadKey: no signature of
	// this key is ever taken.
	Challenge(key market.Address) (desk.Challenge, error)
	// Issue returns a token for the key whose signature over the UTF-8 bytes of
	// nonce this is. client is who asks, as the rate limits count him. Errors:
	// ErrBadKey, ErrBadNonce, ErrBadProof, *TooSoon, ErrTokensFull of package desk; any other is
	// our fault.
	Issue(key market.Address, nonce string, signature [64]byte, client [16]byte) (desk.Grant, error)
	// Admit returns the key that a token was issued to; ok is false where it is
	// unknown, expired or revoked. It does not keep secret, and must not block.
	Admit(secret []byte) (key market.Address, ok bool)
}

// Cosigner co-signs the atomic transactions that Settlement.Package builds. Any
// goroutine may call it.
type Cosigner interface {
	// Submit signs and sends a build that its taker has signed, once for ever; for
	// one that was submitted before it returns what has become of it. A *desk.Refusal
	// says why the desk does not sign: then no signature of it exists. Other
	// errors: desk.ErrUnknownBuild, those of package desk, or that it could not be done
	// now; then it may come to be done all the same, and the same submission
	// says so.
	Submit(ctx context.Context, s *desk.Submission) (desk.Submitted, error)
	// Build returns where a build stands; ok is false where there is none.
	Build(ctx context.Context, id market.ClaimID) (b desk.BuildState, ok bool, err error)
}

// Options are what the DvP endpoints are made of.
type Options struct {
	Backend terms.Backend
	// Handshake gives and admits tokens; nil: no token is good.
	Handshake Handshake
	Cosigner  Cosigner // nil = the chain is unavailable
	URLs      catalog.URLs
	// HandshakeLimit and Limit are the limits that the terms of the handshake state;
	// nil: there are none.
	HandshakeLimit *wire.Rate
	Limit          *wire.Window
	Now            func() int64 // Unix nanoseconds
}

// Endpoints are the DvP surface (spec, 4.4 and part 5): handshake, builds and
// submissions. Any goroutine may use it.
type Endpoints struct {
	backend    terms.Backend
	handshake  Handshake
	cosigner   Cosigner
	submitKeys *submitKeys
	terms      *wire.Page // of the handshake
}

// New returns the endpoints. The terms of the handshake are rendered here.
func New(o Options) *Endpoints {
	return &Endpoints{
		backend: o.Backend, handshake: o.Handshake, cosigner: o.Cosigner, submitKeys: newSubmitKeys(o.Now),
		terms: wire.NewPage(wire.Encode(newHandshakeTerms(&o))),
	}
}

// Routes returns the rows of the surface.
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
