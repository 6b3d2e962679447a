package httpgw

import (
	"context"
	"time"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/market"
)

// What the handshake promises (contract, section E). Whoever is behind
// [Handshake] keeps it; cmd sees to that.
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

// DvP co-signs the atomic transactions that Settlement.Package builds. Any
// goroutine may call it.
type DvP interface {
	// Submit signs and sends a build that its taker has signed, once for ever; for
	// one that was submitted before it tells what has become of it. A *desk.Refusal
	// says why the desk does not sign: then no signature of it exists. Other
	// errors: desk.ErrUnknownBuild, those of package desk, or that it could not be done
	// now; then it may come to be done all the same, and the same submission
	// says so.
	Submit(ctx context.Context, s *desk.Submission) (desk.Submitted, error)
	// Build tells where a build stands; ok is false where there is none.
	Build(ctx context.Context, id market.ClaimID) (b desk.BuildState, ok bool, err error)
}

// dvpOptions are what the DvP endpoints are made of.
type dvpOptions struct {
	Deal deal
	// Handshake gives and admits tokens; nil: no token is good.
	Handshake Handshake
	DvP       DvP // nil = the chain is unavailable
	URLs      catalog.URLs
	// HandshakeLimit and Limit are the limits that the terms of the handshake state;
	// nil: there are none.
	HandshakeLimit *Rate
	Limit          *Window
	Now            func() int64 // Unix nanoseconds
}

// dvpEndpoints are the DvP surface (spec, 4.4 and part 5): handshake, builds and
// submissions. Any goroutine may use it.
type dvpEndpoints struct {
	deal      deal
	handshake Handshake
	dvp       DvP
	submits   *submitKeys
	terms     *page // of the handshake
}

func newDvPEndpoints(o dvpOptions) *dvpEndpoints {
	return &dvpEndpoints{
		deal: o.Deal, handshake: o.Handshake, dvp: o.DvP, submits: newSubmitKeys(o.Now),
		terms: hashPage(encodeDocument(newHandshakeTerms(&o))),
	}
}

// Routes returns the rows of the surface.
func (e *dvpEndpoints) Routes() []route {
	row := func(path string, limit limitClass, in group, do func(*post) (*answer, *problem)) route {
		return route{
			path: path, method: methodPost, surfaces: onBase, cache: neverCached, limit: limit, group: in,
			bearer: limit == dvpLimit, leader: true, post: do,
		}
	}
	return []route{
		{
			path: pathHandshake, method: methodGet, surfaces: onBase, cache: configData, limit: marketLimit,
			group: groupHandshake, read: func([]byte) (*page, *problem) { return e.terms, nil },
		},
		row(pathHandshake, handshakeLimit, groupHandshake, e.postHandshake),
		row(pathBuild, dvpLimit, groupDvP, e.postBuild),
		row(pathSubmit, dvpLimit, groupDvP, e.postSubmit),
		{
			path: pathBuilds + buildSegment, method: methodGet, surfaces: onBase, cache: liveData, limit: marketLimit,
			group: groupDvP, leader: true, readOne: e.serveBuild,
		},
	}
}
