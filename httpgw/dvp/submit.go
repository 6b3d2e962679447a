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

// Members of the body of a submission (docs/specification.md C.5), as indexes of
// submitMembers.
const (
	submitBuild = iota
	submitTransaction
	submitSignature
)

// Transaction and signature are optional here, because a missing signature trips the guard
// empty_counterparty.
var submitMembers = []wire.Member{
	submitBuild:       {Name: terms.SubmitFields[0], Kind: wire.TextMember, MaxLen: wire.MaxSegment},
	submitTransaction: {Name: terms.SubmitFields[1], Kind: wire.LongMember, MaxLen: wire.MaxLongValue, Optional: true, EmptyIsAbsent: true},
	submitSignature:   {Name: "signature", Kind: wire.TextMember, MaxLen: wire.MaxSignatureText, Optional: true, EmptyIsAbsent: true},
}

// parseSubmission parses the body of a submission.
func parseSubmission(p *wire.Post) (*desk.Submission, *wire.Problem) {
	var m wire.Members
	if problem := wire.DecodeObject(p.Body, submitMembers, &m); problem != nil {
		return nil, problem
	}
	s := &desk.Submission{By: p.Taker}
	transaction, signature := m.Get(submitTransaction), m.Get(submitSignature)
	var ok bool
	switch {
	case transaction != nil && signature != nil:
		return nil, wire.InvalidMember(submitMembers[submitSignature].Name, "one_of_two")
	case transaction != nil:
		if s.Transaction, ok = wire.ParseBase64(transaction, wire.MaxTransaction); !ok {
			return nil, wire.InvalidMember(submitMembers[submitTransaction].Name, "not_base64")
		}
	case signature != nil:
		if s.Signature, ok = wire.ParseAnySignature(signature); !ok && !isZeroSignature(signature) {
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

// isZeroSignature reports whether text is 64 zero bytes in base58 or base64, which stand for
// a missing signature.
func isZeroSignature(text []byte) bool {
	var none [64]byte
	raw, isBase64 := wire.ParseBase64(text, len(none))
	return isBase64 && string(raw) == string(none[:]) || wire.ParseBase58(none[:], text) && none == [64]byte{}
}

// postSubmit submits a transaction that the taker has signed for the desk to sign and
// broadcast. It is idempotent without a key, because a build is signed at most once and a
// repeated submission gets its present state. Of a key, only the hash of its body is
// stored.
func (e *Endpoints) postSubmit(p *wire.Post) (*wire.Answer, *wire.Problem) {
	s, problem := parseSubmission(p)
	if problem != nil {
		return nil, problem
	}
	key := takersKey(terms.OpSubmit, p, fmt.Appendf(nil, "%d %x %x", s.Claim, s.Transaction, s.Signature))
	if !e.submitKeys.claim(key) {
		return nil, terms.DeskProblem(desk.ErrConflict)
	}
	done, problem := e.submit(s)
	e.submitKeys.finish(key, problem == nil)
	if problem != nil {
		return nil, problem
	}
	return &wire.Answer{Status: 200, Body: appendSubmitted(done)}, nil
}

func (e *Endpoints) submit(s *desk.Submission) (*desk.Submitted, *wire.Problem) {
	const again = "Repeat the request later: a build is signed at most once."
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
