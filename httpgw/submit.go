package httpgw

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"blockdesk/desk"
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
var submitMembers = []member{
	submitBuild:       {name: submitFields[0], kind: textMember, most: MaxSegment},
	submitTransaction: {name: submitFields[1], kind: longMember, most: maxLong, optional: true, blank: true},
	submitSignature:   {name: "signature", kind: textMember, most: maxSignatureText, optional: true, blank: true},
}

// parseSubmission reads the body of a submission.
func parseSubmission(p *post) (*desk.Submission, *problem) {
	var m members
	if bad := decodeObject(p.body, submitMembers, &m); bad != nil {
		return nil, bad
	}
	s := &desk.Submission{By: p.taker}
	transaction, signature := m.get(submitTransaction), m.get(submitSignature)
	var ok bool
	switch {
	case transaction != nil && signature != nil:
		return nil, invalidMember(submitMembers[submitSignature].name, "one_of_two")
	case transaction != nil:
		if s.Transaction, ok = parseBase64(transaction, MaxTransaction); !ok {
			return nil, invalidMember(submitMembers[submitTransaction].name, "not_base64")
		}
	case signature != nil:
		if s.Signature, ok = parseAnySignature(signature); !ok && !isNoSignature(signature) {
			return nil, invalidMember(submitMembers[submitSignature].name, "not_a_signature")
		}
	}
	if s.Claim, ok = market.ParseBuildID(m.get(submitBuild)); !ok {
		return nil, unknownBuild()
	}
	if s.Transaction == nil && s.Signature == [64]byte{} {
		return nil, guarded(guardEmpty)
	}
	return s, nil
}

// isNoSignature reports whether text is 64 zero bytes in base58 or base64: the
// place of a signature that is not there.
func isNoSignature(text []byte) bool {
	var none [64]byte
	raw, isBase64 := parseBase64(text, len(none))
	return isBase64 && string(raw) == string(none[:]) || parseBase58(none[:], text) && none == [64]byte{}
}

// postSubmit has the desk sign and send what the taker has signed. It is
// idempotent without a key: a build is signed once, for ever, and the same
// submission again is told what has become of it. So of a key nothing is
// remembered but the body that it stands for.
func (e *dvpEndpoints) postSubmit(p *post) (*answer, *problem) {
	s, bad := parseSubmission(p)
	if bad != nil {
		return nil, bad
	}
	key := takersKey(opSubmit, p, fmt.Appendf(nil, "%d %x %x", s.Claim, s.Transaction, s.Signature))
	if !e.submits.hold(key) {
		return nil, deskProblem(desk.ErrConflict)
	}
	done, bad := e.submit(s)
	e.submits.end(key, bad == nil)
	if bad != nil {
		return nil, bad
	}
	return &answer{status: 200, body: appendSubmitted(done)}, nil
}

func (e *dvpEndpoints) submit(s *desk.Submission) (*desk.Submitted, *problem) {
	const again = "Send the same again later: it is signed once at most."
	if e.dvp == nil {
		return nil, chainUnavailable(again)
	}
	ctx, cancel := context.WithTimeout(context.Background(), submitTime)
	defer cancel()
	done, err := e.dvp.Submit(ctx, s)
	switch {
	case errors.Is(err, desk.ErrUnknownBuild):
		return nil, unknownBuild()
	case err != nil:
		return nil, settlementProblem(err, again).rename("claim_id", submitMembers[submitBuild].name)
	}
	return &done, nil
}

func appendSubmitted(s *desk.Submitted) []byte {
	dst := make([]byte, 0, 512+2*len(s.Transaction))
	dst = append(market.AppendClaimID(append(dst, `{"ok":true,"claim_id":"`...), s.Claim), `","signature":`...)
	dst = append(appendSignature(dst, &s.Signature), `,"state":"`...)
	dst = append(append(dst, s.Stage.String()...), `","slot":`...)
	dst = append(appendSlot(dst, s.Slot), `,"transaction":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, s.Transaction), `"}`...)
}
