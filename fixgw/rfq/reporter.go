package rfq

import (
	"strings"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Reporter reports quotes and claims of the RFQ desk to their sessions. It is a
// reports.Part:
//
//   - A record is processed at its last event. Its earlier events are read again at every
//     replay, whether or not the store has them, because the position may lie between two
//     events of a record.
//   - The changes of a record are committed with the position after it. So a record is
//     reported once or, if a crash comes between the message and the commit, again under
//     the same ExecID.
//   - A report depends only on the record and on committed state.
type Reporter struct {
	out         *reports.Reporter
	sessions    session.Directory[Session]
	instruments *market.Instruments
	packages    *Packages

	reader rfq.Reader
	quotes map[market.QuoteID]*quote // that the desk has not forgotten
	claims map[market.ClaimID]*claim // live, or changed since the last commit
	facts  facts
	// refundReason is that of the last payment that became due for refund: the record of the
	// claim that it ends follows it.
	refundReason event.Reason

	// Since the last commit:
	changedQuotes []*quote
	changedClaims []*claim
	forgotten     []market.ClaimID
	changedFacts  bool

	body, text   []byte // of the report
	execID, side []byte // side: body of a TradeCaptureReport
}

// NewReporter returns a reporter without quotes and claims.
func NewReporter(out *reports.Reporter, sessions session.Directory[Session], instruments *market.Instruments, packages *Packages) *Reporter {
	return &Reporter{
		out: out, sessions: sessions, instruments: instruments, packages: packages,
		quotes: make(map[market.QuoteID]*quote), claims: make(map[market.ClaimID]*claim),
		facts: facts{digits: make(map[market.InstrumentID]uint8)},
	}
}

// Start takes the facts from the desk's own view, because the store may be newer than their
// records; nil = there is none yet. The caller commits what has changed, synced, before a
// request can need it.
func (d *Reporter) Start(v *rfq.View) {
	if v == nil {
		return
	}
	for i := range v.Pairs {
		d.learnPair(&v.Pairs[i])
	}
	d.learnPolicy(&v.Policy)
}

// QueuePackages queues the packages of the claims that wait for their payment.
func (d *Reporter) QueuePackages() {
	for _, id := range sortedKeys(d.claims) {
		if c := d.claims[id]; c.State == rfq.ClaimReserved {
			d.packages.reserved(c.owner, c.Claim, true)
		}
	}
}

func (d *Reporter) learnPair(p *rfq.Pair) {
	if digits, ok := d.facts.digits[p.Instrument]; !ok || digits != p.BaseDecimals {
		d.facts.digits[p.Instrument], d.changedFacts = p.BaseDecimals, true
	}
}

func (d *Reporter) learnPolicy(p *rfq.Policy) {
	if d.facts.mint != p.USDCMint {
		d.facts.mint, d.changedFacts = p.USDCMint, true
	}
}

// isRelevant reports whether records of a tag can matter to a session. A Quote and an Outcome
// matter in a session's own command only.
func (d *Reporter) isRelevant(t rfq.Tag) bool {
	switch t {
	case rfq.TagQuote, rfq.TagOutcome:
		return d.out.Command.Session != nil
	case rfq.TagPolicy, rfq.TagPair, rfq.TagTicket, rfq.TagLock, rfq.TagClaim, rfq.TagPayment, rfq.TagRemoved:
		return true
	}
	return false
}

// session returns the session of the command; nil = it came from none.
func (d *Reporter) session() *Session {
	if s := d.out.Command.Session; s != nil {
		return d.sessions.Of(s.Session)
	}
	return nil
}

// Apply processes one event of a record.
func (d *Reporter) Apply(e *event.Event) error {
	piece, _ := e.Desk()
	if !d.isRelevant(rfq.TagOf(&piece)) {
		return nil
	}
	record, _, whole := d.reader.Add(e)
	if !whole {
		return nil
	}
	if d.out.Stored() {
		if d.answeredBy(record) {
			d.out.Answered()
		}
		return nil
	}
	switch r := record.(type) {
	case *rfq.Policy:
		d.learnPolicy(r)
	case *rfq.Pair:
		d.learnPair(r)
	case *rfq.Quote:
		d.onQuote(r)
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
			d.removeQuotes(r.UpdatedAt, reason, func(t *rfq.Terms) bool { return t.Ticket == r.ID })
		}
	case *rfq.Lock:
		if r.Locked {
			d.removeQuotes(r.Since, event.ReasonLocked, func(t *rfq.Terms) bool {
				return r.Scope == rfq.LockAll || r.Scope == rfq.LockClock || r.Scope == rfq.LockPair && r.Instrument == t.Instrument ||
					r.Scope == rfq.LockRail && r.Rail == t.Rail
			})
		}
	case *rfq.Removed:
		return d.onRemoved(r)
	case *rfq.Outcome:
		d.onOutcome(e, r)
	}
	return nil
}

