package rfq

import (
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Limits (our choice). A request past one is refused with ReasonDeskFull and the
// limit, except where its own reason is named.
const (
	MaxTickets  = 4096    // that have not been forgotten
	MaxTranches = 32      // a ticket
	MaxQuotes   = 1 << 16 // live
	// MaxClaims bounds the claims that the machine remembers, live or ended.
	// Where it is reached, one that has ended makes room for a new one: of those
	// without a payment the one that ended first; or, where those with payments
	// are more than a quarter of MaxClaims, the first of them, but none that owes
	// a refund. Where there is none such, a new claim is refused. So claims that
	// nobody pays for, which cost nothing to make, push out no payment; and since
	// MaxRefunds is half, there is a quarter that new claims can count on.
	MaxClaims = 1 << 18
	// MaxPayments bounds the payments that the machine remembers. Where it is
	// reached, the claim that ended first among those with payments is forgotten,
	// again none that owes a refund. So a payment is known as long as its claim
	// is.
	MaxPayments = 1 << 18
	// MaxRefunds bounds the payments that are due for refund, which are never
	// forgotten: money that cannot be served costs a stranger next to nothing to
	// send. The other half is left for what pays its claim.
	MaxRefunds   = MaxPayments / 2
	MaxOperators = 256
	MaxText      = 40 // bytes of a label, a reason, an operator's name

	// MaxCapacity bounds a tranche: a trillion dollars. Past it: ReasonInvalidQty.
	MaxCapacity market.USD = 1_000_000_000_000_000_000

	// TicketRetention is how long an ended ticket stays in the book after it last
	// changed; one that reserves something stays longer.
	TicketRetention = day // nanoseconds
)

// NoInstrument in Pair.Via means that the quote asset counts as a dollar.
const NoInstrument market.InstrumentID = 1<<16 - 1

// Policy is what holds for all pairs. Times are nanoseconds.
type Policy struct {
	QuoteTTL   int64 // 1 s..1 h
	ClaimTTL   int64 // 1 s..24 h
	LateWindow int64 // how long after its deadline an expired claim may still be honoured, 0..30 days
	FeeBps     uint16
	// Discounts in basis points, by FillUSD-1; below MaxBps.
	Discounts [market.FillCount]uint16
	// WalletClaims is the most claims one wallet may have reserved at once,
	// 1..65535.
	WalletClaims uint16
	USDCMint     market.Address
	PayTo        [market.RailCount]market.Address // by Rail; zero = not configured
}

// PriceSource says where the reference price of a pair comes from.
type PriceSource uint8

const (
	// SourceOperator: the anchor itself.
	SourceOperator PriceSource = 1
	// SourceBook: the middle of our order book, rounded up, which must lie in
	// the corridor around the anchor.
	SourceBook PriceSource = 2
)

// Pair is how one instrument is sold.
type Pair struct {
	Instrument   market.InstrumentID
	BaseMint     market.Address
	BaseDecimals uint8 // atoms of the base asset, 0..12
	Rails        market.Rails
	Source       PriceSource
	CorridorBps  uint16              // 1..MaxBps-1; the reference must lie within anchor × (1 ± corridor)
	MaxAge       int64               // ns; an older anchor prices nothing; 0 = any age
	Via          market.InstrumentID // pair whose reference turns this book's quote asset into dollars; or NoInstrument

	Anchor   market.USDPrice // 0 = none yet: nothing is priced
	AnchorAt int64

	// Inventory is how many atoms the desk may sell in all; Inventory =
	// free + Reserved + Sold, or less after it was lowered.
	Inventory, Reserved, Sold uint64
}

// RailPrice is the dollar price of a rail's asset. That of USDC is one and is
// not kept.
type RailPrice struct {
	Rail   market.Rail
	Price  market.USDPrice
	At     int64
	MaxAge int64 // ns; 0 = any age
}

// LockScope says what a lock keeps shut.
type LockScope uint8

const (
	LockAll  LockScope = 1
	LockPair LockScope = 2 // Lock.Instrument
	LockRail LockScope = 3 // Lock.Rail
)

// Lock keeps quotes, claims and co-signatures from being made. What is reserved
// or paid already goes on.
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

// TicketState says where a ticket stands: see the package doc. The numbers are
// on disk: frozen.
type TicketState uint8

const (
	TicketOpen      TicketState = 1
	TicketExhausted TicketState = 2 // no tranche has capacity for the smallest fill
	TicketWithdrawn TicketState = 3
	TicketExpired   TicketState = 4
)

// Ticket is one offer, in tranches.
type Ticket struct {
	ID         market.TicketID
	Label      string // 1..MaxText bytes of printable ASCII
	Instrument market.InstrumentID
	Rails      market.Rails
	State      TicketState
	Priority   uint16          // lower is sold first
	Reference  market.USDPrice // in place of the pair's; 0 = the pair's
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

// Available is what can be claimed.
func (t *Tranche) Available() market.USD { return t.Capacity - t.Reserved - t.Filled }

// Terms are what a client was promised.
type Terms struct {
	Ticket      market.TicketID
	Tranche     market.TrancheID
	Instrument  market.InstrumentID
	Fill        market.FillUSD
	Rail        market.Rail
	DiscountBps uint16
	FeeBps      uint16          // of the payment, included in it, told for itself
	Reference   market.USDPrice // before the discount
	Price       market.USDPrice // after it, rounded up
	Base        uint64          // atoms the client gets, rounded down
	Payment     uint64          // atoms of the rail's asset the client pays, rounded up
	PayTo       market.Address
}

// Quote is a firm price for one claim.
type Quote struct {
	ID         market.QuoteID
	Terms      Terms
	IssuedAt   int64
	ValidUntil int64
}

// SettlementMode says how a claim is to be settled.
type SettlementMode uint8

const (
	Modular SettlementMode = 1 // pay, prove it, get delivery
	Atomic  SettlementMode = 2 // both legs in one transaction
)

// ClaimState says where a claim stands: see the package doc. The numbers are on
// disk: frozen.
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
	"state?", "reserved", "paid", "delivering", "settled", "expired", "cosigned", "released", "refund_due",
}

// Word returns what public documents and messages call the state.
func (s ClaimState) Word() string {
	if int(s) >= len(claimWords) {
		s = 0
	}
	return claimWords[s]
}

// Claim is one taken piece of a tranche.
type Claim struct {
	ID          market.ClaimID
	Quote       market.QuoteID // that gave the price; 0 = none
	Mode        SettlementMode
	State       ClaimState
	Terms       Terms
	Wallet      market.Address
	Participant market.ParticipantID // FIX; 0 = none
	ReservedAt  int64
	Deadline    int64 // of the reservation
	ChangedAt   int64
	Paid        uint64   // atoms applied to it; 0 or Terms.Payment at least
	Proof       [32]byte // of the last step: message hash (cosigned, released), delivery's hash (delivering), what settled it
}

// PaymentState says what became of money that arrived.
type PaymentState uint8

const (
	PaymentApplied   PaymentState = 1 // pays its claim
	PaymentRefundDue PaymentState = 2 // cannot be served; the operator owes it
	PaymentRefunded  PaymentState = 3
)

// Payment is a proved transfer to the desk. A signature is one payment at most.
type Payment struct {
	Signature [64]byte
	Claim     market.ClaimID
	Rail      market.Rail
	State     PaymentState
	Reason    event.Reason // of RefundDue
	Amount    uint64       // atoms
	Payer     market.Address
	Slot      uint64
	At        int64
	Proof     [32]byte // of the refund
}
