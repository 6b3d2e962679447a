package dvp

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Members of the body of a build (docs/specification.md C.5), as indexes of buildMembers.
const (
	buildOrder = iota
	buildTranche
	buildFill
	buildRail
	buildTaker
	buildQuote
	buildPayer
)

var buildMembers = []wire.Member{
	buildOrder: terms.OrderMember, buildTranche: terms.TrancheMember, buildFill: terms.FillMember,
	buildRail: {Name: "rail", Kind: wire.TextMember, MaxLen: 8},
	// Optional here, because a missing taker trips the guard empty_counterparty.
	buildTaker: {Name: "taker", Kind: wire.TextMember, MaxLen: wire.MaxAddressText, Optional: true, EmptyIsAbsent: true},
	buildQuote: {Name: "quote_id", Kind: wire.TextMember, MaxLen: wire.MaxSegment, Optional: true},
	buildPayer: {Name: "fee_payer", Kind: wire.TextMember, MaxLen: 8, Optional: true},
}

// feePayers are the JSON words of the payer of the network fee; the default is the desk.
var feePayers = map[string]desk.FeePayer{"": desk.DeskPays, "desk": desk.DeskPays, "taker": desk.TakerPays}

// noAccount is the zero address: the system program, which is not a counterparty.
var noAccount = strings.Repeat("1", wire.MinAddressText)

// parseBuild parses the body of a build.
func parseBuild(p *wire.Post, v *rfq.View) (*rfq.TakeClaim, desk.FeePayer, *wire.Problem) {
	var m wire.Members
	if problem := wire.DecodeObject(p.Body, buildMembers, &m); problem != nil {
		return nil, 0, problem
	}
	r := &rfq.TakeClaim{Mode: rfq.Atomic}
	var ok bool
	var problem *wire.Problem
	if r.Fill, problem = terms.ParseFill(m.Get(buildFill)); problem != nil {
		return nil, 0, problem
	}
	if r.Rail, problem = terms.ParseRail(buildMembers[buildRail].Name, m.Get(buildRail)); problem != nil {
		return nil, 0, problem
	}
	if text := m.Get(buildQuote); text != nil {
		if r.Quote, ok = market.ParseQuoteID(text); !ok {
			return nil, 0, wire.InvalidMember(buildMembers[buildQuote].Name, "not_an_id")
		}
	}
	payer, ok := feePayers[string(m.Get(buildPayer))]
	if !ok {
		return nil, 0, wire.InvalidMember(buildMembers[buildPayer].Name, "unknown_fee_payer")
	}
	if r.Wallet, problem = parseTaker(m.Get(buildTaker), p.Taker); problem != nil {
		return nil, 0, problem
	}
	if r.Ticket, r.Tranche, problem = terms.ParseOffer(v, m.Get(buildOrder), m.Get(buildTranche), false); problem != nil {
		return nil, 0, problem
	}
	r.Key = takersKey(terms.OpBuild, p, append(rfq.AppendRequest(nil, r), byte(payer)))
	r.Client, r.Proven = terms.ClientAddress(p.Client), true // by the token
	return r, payer, nil
}

// parseTaker parses the counterparty, which must be the owner of the token.
func parseTaker(text []byte, owner market.Address) (market.Address, *wire.Problem) {
	name := buildMembers[buildTaker].Name
	taker, ok := wire.ParseAddress(text)
	switch {
	case text == nil || string(text) == noAccount:
		problem := terms.GuardProblem(terms.GuardEmptyCounterparty)
		problem.Field = name
		return market.Address{}, problem
	case !ok:
		return market.Address{}, wire.InvalidMember(name, "not_an_address")
	case taker != owner:
		problem := terms.TokenProblem(terms.TokenWrongTaker)
		problem.Field = name
		return market.Address{}, problem
	}
	return taker, nil
}

// takersKey is terms.IdempotencyKey for a request with a token: each taker has its own
// keys.
func takersKey(op terms.Operation, p *wire.Post, canonical []byte) rfq.IdempotencyKey {
	return terms.IdempotencyKey(op+terms.Operation(" "+base58.Encode(p.Taker[:])), p.Key, canonical)
}

// postBuild reserves part of a tranche and builds the transaction with both transfers. It
// never signs: no code that it calls has a key.
func (e *Endpoints) postBuild(p *wire.Post) (*wire.Answer, *wire.Problem) {
	r, payer, problem := parseBuild(p, e.backend.View())
	if problem != nil {
		return nil, problem
	}
	result, pack, problem := e.backend.Reserve(r, payer, "bot_wallet", buildMembers[buildTaker].Name)
	if problem != nil {
		return nil, problem
	}
	w := e.backend.Writer()
	return &wire.Answer{Status: 200, Body: appendBuild(&w, result.Claim, result.Ticket.Label, pack), Replayed: result.Replayed}, nil
}

