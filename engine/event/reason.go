package event

// Reason says why an order, amend, cancel or request was rejected, or why an order ended. The
// numbers are in digests and never change. String returns the code that messages carry.
type Reason uint16

const (
	ReasonNone Reason = 0

	// An order ended.
	ReasonUser         Reason = 1 // its owner cancelled it
	ReasonMassCancel   Reason = 2
	ReasonIOCRemainder Reason = 3 // IOC or market: nothing more to trade with
	ReasonExpired      Reason = 4
	ReasonSelfTrade    Reason = 5 // self-trade prevention
	ReasonFOK          Reason = 6 // a triggered stop that cannot fill completely
	ReasonPostOnly     Reason = 7 // a post-only order would have taken
	ReasonAmendedAway  Reason = 8 // amended to no more than its traded quantity
	ReasonAmend        Reason = 9 // Reduced by its owner
	// A later mass quote replaced, withdrew or refused the quote.
	ReasonQuoteReplaced Reason = 10
	// The protection of the quote set pulled it; also the refusal of a quote until a reset.
	ReasonQuoteProtection Reason = 11

	// A resting order was Reduced because it traded in an auction.
	ReasonAuctionTrade Reason = 12

	// An order, amend or cancel was refused.
	ReasonUnknownInstrument  Reason = 20
	ReasonUnknownOrder       Reason = 21
	ReasonDuplicateOrder     Reason = 22
	ReasonUnknownParticipant Reason = 23
	ReasonInvalidSide        Reason = 24
	ReasonInvalidType        Reason = 25
	ReasonInvalidTIF         Reason = 26
	ReasonInvalidPrice       Reason = 27
	ReasonInvalidQty         Reason = 28
	ReasonInvalidStop        Reason = 29
	ReasonInvalidDisplay     Reason = 30
	ReasonInvalidExpiry      Reason = 31
	ReasonInvalidCombination Reason = 32 // e.g. post-only with IOC
	ReasonFOKUnfillable      Reason = 33
	ReasonNotMatched         Reason = 34 // a mirrored instrument takes no orders
	ReasonHalted             Reason = 35
	ReasonKilled             Reason = 36 // the participant's kill switch is on
	ReasonMaxQty             Reason = 37
	ReasonMaxNotional        Reason = 38
	ReasonMaxOpenOrders      Reason = 39
	ReasonPriceBand          Reason = 40
	ReasonMinQty             Reason = 41
	ReasonMaxPrice           Reason = 42
	ReasonBookFull           Reason = 43 // the instrument's order limit
	ReasonLevelFull          Reason = 44 // the level's quantity would overflow
	ReasonInvalidCommand     Reason = 45

	// Data of a mirrored market was rejected.
	ReasonNotMirrored   Reason = 46 // the instrument has a book of our own
	ReasonStaleSlot     Reason = 47 // the slot is not after the last one
	ReasonOutOfSequence Reason = 48 // the trade does not have the next ordinal

	// An order was refused: less than its minimum can trade at once.
	ReasonMinQtyUnfillable Reason = 49

	// A quote was refused.
	ReasonInvalidSpread Reason = 50 // the bid is not below the offer
	ReasonQuoteSets     Reason = 51 // too many sets, or instruments in a set

	// An order was refused because another one of its list was.
	ReasonListRefused Reason = 52

	// An order or amend does not fit an auction: it cannot gather, or the auction is uncrossing.
	ReasonAuction Reason = 53

	// A request to the desk was refused (engine/rfq).
	ReasonUnknownTicket     Reason = 60
	ReasonUnknownTranche    Reason = 61
	ReasonTicketWithdrawn   Reason = 62
	ReasonTicketExpired     Reason = 63
	ReasonCapacityExhausted Reason = 64
	ReasonInventory         Reason = 65
	ReasonLocked            Reason = 66
	ReasonPriceCorridor     Reason = 67
	ReasonPriceStale        Reason = 68
	ReasonPriceUnavailable  Reason = 69
	ReasonRailNotAccepted   Reason = 70
	ReasonQuoteExpired      Reason = 71 // or unknown, or used
	ReasonQuoteMismatch     Reason = 72
	ReasonWalletClaims      Reason = 73 // the wallet has too many reserved claims
	ReasonDeskFull          Reason = 74 // a limit of the desk's memory is reached
	ReasonUnknownClaim      Reason = 75
	ReasonClaimState        Reason = 76 // the claim is not in a state that allows it
	ReasonPaymentUsed       Reason = 77
	ReasonUnknownPair       Reason = 78
	ReasonUnknownOperator   Reason = 79
	ReasonPaymentMismatch   Reason = 80 // too small, or over another rail
	ReasonLatePayment       Reason = 81 // the claim can no longer be served
	ReasonUnknownPayment    Reason = 82
	ReasonUndeliverable     Reason = 83 // paid, but can never be delivered
	ReasonSurplus           Reason = 84 // the payment was too large: the surplus is due for refund
	ReasonUnprovenLimit     Reason = 85 // unproven claims of the client address hold too much
	ReasonUnprovenShare     Reason = 86 // unproven claims hold their share of the tranche
)

