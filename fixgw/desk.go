package fixgw

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// deskReports is the follower's part that tells sessions what the RFQ desk has
// done for them. It has a place in every event, as the rest of the follower:
//
//   - A record is taken at its last piece. The pieces before it are read again
//     wherever the events are followed again, whether the store has them or not,
//     since a position may lie between two pieces of a record.
//   - What a record changes is committed with the position after it. So a record
//     is told once, or, where a crash has come between the message and the commit,
//     again by the same ExecID.
//   - What is told depends on the record and on what is committed, on nothing
//     else.
type deskReports struct {
	reader rfq.Reader
	quotes map[market.QuoteID]*quote // that the desk has not forgotten
	claims map[market.ClaimID]*claim // live, or changed since the last commit
	facts  deskFacts

	// Since the last commit:
	changedQuotes []*quote
	changedClaims []*claim
	forgotten     []market.ClaimID
	changedFacts  bool
}

// deskFacts is what reports say of the desk's pairs and policy that is in no
// quote and no claim.
type deskFacts struct {
	digits map[market.InstrumentID]uint8 // decimals of the base asset
	mint   market.Address                // of USDC
}

// claimHooks are told what becomes of sessions' claims, on the follower's
// goroutine: they must not block. Either may be nil.
type claimHooks struct {
	// reserved is called with a copy of each claim that is reserved, once its first
	// report is made; and, with again true, at the start of Run of each that still is,
	// whether it was called before or not.
	reserved func(s *blotter, c *claim, again bool)
	// settled is called once the report of the fill is made, with execID its ExecID:
	// what it sends by the follower comes again after a crash as that report does.
	settled func(f *reporter, c *claim, execID []byte) error
}

// startDesk learns the facts from the desk's own view, where no record has told
// them since the store was made, and calls the hook of claims that wait for their
// payment. They are safe before a request can need them.
func (f *reporter) startDesk() error {
	g := f.gateway
	if g.dependencies.Desk == nil {
		return nil
	}
	if v := g.dependencies.Desk.View(); v != nil {
		for i := range v.Pairs {
			f.desk.learnPair(&v.Pairs[i])
		}
		f.desk.learnPolicy(&v.Policy)
	}
	if f.desk.changedFacts {
		if err := f.commitSynced(true); err != nil {
			return err
		}
	}
	if g.hooks.reserved == nil {
		return nil
	}
	for _, id := range sortedKeys(f.desk.claims) {
		if c := f.desk.claims[id]; c.State == rfq.ClaimReserved {
			shown := c.snapshot()
			g.hooks.reserved(c.owner, &shown, true)
		}
	}
	return nil
}

func (d *deskReports) learnPair(p *rfq.Pair) {
	if digits, ok := d.facts.digits[p.Instrument]; !ok || digits != p.BaseDecimals {
		d.facts.digits[p.Instrument], d.changedFacts = p.BaseDecimals, true
	}
}

func (d *deskReports) learnPolicy(p *rfq.Policy) {
	if d.facts.mint != p.USDCMint {
		d.facts.mint, d.changedFacts = p.USDCMint, true
	}
}

// wants reports whether records of a tag can matter to a session. A Quote and an
// Outcome do in a session's own command alone.
func (f *reporter) wants(t rfq.Tag) bool {
	switch t {
	case rfq.TagQuote, rfq.TagOutcome:
		return f.command.blotter != nil
	case rfq.TagPolicy, rfq.TagPair, rfq.TagTicket, rfq.TagLock, rfq.TagClaim, rfq.TagPayment, rfq.TagRemoved:
		return true
	}
	return false
}

