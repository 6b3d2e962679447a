package persist

import (
	"strconv"

	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// appendPieceJSON ends the line of a command that carries a piece. request is the
// request that it completes. incomplete says that an earlier piece is missing: it was
// dropped, or is before the journal's first command.
func appendPieceJSON(dst []byte, c *engine.Command, request []byte, incomplete bool) []byte {
	o := object{dst}
	o.number("piece", uint64(c.Order.Side))
	o.number("bytes", uint64(c.Status))
	if incomplete {
		o.boolean("torn", true)
	}
	if c.Kind == engine.Desk || c.Kind == engine.QuoteMass || c.Kind == engine.OrderList {
		o.present("participant", uint64(c.Order.Participant))
		o.present("origin", uint64(c.Origin))
	}
	switch {
	case request == nil:
	case c.Kind == engine.MirrorRefresh:
		o.name("refresh")
		o.dst = appendRefresh(o.dst, request)
	case c.Kind == engine.QuoteMass:
		o.name("quotes")
		o.dst = appendMassQuote(o.dst, request)
	case c.Kind == engine.OrderList:
		o.name("list")
		o.dst = appendOrderList(o.dst, request)
	default:
		o.name("request")
		o.dst = appendRequest(o.dst, request)
	}
	return append(o.dst, '}', '\n')
}

// appendRequest writes a request to the desk as readable JSON: ids as in the API,
// dollars as decimals, addresses and signatures in base58, keys and hashes in hex,
// times in RFC 3339. Unset fields are left out. Bytes that are not a request are
// written in hex.
func appendRequest(dst, data []byte) []byte {
	r, err := rfq.DecodeRequest(data)
	if err != nil {
		return appendHex(dst, data)
	}
	o := object{append(dst, `{"kind":"`...)}
	o.dst = append(append(o.dst, requestName(r.Kind())...), '"')
	head := r.Head()
	o.number("token", head.RequestID)
	o.present("operator", uint64(head.Operator))
	if head.Key != (rfq.IdempotencyKey{}) {
		o.hex("key", head.Key.ID[:])
		o.hex("body", head.Key.Body[:])
	}
	o.text("ref", head.Ref)
	o.request(r)
	return append(o.dst, '}')
}

// requestName returns the name of a kind of request.
func requestName(k rfq.RequestKind) string {
	names := [...]string{
		rfq.KindSetPolicy: "set_policy", rfq.KindSetPair: "set_pair", rfq.KindSetOperator: "set_operator",
		rfq.KindSetAnchor: "set_anchor", rfq.KindSetRailPrice: "set_rail_price", rfq.KindSetInventory: "set_inventory",
		rfq.KindSetLock: "set_lock", rfq.KindPostTicket: "post_ticket", rfq.KindAmendTicket: "amend_ticket",
		rfq.KindSetTranche: "set_tranche", rfq.KindWithdrawTicket: "withdraw_ticket", rfq.KindRequestQuote: "request_quote",
		rfq.KindTakeClaim: "take_claim", rfq.KindProvePayment: "prove_payment", rfq.KindBeginDelivery: "begin_delivery",
		rfq.KindExpireDelivery: "lapse_delivery", rfq.KindSettleClaim: "settle_claim", rfq.KindCosignClaim: "cosign_claim",
		rfq.KindReleaseClaim: "release_claim", rfq.KindRefundPayment: "refund_payment",
		rfq.KindAbandonDelivery: "abandon_delivery", rfq.KindSetFirstTicket: "number_tickets",
		rfq.KindSeePayment: "see_payment", rfq.KindReleaseUnbuilt: "release_unbuilt", rfq.KindBeginRefund: "begin_refund",
		rfq.KindExpireRefund: "expire_refund", rfq.KindSetBalance: "set_balance",
	}
	return names[k]
}

func (o *object) request(r rfq.Request) {
	switch r := r.(type) {
	case *rfq.SetPolicy:
		o.policy(&r.Policy)
	case *rfq.SetPair:
		o.pair(&r.Pair)
	case *rfq.SetOperator:
		o.number("id", uint64(r.Of.ID))
		o.text("name", r.Of.Name)
	case *rfq.SetAnchor:
		o.number("instrument", uint64(r.Instrument))
		o.price("price_usd", r.Price)
		o.origin(r.Source, r.Confidence, r.PublishedAt, r.Withdrawn)
	case *rfq.SetRailPrice:
		o.rail("rail", r.Rail)
		o.price("price_usd", r.Price)
		o.duration("max_age", r.MaxAge)
		o.origin(r.Source, r.Confidence, r.PublishedAt, r.Withdrawn)
	case *rfq.SetInventory:
		o.number("instrument", uint64(r.Instrument))
		o.atoms("atoms", r.Atoms)
	case *rfq.SetBalance:
		o.number("instrument", uint64(r.Instrument))
		o.atoms("atoms", r.Atoms)
		o.number("slot", r.Slot)
	case *rfq.SetLock:
		o.lock(r)
	case *rfq.PostTicket:
		o.post(r)
	case *rfq.AmendTicket:
		o.ticket(r.Ticket)
		o.rails("rails", r.Rails)
		o.number("priority", uint64(r.Priority))
		o.price("reference_usd", r.Reference)
		o.time("expires_at", r.ExpiresAt)
	case *rfq.SetTranche:
		o.tranche(r.Ticket, r.Tranche)
		o.usd("capacity_usd", r.Capacity)
	case *rfq.WithdrawTicket:
		o.ticket(r.Ticket)
	case *rfq.RequestQuote:
		o.tranche(r.Ticket, r.Tranche)
		o.fill(r.Fill)
		o.rail("rail", r.Rail)
	case *rfq.TakeClaim:
		o.take(r)
	default:
		o.claimRequest(r)
	}
}

// claimRequest writes the requests about an existing claim and its money.
func (o *object) claimRequest(r rfq.Request) {
	switch r := r.(type) {
	case *rfq.ProvePayment:
		o.claim(r.Claim)
		o.rail("rail", r.Rail)
		o.base58("signature", r.Signature[:])
		o.base58("payer", r.Payer[:])
		o.atoms("amount_atoms", r.Amount)
		o.number("slot", r.Slot)
		o.signed("block_time", r.BlockTime)
	case *rfq.BeginDelivery:
		o.claim(r.Claim)
		o.hex("proof", r.Proof[:])
	case *rfq.ExpireDelivery:
		o.claim(r.Claim)
		o.hex("proof", r.Proof[:])
	case *rfq.SettleClaim:
		o.claim(r.Claim)
		o.hex("proof", r.Proof[:])
	case *rfq.CosignClaim:
		o.claim(r.Claim)
		o.hex("proof", r.Proof[:])
	case *rfq.ReleaseClaim:
		o.claim(r.Claim)
	case *rfq.SeePayment:
		o.claim(r.Claim)
	case *rfq.ReleaseUnbuilt:
		o.claim(r.Claim)
	case *rfq.AbandonDelivery:
		o.claim(r.Claim)
		if r.Reason != 0 {
			o.text("reason", r.Reason.String())
		}
	case *rfq.SetFirstTicket:
		o.name("first")
		o.dst = append(market.AppendTicketID(append(o.dst, '"'), r.First), '"')
	case *rfq.RefundPayment:
		o.refund(&r.Signature, &r.Proof)
	case *rfq.BeginRefund:
		o.refund(&r.Signature, &r.Proof)
	case *rfq.ExpireRefund:
		o.refund(&r.Signature, &r.Proof)
	}
}

func (o *object) refund(signature *[64]byte, proof *[32]byte) {
	o.base58("signature", signature[:])
	o.hex("proof", proof[:])
}

// origin writes where a price comes from.
func (o *object) origin(source rfq.PriceOrigin, confidence market.USDPrice, publishedAt int64, withdrawn bool) {
	if source != rfq.OriginUnknown {
		o.text("source", source.Word())
	}
	o.price("confidence_usd", confidence)
	o.time("published_at", publishedAt)
	if withdrawn {
		o.boolean("withdrawn", true)
	}
}

func (o *object) policy(p *rfq.Policy) {
	o.duration("quote_ttl", p.QuoteTTL)
	o.duration("claim_ttl", p.ClaimTTL)
	o.duration("late_window", p.LateWindow)
	o.number("fee_bps", uint64(p.FeeBps))
	o.name("discounts_bps")
	for i, bps := range p.Discounts {
		o.dst = strconv.AppendUint(append(o.dst, "[,"[min(i, 1)]), uint64(bps), 10)
	}
	o.dst = append(o.dst, ']')
	o.number("wallet_claims", uint64(p.WalletClaims))
	o.address("usdc_mint", p.USDCMint)
	for r := market.RailUSDC; r < market.RailCount; r++ {
		o.address("pay_to_"+r.String(), p.PayTo[r])
	}
	if p.Rules == 0 {
		return
	}
	o.number("rules", uint64(p.Rules))
	o.duration("grace", p.Grace)
	o.duration("unproven_ttl", p.UnprovenTTL)
	o.usd("unproven_per_client_usd", p.UnprovenPerClient)
	o.number("unproven_share_bps", uint64(p.UnprovenShareBps))
	for r := market.RailUSDC; r < market.RailCount; r++ {
		o.atoms("dust_"+r.String(), p.Dust[r])
	}
}

func (o *object) pair(p *rfq.Pair) {
	o.number("instrument", uint64(p.Instrument))
	o.address("base_mint", p.BaseMint)
	o.number("base_decimals", uint64(p.BaseDecimals))
	o.rails("rails", p.Rails)
	o.word("source", uint64(p.Source), map[uint64]string{uint64(rfq.SourceOperator): "operator", uint64(rfq.SourceBook): "book"})
	o.number("corridor_bps", uint64(p.CorridorBps))
	o.duration("max_age", p.MaxAge)
	if p.Via != rfq.NoInstrument {
		o.number("via", uint64(p.Via))
	}
	for r := market.RailUSDC; r < market.RailCount; r++ {
		if p.FirmBps[r] != 0 {
			o.number("firm_bps_"+r.String(), uint64(p.FirmBps[r]))
		}
	}
}

func (o *object) lock(r *rfq.SetLock) {
	o.word("scope", uint64(r.Scope), map[uint64]string{
		uint64(rfq.LockAll): "all", uint64(rfq.LockPair): "pair", uint64(rfq.LockRail): "rail",
		uint64(rfq.LockDeliveries): "deliveries", uint64(rfq.LockClock): "clock",
	})
	switch r.Scope {
	case rfq.LockPair:
		o.number("instrument", uint64(r.Instrument))
	case rfq.LockRail:
		o.rail("rail", r.Rail)
	}
	o.boolean("locked", r.Locked)
	o.text("reason", r.Reason)
}

func (o *object) post(r *rfq.PostTicket) {
	o.text("label", r.Label)
	o.number("instrument", uint64(r.Instrument))
	o.rails("rails", r.Rails)
	o.number("priority", uint64(r.Priority))
	o.price("reference_usd", r.Reference)
	o.time("expires_at", r.ExpiresAt)
	o.name("capacities_usd")
	o.dst = append(o.dst, '[')
	for i, c := range r.Capacities {
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		o.decimal(uint64(c), market.USDDecimals)
	}
	o.dst = append(o.dst, ']')
}

func (o *object) take(r *rfq.TakeClaim) {
	o.tranche(r.Ticket, r.Tranche)
	o.fill(r.Fill)
	o.rail("rail", r.Rail)
	o.word("way", uint64(r.Mode), map[uint64]string{uint64(rfq.Modular): "modular", uint64(rfq.Atomic): "atomic"})
	if r.Quote != 0 {
		o.name("quote_id")
		o.dst = append(market.AppendQuoteID(append(o.dst, '"'), r.Quote), '"')
	}
	o.address("wallet", r.Wallet)
	o.present("participant", uint64(r.Participant))
	o.present("client", uint64(r.Client))
	if r.Proven {
		o.boolean("proven", true)
	}
}
