package rfq

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// A TradeCaptureReport (35=AE) of a client reports the transaction that has paid for a
// claim; a TradeCaptureReportAck (35=AR) answers it later. Looking for the payment takes
// requests to the chain until it is final, so workers do it, not the session. The claim's
// progress is reported by the ExecutionReports of the desk's events, whether or not the
// payment was reported: the desk watches for payments by itself.
//
// A report without an answer is in the store until the commit that has the answer. After a
// crash before it the answer is sent again, with PossResend. A report that is sent again
// after its answer is verified again; the desk always gives the same verdict on a payment
// and a claim.

// Limits of looking for payments.
const (
	proofWorkers = 4
	proofAttempt = 5 * time.Second // one look at the chain
	// proofMinPause and proofMaxPause bound the pause between two looks.
	proofMinPause = 100 * time.Millisecond
	proofMaxPause = 5 * time.Second
)

// Payments answers reports of payments. The goroutines of its queue work.
type Payments struct {
	entry    *Entry
	sessions session.Directory[Session]
	limits   PaymentLimits
	logger   *slog.Logger
	queue    *retryQueue

	mu   sync.Mutex // guards open and held; never taken with a session's held
	open map[paymentKey]*paymentTask
	held map[uint16]int // of open, by session

	sending sync.Mutex // guards out and body
	out     session.Outbox
	body    []byte
}

// paymentKey names a report: its session and its TradeReportID.
type paymentKey struct {
	session uint16
	id      string
}

// paymentTask is one report without an answer.
type paymentTask struct {
	verifier   *Payments
	owner      *Session
	id         string // TradeReportID
	proof      desk.PaymentProof
	instrument market.InstrumentID
	possResend bool      // an answer may have been sent before a crash
	until      time.Time // when it is answered in any case
	// unproven is the answer at until, by the last look; nil = there was none.
	unproven *wire.Refusal
}

// PaymentLimits bound the reports of payments without an answer.
type PaymentLimits struct {
	Reports        int
	SessionReports int           // of them, of one session
	Timeout        time.Duration // until an answer in any case
}

// NewPayments returns a verifier without reports.
func NewPayments(entry *Entry, sessions session.Directory[Session], limits PaymentLimits, logger *slog.Logger) *Payments {
	return &Payments{
		entry: entry, sessions: sessions, limits: limits, logger: logger, queue: newRetryQueue(proofWorkers),
		open: make(map[paymentKey]*paymentTask), held: make(map[uint16]int),
	}
}

// Run looks for payments until ctx ends.
func (p *Payments) Run(ctx context.Context) error { return p.queue.Run(ctx) }

// Waiting returns how many reports have no answer.
func (p *Payments) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

// A report's record is under its session and TradeReportID:
//
//	0 version · 1 claim u64 · 9 ticket u64 · 17 tranche u16 · 19 instrument u16 ·
//	21 the payment's signature
const (
	proofRecordVersion = 1
	proofRecordSize    = 85
)

func (t *paymentTask) key() []byte {
	return append(binary.BigEndian.AppendUint16([]byte{keyProof}, t.owner.Number), t.id...)
}

func (t *paymentTask) record() []byte {
	dst := binary.BigEndian.AppendUint64([]byte{proofRecordVersion}, uint64(t.proof.Claim))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.proof.Ticket))
	dst = binary.BigEndian.AppendUint16(dst, uint16(t.proof.Tranche))
	dst = binary.BigEndian.AppendUint16(dst, uint16(t.instrument))
	return append(dst, t.proof.Signature[:]...)
}

// parse reads the encoding of key and record; nil if the session no longer exists.
func (p *Payments) parse(key, value []byte) (*paymentTask, error) {
	const head = 3
	if len(key) <= head || len(value) != proofRecordSize || value[0] != proofRecordVersion {
		return nil, fmt.Errorf("%w: report of a payment %x: %d bytes", session.ErrLayout, key, len(value))
	}
	s := p.sessions.Numbered(binary.BigEndian.Uint16(key[1:]))
	if s == nil {
		return nil, nil
	}
	t := &paymentTask{
		verifier: p, owner: s, id: string(key[head:]), possResend: true,
		instrument: market.InstrumentID(binary.BigEndian.Uint16(value[19:])),
		proof: desk.PaymentProof{
			Claim:   market.ClaimID(binary.BigEndian.Uint64(value[1:])),
			Ticket:  market.TicketID(binary.BigEndian.Uint64(value[9:])),
			Tranche: market.TrancheID(binary.BigEndian.Uint16(value[17:])),
		},
	}
	copy(t.proof.Signature[:], value[21:])
	return t, nil
}

