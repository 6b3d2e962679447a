package persist

import (
	"strconv"

	"blockdesk/engine/lists"
	"blockdesk/market"
)

// appendOrderList writes a list of orders or cancels as readable JSON, bytes that are none in hex.
func appendOrderList(dst, data []byte) []byte {
	l, err := lists.Decode(data, nil)
	if err != nil {
		return appendHex(dst, data)
	}
	o := object{strconv.AppendBool(append(dst, `{"cancel":`...), l.Cancel)}
	o.text("ref", string(l.Ref))
	if l.More {
		o.boolean("more", true)
	}
	o.present("first_id", uint64(l.FirstID))
	o.name("entries")
	o.dst = append(o.dst, '[')
	for i := range l.Entries {
		e := &l.Entries[i]
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		entry := object{strconv.AppendUint(append(o.dst, `{"order":`...), uint64(e.Order.ID), 10)}
		entry.number("instrument", uint64(e.Instrument))
		if !l.Cancel {
			entry.listed(e)
		}
		o.dst = append(entry.dst, '}')
	}
	return append(o.dst, ']', '}')
}

// listed writes the members of a new order of a list.
func (o *object) listed(e *lists.Entry) {
	order := &e.Order
	o.text("ref", string(e.Ref))
	if order.Side == market.Buy || order.Side == market.Sell {
		o.text("side", order.Side.String())
	}
	o.present("type", uint64(order.Type))
	o.present("tif", uint64(order.TIF))
	o.present("flags", uint64(order.Flags))
	o.present("stp", uint64(order.STP))
	o.signed("price_ticks", int64(order.Price))
	o.signed("stop_ticks", int64(order.Stop))
	o.signed("qty_lots", int64(order.Qty))
	o.signed("display_lots", int64(order.Display))
	o.signed("expires_at", order.ExpireAt)
	o.present("arg", e.Arg)
}
