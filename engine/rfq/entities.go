package rfq

import (
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Limits (our choice). A request beyond one is refused with ReasonDeskFull and the
// limit, unless another reason is named.
const (
	MaxTickets  = 4096    // remembered
	MaxTranches = 32      // of a ticket
	MaxQuotes   = 1 << 16 // live
	// MaxClaims bounds the remembered claims, live and ended. At the limit a new claim
	// replaces the ended claim without payments that ended first. If the ended claims with
	// payments are more than a quarter of MaxClaims, it replaces the first of those
	// instead, but never one with a refund due. If there is nothing to replace, the new
	// claim is refused. So claims without payments, which cost nothing to make, never
	// evict payments; and because MaxRefunds is half, a quarter always remains for new
	// claims.
	MaxClaims = 1 << 18
	// MaxPayments bounds the remembered payments. At the limit the claim with payments that
	// ended first is forgotten, with its payments, but never one with a refund due. So a
	// payment is known as long as its claim is.
	MaxPayments = 1 << 18
	// MaxRefunds bounds the payments that are due for refund. They are never forgotten, and
	// anyone can cause them at almost no cost, so half of the memory is kept for payments
	// that pay their claim.
	MaxRefunds   = MaxPayments / 2
	MaxOperators = 256
	MaxText      = 40 // bytes of a label, a reason, an operator's name

	// MaxCapacity bounds a tranche: a trillion dollars. Beyond it: ReasonInvalidQty.
	MaxCapacity market.USD = 1_000_000_000_000_000_000

	// TicketRetention is how long an ended ticket is shown after its last change. A
	// ticket that reserves something stays longer.
	TicketRetention = day // nanoseconds
)

// NoInstrument in Pair.Via means that the quote asset is worth a dollar.
const NoInstrument market.InstrumentID = 1<<16 - 1

// Policy applies to all pairs. Times are in nanoseconds.
type Policy struct {
	QuoteTTL   int64 // 1 s..1 h
	ClaimTTL   int64 // 1 s..24 h
	LateWindow int64 // how long after its deadline an expired claim may still be paid, 0..30 days
	FeeBps     uint16
	// Discounts are in basis points, by FillUSD-1; below MaxBps.
	Discounts [market.FillCount]uint16
	// WalletClaims is the most reserved claims of one wallet, 1..65535.
	WalletClaims uint16
	USDCMint     market.Address
	PayTo        [market.RailCount]market.Address // by Rail; zero = not configured

	// Rules selects the rules: 0 = those of version 0.1.0, and the fields below are zero;
	// RulesGuarded = those of the package documentation. Journals of 0.1.0 have 0, so that
	// they replay to the same records.
	Rules uint8
	// Grace is how long a modular claim holds its capacity after its deadline, because a
	// payment of the last moment needs this long to be final: 0..1 h.
	Grace int64
	// UnprovenTTL is the ClaimTTL of an unproven claim until SeePayment, if it is shorter:
	// 1 s..24 h.
	UnprovenTTL int64
	// UnprovenPerClient is the most that reserved unproven claims of one client address may
	// hold together: 0..MaxCapacity.
	UnprovenPerClient market.USD
	// UnprovenShareBps is the share of a tranche and of a pair's inventory, less what proven
	// claims have of them, that all reserved unproven claims may hold together: 0..MaxBps.
	UnprovenShareBps uint16
	// Dust is the largest surplus of a payment that the desk keeps, in atoms by Rail.
	Dust [market.RailCount]uint64
}

// RulesGuarded in Policy.Rules: deliveries are guarded, payments are judged by block time, a
// surplus is due for refund, and unproven claims have limits of their own.
const RulesGuarded uint8 = 2

// PriceSource says where the reference price of a pair comes from.
type PriceSource uint8

const (
	// SourceOperator: the anchor itself.
	SourceOperator PriceSource = 1
	// SourceBook: the mid price of our order book, rounded up, which must lie within
	// the corridor around the anchor.
	SourceBook PriceSource = 2
)

// PriceOrigin says where an anchor or the price of a rail's asset was read. The numbers are on
// disk and never change.
type PriceOrigin uint8

const (
	OriginUnknown  PriceOrigin = 0 // set by version 0.1.0: typed by an operator
	OriginPyth     PriceOrigin = 1 // a price update account on the chain
	OriginPool     PriceOrigin = 2 // time-weighted price of a mirrored pool
	OriginOperator PriceOrigin = 3 // typed by an operator
)

// Word returns the name of the origin in public documents and messages.
func (o PriceOrigin) Word() string {
	switch o {
	case OriginPyth:
		return "pyth"
	case OriginPool:
		return "pool"
	case OriginUnknown, OriginOperator:
		return "operator"
	}
	return "unknown"
}

// Pair says how an instrument is sold.
type Pair struct {
	Instrument   market.InstrumentID
	BaseMint     market.Address
	BaseDecimals uint8 // atoms of the base asset, 0..12
	Rails        market.Rails
	Source       PriceSource
	CorridorBps  uint16              // 1..MaxBps-1; the reference price must lie within anchor × (1 ± corridor)
	MaxAge       int64               // ns; an older anchor is stale; 0 = any age
	Via          market.InstrumentID // pair whose reference price converts this book's quote asset into dollars, or NoInstrument

	Anchor   market.USDPrice // 0 = none: nothing is priced
	AnchorAt int64

	// Inventory is the atoms that the desk may sell in total: free + Reserved + Sold, or
	// less after it was lowered.
	Inventory, Reserved, Sold uint64

	// FirmBps, by Rail, is how far the reference price may move against the desk before a
	// delivery is refused: 0..MaxBps. An anchor that moves further ends the quotes.
	FirmBps [market.RailCount]uint16

	AnchorSource PriceOrigin
	Confidence   market.USDPrice // half width of the anchor's confidence interval; 0 = unknown
	PublishedAt  int64           // when the source published the anchor; 0 = unknown. Its age is counted from here, or from AnchorAt
	Withdrawn    bool            // the sources gave no price when they were last read; then Anchor is 0

	// OnChain is the atoms of the base asset that the desk held on the chain when SetBalance
	// read them, at OnChainAt, less what was sold since. OnChainAt 0 = never read: no bound.
	OnChain   uint64
	OnChainAt int64
}

// RailPrice is the dollar price of a rail's asset. USDC has none: its price is 1.
type RailPrice struct {
	Rail   market.Rail
	Price  market.USDPrice // 0 = withdrawn
	At     int64
	MaxAge int64 // ns; 0 = any age

	// As in Pair.
	Source      PriceOrigin
	Confidence  market.USDPrice
	PublishedAt int64
	Withdrawn   bool
}

// LockScope says what a lock applies to.
type LockScope uint8

const (
	LockAll  LockScope = 1
	LockPair LockScope = 2 // Lock.Instrument
	LockRail LockScope = 3 // Lock.Rail
	// LockDeliveries refuses deliveries and countersignatures, of all pairs and rails, and
	// nothing else.
	LockDeliveries LockScope = 4
	// LockClock is LockAll as the service sets it while it does not trust its clock. It is
	// a lock of its own, so that an operator's lock of everything and the service's cannot
	// lift each other.
	LockClock LockScope = 5
)

// Lock refuses new quotes, claims and countersignatures. It does not affect claims that are
// reserved or paid, unless its scope is LockDeliveries.
type Lock struct {
	Scope      LockScope
	Instrument market.InstrumentID
	Rail       market.Rail
	Locked     bool
	Since      int64
	By         market.OperatorID
	Reason     string // 0..MaxText bytes of printable ASCII
}

// Operator is a person or program that may command the desk.
type Operator struct {
	ID   market.OperatorID
	Name string // 1..MaxText bytes of printable ASCII
}

// TicketState is the state of a ticket: see the package documentation. The numbers are on disk
// and never change.
type TicketState uint8

const (
	TicketOpen      TicketState = 1
	TicketExhausted TicketState = 2 // no tranche has capacity for the smallest fill
	TicketWithdrawn TicketState = 3
	TicketExpired   TicketState = 4
)

// Ticket is an offer, in tranches.
type Ticket struct {
	ID         market.TicketID
	Label      string // 1..MaxText bytes of printable ASCII
	Instrument market.InstrumentID
	Rails      market.Rails
	State      TicketState
	Priority   uint16          // a lower number sells first
	Reference  market.USDPrice // overrides that of the pair; 0 = the pair's
	CreatedAt  int64
	UpdatedAt  int64
	ExpiresAt  int64 // 0 = never
	Seq        uint64
	By         market.OperatorID
	Tranches   []Tranche // by ID, from 1, without gaps
}

// Tranche is a part of a ticket. Capacity = Available + Reserved + Filled.
type Tranche struct {
	ID                         market.TrancheID
	Capacity, Reserved, Filled market.USD
}

// Available returns the capacity that is neither reserved nor filled.
func (t *Tranche) Available() market.USD { return t.Capacity - t.Reserved - t.Filled }

// Terms are the price and the conditions that a client was granted.
type Terms struct {
	Ticket      market.TicketID
	Tranche     market.TrancheID
	Instrument  market.InstrumentID
	Fill        market.FillUSD
	Rail        market.Rail
	DiscountBps uint16
	FeeBps      uint16          // of the payment, which includes it
	Reference   market.USDPrice // before the discount
	Price       market.USDPrice // after it, rounded up
	Base        uint64          // atoms the client gets, rounded down
	Payment     uint64          // atoms of the rail's asset the client pays, rounded up
	PayTo       market.Address

	// Market is the pair's own reference price at pricing, which Reference is too unless the
	// ticket overrides it. RailPrice is the dollar price of the rail's asset then. Both are 0
	// in terms made under the rules of 0.1.0.
	Market    market.USDPrice
	RailPrice market.USDPrice
}

// guarded reports whether the terms were made under RulesGuarded.
func (t *Terms) guarded() bool { return t.Market != 0 }

// Quote is a price for one claim: firm, or indicative if no claim could be taken when it
// was issued, because the chain was unavailable.
type Quote struct {
	ID         market.QuoteID
	Terms      Terms
	IssuedAt   int64
	ValidUntil int64
	Indicative bool
}

// SettlementMode says how a claim is settled.
type SettlementMode uint8

const (
	Modular SettlementMode = 1 // the client pays, proves it, and gets the delivery
	Atomic  SettlementMode = 2 // both legs are one transaction
)

// ClaimState is the state of a claim: see the package documentation. The numbers are on
// disk and never change.
type ClaimState uint8

const (
	ClaimReserved   ClaimState = 1
	ClaimPaid       ClaimState = 2
	ClaimDelivering ClaimState = 3
	ClaimSettled    ClaimState = 4
	ClaimExpired    ClaimState = 5
	ClaimCosigned   ClaimState = 6
	ClaimReleased   ClaimState = 7
	ClaimRefundDue  ClaimState = 8
)

var claimWords = [...]string{
	"unknown", "reserved", "paid", "delivering", "settled", "expired", "cosigned", "released", "refund_due",
}

// Word returns the name of the state in public documents and messages.
func (s ClaimState) Word() string {
	if int(s) >= len(claimWords) {
		s = 0
	}
	return claimWords[s]
}

// ClientAddress is where an unproven claim comes from: an IPv4 address as
// 0x0000ffff_xxxxxxxx, the upper 64 bits of an IPv6 address, or 0xffff<<48 | id of a FIX
// participant. 0 = unknown; all unknown clients count as one.
type ClientAddress uint64

// Claim is a fill of a tranche for a wallet.
type Claim struct {
	ID          market.ClaimID
	Quote       market.QuoteID // that its terms come from; 0 = none
	Mode        SettlementMode
	State       ClaimState
	Terms       Terms
	Wallet      market.Address
	Participant market.ParticipantID // over FIX; 0 = none
	ReservedAt  int64
	Deadline    int64 // of the payment, or of an atomic claim's reservation
	ChangedAt   int64
	Paid        uint64   // atoms applied to it; 0, or at least Terms.Payment
	Proof       [32]byte // of the last step: hash of the message (cosigned, released), of the delivery (delivering), of what settled it

	// Client is where the claim comes from. Proven: its wallet has shown that it takes part.
	Client ClientAddress
	Proven bool
}

// PaymentState says what became of a payment.
type PaymentState uint8

const (
	PaymentApplied   PaymentState = 1 // pays its claim
	PaymentRefundDue PaymentState = 2 // the operator must refund it
	PaymentRefunded  PaymentState = 3
	PaymentRefunding PaymentState = 4 // a signed refund may land; Proof is its message hash
)

// Pending reports whether the payment, or its surplus, is still to be paid back.
func (s PaymentState) Pending() bool { return s == PaymentRefundDue || s == PaymentRefunding }

// Payment is a proved transfer to the desk. A signature is at most one payment.
type Payment struct {
	Signature [64]byte
	Claim     market.ClaimID
	Rail      market.Rail
	State     PaymentState
	Reason    event.Reason // of the refund
	Amount    uint64       // atoms that arrived
	Payer     market.Address
	Slot      uint64
	At        int64
	Proof     [32]byte // of the refund

	// Applied is the atoms that pay the claim, Due those of the last refund, whatever its
	// state; what remains of Amount was refunded before. All three are 0 in a payment that
	// was recorded under the rules of 0.1.0: see AppliedAtoms and RefundAtoms.
	Applied   uint64
	Due       uint64
	BlockTime int64 // of the payment's block, Unix s; 0 = unknown
}

// AppliedAtoms returns the atoms that pay the claim.
func (p *Payment) AppliedAtoms() uint64 {
	if p.Applied == 0 && p.Due == 0 && p.State == PaymentApplied {
		return p.Amount
	}
	return p.Applied
}

// RefundAtoms returns the atoms that are due for refund, are being refunded, or were refunded
// last.
func (p *Payment) RefundAtoms() uint64 {
	if p.Applied == 0 && p.Due == 0 && p.State != PaymentApplied {
		return p.Amount
	}
	return p.Due
}

// Free returns the atoms that may still be reserved: what is left of the inventory, and of
// the balance on the chain if that is known.
func (p *Pair) Free() uint64 {
	free := uint64(0)
	if taken := p.Reserved + p.Sold; p.Inventory > taken {
		free = p.Inventory - taken
	}
	if p.OnChainAt != 0 {
		free = min(free, p.OnChain-min(p.OnChain, p.Reserved))
	}
	return free
}

func (t *Ticket) stateByCapacity() TicketState {
	for i := range t.Tranches {
		if t.Tranches[i].Available() >= smallestFill.USD() {
			return TicketOpen
		}
	}
	return TicketExhausted
}