// Load takes the reports without an answer of the last run. Before Run.
func (p *Payments) Load() error {
	return kv.Each(p.entry.Store, []byte{keyProof}, []byte{keyProof + 1}, func(key, value []byte) error {
		t, err := p.parse(key, value)
		if t != nil {
			p.add(t)
		}
		return err
	})
}

// add needs mu, or to be alone.
func (p *Payments) add(t *paymentTask) {
	t.until = p.entry.Now().Add(p.limits.Timeout)
	p.open[paymentKey{t.owner.Number, t.id}] = t
	p.held[t.owner.Number]++
	p.queue.add(t, 0)
}

// take accepts a report, or returns its refusal. A repeated report gets the answer of the
// first one, if that is still pending. The error is the store's.
func (p *Payments) take(t *paymentTask) (*wire.Refusal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch known := p.open[paymentKey{t.owner.Number, t.id}]; {
	case known != nil && known.proof != t.proof:
		return wire.Refuse(wire.TradeRejOther, wire.CodeInvalidField, "TradeReportID (571) %.64q: another report of this id waits for its answer", t.id), nil
	case known != nil:
		p.entry.Requests.Duplicates.Add(1)
		return nil, nil
	case p.entry.Settlement == nil:
		return wire.Refuse(wire.TradeRejOther, wire.CodeChainUnavailable, "no chain is configured"), nil
	case p.held[t.owner.Number] >= p.limits.SessionReports:
		return wire.Refuse(wire.TradeRejOther, wire.CodeOverloaded, "%d reports of this session wait for an answer", p.limits.SessionReports), nil
	case len(p.open) >= p.limits.Reports:
		return wire.Refuse(wire.TradeRejOther, wire.CodeOverloaded, "%d reports wait for an answer, try again", p.limits.Reports), nil
	}
	err := p.entry.Store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set(t.key(), t.record()) }, false)
	if err != nil {
		return nil, fmt.Errorf("report %q: %w", t.id, err)
	}
	p.add(t)
	return nil, nil
}

// attempt looks for the payment once, and answers if that settles it.
func (t *paymentTask) attempt(ctx context.Context) time.Duration {
	refusal, again := t.look(ctx)
	if again > 0 {
		return again
	}
	if err := t.verifier.answer(t, refusal); err != nil {
		t.owner.Fail(err)
	}
	return 0
}

// look returns the answer, nil if the payment serves its claim, or when to look again. If
// the chain hangs, the next attempt is late. A report whose time is over by then is
// answered without another look, because other reports wait.
func (t *paymentTask) look(ctx context.Context) (refusal *wire.Refusal, again time.Duration) {
	p := t.verifier
	if t.unproven != nil && !p.entry.Now().Before(t.until) {
		return t.unproven, 0
	}
	bounded, cancel := context.WithTimeout(ctx, proofAttempt)
	defer cancel()
	v, err := desk.Verdict{}, errNoChain
	if p.entry.Settlement != nil {
		v, err = p.entry.Settlement.Verify(bounded, &t.proof)
	}
	pause := min(max(v.Pending, proofMinPause), proofMaxPause)
	switch {
	case ctx.Err() != nil: // we stop; the next start looks again
		return nil, pause
	case err == nil && v.Pending == 0 && v.Refused != event.ReasonDeskFull:
		return refusedPayment(&v), 0
	case err != nil:
		t.unproven = wire.Refuse(wire.TradeRejOther, wire.CodeChainUnavailable, "the payment was not verified; it will be booked when it is found on the chain")
	case v.Pending == 0:
		t.unproven = refusedPayment(&v)
	default:
		t.unproven = wire.Refuse(wire.TradeRejOther, wire.CodePendingTimeout, "the payment is not final after %s; it will be booked when it is final", p.limits.Timeout)
	}
	if p.entry.Now().Before(t.until) {
		return nil, pause
	}
	if err != nil {
		p.logger.Warn("payment lookup failed", "claim", string(market.AppendClaimID(nil, t.proof.Claim)), "error", err)
	}
	return t.unproven, 0
}

