package rfq

import (
	"slices"
	"strconv"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/eddsa"
	"blockdesk/market"
)

// checkWallet refuses a wallet that can be neither paid nor sign: a program, a sysvar, an
// address off the curve, one whose signatures prove nothing, or an account of the desk.
// Without it the claim would hold capacity that no transaction can use.
func (e *Endpoints) checkWallet(v *rfq.View, a market.Address) *wire.Problem {
	name := claimMembers[claimWallet].Name
	ours := a == v.Policy.USDCMint || slices.Contains(v.Policy.PayTo[:], a)
	for i := range v.Pairs {
		ours = ours || v.Pairs[i].BaseMint == a
	}
	if health := e.own.health; !ours && health != nil {
		ours = health().Desk == a
	}
	switch {
	case ours:
		problem := wire.InvalidMember(name, "account_of_the_desk")
		problem.Text = name + " is an account of the desk. Send the address of your own wallet."
		return problem
	case solana.IsReserved(a) || !eddsa.ValidKey(a):
		problem := wire.InvalidMember(name, "not_a_wallet")
		problem.Text = name + " is not the address of a key: nothing can be paid from it or delivered to it."
		return problem
	}
	return nil
}

// proofPrefix begins the text that a wallet signs to prove a claim.
const proofPrefix = "blockdesk-claim-v1|"

// appendProofText appends the text that the wallet of a claim signs (docs/specification.md
// C.4). minute is Unix time in minutes.
func appendProofText(dst []byte, r *rfq.TakeClaim, minute int64) []byte {
	dst = market.AppendTicketID(append(dst, proofPrefix...), r.Ticket)
	dst = market.AppendTrancheID(append(dst, '|'), r.Ticket, r.Tranche)
	dst = append(append(append(dst, '|'), r.Fill.String()...), '|')
	dst = append(append(dst, r.Rail.String()...), '|')
	return strconv.AppendInt(dst, minute, 10)
}

// minuteOf returns the Unix minute of a time in Unix nanoseconds.
func minuteOf(now int64) int64 { return now / int64(time.Minute) }

// proveClaim sets the client of a claim, and Proven if the request proves that it comes from
// the owner of the wallet: by a DvP token, by a signature, or both. A proof that is sent and
// is not valid refuses the claim, because a client that believes it is proven would find out
// only when its limits apply. A proof that was valid when the request was first sent is
// accepted for its stored answer.
func (e *Endpoints) proveClaim(p *wire.Post, r *rfq.TakeClaim, signature []byte) *wire.Problem {
	r.Client = terms.ClientAddress(p.Client)
	if p.Taker != (market.Address{}) {
		if p.Taker != r.Wallet {
			problem := terms.TokenProblem(terms.TokenWrongTaker)
			problem.Field = claimMembers[claimWallet].Name
			return problem
		}
		r.Proven = true
	}
	if signature == nil {
		return nil
	}
	name := claimMembers[claimSignature].Name
	s, ok := wire.ParseAnySignature(signature)
	if !ok {
		return wire.InvalidMember(name, "not_a_signature")
	}
	minute := minuteOf(e.now())
	switch {
	case e.signed(r, minute, s) || e.signed(r, minute-1, s):
		r.Proven = true
		return nil
	case e.answered(r.Key):
		return nil // not Proven: the stored answer may just be forgotten
	}
	problem := wire.InvalidMember(name, "bad_signature")
	problem.Text = name + " must be bot_wallet's ed25519 signature of " + string(appendProofText(nil, r, minute)) +
		", whose last number is the present Unix minute or the one before."
	return problem
}

func (e *Endpoints) signed(r *rfq.TakeClaim, minute int64, signature [64]byte) bool {
	var buf [128]byte
	return eddsa.Verify(r.Wallet, appendProofText(buf[:0], r, minute), signature)
}

// answered reports whether the desk has the answer to a request with this key and body.
func (e *Endpoints) answered(key rfq.IdempotencyKey) bool {
	if key == (rfq.IdempotencyKey{}) {
		return false
	}
	ok, err := e.backend.Desk.Answered(key)
	return ok && err == nil
}
