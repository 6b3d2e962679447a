package rfq

import "blockdesk/market"

// The encodings of the entities in event records, snapshots and requests. The order of the
// fields is on disk and never changes. The fields of version 2 follow those of version 1.

func (p *Policy) walk(w *codec) {
	w.i64(&p.QuoteTTL)
	w.i64(&p.ClaimTTL)
	w.i64(&p.LateWindow)
	u16(w, &p.FeeBps)
	for i := range p.Discounts {
		u16(w, &p.Discounts[i])
	}
	u16(w, &p.WalletClaims)
	w.address(&p.USDCMint)
	for i := range p.PayTo[1:] {
		w.address(&p.PayTo[1+i])
	}
	if !w.v2 {
		return
	}
	u8(w, &p.Rules)
	w.i64(&p.Grace)
	w.i64(&p.UnprovenTTL)
	u64(w, &p.UnprovenPerClient)
	u16(w, &p.UnprovenShareBps)
	for i := range p.Dust[1:] {
		u64(w, &p.Dust[1+i])
	}
}

func (p *Policy) usesV2() bool {
	return p.Rules != 0 || p.Grace != 0 || p.UnprovenTTL != 0 || p.UnprovenPerClient != 0 || p.UnprovenShareBps != 0 ||
		p.Dust != [market.RailCount]uint64{}
}

func (p *Pair) walk(w *codec) {
	p.walkRules(w)
	u64(w, &p.Anchor)
	w.i64(&p.AnchorAt)
	u64(w, &p.Inventory)
	u64(w, &p.Reserved)
	u64(w, &p.Sold)
	if !w.v2 {
		return
	}
	u8(w, &p.AnchorSource)
	u64(w, &p.Confidence)
	w.i64(&p.PublishedAt)
	w.flag(&p.Withdrawn)
	u64(w, &p.OnChain)
	w.i64(&p.OnChainAt)
}

func (p *Pair) usesV2() bool {
	return p.hasFirmBps() || p.AnchorSource != 0 || p.Confidence != 0 || p.PublishedAt != 0 || p.Withdrawn ||
		p.OnChain != 0 || p.OnChainAt != 0
}

func (p *Pair) hasFirmBps() bool { return p.FirmBps != [market.RailCount]uint16{} }

// walkRules has the fields that SetPair carries.
func (p *Pair) walkRules(w *codec) {
	u16(w, &p.Instrument)
	w.address(&p.BaseMint)
	u8(w, &p.BaseDecimals)
	u8(w, &p.Rails)
	u8(w, &p.Source)
	u16(w, &p.CorridorBps)
	w.i64(&p.MaxAge)
	u16(w, &p.Via)
	if !w.v2 {
		return
	}
	for i := range p.FirmBps[1:] {
		u16(w, &p.FirmBps[1+i])
	}
}

func (p *RailPrice) walk(w *codec) {
	u8(w, &p.Rail)
	u64(w, &p.Price)
	w.i64(&p.At)
	w.i64(&p.MaxAge)
	if !w.v2 {
		return
	}
	u8(w, &p.Source)
	u64(w, &p.Confidence)
	w.i64(&p.PublishedAt)
	w.flag(&p.Withdrawn)
}

func (p *RailPrice) usesV2() bool {
	return p.Source != 0 || p.Confidence != 0 || p.PublishedAt != 0 || p.Withdrawn
}

func (l *Lock) walk(w *codec) {
	u8(w, &l.Scope)
	u16(w, &l.Instrument)
	u8(w, &l.Rail)
	w.flag(&l.Locked)
	w.i64(&l.Since)
	u16(w, &l.By)
	w.text(&l.Reason)
}

func (o *Operator) walk(w *codec) {
	u16(w, &o.ID)
	w.text(&o.Name)
}

// walk leaves out the tranches, which are records of their own.
func (t *Ticket) walk(w *codec) {
	u64(w, &t.ID)
	w.text(&t.Label)
	u16(w, &t.Instrument)
	u8(w, &t.Rails)
	u8(w, &t.State)
	u16(w, &t.Priority)
	u64(w, &t.Reference)
	w.i64(&t.CreatedAt)
	w.i64(&t.UpdatedAt)
	w.i64(&t.ExpiresAt)
	u64(w, &t.Seq)
	u16(w, &t.By)
}

func (t *Tranche) walk(w *codec) {
	u16(w, &t.ID)
	u64(w, &t.Capacity)
	u64(w, &t.Reserved)
	u64(w, &t.Filled)
}

func (t *Terms) walk(w *codec) {
	u64(w, &t.Ticket)
	u16(w, &t.Tranche)
	u16(w, &t.Instrument)
	u8(w, &t.Fill)
	u8(w, &t.Rail)
	u16(w, &t.DiscountBps)
	u16(w, &t.FeeBps)
	u64(w, &t.Reference)
	u64(w, &t.Price)
	u64(w, &t.Base)
	u64(w, &t.Payment)
	w.address(&t.PayTo)
	if w.v2 {
		u64(w, &t.Market)
		u64(w, &t.RailPrice)
	}
}

func (t *Terms) usesV2() bool { return t.Market != 0 || t.RailPrice != 0 }

func (q *Quote) walk(w *codec) {
	u64(w, &q.ID)
	q.Terms.walk(w)
	w.i64(&q.IssuedAt)
	w.i64(&q.ValidUntil)
	if w.v2 {
		w.flag(&q.Indicative)
	}
}

func (q *Quote) usesV2() bool { return q.Indicative || q.Terms.usesV2() }

func (c *Claim) walk(w *codec) {
	u64(w, &c.ID)
	u64(w, &c.Quote)
	u8(w, &c.Mode)
	u8(w, &c.State)
	c.Terms.walk(w)
	w.address(&c.Wallet)
	u16(w, &c.Participant)
	w.i64(&c.ReservedAt)
	w.i64(&c.Deadline)
	w.i64(&c.ChangedAt)
	u64(w, &c.Paid)
	w.bytes(c.Proof[:])
	if w.v2 {
		u64(w, &c.Client)
		w.flag(&c.Proven)
	}
}

func (c *Claim) usesV2() bool { return c.Client != 0 || c.Proven || c.Terms.usesV2() }

func (p *Payment) walk(w *codec) {
	w.bytes(p.Signature[:])
	u64(w, &p.Claim)
	u8(w, &p.Rail)
	u8(w, &p.State)
	u16(w, &p.Reason)
	u64(w, &p.Amount)
	w.address(&p.Payer)
	u64(w, &p.Slot)
	w.i64(&p.At)
	w.bytes(p.Proof[:])
	if w.v2 {
		u64(w, &p.Applied)
		u64(w, &p.Due)
		w.i64(&p.BlockTime)
	}
}

func (p *Payment) usesV2() bool { return p.Applied != 0 || p.Due != 0 || p.BlockTime != 0 }
