package rfq

import "encoding/binary"

// An encoded request, version 1, as the Desk commands of the journal carry it.
//
//	 0      1         2        10         12      28         36    37
//	┌──────┬─────────┬────────┬──────────┬───────┬──────────┬─────┬─────┬────────┐
//	│ kind │ version │ token  │ operator │ key   │ key's    │ len │ ref │ fields │
//	│      │   = 1   │        │          │ id    │ body     │ ref │     │        │
//	└──────┴─────────┴────────┴──────────┴───────┴──────────┴─────┴─────┴────────┘
//
// The fields are in the order of the walk methods below.
const (
	requestVersion = 1
	// MaxRequestBytes bounds an encoded request. The longest PostTicket needs 396.
	MaxRequestBytes = 512

	// tokenEnd is the end of the token, refStart the start of the ref.
	tokenEnd = 10
	refStart = 37
)

// AppendRequest appends the encoding of r and returns the extended slice. DecodeRequest refuses
// the result if a text is longer than MaxText bytes or a list longer than MaxTranches.
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

// DecodeRequest decodes a request. It returns ErrRequest for bytes that AppendRequest
// cannot have written. It does not check the values of fields; Machine.Apply does. It does
// not keep data.
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

// readRequest decodes data into r, whose kind is that of data. w is scratch memory.
func readRequest(r Request, data []byte, w *codec) bool {
	if len(data) < 2 || len(data) > MaxRequestBytes || data[1] != requestVersion {
		return false
	}
	*w = codec{buf: data[2:], reading: true}
	r.Head().walk(w)
	r.walk(w)
	whole := w.complete()
	w.buf = nil // data belongs to the caller
	return whole
}

// Peek is the head of an encoded request.
type Peek struct {
	Kind  RequestKind
	Token uint64
	Ref   []byte // aliases the request
}

// PeekRequest decodes the head of an encoded request; ok is false if there is none. The
// rest may still be invalid.
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

// requestTypes makes an empty request of each kind.
var requestTypes = [...]func() Request{
	KindSetPolicy:       emptyRequest[SetPolicy],
	KindSetPair:         emptyRequest[SetPair],
	KindSetOperator:     emptyRequest[SetOperator],
	KindSetAnchor:       emptyRequest[SetAnchor],
	KindSetRailPrice:    emptyRequest[SetRailPrice],
	KindSetInventory:    emptyRequest[SetInventory],
	KindSetLock:         emptyRequest[SetLock],
	KindPostTicket:      emptyRequest[PostTicket],
	KindAmendTicket:     emptyRequest[AmendTicket],
	KindSetTranche:      emptyRequest[SetTranche],
	KindWithdrawTicket:  emptyRequest[WithdrawTicket],
	KindRequestQuote:    emptyRequest[RequestQuote],
	KindTakeClaim:       emptyRequest[TakeClaim],
	KindProvePayment:    emptyRequest[ProvePayment],
	KindBeginDelivery:   emptyRequest[BeginDelivery],
	KindExpireDelivery:  emptyRequest[ExpireDelivery],
	KindSettleClaim:     emptyRequest[SettleClaim],
	KindCosignClaim:     emptyRequest[CosignClaim],
	KindReleaseClaim:    emptyRequest[ReleaseClaim],
	KindRefundPayment:   emptyRequest[RefundPayment],
	KindAbandonDelivery: emptyRequest[AbandonDelivery],
	KindSetFirstTicket:  emptyRequest[SetFirstTicket],
}

func emptyRequest[T any, R interface {
	*T
	Request
}]() Request {
	return R(new(T))
}

// newRequest returns an empty request of kind k, or nil if there is no such kind.
func newRequest(k RequestKind) Request {
	if int(k) >= len(requestTypes) || requestTypes[k] == nil {
		return nil
	}
	return requestTypes[k]()
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
