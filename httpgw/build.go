package httpgw

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/mr-tron/base58"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Members of the body of a build (contract, section E), by their place in
// buildMembers.
const (
	buildOrder = iota
	buildTranche
	buildFill
	buildRail
	buildTaker
	buildQuote
	buildPayer
)

var buildMembers = []member{
	buildOrder: orderMember, buildTranche: trancheMember, buildFill: fillMember,
	buildRail: {name: "rail", kind: textMember, most: 8},
	// A taker that is not there is a guard's matter, and not the form's.
	buildTaker: {name: "taker", kind: textMember, most: maxAddressText, optional: true, blank: true},
	buildQuote: {name: "quote_id", kind: textMember, most: MaxSegment, optional: true},
	buildPayer: {name: "fee_payer", kind: textMember, most: 8, optional: true},
}

// feePayers are the wire words of who pays the network's fee. The desk does
// where nobody is named.
var feePayers = map[string]desk.FeePayer{"": desk.DeskPays, "desk": desk.DeskPays, "taker": desk.TakerPays}

// noAccount is the zero address, which is the system program and no
// counterparty.
var noAccount = strings.Repeat("1", minAddressText)

// parseBuild reads the body of a build.
func parseBuild(p *post, v *rfq.View) (*rfq.TakeClaim, desk.FeePayer, *problem) {
	var m members
	if bad := decodeObject(p.body, buildMembers, &m); bad != nil {
		return nil, 0, bad
	}
	r := &rfq.TakeClaim{Way: rfq.Atomic}
	var ok bool
	var bad *problem
	if r.Fill, bad = parseFill(m.get(buildFill)); bad != nil {
		return nil, 0, bad
	}
	if r.Rail, bad = parseRail(buildMembers[buildRail].name, m.get(buildRail)); bad != nil {
		return nil, 0, bad
	}
	if text := m.get(buildQuote); text != nil {
		if r.Quote, ok = market.ParseQuoteID(text); !ok {
			return nil, 0, invalidMember(buildMembers[buildQuote].name, "not_an_id")
		}
	}
	payer, ok := feePayers[string(m.get(buildPayer))]
	if !ok {
		return nil, 0, invalidMember(buildMembers[buildPayer].name, "unknown_fee_payer")
	}
	if r.Wallet, bad = parseTaker(m.get(buildTaker), p.taker); bad != nil {
		return nil, 0, bad
	}
	if r.Ticket, r.Tranche, bad = parseOffer(v, m.get(buildOrder), m.get(buildTranche), false); bad != nil {
		return nil, 0, bad
	}
	r.Key = takersKey(opBuild, p, append(rfq.AppendRequest(nil, r), byte(payer)))
	return r, payer, nil
}

// parseTaker reads the counterparty, which must be the one that the token
// belongs to.
func parseTaker(text []byte, of market.Address) (market.Address, *problem) {
	name := buildMembers[buildTaker].name
	taker, ok := parseAddress(text)
	switch {
	case text == nil || string(text) == noAccount:
		bad := guarded(guardEmpty)
		bad.field = name
		return market.Address{}, bad
	case !ok:
		return market.Address{}, invalidMember(name, "not_an_address")
	case taker != of:
		bad := refuseToken(tokenOfAnother)
		bad.field = name
		return market.Address{}, bad
	}
	return taker, nil
}

// takersKey is idempotency for a request that comes with a token: each taker has
// keys of its own.
func takersKey(op operation, p *post, canonical []byte) rfq.Key {
	return idempotency(op+operation(" "+base58.Encode(p.taker[:])), p.key, canonical)
}

// postBuild reserves a piece of a tranche and builds the transaction of both
// legs. It never signs: nothing here or behind it has a key.
func (e *dvpEndpoints) postBuild(p *post) (*answer, *problem) {
	r, payer, bad := parseBuild(p, e.deal.view())
	if bad != nil {
		return nil, bad
	}
	result, pack, bad := e.deal.reserve(r, payer, "bot_wallet", buildMembers[buildTaker].name)
	if bad != nil {
		return nil, bad
	}
	w := e.deal.terms()
	return &answer{status: 200, body: appendBuild(&w, result.Claim, result.Ticket.Label, pack), replayed: result.Replayed}, nil
}

