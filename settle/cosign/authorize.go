package cosign

import (
	"bytes"
	"fmt"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// Authorizer gives the desk's permission; *desk.Desk is one.
type Authorizer interface {
	// Do submits r and returns its outcome once that is durable. An error means that
	// nothing was submitted or that the outcome is unknown; it is never a refusal by
	// the rules. Do sets r's Token.
	Do(r rfq.Request) (*desk.Result, error)
}

// Refused is a refusal by the desk's rules. Nothing is signed after it.
type Refused struct {
	Claim   market.ClaimID
	Outcome rfq.Outcome
}

// Error contains the reason's machine word.
func (r *Refused) Error() string {
	return fmt.Sprintf("cosign: claim %s: refused: %s", binding.Memo(r.Claim), r.Outcome.Reason)
}

// Authorized is a transaction that the desk may sign: the permission for its message's
// hash is durable. Only [Countersigned.Authorize] and [AuthorizeDelivery] make one.
// The zero value is useless.
type Authorized struct{ authorized *draft }

// Claim returns the claim, 0 of the zero value.
func (a Authorized) Claim() market.ClaimID { return a.authorized.value().Claim }

// Hash returns the hash of the message, zero of the zero value.
func (a Authorized) Hash() solana.Hash { return a.authorized.value().hash }

// Authorize asks the desk for its signature: CosignClaim with the message's hash as
// proof. The same request is granted again. It blocks as long as a.Do.
//
// Errors: *[Refused] by the rules; [ErrZero]; [ErrOutcome]; errors of a, wrapped,
// after which the desk may have given permission: call it again.
func (c Countersigned) Authorize(a Authorizer) (Authorized, error) {
	d := c.countersigned
	if d == nil {
		return Authorized{}, fmt.Errorf("%w of Countersigned was used", ErrZero)
	}
	return authorize(a, &rfq.CosignClaim{Claim: d.Claim, Proof: d.hash}, d)
}

// AuthorizeDelivery asks the desk to deliver what a claim has paid for: BeginDelivery
// with the message's hash as proof. It copies u's bytes. Errors: as
// [Countersigned.Authorize], and [ErrShape] if u is no delivery of this claim.
func AuthorizeDelivery(a Authorizer, claim market.ClaimID, u *build.Unsigned) (Authorized, error) {
	if u == nil || len(u.Signers()) == 0 {
		return Authorized{}, fmt.Errorf("%w of build.Unsigned was used for claim %s", ErrZero, binding.Memo(claim))
	}
	shape, err := CheckDelivery(u.Message(), u.Signers()[0])
	if err == nil && shape.Claim != claim {
		err = fmt.Errorf("%w: it is for claim %s", ErrShape, binding.Memo(shape.Claim))
	}
	if err != nil {
		return Authorized{}, fmt.Errorf("claim %s: %w", binding.Memo(claim), err)
	}
	d := &draft{Summary: shape, raw: bytes.Clone(u.Bytes()), hash: u.Hash()}
	return authorize(a, &rfq.BeginDelivery{Claim: claim, Proof: d.hash}, d)
}

func authorize(a Authorizer, r rfq.Request, d *draft) (Authorized, error) {
	result, err := a.Do(r)
	switch {
	case err != nil:
		return Authorized{}, fmt.Errorf("claim %s: message %s: %w", binding.Memo(d.Claim), d.hash, err)
	case result.Kind != r.Kind():
		// The zero Outcome would be taken for a permission.
		return Authorized{}, fmt.Errorf("claim %s: %w: request kind %d, want %d", binding.Memo(d.Claim), ErrOutcome, result.Kind, r.Kind())
	case result.Reason != 0:
		return Authorized{}, &Refused{d.Claim, result.Outcome}
	}
	return Authorized{d}, nil
}
