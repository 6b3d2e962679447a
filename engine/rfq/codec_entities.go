package rfq

// The encodings of the entities in event records, snapshots and requests. The order of the
// fields is on disk and never changes.

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
}

func (p *Pair) walk(w *codec) {
	p.walkRules(w)
	u64(w, &p.Anchor)
	w.i64(&p.AnchorAt)
	u64(w, &p.Inventory)
	u64(w, &p.Reserved)
	u64(w, &p.Sold)
}

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
}

func (p *RailPrice) walk(w *codec) {
	u8(w, &p.Rail)
	u64(w, &p.Price)
	w.i64(&p.At)
	w.i64(&p.MaxAge)
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
}

func (q *Quote) walk(w *codec) {
	u64(w, &q.ID)
	q.Terms.walk(w)
	w.i64(&q.IssuedAt)
	w.i64(&q.ValidUntil)
}

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
}

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
}
