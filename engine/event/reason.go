package event

// Reason says why an order, amend or cancel was refused, or why an order ended.
// The numbers are in digests: frozen. String gives the machine word that the
// surfaces carry.
type Reason uint16

const (
	ReasonNone Reason = 0

	// An order ended.
	ReasonUser         Reason = 1 // its owner cancelled it
	ReasonMassCancel   Reason = 2
	ReasonIOCRemainder Reason = 3 // IOC or market: nothing more to trade with
	ReasonExpired      Reason = 4
	ReasonSelfTrade    Reason = 5 // self-trade prevention
	ReasonFOK          Reason = 6 // a triggered stop that cannot fill whole
	ReasonPostOnly     Reason = 7 // a post-only order would have taken
	ReasonAmendedAway  Reason = 8 // amended to or below what has traded
	ReasonAmend        Reason = 9 // Reduced by its owner

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
}

// String returns the machine word of r.
func (r Reason) String() string {
	if w, ok := reasonWords[r]; ok {
		return w
	}
	return "reason?"
}