// appendBuild renders a build.
func appendBuild(w *termsWriter, c *rfq.Claim, label string, pack *desk.Package) []byte {
	dst := make([]byte, 0, 2048+2*len(pack.Transaction))
	dst = append(market.AppendBuildID(append(dst, `{"ok":true,"build_id":"`...), c.ID), `","claim_id":"`...)
	dst = append(market.AppendClaimID(dst, c.ID), `","transaction":"`...)
	dst = append(base64.StdEncoding.AppendEncode(dst, pack.Transaction), `","message_sha256":"`...)
	dst = append(hex.AppendEncode(dst, pack.Hash[:]), `","required_signers":[`...)
	for i, signer := range pack.Signers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendAccount(dst, signer)
	}
	dst = append(dst, `],"payment":`...)
	dst = w.delivered(append(w.boundPayment(dst, &c.Terms, pack), `,"delivery":`...), c)
	dst = appendBlockhash(append(dst, '}'), &pack.Blockhash, pack.LastValid)
	dst = appendMillis(append(dst, `,"expires_at":`...), c.Deadline)
	dst = append(dst, `,"quote":{"quote_id":`...)
	dst = append(appendQuoteID(dst, c.Quote), ',')
	dst = append(w.offer(dst, &c.Terms, label), ',')
	return append(w.fee(dst, &c.Terms), "}}"...)
}

// appendBlockhash appends the members that say how long a transaction can land.
func appendBlockhash(dst []byte, blockhash *[32]byte, lastValid uint64) []byte {
	dst = append(dst, `,"recent_blockhash":"`...)
	dst = append(dst, base58.Encode(blockhash[:])...)
	return strconv.AppendUint(append(dst, `","last_valid_block_height":`...), lastValid, 10)
}

// unknownBuild: a build is its claim's, hence the code.
func unknownBuild() *problem {
	return &problem{
		status: 404, code: codeUnknownClaim, field: submitMembers[submitBuild].name, reason: "unknown_build", text: "No such build.",
	}
}

// serveBuild shows where a build stands. Like a claim it is no secret.
func (e *dvpEndpoints) serveBuild(segment []byte) (*page, *problem) {
	id, ok := market.ParseBuildID(segment)
	if !ok {
		return nil, unknownBuild()
	}
	const later = "Ask again later."
	if e.dvp == nil {
		return nil, chainUnavailable(later)
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	b, ok, err := e.dvp.Build(ctx, id)
	switch {
	case err != nil:
		return nil, settlementProblem(err, later)
	case !ok:
		return nil, unknownBuild()
	}
	h, ok, err := e.deal.Desk.Claim(id)
	switch {
	case err != nil:
		return nil, deskProblem(err)
	case !ok: // built, and the desk's store has lost it
		return nil, unknownBuild()
	}
	return hashPage(appendBuildState(make([]byte, 0, 1024), &b, &h.Claim)), nil
}

func appendBuildState(dst []byte, b *desk.BuildState, c *rfq.Claim) []byte {
	dst = append(market.AppendBuildID(append(dst, `{"ok":true,"build_id":"`...), b.Claim), `","claim_id":"`...)
	dst = append(market.AppendClaimID(dst, b.Claim), `","state":"`...)
	dst = append(append(dst, b.Stage.String()...), `","claim_state":"`...)
	dst = append(append(dst, claimStates[c.State]...), `","taker":`...)
	dst = append(appendAccount(dst, b.Taker), `,"message_sha256":"`...)
	dst = append(hex.AppendEncode(dst, b.Hash[:]), '"')
	dst = appendBlockhash(dst, &b.Blockhash, b.LastValid)
	dst = appendSignature(append(dst, `,"signature":`...), &b.Signature)
	dst = appendSlot(append(dst, `,"slot":`...), b.Slot)
	dst = appendMillis(append(dst, `,"built_at":`...), b.BuiltAt)
	dst = appendMillis(append(dst, `,"expires_at":`...), c.Deadline)
	return append(appendMillis(append(dst, `,"changed_at":`...), c.ChangedAt), '}')
}

// appendSlot appends a slot, or null for 0.
func appendSlot(dst []byte, slot uint64) []byte {
	if slot == 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendUint(dst, slot, 10)
}