// appendBuild renders a build.
func appendBuild(w *terms.Writer, c *rfq.Claim, label string, pack *desk.Package) []byte {
	dst := make([]byte, 0, 2048+2*len(pack.Transaction))
	dst = append(market.AppendBuildID(append(dst, `{"ok":true,"build_id":"`...), c.ID), `","claim_id":"`...)
	dst = append(market.AppendClaimID(dst, c.ID), `","transaction":"`...)
	dst = append(base64.StdEncoding.AppendEncode(dst, pack.Transaction), `","message_sha256":"`...)
	dst = append(hex.AppendEncode(dst, pack.Hash[:]), `","required_signers":[`...)
	for i, signer := range pack.Signers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendAddress(dst, signer)
	}
	dst = append(dst, `],"payment":`...)
	dst = w.OpenDelivery(append(w.BoundPayment(dst, &c.Terms, pack), `,"delivery":`...), c)
	dst = terms.AppendBlockhash(append(dst, '}'), pack)
	dst = wire.AppendMillis(append(dst, `,"expires_at":`...), c.Deadline)
	dst = append(dst, `,"quote":{"quote_id":`...)
	dst = append(terms.AppendQuoteID(dst, c.Quote), ',')
	dst = append(w.Offer(dst, &c.Terms, label), ',')
	return append(w.Fee(dst, &c.Terms), "}}"...)
}

// appendBlockhash appends the members that bound a transaction's life.
func appendBlockhash(dst []byte, blockhash *[32]byte, lastValid uint64) []byte {
	dst = append(dst, `,"recent_blockhash":"`...)
	dst = append(dst, base58.Encode(blockhash[:])...)
	return strconv.AppendUint(append(dst, `","last_valid_block_height":`...), lastValid, 10)
}

// unknownBuild returns UNKNOWN_CLAIM, because a build has the number of its claim.
func unknownBuild() *wire.Problem {
	return &wire.Problem{
		Status: 404, Code: wire.CodeUnknownClaim, Field: submitMembers[submitBuild].Name, Reason: "unknown_build", Text: "No such build.",
	}
}

// serveBuild serves the state of a build. Like a claim, it is public.
func (e *Endpoints) serveBuild(segment []byte) (*wire.Page, *wire.Problem) {
	id, ok := market.ParseBuildID(segment)
	if !ok {
		return nil, unknownBuild()
	}
	const later = "Ask again later."
	if e.cosigner == nil {
		return nil, terms.ChainUnavailable(later)
	}
	ctx, cancel := context.WithTimeout(context.Background(), terms.SettlementTimeout)
	defer cancel()
	b, ok, err := e.cosigner.Build(ctx, id)
	switch {
	case err != nil:
		return nil, terms.SettlementProblem(err, later)
	case !ok:
		return nil, unknownBuild()
	}
	h, ok, err := e.backend.Desk.Claim(id)
	switch {
	case err != nil:
		return nil, terms.DeskProblem(err)
	case !ok: // the build exists, but not in the desk's store
		return nil, unknownBuild()
	}
	return wire.NewPage(appendBuildState(make([]byte, 0, 1024), &b, &h.Claim)), nil
}

func appendBuildState(dst []byte, b *desk.BuildState, c *rfq.Claim) []byte {
	dst = append(market.AppendBuildID(append(dst, `{"ok":true,"build_id":"`...), b.Claim), `","claim_id":"`...)
	dst = append(market.AppendClaimID(dst, b.Claim), `","state":"`...)
	dst = append(append(dst, b.Stage.String()...), `","claim_state":"`...)
	dst = append(append(dst, c.State.Word()...), `","taker":`...)
	dst = append(wire.AppendAddress(dst, b.Taker), `,"message_sha256":"`...)
	dst = append(hex.AppendEncode(dst, b.Hash[:]), '"')
	dst = appendBlockhash(dst, &b.Blockhash, b.LastValid)
	dst = wire.AppendSignature(append(dst, `,"signature":`...), &b.Signature)
	dst = appendSlot(append(dst, `,"slot":`...), b.Slot)
	dst = wire.AppendMillis(append(dst, `,"built_at":`...), b.BuiltAt)
	dst = wire.AppendMillis(append(dst, `,"expires_at":`...), c.Deadline)
	return append(wire.AppendMillis(append(dst, `,"changed_at":`...), c.ChangedAt), '}')
}

// appendSlot appends a slot, or null for 0.
func appendSlot(dst []byte, slot uint64) []byte {
	if slot == 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendUint(dst, slot, 10)
}
