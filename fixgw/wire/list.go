package wire

import (
	"bytes"
	"strconv"

	"blockdesk/engine/lists"
	"blockdesk/market"
)

// TagListID is the first tag of a ListStatus (35=N).
const TagListID = 66

// ListPrefix is before the ListID of a NewOrderList where a ClOrdID would be: see QuoteReqPrefix.
const ListPrefix = "\x01L"

// MaxListID is the longest ListID (66), in bytes.
const MaxListID = MaxClOrdID - len(ListPrefix)

// AnswerList is the code of a kept answer to a NewOrderList: its MsgType.
const AnswerList byte = 'N'

// ListRequest holds the raw values of a NewOrderList (E); nil = absent. They alias the message.
type ListRequest struct {
	ListID                  []byte
	bidType, total          []byte
	execInstType, fragment  []byte
	Orders                  []OrderRequest
	unsupported             int // a field of the list that asks for what there is not; 0 = none
	tooMany, perOrderFields bool
}

// ScanList reads the fields of an E that has passed the dictionary. Orders are appended to
// orders[:0].
func ScanList(frame []byte, orders []OrderRequest) ListRequest {
	r := ListRequest{Orders: orders[:0]}
	begin, inGroup := 0, false
	end := func(at int) {
		if !inGroup {
			return
		}
		if len(r.Orders) == lists.MaxOrders {
			r.tooMany = true
			return
		}
		r.Orders = append(r.Orders, ScanOrderRequest(frame[begin:at]))
	}
	for at := 0; at < len(frame); {
		size := bytes.IndexByte(frame[at:], SOH)
		if size < 0 {
			break
		}
		tag, value := SplitField(frame[at : at+size])
		if tag == 11 {
			end(at)
			begin, inGroup = at, true
		}
		r.field(tag, value)
		at += size + 1
	}
	end(len(frame))
	return r
}

// field takes a field that is not of an order.
func (r *ListRequest) field(tag int, value []byte) {
	switch tag {
	case TagListID:
		r.ListID = value
	case 394:
		r.bidType = value
	case 68:
		r.total = value
	case 433:
		r.execInstType = value
	case 893:
		r.fragment = value
	case TagSelfTrade, TagCancelOnDisconnect:
		r.perOrderFields = true
	case 69, 352, 353, 765, 766, 767, 78, 711, 232:
		if r.unsupported == 0 {
			r.unsupported = tag
		}
	}
}

// Content is OrderRequest.Content for a list.
func (r *ListRequest) Content() uint64 {
	h := content(0).add([]byte{'E'})
	for i := range r.Orders {
		o := &r.Orders[i]
		h = h.add(o.ClOrdID).add(strconv.AppendUint(nil, o.Content('D'), 10))
	}
	return h.sum()
}

// Check checks what is not of one order. The refusal's reason is an OrdRejReason.
func (r *ListRequest) Check() *Refusal {
	switch {
	case len(r.ListID) == 0 || len(r.ListID) > MaxListID || !IsPrintable(r.ListID):
		return Refuse(OrdRejOther, CodeInvalidField, "ListID (66) %.60q: must be 1 to %d printable ASCII characters", r.ListID, MaxListID)
	case r.tooMany:
		return Refuse(ordRejExceedsLimit, CodeInvalidField, "NoOrders (73): at most %d orders in a list", lists.MaxOrders)
	case len(r.Orders) == 0:
		return Refuse(OrdRejOther, CodeMissingField, "NoOrders (73): a list has 1 to %d orders", lists.MaxOrders)
	case string(r.bidType) != "3":
		return Refuse(OrdRejUnsupported, CodeUnsupported, "BidType (394) %.20q: must be 3 (no bidding)", r.bidType)
	case r.execInstType != nil && string(r.execInstType) != "1":
		return Refuse(OrdRejUnsupported, CodeUnsupported, "ListExecInstType (433) %.20q: must be 1 (immediate)", r.execInstType)
	case r.fragment != nil && string(r.fragment) != "Y" || string(r.total) != strconv.Itoa(len(r.Orders)):
		return Refuse(OrdRejUnsupported, CodeUnsupported, "TotNoOrders (68) %.20q: a list is one message, which has %d orders", r.total, len(r.Orders))
	case r.perOrderFields:
		return Refuse(OrdRejUnsupported, CodeUnsupported, "SelfTradeType (7928), CancelOrdersOnDisconnect (8013): not in a list")
	case r.unsupported != 0:
		return Refuse(OrdRejUnsupported, CodeUnsupported, "tag %d: it changes the execution of a list and is not supported", r.unsupported)
	}
	return nil
}

// ListedOrder is an order in a ListStatus.
type ListedOrder struct {
	ClOrdID string
	// Order is the order as its client sees it; nil = it was refused before the engine.
	Order      *ClientOrder
	Instrument *market.Instrument // of Order
	Reason     int                // OrdRejReason (103) of a refused order; -1 = none
	Text       []byte
}

// ListStatus is one ListStatus (35=N): the answer to a list.
type ListStatus struct {
	ListID  []byte
	Refused bool
	Text    []byte
	At      int64
	Orders  []ListedOrder
}

// AppendBody appends the status's body without "66=" and without the last SOH.
func (r *ListStatus) AppendBody(dst []byte) []byte {
	const acknowledged, executing, rejected = "1", "3", "7"
	status := executing
	if r.Refused {
		status = rejected
	}
	dst = AppendText(dst, string(r.ListID))
	dst = append(append(dst, "\x01429="+acknowledged+"\x0182=1\x01431="...), status...)
	dst = append(dst, "\x0183=1"...)
	if len(r.Text) > 0 {
		dst = AppendText(append(dst, "\x01444="...), string(r.Text))
	}
	dst = AppendTime(append(dst, "\x0160="...), r.At)
	dst = strconv.AppendInt(append(dst, "\x0168="...), int64(len(r.Orders)), 10)
	dst = strconv.AppendInt(append(dst, "\x0173="...), int64(len(r.Orders)), 10)
	for i := range r.Orders {
		dst = r.Orders[i].append(dst)
	}
	return dst
}

func (o *ListedOrder) append(dst []byte) []byte {
	dst = AppendText(append(dst, "\x0111="...), o.ClOrdID)
	if o.Order == nil || o.Instrument == nil {
		dst = append(dst, "\x0114=0\x0139=8\x01151=0\x0184=0\x016=0"...)
	} else {
		order := o.Order
		leaves, cancelled := order.Leaves, market.Qty(0)
		if !order.Live() {
			leaves, cancelled = 0, order.Leaves
		}
		if order.Status == StatusRejected {
			cancelled = 0
		}
		dst = o.Instrument.AppendQty(append(dst, "\x0114="...), order.Cum)
		dst = append(append(dst, "\x0139="...), order.Status)
		dst = o.Instrument.AppendQty(append(dst, "\x01151="...), leaves)
		dst = o.Instrument.AppendQty(append(dst, "\x0184="...), cancelled)
		dst = appendAvgPx(append(dst, "\x016="...), o.Instrument, order.Notional, order.Cum)
	}
	if o.Reason >= 0 {
		dst = strconv.AppendInt(append(dst, "\x01103="...), int64(o.Reason), 10)
		dst = AppendText(append(dst, "\x0158="...), string(o.Text))
	}
	return dst
}