// followDesk takes one piece of a record of the desk's.
func (f *reporter) followDesk(e *event.Event) error {
	piece, _ := e.Desk()
	if !f.wants(rfq.Tag(piece.Tag)) {
		return nil
	}
	record, _, whole := f.desk.reader.Add(e)
	if !whole {
		return nil
	}
	if f.next.before(f.stored) {
		if f.answeredBy(record) {
			f.command.answered = true
		}
		return nil
	}
	switch r := record.(type) {
	case *rfq.Policy:
		f.desk.learnPolicy(r)
	case *rfq.Pair:
		f.desk.learnPair(r)
	case *rfq.Quote:
		return f.quoted(r)
	case *rfq.Claim:
		return f.claimed(e, r)
	case *rfq.Payment:
		return f.paymentRecorded(e, r)
	case *rfq.Ticket:
		if r.Ended() {
			reason := event.ReasonTicketWithdrawn
			if r.State == rfq.TicketExpired {
				reason = event.ReasonTicketExpired
			}
			return f.removeQuotes(r.UpdatedAt, reason, func(t *rfq.Terms) bool { return t.Ticket == r.ID })
		}
	case *rfq.Lock:
		if r.Locked {
			return f.removeQuotes(r.Since, event.ReasonLocked, func(t *rfq.Terms) bool {
				return r.Scope == rfq.LockAll || r.Scope == rfq.LockPair && r.Instrument == t.Instrument ||
					r.Scope == rfq.LockRail && r.Rail == t.Rail
			})
		}
	case *rfq.Removed:
		return f.removed(r)
	case *rfq.Outcome:
		return f.outcome(e, r)
	}
	return nil
}

// answeredBy reports whether a record is the first answer to the command's own
// request.
func (f *reporter) answeredBy(record rfq.Record) bool {
	switch r := record.(type) {
	case *rfq.Quote:
		return market.OrderID(r.ID) == f.command.id
	case *rfq.Claim:
		return market.OrderID(r.ID) == f.command.id
	case *rfq.Outcome:
		return r.Reason != event.ReasonNone
	}
	return false
}

// quoted answers an R.
func (f *reporter) quoted(r *rfq.Quote) error {
	s := f.command.blotter
	in := f.gateway.instruments.Get(r.Terms.Instrument)
	digits, known := f.desk.facts.digits[r.Terms.Instrument]
	if market.OrderID(r.ID) != f.command.id {
		return nil
	}
	if in == nil || !known {
		f.lost.Add(1)
		return nil
	}
	f.at = r.IssuedAt
	q := &quote{owner: s, ClientQuote: wire.ClientQuote{Quote: *r, Ref: string(f.command.clOrdID()), Digits: digits}}
	f.desk.quotes[q.ID] = q
	s.mu.Lock()
	s.quotes[q.ID] = q
	s.mu.Unlock()
	f.markQuoteChanged(q)
	body := q.AppendBody(f.out.Scratch[:0], in.Symbol)
	if s.Custom.Load() {
		body = wire.AppendCustomTerms(body, &q.Terms, f.desk.facts.mint)
	}
	f.out.Scratch = body
	return f.answerDesk(s, wire.AnswerQuote, body, nil)
}

// claimed follows a claim of a session's.
func (f *reporter) claimed(e *event.Event, r *rfq.Claim) error {
	if r.Participant == 0 {
		return nil
	}
	c, err := f.claim(r.ID)
	if err != nil {
		return err
	}
	if c == nil {
		return f.reserved(e, r)
	}
	status, was := wire.ClaimStatus(r.State), c.State
	c.owner.mu.Lock()
	before := c.Status
	c.Claim, c.Status = *r, status
	if c.State.Live() {
		c.owner.claims[c.ID] = c
	}
	c.owner.mu.Unlock()
	f.markClaimChanged(c)
	if status == before {
		return nil
	}
	f.at = r.ChangedAt
	f.text = wire.ClaimText(f.text[:0], &c.ClientClaim, was == rfq.ClaimExpired, f.whyRefund(c, was))
	if err := f.reportClaim(e, c, wire.ClaimExec(status), r.ChangedAt, f.text, false); err != nil {
		return err
	}
	if status == wire.StatusFilled && f.gateway.hooks.settled != nil {
		return f.gateway.hooks.settled(f, c, f.execID)
	}
	return nil
}

// whyRefund says why c, which was in the state was, is refund_due.
func (f *reporter) whyRefund(c *claim, was rfq.ClaimState) event.Reason {
	switch {
	case c.State != rfq.ClaimRefundDue:
		return event.ReasonNone
	case was == rfq.ClaimExpired:
		return event.ReasonLatePayment
	}
	return event.ReasonUndeliverable
}

