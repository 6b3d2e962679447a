package rfq

import (
	"strconv"

	"blockdesk/desk"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// PathTrades is the list of the desk's sales.
const PathTrades = PathRFQ + "trades"

// Limits of the list (our choice).
const (
	MaxTrades     = 100
	defaultTrades = 50
)

// dayNanos is the length of the window of the list's totals.
const dayNanos = int64(24 * 60 * 60 * 1e9)

// sales serves the desk's sales. It is safe for concurrent use.
type sales struct {
	backend *terms.Backend
	now     func() int64 // Unix nanoseconds
}

// serveTrades serves the settled claims of an instrument, newest first. They are the desk's
// business and never trades of a book: ticker, candles and volumes do not have them.
func (e *sales) serveTrades(query []byte) (*wire.Page, *wire.Problem) {
	in, bad := wire.Symbol(query, e.backend.Instruments)
	if bad != nil {
		return nil, bad
	}
	limit, bad := wire.LimitParam(query, defaultTrades, MaxTrades)
	if bad != nil {
		return nil, bad
	}
	before, bad := wire.CursorParam(query, "before", 1<<63-1)
	if bad != nil {
		return nil, bad
	}
	sales, err := e.backend.Desk.Sales(in.ID, before, limit)
	if err != nil {
		return nil, terms.DeskProblem(err)
	}
	all, day, err := e.backend.Desk.SalesSummary(in.ID, e.now()-dayNanos)
	if err != nil {
		return nil, terms.DeskProblem(err)
	}
	w := e.backend.Writer()
	dst := append(make([]byte, 0, 256+400*len(sales)), `{"ok":true,"symbol":"`...)
	dst = append(append(dst, in.Symbol...), `","totals":`...)
	dst = appendSalesTotals(dst, &all, &day)
	dst = append(dst, `,"next_before":`...)
	if n := len(sales); n == limit && sales[n-1].Number > 1 {
		dst = strconv.AppendUint(dst, sales[n-1].Number, 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"rfq_trades":[`...)
	for i := range sales {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = e.appendSale(dst, &w, &sales[i]); err != nil {
			return nil, terms.DeskProblem(err)
		}
	}
	return wire.NewPage(append(dst, "]}"...)), nil
}

func appendSalesTotals(dst []byte, all, day *desk.SalesTotals) []byte {
	dst = strconv.AppendUint(append(dst, `{"trades_total":`...), all.Count, 10)
	dst = wire.AppendUSD(append(dst, `,"volume_usd":`...), all.VolumeUSD)
	dst = wire.AppendUSD(append(dst, `,"fees_usd":`...), all.FeesUSD)
	dst = strconv.AppendUint(append(dst, `,"trades_24h":`...), day.Count, 10)
	return append(wire.AppendUSD(append(dst, `,"volume_24h_usd":`...), day.VolumeUSD), '}')
}

// appendSale appends a sale without what would name its client. l1_signature is the
// transaction that delivered; null if this node does not know it.
func (e *sales) appendSale(dst []byte, w *terms.Writer, s *desk.Sale) ([]byte, error) {
	var delivery [64]byte
	if e.backend.Settlement != nil {
		var err error
		if delivery, _, err = e.backend.Settlement.Delivery(s.Claim.ID); err != nil {
			return dst, err
		}
	}
	return w.Sale(dst, s, &delivery), nil
}

// each is Endpoints.Sales.
func (e *sales) each(in market.InstrumentID, after uint64, limit int, each func(s *desk.Sale, record []byte)) error {
	list, err := e.backend.Desk.Sales(in, 0, limit)
	if err != nil {
		return err
	}
	w := e.backend.Writer()
	for i := range list {
		if list[i].Number <= after {
			break
		}
		record, err := e.appendSale(nil, &w, &list[i])
		if err != nil {
			return err
		}
		each(&list[i], record)
	}
	return nil
}
