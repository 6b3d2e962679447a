package rfq

import (
	"blockdesk/engine/event"
	"blockdesk/market"
)

// RequestKind is the kind of a request. The numbers are on disk and never change.
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
	KindSeePayment      RequestKind = 23
	KindReleaseUnbuilt  RequestKind = 24
	KindBeginRefund     RequestKind = 25
	KindExpireRefund    RequestKind = 26
	KindSetBalance      RequestKind = 27
)

// Header is the common part of all requests.
type Header struct {
	// RequestID identifies the request's outcome, and is the id of the quote or claim that it
	// makes. It is random, so that clients cannot guess one.
	RequestID uint64
	Operator  market.OperatorID // the sender; 0 = the service or a client
	Key       IdempotencyKey    // zero = none
	Ref       string            // id of a FIX client, 0..MaxText bytes
}

// IdempotencyKey is a client's idempotency key: a hash of the key and the client, and one
// of the request's body.
type IdempotencyKey struct {
	ID   [16]byte
	Body [8]byte
}

// Request is one of the types below.
type Request interface {
	Kind() RequestKind
	Head() *Header
	walk(w *codec)            // encodes or decodes the fields
	apply(m *Machine) refusal // changes m, unless it refuses
}

type (
	// SetPolicy replaces the policy. Out of range: InvalidCommand.
	SetPolicy struct {
		Header
		Policy Policy
	}
	// SetPair defines or changes a pair. It ignores Anchor, AnchorSource and the other
	// fields of the anchor, Inventory, Reserved, Sold, OnChain and OnChainAt of Pair.
	SetPair struct {
		Header
		Pair Pair
	}
	// SetOperator adds or renames an operator.
	SetOperator struct {
		Header
		Of Operator
	}
	// SetAnchor sets a pair's anchor as of now. A Price outside 1..market.MaxUSDPrice, or a
	// Confidence above that: InvalidPrice. PublishedAt counts as now if it is later; negative:
	// InvalidCommand. Withdrawn, with the Price and Confidence 0, takes the anchor away,
	// because its sources give no price; only under RulesGuarded, else InvalidPrice.
	SetAnchor struct {
		Header
		Instrument  market.InstrumentID
		Price       market.USDPrice
		Source      PriceOrigin // a PriceOrigin constant, else InvalidCommand
		Confidence  market.USDPrice
		PublishedAt int64
		Withdrawn   bool
	}
	// SetRailPrice sets the price of SOL as of now. The fields are as in SetAnchor.
	SetRailPrice struct {
		Header
		Rail        market.Rail
		Price       market.USDPrice
		MaxAge      int64
		Source      PriceOrigin
		Confidence  market.USDPrice
		PublishedAt int64
		Withdrawn   bool
	}
	// SetInventory sets how much of a pair may be sold in total, including what is sold
	// already.
	SetInventory struct {
		Header
		Instrument market.InstrumentID
		Atoms      uint64
	}
	// SetLock sets or lifts a lock. Instrument and Rail are 0 unless the scope needs them.
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
	// AmendTicket replaces all its fields in the ticket.
	AmendTicket struct {
		Header
		Ticket    market.TicketID
		Rails     market.Rails
		Priority  uint16
		Reference market.USDPrice
		ExpiresAt int64
	}
	// SetTranche changes a tranche's capacity, not below what is reserved and filled, or
	// adds the next tranche.
	SetTranche struct {
		Header
		Ticket   market.TicketID
		Tranche  market.TrancheID
		Capacity market.USD
	}
	// WithdrawTicket ends the sale of a ticket. Its claims continue.
	WithdrawTicket struct {
		Header
		Ticket market.TicketID
	}
	// RequestQuote requests a price. The token is the id of the quote. An indicative one is
	// asked for while no claim could be taken.
	RequestQuote struct {
		Header
		Ticket     market.TicketID
		Tranche    market.TrancheID
		Fill       market.FillUSD
		Rail       market.Rail
		Indicative bool
	}
	// TakeClaim reserves a fill. The token is the id of the claim.
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
		Client      ClientAddress
		Proven      bool // the wallet signed this claim, or a token of its DvP handshake came with it
	}
	// SeePayment records that a payment which would pay the modular claim was seen before it
	// is final. It gives an unproven claim the deadline of a proven one, once.
	SeePayment struct {
		Header
		Claim market.ClaimID
	}
	// ReleaseUnbuilt releases a reserved claim for which no transaction could be built, so
	// that it holds nothing until its deadline.
	ReleaseUnbuilt struct {
		Header
		Claim market.ClaimID
	}
	// ProvePayment records a finalized transfer to the desk that names the claim. It is
	// never sent for the desk's own atomic transaction, which SettleClaim ends.
	ProvePayment struct {
		Header
		Claim     market.ClaimID
		Rail      market.Rail // over which it came
		Signature [64]byte
		Payer     market.Address
		Amount    uint64 // atoms of the rail's asset, above 0
		Slot      uint64
		BlockTime int64 // of its block, Unix s; 0 = unknown: the time of the request counts
	}
	// BeginDelivery records, before a delivery is signed, its hash (Proof).
	BeginDelivery struct {
		Header
		Claim market.ClaimID
		Proof [32]byte
	}
	// ExpireDelivery records that a delivery can never land any more. Proof is that of its
	// BeginDelivery, so that a late or repeated report cannot allow a second delivery while
	// another is still out.
	ExpireDelivery struct {
		Header
		Claim market.ClaimID
		Proof [32]byte
	}
	// SettleClaim records that a delivery or atomic transaction is final; Proof identifies it.
	SettleClaim struct {
		Header
		Claim market.ClaimID
		Proof [32]byte
	}
	// CosignClaim permits the desk's signature on an atomic transaction; Proof is the hash
	// of its message.
	CosignClaim struct {
		Header
		Claim market.ClaimID
		Proof [32]byte
	}
	// ReleaseClaim records that an atomic transaction can never land any more.
	ReleaseClaim struct {
		Header
		Claim market.ClaimID
	}
	// RefundPayment records that a payment was refunded; Proof identifies the refund. After
	// BeginRefund it must be the same.
	RefundPayment struct {
		Header
		Signature [64]byte
		Proof     [32]byte
	}
	// BeginRefund records, before a refund is signed, its hash (Proof). Refunds of several
	// payments in one transaction have the same.
	BeginRefund struct {
		Header
		Signature [64]byte
		Proof     [32]byte // not zero, else InvalidCommand
	}
	// ExpireRefund records that a refund can never land any more: the payment is due again.
	ExpireRefund struct {
		Header
		Signature [64]byte
		Proof     [32]byte
	}
	// AbandonDelivery gives up a paid claim. Its payment is due for refund. A delivery that
	// may still land must expire first. Reason 0 or ReasonUndeliverable: it can never be
	// delivered, because its wallet accepts no transfer, or its mint is frozen.
	// ReasonPriceCorridor: the price has moved against the desk; refused unless BeginDelivery
	// would be refused with it now. Any other: InvalidCommand.
	AbandonDelivery struct {
		Header
		Claim  market.ClaimID
		Reason event.Reason
	}
	// SetBalance records the base atoms of a pair that the desk holds on the chain, as of the
	// finalized Slot, which is there for the reader of the journal only.
	SetBalance struct {
		Header
		Instrument market.InstrumentID
		Atoms      uint64
		Slot       uint64
	}
	// SetFirstTicket numbers tickets from First, which must be the first number of a shard
	// (market.FirstTicket), else InvalidCommand. If the desk has posted tickets of another
	// shard it refuses with InvalidCombination; with tickets of this shard it changes
	// nothing.
	SetFirstTicket struct {
		Header
		First market.TicketID
	}
)