// answeredBy reports whether a record is the first answer to the command's own
// request.
func (d *Reporter) answeredBy(record rfq.Record) bool {
	switch r := record.(type) {
	case *rfq.Quote:
		return market.OrderID(r.ID) == d.out.Command.ID
	case *rfq.Claim:
		return market.OrderID(r.ID) == d.out.Command.ID
	case *rfq.Outcome:
		return r.Reason != event.ReasonNone
	}
	return false
}

// onQuote answers an R.
func (d *Reporter) onQuote(r *rfq.Quote) {
	s := d.session()
	in := d.instruments.Get(r.Terms.Instrument)
	digits, known := d.facts.digits[r.Terms.Instrument]
	if market.OrderID(r.ID) != d.out.Command.ID {
		return
	}
	if in == nil || !known {
		d.out.OrphanedEvents.Add(1)
		return
	}
	d.out.At = r.IssuedAt
	q := &quote{owner: s, ClientQuote: wire.ClientQuote{Quote: *r, Ref: string(d.out.Command.ClOrdID()), Digits: digits}}
	d.quotes[q.ID] = q
	s.addQuote(q)
	d.markQuoteChanged(q)
	answer := q.ClientQuote
	if s.entry.Format1 && !s.entry.settles() {
		answer.Indicative = true // the log cannot record it yet
	}
	body := answer.AppendBody(d.body[:0], in.Symbol)
	if s.Custom.Load() {
		body = wire.AppendCustomTerms(body, &q.Terms, d.facts.mint)
	}
	d.body = body
	d.answer(s.Session, wire.AnswerQuote, body, nil)
}

// onClaim processes a change of a session's claim.
func (d *Reporter) onClaim(e *event.Event, r *rfq.Claim) error {
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
	d.out.At = r.ChangedAt
	d.text = wire.ClaimText(d.text[:0], &c.ClientClaim, was == rfq.ClaimExpired, d.whyRefund(c, was))
	d.reportClaim(e, c, wire.ClaimExec(status), r.ChangedAt, d.text, false)
	if status == wire.StatusFilled {
		d.captureClaim(c)
	}
	return nil
}

