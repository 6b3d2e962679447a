package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw"
	"blockdesk/market"
	"blockdesk/settle"
	"blockdesk/settle/access"
	"blockdesk/settle/store"
)

// The adapters between package settle and the doors, which do not know each
// other. They translate; they decide nothing.

// settleDesk is the desk as settlement needs it.
type settleDesk struct{ *desk.Desk }

// Do submits a request.
func (d settleDesk) Do(r rfq.Request) (settle.Result, error) {
	result, err := d.Desk.Do(r)
	if err != nil {
		return settle.Result{}, err
	}
	return settle.Result{
		Outcome: result.Outcome, Claim: result.Claim, Payment: result.Payment, Ticket: result.Ticket, Replayed: result.Replayed,
	}, nil
}

// Claim returns a claim with its payments.
func (d settleDesk) Claim(id market.ClaimID) (*rfq.Claim, []rfq.Payment, bool, error) {
	h, ok, err := d.Desk.Claim(id)
	if err != nil || !ok {
		return nil, nil, false, err
	}
	return &h.Claim, h.Payments, true, nil
}

// settleDoor is settlement as the REST gateway and the operators need it:
// httpgw.Settlement, httpgw.DvP and httpgw.OperatorMoney.
type settleDoor struct {
	*settle.Settle
	part *settlement
	desk *desk.Desk
}

// Ready returns nil where a claim can be settled now.
func (d *settleDoor) Ready() error { return d.part.ready() }

// Money lists one kind of the money that needs a person.
func (d *settleDoor) Money(_ context.Context, kind httpgw.MoneyKind, after httpgw.MoneyCursor, limit int) (out []httpgw.MoneyItem, err error) {
	switch kind {
	case httpgw.MoneyRefund:
		for _, p := range d.Settle.RefundsDue(after.Signature, limit) {
			out = append(out, httpgw.MoneyItem{
				Signature: p.Signature, Claim: p.Claim, Rail: p.Rail, Amount: p.Amount, Payer: p.Payer, Slot: p.Slot, At: p.At, Reason: p.Why.String(),
			})
		}
	case httpgw.MoneyStuck:
		for _, s := range d.Settle.Stuck(after.Claim, limit) {
			item := httpgw.MoneyItem{
				Claim: s.Claim.ID, Rail: s.Claim.Terms.Rail, Amount: s.Claim.Paid, Payer: s.Claim.Wallet,
				At: s.Since, Reason: s.Problem, Attempts: s.Tries, Delivery: s.Signature,
			}
			if err := d.paidBy(&item); err != nil {
				return nil, err
			}
			out = append(out, item)
		}
	case httpgw.MoneyDoubtful:
		list, err := d.Settle.Doubtful(after.Claim, limit)
		if err != nil {
			return nil, err
		}
		for i := range list {
			x := &list[i]
			out = append(out, httpgw.MoneyItem{
				Claim: x.Claim.ID, Rail: x.Claim.Terms.Rail, Amount: x.Claim.Terms.Payment, Payer: x.Claim.Wallet,
				At: x.Since, Reason: x.Word, Delivery: x.Signature,
			})
		}
	case httpgw.MoneyStray:
		list, err := d.Settle.Strays(after.Signature, limit)
		if err != nil {
			return nil, err
		}
		for i := range list {
			s := &list[i]
			out = append(out, httpgw.MoneyItem{
				Signature: s.Signature, Claim: s.Claim, Rail: s.Rail, Amount: s.Amount, Payer: s.Payer, Slot: s.Slot, At: s.SeenAt, Reason: s.Reason,
			})
		}
	}
	return out, nil
}

// paidBy fills in the payment that a stuck claim was paid by.
func (d *settleDoor) paidBy(item *httpgw.MoneyItem) error {
	h, ok, err := d.desk.Claim(item.Claim)
	if err != nil || !ok {
		return err
	}
	for i := range h.Payments {
		if p := &h.Payments[i]; p.State == rfq.PaymentApplied {
			item.Signature, item.Payer, item.Slot = p.Signature, p.Payer, p.Slot
		}
	}
	return nil
}

// Counts tells how much money needs a person.
func (d *settleDoor) Counts() httpgw.MoneyCounts {
	refunds, stuck, strays := d.Settle.Attention()
	return httpgw.MoneyCounts{Refunds: refunds, Stuck: stuck, Strays: strays, Doubtful: d.Settle.DoubtfulCount()}
}

// Refunded notes a refund.
func (d *settleDoor) Refunded(_ context.Context, by httpgw.OperatorAct, payment, refund [64]byte) (*desk.Result, error) {
	return deskResult(d.Settle.Refunded(settle.Act(by), payment, refund))
}

// Abandon gives up a claim.
func (d *settleDoor) Abandon(_ context.Context, by httpgw.OperatorAct, claim market.ClaimID) (*desk.Result, error) {
	return deskResult(d.Settle.Abandon(settle.Act(by), claim))
}

