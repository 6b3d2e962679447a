package persist

import (
	"strconv"
	"time"

	"blockdesk/engine/quotes"
)

// appendMassQuote writes a mass quote as readable JSON, in ticks and lots. Bytes that are not
// one are written in hex.
func appendMassQuote(dst, data []byte) []byte {
	q, err := quotes.Decode(data, nil)
	if err != nil {
		return appendHex(dst, data)
	}
	o := object{append(dst, `{"response":`...)}
	o.dst = append(o.dst, '0'+q.Response%10)
	o.text("ref", string(q.Ref))
	for _, flag := range []struct {
		name string
		on   bool
	}{{"cancel_all", q.CancelAll}, {"cancel", q.Cancel}, {"reset", q.Reset}} {
		if flag.on {
			o.boolean(flag.name, true)
		}
	}
	o.present("stp", uint64(q.STP))
	o.present("first_id", uint64(q.FirstID))
	if q.Protect {
		o.number("protection_fills", uint64(q.MaxFills))
		o.text("protection_window", time.Duration(q.Window).String())
	}
	o.name("entries")
	o.dst = append(o.dst, '[')
	for i := range q.Entries {
		e := &q.Entries[i]
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		entry := object{strconv.AppendUint(append(o.dst, `{"set":`...), uint64(e.Set), 10)}
		entry.number("entry", uint64(e.Number))
		entry.number("instrument", uint64(e.Instrument))
		entry.signed("bid_ticks", int64(e.BidPrice))
		entry.signed("bid_lots", int64(e.BidQty))
		entry.signed("ask_ticks", int64(e.AskPrice))
		entry.signed("ask_lots", int64(e.AskQty))
		entry.signed("protection_lots", int64(e.MaxQty))
		o.dst = append(entry.dst, '}')
	}
	return append(o.dst, ']', '}')
}
