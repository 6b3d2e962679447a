package dvp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"blockdesk/desk"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// submitTime is how long a request waits for the desk's signature.
const submitTime = 5 * time.Second

// Members of the body of a submission (contract, section E), by their place in
// submitMembers.
const (
	submitBuild = iota
	submitTransaction
	submitSignature
)

// A signature that is not there is a guard's matter, and not the form's.
var submitMembers = []wire.Member{
	submitBuild:       {Name: terms.SubmitFields[0], Kind: wire.TextMember, MaxLen: wire.MaxSegment},
	submitTransaction: {Name: terms.SubmitFields[1], Kind: wire.LongMember, MaxLen: wire.MaxLongValue, Optional: true, EmptyIsAbsent: true},
	submitSignature:   {Name: "signature", Kind: wire.TextMember, MaxLen: wire.MaxSignatureText, Optional: true, EmptyIsAbsent: true},
}

// parseSubmission reads the body of a submission.
func parseSubmission(p *wire.Post) (*desk.Submission, *wire.Problem) {
	var m wire.Members
	if bad := wire.DecodeObject(p.Body, submitMembers, &m); bad != nil {
		return nil, bad
	}
	s := &desk.Submission{By: p.Taker}
	transaction, signature := m.Get(submitTransaction), m.Get(submitSignature)
	var ok bool
	switch {
	case transaction != nil && signature != nil:
		return nil, wire.InvalidMember(submitMembers[submitSignature].Name, "one_of_two")
	case transaction != nil:
		if s.Transaction, ok = parseBase64(transaction, wire.MaxTransaction); !ok {
			return nil, wire.InvalidMember(submitMembers[submitTransaction].Name, "not_base64")
		}
	case signature != nil:
		if s.Signature, ok = parseAnySignature(signature); !ok && !isNoSignature(signature) {
			return nil, wire.InvalidMember(submitMembers[submitSignature].Name, "not_a_signature")
		}
	}
	if s.Claim, ok = market.ParseBuildID(m.Get(submitBuild)); !ok {
		return nil, unknownBuild()
	}
	if s.Transaction == nil && s.Signature == [64]byte{} {
		return nil, terms.GuardProblem(terms.GuardEmptyCounterparty)
	}
	return s, nil
}

// isNoSignature reports whether text is 64 zero bytes in base58 or base64: the
// place of a signature that is not there.
func isNoSignature(text []byte) bool {
	var none [64]byte
	raw, isBase64 := parseBase64(text, len(none))
	return isBase64 && string(raw) == string(none[:]) || wire.ParseBase58(none[:], text) && none == [64]byte{}
}

// postSubmit has the desk sign and send what the taker has signed. It is
// idempotent without a key: a build is signed once, for ever, and the same
// submission again is answered with what has become of it. So of a key nothing is
// remembered but the body that it stands for.
func (e *Endpoints) postSubmit(p *wire.Post) (*wire.Answer, *wire.Problem) {
	s, bad := parseSubmission(p)
	if bad != nil {
		return nil, bad
	}
	key := takersKey(terms.OpSubmit, p, fmt.Appendf(nil, "%d %x %x", s.Claim, s.Transaction, s.Signature))
	if !e.submitKeys.claim(key) {
		return nil, terms.DeskProblem(desk.ErrConflict)
	}
	done, bad := e.submit(s)
	e.submitKeys.finish(key, bad == nil)
	if bad != nil {
		return nil, bad
	}
	return &wire.Answer{Status: 200, Body: appendSubmitted(done)}, nil
}

func (e *Endpoints) submit(s *desk.Submission) (*desk.Submitted, *wire.Problem) {
	const again = "Send the same again later: it is signed once at most."
	if e.cosigner == nil {
		return nil, terms.ChainUnavailable(again)
	}
	ctx, cancel := context.WithTimeout(context.Background(), submitTime)
	defer cancel()
	done, err := e.cosigner.Submit(ctx, s)
	switch {
	case errors.Is(err, desk.ErrUnknownBuild):
		return nil, unknownBuild()
	case err != nil:
		return nil, terms.SettlementProblem(err, again).RenameField("claim_id", submitMembers[submitBuild].Name)
	}
	return &done, nil
}

func appendSubmitted(s *desk.Submitted) []byte {
	dst := make([]byte, 0, 512+2*len(s.Transaction))
	dst = append(market.AppendClaimID(append(dst, `{"ok":true,"claim_id":"`...), s.Claim), `","signature":`...)
	dst = append(wire.AppendSignature(dst, &s.Signature), `,"state":"`...)
	dst = append(append(dst, s.Stage.String()...), `","slot":`...)
	dst = append(appendSlot(dst, s.Slot), `,"transaction":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, s.Transaction), `"}`...)
}