// Release ends what waits on the chain for ever.
func (d *settleDoor) Release(ctx context.Context, by httpgw.OperatorAct, claim market.ClaimID) (*desk.Result, error) {
	result, err := d.Settle.Release(ctx, settle.Act(by), claim)
	if errors.Is(err, settle.ErrNotDoubtful) {
		return nil, fmt.Errorf("%w: %w", httpgw.ErrNotDoubtful, err)
	}
	return deskResult(result, err)
}

// Resolve notes what was done about a stray. The first note stands.
func (d *settleDoor) Resolve(_ context.Context, by httpgw.OperatorAct, payment [64]byte, note string) error {
	err := d.Settle.ResolveStray(settle.Act(by), payment, note)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return fmt.Errorf("%w: %w", httpgw.ErrUnknownStray, err)
	case errors.Is(err, store.ErrResolved):
		return nil
	}
	return err
}

func deskResult(r settle.Result, err error) (*desk.Result, error) {
	if err != nil {
		return nil, err
	}
	return &desk.Result{Outcome: r.Outcome, Claim: r.Claim, Payment: r.Payment, Ticket: r.Ticket, Replayed: r.Replayed}, nil
}

// health is what the gateway tells of the chain.
func (p *settlement) health() httpgw.ChainHealth {
	h := p.core.Health()
	out := httpgw.ChainHealth{Desk: h.Desk, Tracked: h.Working, Landed: h.Tracker.Landed}
	if !h.Blockhash.FetchedAt.IsZero() {
		out.BlockhashAge = max(time.Since(h.Blockhash.FetchedAt), 1)
		out.BlockhashSlot = h.Blockhash.Slot
	}
	for i := range h.Nodes {
		n := &h.Nodes[i]
		out.Nodes = append(out.Nodes, httpgw.ChainNode{Name: n.Name, Available: n.Available, Slot: n.Slot, Lag: n.Lag})
		out.Slot = max(out.Slot, n.Slot)
	}
	return out
}

// sources are what /metrics asks of settlement.
func (d *settleDoor) sources() httpgw.SettlementSources {
	count := func(name, help string, of func(settle.Counts) uint64) httpgw.Counter {
		return httpgw.Counter{Name: name, Help: help, Value: func() uint64 { return of(d.Settle.Counts()) }}
	}
	return httpgw.SettlementSources{
		Chain: d.part.health, Money: d.Counts, Tokens: d.part.access.Live,
		Counters: []httpgw.Counter{
			count("packages_total", "Packages made.", func(c settle.Counts) uint64 { return c.Built }),
			count("refused_total", "Submissions and packages that a guard has refused.", func(c settle.Counts) uint64 { return c.Refused }),
			count("cosigned_total", "Atomic transactions that the desk has signed.", func(c settle.Counts) uint64 { return c.Cosigned }),
			count("deliveries_total", "Deliveries that the desk has signed.", func(c settle.Counts) uint64 { return c.Delivered }),
			count("settled_total", "Claims that were settled.", func(c settle.Counts) uint64 { return c.Settled }),
			count("released_total", "Atomic claims that were given back.", func(c settle.Counts) uint64 { return c.Released }),
			count("lapsed_total", "Deliveries that ended without delivering.", func(c settle.Counts) uint64 { return c.Lapsed }),
		},
	}
}

// handshakeDoor is httpgw.Handshake.
type handshakeDoor struct{ *access.Access }

// Challenge returns a nonce.
func (d handshakeDoor) Challenge(key market.Address) (httpgw.Challenge, error) {
	c, err := d.Access.Challenge(key)
	return httpgw.Challenge(c), handshakeError(err)
}

// Issue returns a token for a proof.
func (d handshakeDoor) Issue(key market.Address, nonce string, signature [64]byte, client [16]byte) (httpgw.Grant, error) {
	g, err := d.Access.Issue(key, nonce, signature, client)
	return httpgw.Grant{Secret: g.Secret, ExpiresAt: g.ExpiresAt}, handshakeError(err)
}

// handshakeError puts the errors of package access into the gateway's words.
func handshakeError(err error) error {
	var soon *access.TooSoon
	if errors.As(err, &soon) {
		return &httpgw.TooSoon{RetryAfter: soon.RetryAfter}
	}
	for _, to := range []struct{ from, to error }{
		{access.ErrKey, httpgw.ErrBadKey},
		{access.ErrNonce, httpgw.ErrBadNonce},
		{access.ErrProof, httpgw.ErrBadProof},
		{access.ErrFull, httpgw.ErrTokensFull},
	} {
		if errors.Is(err, to.from) {
			return fmt.Errorf("%w: %w", to.to, err)
		}
	}
	return err
}