// whyRefund returns the reason why c, which was in the state was, is refund_due.
func (d *Reporter) whyRefund(c *claim, was rfq.ClaimState) event.Reason {
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
func (d *Reporter) onReserved(e *event.Event, r *rfq.Claim) error {
	s := d.session()
	in := d.instruments.Get(r.Terms.Instrument)
	digits, known := d.facts.digits[r.Terms.Instrument]
	if s == nil || market.OrderID(r.ID) != d.out.Command.ID || in == nil || !known {
		d.out.OrphanedEvents.Add(1)
		return nil
	}
	d.out.At = r.ChangedAt
	c := &claim{owner: s, ClientClaim: wire.ClientClaim{
		Claim: *r, Ref: string(d.out.Command.ClOrdID()), Digits: digits, Status: wire.ClaimStatus(r.State),
	}}
	d.claims[c.ID] = c
	s.addClaim(c)
	d.markClaimChanged(c)
	d.text = wire.ClaimText(d.text[:0], &c.ClientClaim, false, event.ReasonNone)
	d.reportClaim(e, c, wire.ExecPendingNew, r.ReservedAt, d.text, true)
	if !d.out.Replaying {
		if err := d.out.Deliver(); err != nil { // the package comes after the report
			return err
		}
		d.packages.reserved(s, c.Claim, false)
	}
	return nil
}

// onPayment reports a payment that is due for refund, unless the claim's own record,
// which comes after it, reports it.
func (d *Reporter) onPayment(e *event.Event, r *rfq.Payment) error {
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
	d.text = wire.AppendRefundText(d.text[:0], r.Reason)
	d.reportClaim(e, c, wire.ExecStatus, r.At, d.text, false)
	return nil
}

// reportClaim sends an execution report of c; answers reports whether it is the first
// answer to its request.
func (d *Reporter) reportClaim(e *event.Event, c *claim, execType byte, at int64, text []byte, answers bool) {
	d.execID = d.out.AppendExecID(d.execID[:0], e)
	d.sendClaim(c, execType, at, text, answers)
}

// sendClaim is reportClaim under the ExecID in the reporter's execID.
func (d *Reporter) sendClaim(c *claim, execType byte, at int64, text []byte, answers bool) {
	in := d.instruments.Get(c.Terms.Instrument)
	if in == nil { // not configured any more
		d.out.OrphanedEvents.Add(1)
		return
	}
	r := wire.ClaimReport{Claim: &c.ClientClaim, Symbol: in.Symbol, ExecID: d.execID, ExecType: execType, At: at, Text: text}
	body := r.AppendBody(d.body[:0])
	if c.owner.Custom.Load() {
		body = d.appendCustomClaim(body, c)
	}
	d.body = body
	if answers {
		d.answer(c.owner.Session, '8', body, c)
	} else {
		d.out.Emit(c.owner.Session, "8", wire.TagOrderID, body)
	}
}

// appendCustomClaim appends the custom fields of a claim's report.
func (d *Reporter) appendCustomClaim(dst []byte, c *claim) []byte {
	dst = wire.AppendCustomTerms(dst, &c.Terms, d.facts.mint)
	return wire.AppendCustomText(dst, wire.TagClaimState, c.State.Word())
}

// removeQuotes reports that the quotes whose terms match cannot be taken any more: Z,
// then AI.
func (d *Reporter) removeQuotes(at int64, why event.Reason, match func(*rfq.Terms) bool) {
	for _, id := range sortedKeys(d.quotes) {
		q := d.quotes[id]
		if !match(&q.Terms) {
			continue
		}
		in := d.instruments.Get(q.Terms.Instrument)
		if !d.endQuote(q) || in == nil {
			continue
		}
		d.body = q.AppendCancel(d.body[:0], in.Symbol)
		d.emitTransient(q.owner.Session, "Z", wire.TagQuoteID, d.body)
		d.quoteStatus(q, wire.QuoteRemoved, at, wire.DeskText(why, 0))
	}
}

// endQuote marks a quote as ended, and reports whether it was live before.
func (d *Reporter) endQuote(q *quote) bool {
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
func (d *Reporter) quoteStatus(q *quote, status string, at int64, text string) {
	in := d.instruments.Get(q.Terms.Instrument)
	if in == nil { // not configured any more
		return
	}
	d.body = q.AppendStatus(d.body[:0], in.Symbol, status, at, text)
	d.emitTransient(q.owner.Session, "AI", wire.TagQuoteID, d.body)
}

// emitTransient sends a message that is of no use later, a quote or its end. It is not
// kept for a resend, and not made again after a crash.
func (d *Reporter) emitTransient(s *reports.Session, msgType string, firstTag int, body []byte) {
	if !d.out.Replaying {
		d.out.Emit(s, msgType, firstTag, body)
	}
}

// onRemoved processes the removal of a quote that was used or has expired, or of a claim
// that ended long ago.
func (d *Reporter) onRemoved(r *rfq.Removed) error {
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
		d.quoteStatus(q, wire.QuoteExpired, r.At, "")
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
func (d *Reporter) onOutcome(e *event.Event, r *rfq.Outcome) {
	s := d.session()
	if r.Reason == event.ReasonNone || market.OrderID(r.RequestID) != d.out.Command.ID {
		return
	}
	d.out.At = r.At
	key := string(d.out.Command.ClOrdID())
	symbol := s.requestedSymbol(key)
	d.text = append(d.text[:0], wire.DeskText(r.Reason, r.Limit)...)
	body := d.body[:0]
	switch r.Kind {
	case rfq.KindRequestQuote:
		body = wire.AppendQuoteReject(body, strings.TrimPrefix(key, wire.QuoteReqPrefix), symbol, wire.DeskReasonOf(r.Reason).QuoteReason, d.text)
		d.body = body
		d.answer(s.Session, wire.AnswerQuoteReject, body, nil)
	case rfq.KindTakeClaim:
		d.execID = d.out.AppendExecID(d.execID[:0], e)
		body = wire.AppendClaimReject(body, key, d.execID, symbol, wire.DeskReasonOf(r.Reason).OrderReason, r.At, d.text)
		d.body = body
		d.answer(s.Session, '8', body, nil)
	}
}

// answer answers a request to the desk; subject is the claim that it has made, or nil.
func (d *Reporter) answer(s *reports.Session, code byte, body []byte, subject reports.Subject) {
	d.out.KeepAnswer(s, code, body, subject)
	msgType, first := wire.AnswerForm(code)
	if code == '8' {
		d.out.Emit(s, msgType, first, body)
	} else {
		d.emitTransient(s, msgType, first, body)
	}
}

// claim returns a session's claim, or nil. A finished claim may come from the store.
func (d *Reporter) claim(id market.ClaimID) (*claim, error) {
	if c := d.claims[id]; c != nil {
		return c, nil
	}
	return storedClaim(d.out.Store().Store, id, d.sessions)
}

// markClaimChanged marks c for the next commit.
func (d *Reporter) markClaimChanged(c *claim) {
	d.claims[c.ID] = c
	if !c.dirty {
		c.dirty = true
		d.changedClaims = append(d.changedClaims, c)
	}
}

// markQuoteChanged marks q for the next commit.
func (d *Reporter) markQuoteChanged(q *quote) {
	if !q.dirty {
		q.dirty = true
		d.changedQuotes = append(d.changedQuotes, q)
	}
}

// captureClaim reports a settled claim, under the ExecID of its fill, to the session that
// took it and to the drop copies of its participant.
func (d *Reporter) captureClaim(c *claim) {
	in := d.instruments.Get(c.Terms.Instrument)
	if in == nil { // the report was not sent either
		return
	}
	body := wire.AppendCaptureHead(d.side[:0], d.execID, c.Status, in.Symbol)
	body = wire.AppendOffered(body, &c.Terms)
	body = market.AppendDecimal(append(body, "\x0132="...), c.Terms.Base, int(c.Digits))
	body = wire.AppendUSDPrice(append(body, "\x0131="...), c.Terms.Price)
	d.text = market.AppendClaimID(d.text[:0], c.ID)
	side := wire.CaptureSide{
		At: c.ChangedAt, Side: '1', OrderID: d.text, QuoteID: c.Quote, ClOrdID: c.Ref, CompID: c.owner.CompID(),
	}
	if strings.HasPrefix(c.Ref, wire.QuoteRespPrefix) {
		side.ClOrdID = ""
	}
	d.side = side.Append(body)
	custom := wire.AppendCustomText(nil, wire.TagClaimState, c.State.Word())
	if !c.owner.DropCopy.Load() {
		d.out.Capture(c.owner.Session, d.side, custom)
	}
	d.out.Copy(c.owner.Session, d.side, custom)
}
