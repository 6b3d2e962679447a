package rfq

import (
	"encoding/binary"

	"blockdesk/market"
)

// An encoded request as the Desk commands of the journal carry it. Its version is the lowest
// that has all its values.
//
//	 0      1         2        10         12      28         36    37
//	┌──────┬─────────┬────────┬──────────┬───────┬──────────┬─────┬─────┬────────┐
//	│ kind │ version │ request│ operator │ key   │ key's    │ len │ ref │ fields │
//	│      │  1 or 2 │ id     │          │ id    │ body     │ ref │     │        │
//	└──────┴─────────┴────────┴──────────┴───────┴──────────┴─────┴─────┴────────┘
//
// The fields are in the order of the walk methods below.
const (
	requestVersion1 = 1
	requestVersion2 = 2
	// MaxRequestBytes bounds an encoded request. The longest PostTicket needs 396.
	MaxRequestBytes = 512

	// requestIDEnd is the end of the request id, refStart the start of the ref.
	requestIDEnd = 10
	refStart     = 37
)

// AppendRequest appends the encoding of r and returns the extended slice. DecodeRequest refuses
// the result if a text is longer than MaxText bytes or a list longer than MaxTranches.
func AppendRequest(dst []byte, r Request) []byte {
	w := codec{buf: dst}
	writeRequest(r, &w)
	return w.buf
}

func writeRequest(r Request, w *codec) {
	version := uint8(requestVersion1)
	if w.v2 = usesV2(r); w.v2 {
		version = requestVersion2
	}
	w.buf = append(w.buf, uint8(r.Kind()), version)
	r.Head().walk(w)
	r.walk(w)
}

func requestVersion(v uint8) bool { return v == requestVersion1 || v == requestVersion2 }

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
	if len(data) < 2 || len(data) > MaxRequestBytes || !requestVersion(data[1]) {
		return false
	}
	if data[1] == requestVersion1 {
		clearV2(r)
	}
	*w = codec{buf: data[2:], reading: true, v2: data[1] == requestVersion2}
	r.Head().walk(w)
	r.walk(w)
	whole := w.complete() && usesV2(r) == w.v2
	w.buf = nil // data belongs to the caller
	return whole
}

// Peek is the head of an encoded request.
type Peek struct {
	Kind      RequestKind
	RequestID uint64
	Ref       []byte // aliases the request
}