// reserved follows a claim that the session's command has just taken.
func (f *reporter) reserved(e *event.Event, r *rfq.Claim) error {
	s := f.command.blotter
	in := f.gateway.instruments.Get(r.Terms.Instrument)
	digits, known := f.desk.facts.digits[r.Terms.Instrument]
	if s == nil || market.OrderID(r.ID) != f.command.id || in == nil || !known {
		f.lost.Add(1)
		return nil
	}
	f.at = r.ChangedAt
	c := &claim{owner: s, ClientClaim: wire.ClientClaim{
		Claim: *r, Ref: string(f.command.clOrdID()), Digits: digits, Status: wire.ClaimStatus(r.State),
	}}
	f.desk.claims[c.ID] = c
	s.mu.Lock()
	s.claims[c.ID] = c
	s.mu.Unlock()
	f.markClaimChanged(c)
	f.text = wire.ClaimText(f.text[:0], &c.ClientClaim, false, event.ReasonNone)
	if err := f.reportClaim(e, c, wire.ExecPendingNew, r.ReservedAt, f.text, true); err != nil {
		return err
	}
	if f.gateway.hooks.reserved != nil && !f.replaying {
		if err := f.deliver(); err != nil { // what the hook sends comes after
			return err
		}
		shown := c.snapshot()
		f.gateway.hooks.reserved(s, &shown, false)
	}
	return nil
}

// paymentRecorded tells of money that is owed back, where the claim's own record,
// which comes after it, does not.
func (f *reporter) paymentRecorded(e *event.Event, r *rfq.Payment) error {
	if r.State != rfq.PaymentRefundDue {
		return nil
	}
	c, err := f.claim(r.Claim)
	if err != nil || c == nil {
		return err
	}
	told := wire.Refund{Signature: r.Signature, At: r.At}
	if r.At < c.Refund.At || told == c.Refund { // said again: not new
		return nil
	}
	c.owner.mu.Lock()
	c.Refund = told
	c.owner.mu.Unlock()
	f.markClaimChanged(c)
	if c.Status != wire.StatusCancelled && (r.Reason == event.ReasonLatePayment || r.Reason == event.ReasonUndeliverable) {
		return nil
	}
	f.text = wire.AppendRefundText(f.text[:0], r.Reason)
	return f.reportClaim(e, c, wire.ExecStatus, r.At, f.text, false)
}

// reportClaim sends an execution report of c; answers says that it is the first
// answer to its request.
func (f *reporter) reportClaim(e *event.Event, c *claim, execType byte, at int64, text []byte, answers bool) error {
	f.setExecID(e)
	return f.sendClaim(c, execType, at, text, answers)
}

// sendClaim is reportClaim by the ExecID that f.execID is.
func (f *reporter) sendClaim(c *claim, execType byte, at int64, text []byte, answers bool) error {
	in := f.gateway.instruments.Get(c.Terms.Instrument)
	if in == nil { // configured no more
		f.lost.Add(1)
		return nil
	}
	r := wire.ClaimReport{Claim: &c.ClientClaim, Symbol: in.Symbol, ExecID: f.execID, ExecType: execType, At: at, Text: text}
	body := r.AppendBody(f.out.Scratch[:0])
	if c.owner.Custom.Load() {
		body = f.appendCustomClaim(body, c)
	}
	f.out.Scratch = body
	if answers {
		return f.answerDesk(c.owner, '8', body, c)
	}
	return f.emit(c.owner, '8', body)
}

// appendCustomClaim appends what standard fields have no place for.
func (f *reporter) appendCustomClaim(dst []byte, c *claim) []byte {
	dst = wire.AppendCustomTerms(dst, &c.Terms, f.desk.facts.mint)
	return wire.AppendCustomText(dst, wire.TagClaimState, c.State.Word())
}

// removeQuotes tells that the quotes whose terms match cannot be taken any more:
// Z, then AI.
func (f *reporter) removeQuotes(at int64, why event.Reason, match func(*rfq.Terms) bool) error {
	for _, id := range sortedKeys(f.desk.quotes) {
		q := f.desk.quotes[id]
		if !match(&q.Terms) {
			continue
		}
		in := f.gateway.instruments.Get(q.Terms.Instrument)
		if !f.endQuote(q) || in == nil {
			continue
		}
		f.out.Scratch = q.AppendCancel(f.out.Scratch[:0], in.Symbol)
		if err := f.emitTransient(q.owner, "Z", wire.TagQuoteID, f.out.Scratch); err != nil {
			return err
		}
		if err := f.quoteStatus(q, wire.QuoteRemoved, at, wire.DeskText(why, 0)); err != nil {
			return err
		}
	}
	return nil
}

