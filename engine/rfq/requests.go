package rfq

import "blockdesk/market"

// RequestKind names a request. The numbers are on disk: frozen.
type RequestKind uint8

const (
	KindSetPolicy       RequestKind = 1
	KindSetPair         RequestKind = 2
	KindSetOperator     RequestKind = 3
	KindSetAnchor       RequestKind = 4
	KindSetRailPrice    RequestKind = 5
	KindSetInventory    RequestKind = 6
	KindSetLock         RequestKind = 7
	KindPostTicket      RequestKind = 8
	KindAmendTicket     RequestKind = 9
	KindSetTranche      RequestKind = 10
	KindWithdrawTicket  RequestKind = 11
	KindRequestQuote    RequestKind = 12
	KindTakeClaim       RequestKind = 13
	KindProvePayment    RequestKind = 14
	KindBeginDelivery   RequestKind = 15
	KindExpireDelivery  RequestKind = 16
	KindSettleClaim     RequestKind = 17
	KindCosignClaim     RequestKind = 18
	KindReleaseClaim    RequestKind = 19
	KindRefundPayment   RequestKind = 20
	KindAbandonDelivery RequestKind = 21
	KindSetFirstTicket  RequestKind = 22
)

// Header is what every request has.
type Header struct {
	// Token names the request's outcome, and is the id of the quote or claim
	// that it makes. Random, so that no client can guess one.
	Token    uint64
	Operator market.OperatorID // who commands; 0 = the service or a client
	Key      IdempotencyKey    // zero = none
	Ref      string            // a FIX client's own id, 0..MaxText bytes
}

// IdempotencyKey is a client's idempotency key: a hash of the key with the client's
// surface-independent scope, and one of the body that came with it.
type IdempotencyKey struct {
	ID   [16]byte
	Body [8]byte
}

// Request is one of the types below.
type Request interface {
	Kind() RequestKind
	Head() *Header
	walk(w *codec) // the fields, once for writing and reading
}

type (
	// SetPolicy replaces the policy. Out of range: InvalidCommand.
	SetPolicy struct {
		Header
		Policy Policy
	}
	// SetPair defines a pair or changes it; Anchor, AnchorAt, Inventory,
	// Reserved and Sold of Pair are not read.
	SetPair struct {
		Header
		Pair Pair
	}
	// SetOperator names an operator, or renames one.
	SetOperator struct {
		Header
		Of Operator
	}
	// SetAnchor sets a pair's anchor as of now. Outside 1..market.MaxUSDPrice:
	// InvalidPrice.
	SetAnchor struct {
		Header
		Instrument market.InstrumentID
		Price      market.USDPrice
	}
	// SetRailPrice sets the price of SOL as of now. Prices as in SetAnchor.
	SetRailPrice struct {
		Header
		Rail   market.Rail
		Price  market.USDPrice
		MaxAge int64
	}
	// SetInventory sets how much of a pair may be sold in all, what is sold
	// already included.
	SetInventory struct {
		Header
		Instrument market.InstrumentID
		Atoms      uint64
	}
	// SetLock sets or lifts a lock. Instrument and Rail are 0 unless the scope
	// asks for them.
	SetLock struct {
		Header
		Scope      LockScope
		Instrument market.InstrumentID
		Rail       market.Rail
		Locked     bool
		Reason     string
	}
	// PostTicket offers a new ticket.
	PostTicket struct {
		Header
		Label      string
		Instrument market.InstrumentID
		Rails      market.Rails // 0 = the pair's
		Priority   uint16
		Reference  market.USDPrice
		ExpiresAt  int64
		Capacities []market.USD // 1..MaxTranches; each at least the smallest fill
	}
	// AmendTicket replaces all that it names.
	AmendTicket struct {
		Header
		Ticket    market.TicketID
		Rails     market.Rails
		Priority  uint16
		Reference market.USDPrice
		ExpiresAt int64
	}
	// SetTranche changes a tranche's capacity, not below what is reserved and
	// filled, or adds the next tranche.
	SetTranche struct {
		Header
		Ticket   market.TicketID
		Tranche  market.TrancheID
		Capacity market.USD
	}
	// WithdrawTicket ends a ticket's sale. What is reserved stays so.
	WithdrawTicket struct {
		Header
		Ticket market.TicketID
	}
	// RequestQuote asks for a firm price. Its quote has the token as its id.
	RequestQuote struct {
		Header
		Ticket  market.TicketID
		Tranche market.TrancheID
		Fill    market.FillUSD
		Rail    market.Rail
	}
	// TakeClaim reserves a fill. Its claim has the token as its id.
	TakeClaim struct {
		Header
		Ticket      market.TicketID
		Tranche     market.TrancheID
		Fill        market.FillUSD
		Rail        market.Rail
		Mode        SettlementMode
		Quote       market.QuoteID // 0 = price it now
		Wallet      market.Address
		Participant market.ParticipantID // Stamp.Participant or 0, else InvalidCommand
	}
	// ProvePayment tells of a finalized transfer to the desk that names the
	// claim. It is never sent for the desk's own atomic transaction: SettleClaim
	// ends that one.
	ProvePayment struct {
		Header
		Claim     market.ClaimID
		Rail      market.Rail // over which it came
		Signature [64]byte
		Payer     market.Address
		Amount    uint64 // atoms of the rail's asset, above 0
		Slot      uint64
	}
	// BeginDelivery notes that a delivery was signed: Proof is its hash.
	BeginDelivery struct {
		Header
		Claim market.ClaimID
		Proof [32]byte
	}
	// ExpireDelivery notes that a delivery can never land any more: Proof says
	// which, as its BeginDelivery did. So one that is told late, or twice, does
	// not open the way for a second delivery while another is still out.
	ExpireDelivery struct {
		Header
		Claim market.ClaimID
		Proof [32]byte
	}
	// SettleClaim notes that a delivery, or an atomic transaction, is final:
	// Proof says which.
	SettleClaim struct {
		Header
		Claim market.ClaimID
		Proof [32]byte
	}
	// CosignClaim allows the desk's signature under an atomic transaction:
	// Proof is the hash of its message.
	CosignClaim struct {
		Header
		Claim market.ClaimID
		Proof [32]byte
	}
	// ReleaseClaim notes that an atomic transaction can never land any more.
	ReleaseClaim struct {
		Header
		Claim market.ClaimID
	}
	// RefundPayment notes that a payment was paid back: Proof says by what.
	RefundPayment struct {
		Header
		Signature [64]byte
		Proof     [32]byte
	}
	// AbandonDelivery gives up a claim that is paid and can never be delivered: a
	// wallet that takes no transfer, a mint that is frozen. Its payment is due for
	// refund. One whose delivery may still land must lapse first.
	AbandonDelivery struct {
		Header
		Claim market.ClaimID
	}
	// SetFirstTicket has tickets numbered from First on, the first number of a
	// group (market.FirstTicket), else InvalidCommand. A desk that has posted
	// tickets of another group refuses with InvalidCombination; for one of this
	// group nothing changes.
	SetFirstTicket struct {
		Header
		First market.TicketID
	}
)