var reasonWords = map[Reason]string{
	ReasonNone: "none", ReasonUser: "user", ReasonMassCancel: "mass_cancel",
	ReasonIOCRemainder: "ioc_remainder", ReasonExpired: "expired",
	ReasonSelfTrade: "self_trade", ReasonFOK: "fok_unfillable",
	ReasonPostOnly: "post_only_would_take", ReasonAmendedAway: "amended_away",
	ReasonAmend:             "amend",
	ReasonUnknownInstrument: "unknown_instrument", ReasonUnknownOrder: "unknown_order",
	ReasonDuplicateOrder: "duplicate_order", ReasonUnknownParticipant: "unknown_participant",
	ReasonInvalidSide: "invalid_side", ReasonInvalidType: "invalid_type",
	ReasonInvalidTIF: "invalid_tif", ReasonInvalidPrice: "invalid_price",
	ReasonInvalidQty: "invalid_qty", ReasonInvalidStop: "invalid_stop",
	ReasonInvalidDisplay: "invalid_display", ReasonInvalidExpiry: "invalid_expiry",
	ReasonInvalidCombination: "invalid_combination", ReasonFOKUnfillable: "fok_unfillable",
	ReasonNotMatched: "not_matched", ReasonHalted: "halted", ReasonKilled: "killed",
	ReasonMaxQty: "max_qty", ReasonMaxNotional: "max_notional",
	ReasonMaxOpenOrders: "max_open_orders", ReasonPriceBand: "price_band",
	ReasonMinQty: "min_qty", ReasonMaxPrice: "max_price", ReasonBookFull: "book_full",
	ReasonLevelFull: "level_full", ReasonInvalidCommand: "invalid_command",
	ReasonMinQtyUnfillable: "min_qty_unfillable",
	ReasonQuoteReplaced:    "quote_replaced", ReasonQuoteProtection: "quote_protection",
	ReasonListRefused:   "list_refused",
	ReasonInvalidSpread: "invalid_spread", ReasonQuoteSets: "quote_sets",
	ReasonAuctionTrade: "auction_trade", ReasonAuction: "auction",
	ReasonNotMirrored: "not_mirrored", ReasonStaleSlot: "stale_slot", ReasonOutOfSequence: "out_of_turn",
	ReasonUnknownTicket: "unknown_ticket", ReasonUnknownTranche: "unknown_tranche",
	ReasonTicketWithdrawn: "ticket_withdrawn", ReasonTicketExpired: "ticket_expired",
	ReasonCapacityExhausted: "capacity_exhausted", ReasonInventory: "inventory", ReasonLocked: "locked",
	ReasonPriceCorridor: "price_corridor", ReasonPriceStale: "price_stale",
	ReasonPriceUnavailable: "price_unavailable", ReasonRailNotAccepted: "rail_not_accepted",
	ReasonQuoteExpired: "quote_expired", ReasonQuoteMismatch: "quote_mismatch",
	ReasonWalletClaims: "wallet_claims", ReasonDeskFull: "desk_full", ReasonUnknownClaim: "unknown_claim",
	ReasonClaimState: "claim_state", ReasonPaymentUsed: "payment_used", ReasonUnknownPair: "unknown_pair",
	ReasonUnknownOperator: "unknown_operator", ReasonPaymentMismatch: "payment_mismatch",
	ReasonLatePayment: "late_payment", ReasonUnknownPayment: "unknown_payment",
	ReasonUndeliverable: "undeliverable", ReasonSurplus: "surplus",
	ReasonUnprovenLimit: "unproven_limit", ReasonUnprovenShare: "unproven_share",
}

// String returns the code of r.
func (r Reason) String() string {
	if w, ok := reasonWords[r]; ok {
		return w
	}
	return "unknown"
}