// endQuote marks a quote as over, and reports whether it was not before.
func (f *reporter) endQuote(q *quote) bool {
	q.owner.mu.Lock()
	was := q.over
	q.over = true
	q.owner.mu.Unlock()
	if !was {
		f.markQuoteChanged(q)
	}
	return !was
}

// quoteStatus sends an AI.
func (f *reporter) quoteStatus(q *quote, status string, at int64, text string) error {
	in := f.gateway.instruments.Get(q.Terms.Instrument)
	if in == nil { // configured no more
		return nil
	}
	f.out.Scratch = q.AppendStatus(f.out.Scratch[:0], in.Symbol, status, at, text)
	return f.emitTransient(q.owner, "AI", wire.TagQuoteID, f.out.Scratch)
}

// moment sends what is worth nothing later: quotes and what becomes of them. It
// is not kept for a resend, so what a crash has swallowed stays unsaid.
func (f *reporter) emitTransient(s *blotter, msgType string, firstTag int, body []byte) error {
	if f.replaying {
		return nil
	}
	return f.emitType(s, msgType, firstTag, body)
}

// gone follows what the desk has forgotten: a quote that was used or has
// expired, and a claim that ended long ago.
func (f *reporter) removed(r *rfq.Removed) error {
	switch r.What {
	case rfq.TagQuote:
		q := f.desk.quotes[market.QuoteID(r.ID)]
		if q == nil {
			return nil
		}
		f.markQuoteChanged(q)
		q.forgotten = true
		delete(f.desk.quotes, q.ID)
		q.owner.mu.Lock()
		delete(q.owner.quotes, q.ID)
		over := q.over
		q.owner.mu.Unlock()
		if over || r.At < q.ValidUntil { // told before, or used: the claim tells
			return nil
		}
		return f.quoteStatus(q, wire.QuoteExpired, r.At, "")
	case rfq.TagClaim:
		c, err := f.claim(market.ClaimID(r.ID))
		if err != nil || c == nil {
			return err
		}
		f.desk.forgotten = append(f.desk.forgotten, c.ID)
	}
	return nil
}

// outcome answers a request that the desk has refused.
func (f *reporter) outcome(e *event.Event, r *rfq.Outcome) error {
	s := f.command.blotter
	if r.Reason == event.ReasonNone || market.OrderID(r.Token) != f.command.id {
		return nil
	}
	f.at = r.At
	key := string(f.command.clOrdID())
	symbol := f.gateway.symbolAsked(s, key)
	f.text = append(f.text[:0], wire.DeskText(r.Reason, r.Limit)...)
	body := f.out.Scratch[:0]
	switch r.Kind {
	case rfq.KindRequestQuote:
		body = wire.AppendQuoteReject(body, strings.TrimPrefix(key, wire.QuoteReqMark), symbol, wire.DeskReasonOf(r.Reason).QuoteReason, f.text)
		f.out.Scratch = body
		return f.answerDesk(s, wire.AnswerQuoteReject, body, nil)
	case rfq.KindTakeClaim:
		f.setExecID(e)
		body = wire.AppendClaimReject(body, key, f.execID, symbol, wire.DeskReasonOf(r.Reason).OrderReason, r.At, f.text)
		f.out.Scratch = body
		return f.answerDesk(s, '8', body, nil)
	}
	return nil
}

// answerDesk is answer for requests to the desk: c is the claim that one has
// made, or nil.
func (f *reporter) answerDesk(s *blotter, code byte, body []byte, c *claim) error {
	f.keepAnswer(s, code, body, nil, c)
	msgType, first := wire.AnswerForm(code)
	if code == '8' {
		return f.emitType(s, msgType, first, body)
	}
	return f.emitTransient(s, msgType, first, body)
}

// claim returns what is known of a session's claim, or nil. One that is over may
// come from the store.
func (f *reporter) claim(id market.ClaimID) (*claim, error) {
	if c := f.desk.claims[id]; c != nil {
		return c, nil
	}
	return f.gateway.storedClaim(id)
}

// markClaimChanged marks c for the next commit.
func (f *reporter) markClaimChanged(c *claim) {
	f.desk.claims[c.ID] = c
	if !c.dirty {
		c.dirty = true
		f.desk.changedClaims = append(f.desk.changedClaims, c)
	}
}

// markQuoteChanged marks q for the next commit.
func (f *reporter) markQuoteChanged(q *quote) {
	if !q.dirty {
		q.dirty = true
		f.desk.changedQuotes = append(f.desk.changedQuotes, q)
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