// refusedPayment returns why a payment does not serve its claim; nil if it does.
func refusedPayment(v *desk.Verdict) *wire.Refusal {
	word := v.Refused.String()
	switch v.Refused {
	case event.ReasonNone:
		return nil
	case event.ReasonPaymentMismatch:
		if v.Mismatch != "" {
			word = v.Mismatch
		}
		return wire.Refuse(wire.TradeRejOther, wire.CodePaymentMismatch, "%s", word)
	case event.ReasonPaymentUsed:
		return wire.Refuse(wire.TradeRejOther, wire.CodePaymentUsed, "%s", word)
	case event.ReasonUnknownClaim, event.ReasonUnknownPayment:
		return wire.UnknownClaim()
	case event.ReasonLatePayment, event.ReasonClaimState, event.ReasonUndeliverable, event.ReasonPriceCorridor:
		return wire.Refuse(wire.TradeRejOther, wire.CodeClaimExpired, "%s", word)
	}
	return &wire.Refusal{Reason: wire.TradeRejOther, Text: wire.DeskText(v.Refused, 0)}
}

// answer sends the AR and removes the report, from memory first, so that a report that the
// client repeats as soon as it has the AR is not taken for the pending one.
func (p *Payments) answer(t *paymentTask, refusal *wire.Refusal) error {
	a := wire.PaymentAck{
		ID: t.id, Claim: string(market.AppendClaimID(nil, t.proof.Claim)), Signature: wire.Base58(t.proof.Signature[:]),
		Refusal: refusal, At: p.entry.Now().UnixNano(),
	}
	if in := p.entry.Instruments.Get(t.instrument); in != nil {
		a.Symbol = in.Symbol
	}
	p.release(t)
	if err := p.send(t, &a); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[paymentKey{t.owner.Number, t.id}] != nil {
		return t.owner.Messages.Save() // the record belongs to the repetition
	}
	return t.owner.Messages.SaveWith(func(_ func(key, value []byte), deleteRange func(lo, hi []byte)) {
		key := t.key()
		deleteRange(key, kv.After(key))
	})
}

// release removes t from the reports without an answer.
func (p *Payments) release(t *paymentTask) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, paymentKey{t.owner.Number, t.id})
	if p.held[t.owner.Number]--; p.held[t.owner.Number] == 0 {
		delete(p.held, t.owner.Number)
	}
}

func (p *Payments) send(t *paymentTask, a *wire.PaymentAck) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	p.body = a.AppendBody(p.body[:0])
	if a.Refusal != nil {
		t.owner.CountReject()
	}
	return p.out.Send(t.owner.Session.Session, "AR", wire.TagTradeReportID, p.body, t.possResend)
}

// Report handles an AE of s.
func (p *Payments) Report(s *Session, frame []byte) *wire.Reject {
	r := wire.ScanPaymentReport(frame)
	t, refusal, err := p.check(s, &r)
	if err == nil && refusal == nil {
		refusal, err = p.take(t)
	}
	if err != nil {
		return s.StoreFailed(r.ID, err)
	}
	if refusal == nil {
		return nil
	}
	s.CountReject()
	a := wire.PaymentAck{
		ID: string(r.ID), Claim: string(r.Claim), Signature: string(r.Signature), Symbol: string(r.Symbol),
		Refusal: refusal, At: p.entry.Now().UnixNano(),
	}
	s.Out.Scratch = a.AppendBody(s.Out.Scratch[:0])
	s.Send("AR", wire.TagTradeReportID, s.Out.Scratch, false)
	return nil
}

// check checks the form of a report, and that it agrees with the terms of the
// claim that it names. The error is the store's.
func (p *Payments) check(s *Session, r *wire.PaymentReport) (*paymentTask, *wire.Refusal, error) {
	t := &paymentTask{verifier: p, owner: s, id: string(r.ID)}
	if refusal := r.CheckForm(); refusal != nil {
		return nil, refusal, nil
	}
	if !wire.ParseBase58(t.proof.Signature[:], string(r.Signature)) || t.proof.Signature == ([64]byte{}) {
		return nil, wire.Refuse(wire.TradeRejOther, wire.CodeInvalidField, "SecondaryTradeReportID (818) %.100q: must be a transaction's signature, 64 bytes in base58", r.Signature), nil
	}
	if p.entry.Instruments.Lookup(r.Symbol) == nil {
		return nil, &wire.Refusal{Reason: wire.TradeRejUnknownInstrument, Text: wire.CodeUnknownSymbol + ": Symbol (55): no instrument of that name"}, nil
	}
	id, ok := market.ParseClaimID(r.Claim)
	if !ok {
		return nil, wire.UnknownClaim(), nil
	}
	c, ok, err := s.participantClaim(id)
	switch {
	case err != nil:
		return nil, nil, err
	case !ok:
		return nil, wire.UnknownClaim(), nil
	}
	t.proof.Claim, t.proof.Ticket, t.proof.Tranche = id, c.Terms.Ticket, c.Terms.Tranche
	t.instrument = c.Terms.Instrument
	return t, r.CheckTerms(&c.ClientClaim, p.entry.Instruments), nil
}
