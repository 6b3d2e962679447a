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

// deskReports is the part of the reporter that reports quotes and claims of the RFQ desk to
// their sessions:
//
//   - A record is processed at its last event. Its earlier events are read again at every
//     replay, whether or not the store has them, because the position may lie between two
//     events of a record.
//   - The changes of a record are committed with the position after it. So a record is
//     reported once or, if a crash comes between the message and the commit, again under
//     the same ExecID.
//   - A report depends only on the record and on committed state.
type deskReports struct {
	reporter *reporter
	reader   rfq.Reader
	quotes   map[market.QuoteID]*quote // that the desk has not forgotten
	claims   map[market.ClaimID]*claim // live, or changed since the last commit
	facts    deskFacts
	// refundReason is that of the last payment that became due for refund: the record of the
	// claim that it ends follows it.
	refundReason event.Reason

	// Since the last commit:
	changedQuotes []*quote
	changedClaims []*claim
	forgotten     []market.ClaimID
	changedFacts  bool
}

// deskFacts are the data of the desk's pairs and policy that reports need and that no quote
// or claim has.
type deskFacts struct {
	digits map[market.InstrumentID]uint8 // decimals of the base asset
	mint   market.Address                // of USDC
}

// start takes the facts from the desk's own view, because the store may be newer than
// their records, and queues the packages of the claims that wait for their payment. The
// facts are synced before a request can need them.
func (d *deskReports) start() error {
	g := d.reporter.gateway
	if g.dependencies.Desk == nil {
		return nil
	}
	if v := g.dependencies.Desk.View(); v != nil {
		for i := range v.Pairs {
			d.learnPair(&v.Pairs[i])
		}
		d.learnPolicy(&v.Policy)
	}
	if d.changedFacts {
		if err := d.reporter.commitSynced(true); err != nil {
			return err
		}
	}
	for _, id := range sortedKeys(d.claims) {
		if c := d.claims[id]; c.State == rfq.ClaimReserved {
			g.packages.reserved(c.owner, c.Claim, true)
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

// isRelevant reports whether records of a tag can matter to a session. A Quote and an Outcome
// matter in a session's own command only.
func (d *deskReports) isRelevant(t rfq.Tag) bool {
	switch t {
	case rfq.TagQuote, rfq.TagOutcome:
		return d.reporter.command.blotter != nil
	case rfq.TagPolicy, rfq.TagPair, rfq.TagTicket, rfq.TagLock, rfq.TagClaim, rfq.TagPayment, rfq.TagRemoved:
		return true
	}
	return false
}

// follow processes one event of a record.
func (d *deskReports) follow(e *event.Event) error {
	piece, _ := e.Desk()
	if !d.isRelevant(rfq.TagOf(&piece)) {
		return nil
	}
	record, _, whole := d.reader.Add(e)
	if !whole {
		return nil
	}
	if d.reporter.next.before(d.reporter.stored) {
		if d.answeredBy(record) {
			d.reporter.command.answered = true
		}
		return nil
	}
	switch r := record.(type) {
	case *rfq.Policy:
		d.learnPolicy(r)
	case *rfq.Pair:
		d.learnPair(r)
	case *rfq.Quote:
		return d.onQuote(r)
	case *rfq.Claim:
		return d.onClaim(e, r)
	case *rfq.Payment:
		return d.onPayment(e, r)
	case *rfq.Ticket:
		if r.Ended() {
			reason := event.ReasonTicketWithdrawn
			if r.State == rfq.TicketExpired {
				reason = event.ReasonTicketExpired
			}
			return d.removeQuotes(r.UpdatedAt, reason, func(t *rfq.Terms) bool { return t.Ticket == r.ID })
		}
	case *rfq.Lock:
		if r.Locked {
			return d.removeQuotes(r.Since, event.ReasonLocked, func(t *rfq.Terms) bool {
				return r.Scope == rfq.LockAll || r.Scope == rfq.LockClock || r.Scope == rfq.LockPair && r.Instrument == t.Instrument ||
					r.Scope == rfq.LockRail && r.Rail == t.Rail
			})
		}
	case *rfq.Removed:
		return d.onRemoved(r)
	case *rfq.Outcome:
		return d.onOutcome(e, r)
	}
	return nil
}

// answeredBy reports whether a record is the first answer to the command's own
// request.
func (d *deskReports) answeredBy(record rfq.Record) bool {
	switch r := record.(type) {
	case *rfq.Quote:
		return market.OrderID(r.ID) == d.reporter.command.id
	case *rfq.Claim:
		return market.OrderID(r.ID) == d.reporter.command.id
	case *rfq.Outcome:
		return r.Reason != event.ReasonNone
	}
	return false
}

// onQuote answers an R.
func (d *deskReports) onQuote(r *rfq.Quote) error {
	s := d.reporter.command.deskClient()
	in := d.reporter.gateway.instruments.Get(r.Terms.Instrument)
	digits, known := d.facts.digits[r.Terms.Instrument]
	if market.OrderID(r.ID) != d.reporter.command.id {
		return nil
	}
	if in == nil || !known {
		d.reporter.orphanedEvents.Add(1)
		return nil
	}
	d.reporter.at = r.IssuedAt
	q := &quote{owner: s, ClientQuote: wire.ClientQuote{Quote: *r, Ref: string(d.reporter.command.clOrdID()), Digits: digits}}
	d.quotes[q.ID] = q
	s.mu.Lock()
	s.quotes[q.ID] = q
	s.mu.Unlock()
	d.markQuoteChanged(q)
	body := q.AppendBody(d.reporter.out.Scratch[:0], in.Symbol)
	if s.Custom.Load() {
		body = wire.AppendCustomTerms(body, &q.Terms, d.facts.mint)
	}
	d.reporter.out.Scratch = body
	return d.answerDesk(s.blotter, wire.AnswerQuote, body, nil)
}

// onClaim processes a change of a session's claim.
func (d *deskReports) onClaim(e *event.Event, r *rfq.Claim) error {
	if r.Participant == 0 {
		return nil
	}
	c, err := d.claim(r.ID)
	if err != nil {
		return err
	}
	if c == nil {
		return d.onReserved(e, r)
	}
	status, was := wire.ClaimStatus(r.State), c.State
	c.owner.mu.Lock()
	before := c.Status
	c.Claim, c.Status = *r, status
	if c.State.Live() {
		c.owner.claims[c.ID] = c
	}
	c.owner.mu.Unlock()
	d.markClaimChanged(c)
	if status == before {
		return nil
	}
	d.reporter.at = r.ChangedAt
	d.reporter.text = wire.ClaimText(d.reporter.text[:0], &c.ClientClaim, was == rfq.ClaimExpired, d.whyRefund(c, was))
	if err := d.reportClaim(e, c, wire.ClaimExec(status), r.ChangedAt, d.reporter.text, false); err != nil {
		return err
	}
	if status == wire.StatusFilled {
		return d.captureClaim(c, d.reporter.execID)
	}
	return nil
}

// whyRefund returns the reason why c, which was in the state was, is refund_due.
func (d *deskReports) whyRefund(c *claim, was rfq.ClaimState) event.Reason {
	switch {
	case c.State != rfq.ClaimRefundDue:
		return event.ReasonNone
	case was == rfq.ClaimExpired:
		return event.ReasonLatePayment
	case d.refundReason == event.ReasonPriceCorridor:
		return event.ReasonPriceCorridor
	}
	return event.ReasonUndeliverable
}

// onReserved processes a claim that the session's command has made.
func (d *deskReports) onReserved(e *event.Event, r *rfq.Claim) error {
	s := d.reporter.command.deskClient()
	in := d.reporter.gateway.instruments.Get(r.Terms.Instrument)
	digits, known := d.facts.digits[r.Terms.Instrument]
	if s == nil || market.OrderID(r.ID) != d.reporter.command.id || in == nil || !known {
		d.reporter.orphanedEvents.Add(1)
		return nil
	}
	d.reporter.at = r.ChangedAt
	c := &claim{owner: s, ClientClaim: wire.ClientClaim{
		Claim: *r, Ref: string(d.reporter.command.clOrdID()), Digits: digits, Status: wire.ClaimStatus(r.State),
	}}
	d.claims[c.ID] = c
	s.mu.Lock()
	s.claims[c.ID] = c
	s.mu.Unlock()
	d.markClaimChanged(c)
	d.reporter.text = wire.ClaimText(d.reporter.text[:0], &c.ClientClaim, false, event.ReasonNone)
	if err := d.reportClaim(e, c, wire.ExecPendingNew, r.ReservedAt, d.reporter.text, true); err != nil {
		return err
	}
	if !d.reporter.replaying {
		if err := d.reporter.deliver(); err != nil { // the package comes after the report
			return err
		}
		d.reporter.gateway.packages.reserved(s, c.Claim, false)
	}
	return nil
}

// onPayment reports a payment that is due for refund, unless the claim's own record,
// which comes after it, reports it.
func (d *deskReports) onPayment(e *event.Event, r *rfq.Payment) error {
	if r.State != rfq.PaymentRefundDue {
		return nil
	}
	d.refundReason = r.Reason
	c, err := d.claim(r.Claim)
	if err != nil || c == nil {
		return err
	}
	refund := wire.Refund{Signature: r.Signature, At: r.At}
	if r.At < c.Refund.At || refund == c.Refund { // repeated
		return nil
	}
	c.owner.mu.Lock()
	c.Refund = refund
	c.owner.mu.Unlock()
	d.markClaimChanged(c)
	if c.Status != wire.StatusCancelled && rfq.EndsClaim(r.Reason) {
		return nil
	}
	d.reporter.text = wire.AppendRefundText(d.reporter.text[:0], r.Reason)
	return d.reportClaim(e, c, wire.ExecStatus, r.At, d.reporter.text, false)
}

// reportClaim sends an execution report of c; answers reports whether it is the first
// answer to its request.
func (d *deskReports) reportClaim(e *event.Event, c *claim, execType byte, at int64, text []byte, answers bool) error {
	d.reporter.setExecID(e)
	return d.sendClaim(c, execType, at, text, answers)
}

// sendClaim is reportClaim under the ExecID in the reporter's execID.
func (d *deskReports) sendClaim(c *claim, execType byte, at int64, text []byte, answers bool) error {
	in := d.reporter.gateway.instruments.Get(c.Terms.Instrument)
	if in == nil { // not configured any more
		d.reporter.orphanedEvents.Add(1)
		return nil
	}
	r := wire.ClaimReport{Claim: &c.ClientClaim, Symbol: in.Symbol, ExecID: d.reporter.execID, ExecType: execType, At: at, Text: text}
	body := r.AppendBody(d.reporter.out.Scratch[:0])
	if c.owner.Custom.Load() {
		body = d.appendCustomClaim(body, c)
	}
	d.reporter.out.Scratch = body
	if answers {
		return d.answerDesk(c.owner.blotter, '8', body, c)
	}
	return d.reporter.emit(c.owner.blotter, '8', body)
}

// appendCustomClaim appends the custom fields of a claim's report.
func (d *deskReports) appendCustomClaim(dst []byte, c *claim) []byte {
	dst = wire.AppendCustomTerms(dst, &c.Terms, d.facts.mint)
	return wire.AppendCustomText(dst, wire.TagClaimState, c.State.Word())
}

// removeQuotes reports that the quotes whose terms match cannot be taken any more: Z,
// then AI.
func (d *deskReports) removeQuotes(at int64, why event.Reason, match func(*rfq.Terms) bool) error {
	for _, id := range sortedKeys(d.quotes) {
		q := d.quotes[id]
		if !match(&q.Terms) {
			continue
		}
		in := d.reporter.gateway.instruments.Get(q.Terms.Instrument)
		if !d.endQuote(q) || in == nil {
			continue
		}
		d.reporter.out.Scratch = q.AppendCancel(d.reporter.out.Scratch[:0], in.Symbol)
		if err := d.emitTransient(q.owner.blotter, "Z", wire.TagQuoteID, d.reporter.out.Scratch); err != nil {
			return err
		}
		if err := d.quoteStatus(q, wire.QuoteRemoved, at, wire.DeskText(why, 0)); err != nil {
			return err
		}
	}
	return nil
}

// endQuote marks a quote as ended, and reports whether it was live before.
func (d *deskReports) endQuote(q *quote) bool {
	q.owner.mu.Lock()
	was := q.over
	q.over = true
	q.owner.mu.Unlock()
	if !was {
		d.markQuoteChanged(q)
	}
	return !was
}

// quoteStatus sends an AI.
func (d *deskReports) quoteStatus(q *quote, status string, at int64, text string) error {
	in := d.reporter.gateway.instruments.Get(q.Terms.Instrument)
	if in == nil { // not configured any more
		return nil
	}
	d.reporter.out.Scratch = q.AppendStatus(d.reporter.out.Scratch[:0], in.Symbol, status, at, text)
	return d.emitTransient(q.owner.blotter, "AI", wire.TagQuoteID, d.reporter.out.Scratch)
}

// emitTransient sends a message that is of no use later, a quote or its end. It is not
// kept for a resend, and not made again after a crash.
func (d *deskReports) emitTransient(s *blotter, msgType string, firstTag int, body []byte) error {
	if d.reporter.replaying {
		return nil
	}
	return d.reporter.emitType(s, msgType, firstTag, body)
}

// onRemoved processes the removal of a quote that was used or has expired, or of a claim
// that ended long ago.
func (d *deskReports) onRemoved(r *rfq.Removed) error {
	switch r.What {
	case rfq.TagQuote:
		q := d.quotes[market.QuoteID(r.ID)]
		if q == nil {
			return nil
		}
		d.markQuoteChanged(q)
		q.forgotten = true
		delete(d.quotes, q.ID)
		q.owner.mu.Lock()
		delete(q.owner.quotes, q.ID)
		over := q.over
		q.owner.mu.Unlock()
		if over || r.At < q.ValidUntil { // reported before, or used: then the claim is reported
			return nil
		}
		return d.quoteStatus(q, wire.QuoteExpired, r.At, "")
	case rfq.TagClaim:
		c, err := d.claim(market.ClaimID(r.ID))
		if err != nil || c == nil {
			return err
		}
		d.forgotten = append(d.forgotten, c.ID)
	}
	return nil
}

// onOutcome answers a request that the desk has refused.
func (d *deskReports) onOutcome(e *event.Event, r *rfq.Outcome) error {
	s := d.reporter.command.blotter
	if r.Reason == event.ReasonNone || market.OrderID(r.Token) != d.reporter.command.id {
		return nil
	}
	d.reporter.at = r.At
	key := string(d.reporter.command.clOrdID())
	symbol := d.reporter.gateway.symbolAsked(s, key)
	d.reporter.text = append(d.reporter.text[:0], wire.DeskText(r.Reason, r.Limit)...)
	body := d.reporter.out.Scratch[:0]
	switch r.Kind {
	case rfq.KindRequestQuote:
		body = wire.AppendQuoteReject(body, strings.TrimPrefix(key, wire.QuoteReqPrefix), symbol, wire.DeskReasonOf(r.Reason).QuoteReason, d.reporter.text)
		d.reporter.out.Scratch = body
		return d.answerDesk(s, wire.AnswerQuoteReject, body, nil)
	case rfq.KindTakeClaim:
		d.reporter.setExecID(e)
		body = wire.AppendClaimReject(body, key, d.reporter.execID, symbol, wire.DeskReasonOf(r.Reason).OrderReason, r.At, d.reporter.text)
		d.reporter.out.Scratch = body
		return d.answerDesk(s, '8', body, nil)
	}
	return nil
}

// answerDesk is reporter.answer for requests to the desk; c is the claim that the request
// has made, or nil.
func (d *deskReports) answerDesk(s *blotter, code byte, body []byte, c *claim) error {
	d.reporter.keepAnswer(s, code, body, nil, c)
	msgType, first := wire.AnswerForm(code)
	if code == '8' {
		return d.reporter.emitType(s, msgType, first, body)
	}
	return d.emitTransient(s, msgType, first, body)
}

// claim returns a session's claim, or nil. A finished claim may come from the store.
func (d *deskReports) claim(id market.ClaimID) (*claim, error) {
	if c := d.claims[id]; c != nil {
		return c, nil
	}
	return d.reporter.gateway.storedClaim(id)
}

// markClaimChanged marks c for the next commit.
func (d *deskReports) markClaimChanged(c *claim) {
	d.claims[c.ID] = c
	if !c.dirty {
		c.dirty = true
		d.changedClaims = append(d.changedClaims, c)
	}
}

// markQuoteChanged marks q for the next commit.
func (d *deskReports) markQuoteChanged(q *quote) {
	if !q.dirty {
		q.dirty = true
		d.changedQuotes = append(d.changedQuotes, q)
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// captureClaim reports a settled claim, under the ExecID of its fill, to the session that
// took it and to the drop copies of its participant.
func (d *deskReports) captureClaim(c *claim, execID []byte) error {
	in := d.reporter.gateway.instruments.Get(c.Terms.Instrument)
	if in == nil { // the report was not sent either
		return nil
	}
	body := wire.AppendCaptureHead(d.reporter.capture[:0], execID, c.Status, in.Symbol)
	body = wire.AppendOffered(body, &c.Terms)
	body = market.AppendDecimal(append(body, "\x0132="...), c.Terms.Base, int(c.Digits))
	body = wire.AppendUSDPrice(append(body, "\x0131="...), c.Terms.Price)
	d.reporter.text = market.AppendClaimID(d.reporter.text[:0], c.ID)
	side := wire.CaptureSide{
		At: c.ChangedAt, Side: '1', OrderID: d.reporter.text, QuoteID: c.Quote, ClOrdID: c.Ref, CompID: c.owner.CompID(),
	}
	if strings.HasPrefix(c.Ref, wire.QuoteRespPrefix) {
		side.ClOrdID = ""
	}
	d.reporter.capture = side.Append(body)
	custom := wire.AppendCustomText(nil, wire.TagClaimState, c.State.Word())
	if !c.owner.DropCopy.Load() {
		if err := d.reporter.emitCapture(c.owner.blotter, custom); err != nil {
			return err
		}
	}
	return d.reporter.copyTo(c.owner.blotter, custom)
}