// PeekRequest decodes the head of an encoded request; ok is false if there is none. The
// rest may still be invalid.
func PeekRequest(data []byte) (p Peek, ok bool) {
	if len(data) < refStart || !requestVersion(data[1]) {
		return Peek{}, false
	}
	n := int(data[refStart-1])
	if n > MaxText || n > len(data)-refStart {
		return Peek{}, false
	}
	return Peek{
		Kind:      RequestKind(data[0]),
		RequestID: binary.LittleEndian.Uint64(data[2:requestIDEnd]),
		Ref:       data[refStart : refStart+n],
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
	KindSeePayment:      emptyRequest[SeePayment],
	KindReleaseUnbuilt:  emptyRequest[ReleaseUnbuilt],
	KindBeginRefund:     emptyRequest[BeginRefund],
	KindExpireRefund:    emptyRequest[ExpireRefund],
	KindSetBalance:      emptyRequest[SetBalance],
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
	u64(w, &h.RequestID)
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

// Kind returns KindSeePayment.
func (*SeePayment) Kind() RequestKind { return KindSeePayment }

// Kind returns KindReleaseUnbuilt.
func (*ReleaseUnbuilt) Kind() RequestKind { return KindReleaseUnbuilt }

// Kind returns KindBeginRefund.
func (*BeginRefund) Kind() RequestKind { return KindBeginRefund }

// Kind returns KindExpireRefund.
func (*ExpireRefund) Kind() RequestKind { return KindExpireRefund }

// Kind returns KindSetBalance.
func (*SetBalance) Kind() RequestKind { return KindSetBalance }

// clearV2 zeroes a request whose walk leaves the fields of version 2 as they are.
func clearV2(r Request) {
	switch r := r.(type) {
	case *SetPolicy:
		*r = SetPolicy{}
	case *SetPair:
		*r = SetPair{}
	case *SetAnchor:
		*r = SetAnchor{}
	case *SetRailPrice:
		*r = SetRailPrice{}
	case *RequestQuote:
		*r = RequestQuote{}
	case *TakeClaim:
		*r = TakeClaim{}
	case *ProvePayment:
		*r = ProvePayment{}
	case *AbandonDelivery:
		*r = AbandonDelivery{}
	}
}

func (r *SetPolicy) usesV2() bool { return r.Policy.usesV2() }
func (r *SetPair) usesV2() bool   { return r.Pair.hasFirmBps() }
func (r *SetAnchor) usesV2() bool {
	return r.Source != 0 || r.Confidence != 0 || r.PublishedAt != 0 || r.Withdrawn
}

func (r *SetRailPrice) usesV2() bool {
	return r.Source != 0 || r.Confidence != 0 || r.PublishedAt != 0 || r.Withdrawn
}
func (r *RequestQuote) usesV2() bool    { return r.Indicative }
func (r *TakeClaim) usesV2() bool       { return r.Client != 0 || r.Proven }
func (r *ProvePayment) usesV2() bool    { return r.BlockTime != 0 }
func (r *AbandonDelivery) usesV2() bool { return r.Reason != 0 }

func (r *SetPolicy) walk(w *codec)   { r.Policy.walk(w) }
func (r *SetPair) walk(w *codec)     { r.Pair.walkRules(w) }
func (r *SetOperator) walk(w *codec) { r.Of.walk(w) }

func (r *SetAnchor) walk(w *codec) {
	u16(w, &r.Instrument)
	u64(w, &r.Price)
	if w.v2 {
		walkOrigin(w, &r.Source, &r.Confidence, &r.PublishedAt, &r.Withdrawn)
	}
}

func (r *SetRailPrice) walk(w *codec) {
	u8(w, &r.Rail)
	u64(w, &r.Price)
	w.i64(&r.MaxAge)
	if w.v2 {
		walkOrigin(w, &r.Source, &r.Confidence, &r.PublishedAt, &r.Withdrawn)
	}
}

// walkOrigin has the fields that say where a price comes from.
func walkOrigin(w *codec, source *PriceOrigin, confidence *market.USDPrice, publishedAt *int64, withdrawn *bool) {
	u8(w, source)
	u64(w, confidence)
	w.i64(publishedAt)
	w.flag(withdrawn)
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
	if w.v2 {
		w.flag(&r.Indicative)
	}
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
	if w.v2 {
		u64(w, &r.Client)
		w.flag(&r.Proven)
	}
}

func (r *SeePayment) walk(w *codec) { u64(w, &r.Claim) }

func (r *ReleaseUnbuilt) walk(w *codec) { u64(w, &r.Claim) }

func (r *ProvePayment) walk(w *codec) {
	u64(w, &r.Claim)
	u8(w, &r.Rail)
	w.bytes(r.Signature[:])
	w.address(&r.Payer)
	u64(w, &r.Amount)
	u64(w, &r.Slot)
	if w.v2 {
		w.i64(&r.BlockTime)
	}
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

func (r *BeginRefund) walk(w *codec) {
	w.bytes(r.Signature[:])
	w.bytes(r.Proof[:])
}

func (r *ExpireRefund) walk(w *codec) {
	w.bytes(r.Signature[:])
	w.bytes(r.Proof[:])
}

func (r *AbandonDelivery) walk(w *codec) {
	u64(w, &r.Claim)
	if w.v2 {
		u16(w, &r.Reason)
	}
}

func (r *SetBalance) walk(w *codec) {
	u16(w, &r.Instrument)
	u64(w, &r.Atoms)
	u64(w, &r.Slot)
}

func (r *SetFirstTicket) walk(w *codec) { u64(w, &r.First) }
