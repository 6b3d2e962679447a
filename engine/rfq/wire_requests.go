package rfq

import "encoding/binary"

// A request as bytes, version 1: what a Desk command of the journal carries.
//
//	 0      1         2        10         12      28         36    37
//	┌──────┬─────────┬────────┬──────────┬───────┬──────────┬─────┬─────┬────────┐
//	│ kind │ version │ token  │ operator │ key   │ key's    │ len │ ref │ fields │
//	│      │   = 1   │        │          │ id    │ body     │ ref │     │        │
//	└──────┴─────────┴────────┴──────────┴───────┴──────────┴─────┴─────┴────────┘
//
// The fields stand as the walks below say.
const (
	requestVersion = 1
	// MaxRequestBytes bounds an encoded request: PostTicket, with the longest
	// texts and MaxTranches, needs 396.
	MaxRequestBytes = 512

	// tokenEnd is where the token ends, refStart where the ref begins.
	tokenEnd = 10
	refStart = 37
)

// AppendRequest appends r's encoding and returns the extended slice. A text past
// MaxText bytes, or a list past MaxTranches, gives bytes that DecodeRequest
// refuses.
func AppendRequest(dst []byte, r Request) []byte {
	w := codec{buf: dst}
	writeRequest(r, &w)
	return w.buf
}

func writeRequest(r Request, w *codec) {
	w.buf = append(w.buf, uint8(r.Kind()), requestVersion)
	r.Head().walk(w)
	r.walk(w)
}

// DecodeRequest reads a whole encoded request. It returns ErrRequest for every
// byte string that AppendRequest cannot have written. The values of the fields
// are not looked at: Machine.Apply refuses those that make no sense. It does not
// keep data.
func DecodeRequest(data []byte) (Request, error) {
	if len(data) == 0 {
		return nil, ErrRequest
	}
	r := newRequest(RequestKind(data[0]))
	if r == nil || !readRequest(r, data, &codec{}) {
		return nil, ErrRequest
	}
	return r, nil
}

// readRequest reads data into r, which has the kind that data begins with. w is
// its scratch memory.
func readRequest(r Request, data []byte, w *codec) bool {
	if len(data) < 2 || len(data) > MaxRequestBytes || data[1] != requestVersion {
		return false
	}
	*w = codec{buf: data[2:], reading: true}
	r.Head().walk(w)
	r.walk(w)
	whole := w.complete()
	w.buf = nil // it is not ours to keep
	return whole
}

// Peek is what can be said of an encoded request without reading it whole.
type Peek struct {
	Kind  RequestKind
	Token uint64
	Ref   []byte // aliases the request
}

// PeekRequest reads the head of an encoded request; ok is false where there is
// none. The rest may still be damaged.
func PeekRequest(data []byte) (p Peek, ok bool) {
	if len(data) < refStart || data[1] != requestVersion {
		return Peek{}, false
	}
	n := int(data[refStart-1])
	if n > MaxText || n > len(data)-refStart {
		return Peek{}, false
	}
	return Peek{
		Kind:  RequestKind(data[0]),
		Token: binary.LittleEndian.Uint64(data[2:tokenEnd]),
		Ref:   data[refStart : refStart+n],
	}, true
}

// newRequest returns an empty request of kind k, or nil.
func newRequest(k RequestKind) Request {
	switch k {
	case KindSetPolicy:
		return new(SetPolicy)
	case KindSetPair:
		return new(SetPair)
	case KindSetOperator:
		return new(SetOperator)
	case KindSetAnchor:
		return new(SetAnchor)
	case KindSetRailPrice:
		return new(SetRailPrice)
	case KindSetInventory:
		return new(SetInventory)
	case KindSetLock:
		return new(SetLock)
	case KindPostTicket:
		return new(PostTicket)
	case KindAmendTicket:
		return new(AmendTicket)
	case KindSetTranche:
		return new(SetTranche)
	case KindWithdrawTicket:
		return new(WithdrawTicket)
	case KindRequestQuote:
		return new(RequestQuote)
	case KindTakeClaim:
		return new(TakeClaim)
	case KindProvePayment:
		return new(ProvePayment)
	case KindBeginDelivery:
		return new(BeginDelivery)
	case KindExpireDelivery:
		return new(ExpireDelivery)
	case KindSettleClaim:
		return new(SettleClaim)
	case KindCosignClaim:
		return new(CosignClaim)
	case KindReleaseClaim:
		return new(ReleaseClaim)
	case KindRefundPayment:
		return new(RefundPayment)
	case KindAbandonDelivery:
		return new(AbandonDelivery)
	case KindSetFirstTicket:
		return new(SetFirstTicket)
	}
	return nil
}

// Head returns h.
func (h *Header) Head() *Header { return h }

func (h *Header) walk(w *codec) {
	u64(w, &h.Token)
	u16(w, &h.Operator)
	h.Key.walk(w)
	w.text(&h.Ref)
}

func (k *IdempotencyKey) walk(w *codec) {
	w.bytes(k.ID[:])
	w.bytes(k.Body[:])
}

// Kind returns KindSetPolicy.
func (*SetPolicy) Kind() RequestKind { return KindSetPolicy }

// Kind returns KindSetPair.
func (*SetPair) Kind() RequestKind { return KindSetPair }

// Kind returns KindSetOperator.
func (*SetOperator) Kind() RequestKind { return KindSetOperator }

// Kind returns KindSetAnchor.
func (*SetAnchor) Kind() RequestKind { return KindSetAnchor }

// Kind returns KindSetRailPrice.
func (*SetRailPrice) Kind() RequestKind { return KindSetRailPrice }

// Kind returns KindSetInventory.
func (*SetInventory) Kind() RequestKind { return KindSetInventory }

// Kind returns KindSetLock.
func (*SetLock) Kind() RequestKind { return KindSetLock }

// Kind returns KindPostTicket.
func (*PostTicket) Kind() RequestKind { return KindPostTicket }

// Kind returns KindAmendTicket.
func (*AmendTicket) Kind() RequestKind { return KindAmendTicket }

// Kind returns KindSetTranche.
func (*SetTranche) Kind() RequestKind { return KindSetTranche }

// Kind returns KindWithdrawTicket.
func (*WithdrawTicket) Kind() RequestKind { return KindWithdrawTicket }

// Kind returns KindRequestQuote.
func (*RequestQuote) Kind() RequestKind { return KindRequestQuote }

// Kind returns KindTakeClaim.
func (*TakeClaim) Kind() RequestKind { return KindTakeClaim }

// Kind returns KindProvePayment.
func (*ProvePayment) Kind() RequestKind { return KindProvePayment }

// Kind returns KindBeginDelivery.
func (*BeginDelivery) Kind() RequestKind { return KindBeginDelivery }

// Kind returns KindExpireDelivery.
func (*ExpireDelivery) Kind() RequestKind { return KindExpireDelivery }

// Kind returns KindSettleClaim.
func (*SettleClaim) Kind() RequestKind { return KindSettleClaim }

// Kind returns KindCosignClaim.
func (*CosignClaim) Kind() RequestKind { return KindCosignClaim }

// Kind returns KindReleaseClaim.
func (*ReleaseClaim) Kind() RequestKind { return KindReleaseClaim }

// Kind returns KindRefundPayment.
func (*RefundPayment) Kind() RequestKind { return KindRefundPayment }

// Kind returns KindAbandonDelivery.
func (*AbandonDelivery) Kind() RequestKind { return KindAbandonDelivery }

// Kind returns KindSetFirstTicket.
func (*SetFirstTicket) Kind() RequestKind { return KindSetFirstTicket }

func (r *SetPolicy) walk(w *codec)   { r.Policy.walk(w) }
func (r *SetPair) walk(w *codec)     { r.Pair.walkRules(w) }
func (r *SetOperator) walk(w *codec) { r.Of.walk(w) }

func (r *SetAnchor) walk(w *codec) {
	u16(w, &r.Instrument)
	u64(w, &r.Price)
}

func (r *SetRailPrice) walk(w *codec) {
	u8(w, &r.Rail)
	u64(w, &r.Price)
	w.i64(&r.MaxAge)
}

func (r *SetInventory) walk(w *codec) {
	u16(w, &r.Instrument)
	u64(w, &r.Atoms)
}

func (r *SetLock) walk(w *codec) {
	u8(w, &r.Scope)
	u16(w, &r.Instrument)
	u8(w, &r.Rail)
	w.flag(&r.Locked)
	w.text(&r.Reason)
}

func (r *PostTicket) walk(w *codec) {
	w.text(&r.Label)
	u16(w, &r.Instrument)
	u8(w, &r.Rails)
	u16(w, &r.Priority)
	u64(w, &r.Reference)
	w.i64(&r.ExpiresAt)
	w.amounts(&r.Capacities)
}

func (r *AmendTicket) walk(w *codec) {
	u64(w, &r.Ticket)
	u8(w, &r.Rails)
	u16(w, &r.Priority)
	u64(w, &r.Reference)
	w.i64(&r.ExpiresAt)
}

func (r *SetTranche) walk(w *codec) {
	u64(w, &r.Ticket)
	u16(w, &r.Tranche)
	u64(w, &r.Capacity)
}

func (r *WithdrawTicket) walk(w *codec) { u64(w, &r.Ticket) }

func (r *RequestQuote) walk(w *codec) {
	u64(w, &r.Ticket)
	u16(w, &r.Tranche)
	u8(w, &r.Fill)
	u8(w, &r.Rail)
}

func (r *TakeClaim) walk(w *codec) {
	u64(w, &r.Ticket)
	u16(w, &r.Tranche)
	u8(w, &r.Fill)
	u8(w, &r.Rail)
	u8(w, &r.Mode)
	u64(w, &r.Quote)
	w.address(&r.Wallet)
	u16(w, &r.Participant)
}

func (r *ProvePayment) walk(w *codec) {
	u64(w, &r.Claim)
	u8(w, &r.Rail)
	w.bytes(r.Signature[:])
	w.address(&r.Payer)
	u64(w, &r.Amount)
	u64(w, &r.Slot)
}

func (r *BeginDelivery) walk(w *codec) {
	u64(w, &r.Claim)
	w.bytes(r.Proof[:])
}

func (r *ExpireDelivery) walk(w *codec) {
	u64(w, &r.Claim)
	w.bytes(r.Proof[:])
}

func (r *SettleClaim) walk(w *codec) {
	u64(w, &r.Claim)
	w.bytes(r.Proof[:])
}

func (r *CosignClaim) walk(w *codec) {
	u64(w, &r.Claim)
	w.bytes(r.Proof[:])
}

func (r *ReleaseClaim) walk(w *codec) { u64(w, &r.Claim) }

func (r *RefundPayment) walk(w *codec) {
	w.bytes(r.Signature[:])
	w.bytes(r.Proof[:])
}

func (r *AbandonDelivery) walk(w *codec) { u64(w, &r.Claim) }

func (r *SetFirstTicket) walk(w *codec) { u64(w, &r.First) }
