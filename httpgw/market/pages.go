package market

import (
	"bytes"
	"strconv"
	"sync/atomic"

	"blockdesk/catalog"
	"blockdesk/engine/marketdata"
	"blockdesk/feed/archive"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// limitSlots is the number of cached pages per endpoint and instrument. It is prime, so
// that the usual limits (1 5 10 20 25 50 100) use different slots. Other limits share
// slots and evict each other.
const limitSlots = 13

// pageSlots caches the pages of one endpoint and one instrument.
type pageSlots [limitSlots]atomic.Pointer[slotPage]

// slotPage is a page of one view and one limit.
type slotPage struct {
	view  *marketdata.View
	limit int
	page  *wire.Page
}

// pages renders and caches market data.
type pages struct {
	set        *market.Instruments
	views      catalog.Views
	signatures Signatures // nil = none

	depth, trades, ticker []pageSlots // by InstrumentID
	candles               candlePages
	all                   *AllInstruments // nil: set is all there are
	symbols               atomic.Pointer[symbolsPage]
	emptyViews            []marketdata.View // by InstrumentID: before the first view
}

type symbolsPage struct {
	status []uint8 // by InstrumentID
	page   *wire.Page
}

func newPages(o *Options) *pages {
	n := o.Instruments.Len()
	m := &pages{
		set: o.Instruments, views: o.Views, signatures: o.Signatures, all: o.All,
		depth: make([]pageSlots, n), trades: make([]pageSlots, n), ticker: make([]pageSlots, n),
		emptyViews: make([]marketdata.View, n),
		candles:    candlePages{history: o.History, slots: make([][archive.Day1]candleSlotPages, n)},
	}
	for i := range m.emptyViews {
		m.emptyViews[i].Instrument = market.InstrumentID(i)
	}
	return m
}

func (m *pages) view(id market.InstrumentID) *marketdata.View {
	if v := m.views.View(id); v != nil {
		return v
	}
	return &m.emptyViews[id]
}

// instrument returns the instrument of the parameter symbol.
func (m *pages) instrument(query []byte) (*market.Instrument, *wire.Problem) {
	return wire.Symbol(query, m.set)
}

// instrumentAndLimit parses the parameters symbol and limit.
func (m *pages) instrumentAndLimit(query []byte, byDefault, most int) (in *market.Instrument, limit int, bad *wire.Problem) {
	if in, bad = m.instrument(query); bad != nil {
		return nil, 0, bad
	}
	limit, bad = wire.LimitParam(query, byDefault, most)
	return in, limit, bad
}

func (m *pages) serveDepth(query []byte) (*wire.Page, *wire.Problem) {
	in, limit, bad := m.instrumentAndLimit(query, defaultDepth, MaxDepth)
	if bad != nil {
		return nil, bad
	}
	v := m.view(in.ID)
	return m.depth[in.ID].get(in, v, v.DepthSeq, limit, appendDepth), nil
}

func (m *pages) serveTrades(query []byte) (*wire.Page, *wire.Problem) {
	in, limit, bad := m.instrumentAndLimit(query, defaultTrades, MaxTrades)
	if bad != nil {
		return nil, bad
	}
	before, bad := wire.CursorParam(query, "before", 1<<63-1)
	if bad != nil {
		return nil, bad
	}
	if before > 0 {
		return m.serveTradesBefore(in, market.TradeID(before), limit)
	}
	v := m.view(in.ID)
	return m.trades[in.ID].get(in, v, v.TradesSeq, limit, m.appendTrades), nil
}

// appendTrades renders the newest limit trades of a view.
func (m *pages) appendTrades(dst []byte, in *market.Instrument, v *marketdata.View, limit int) []byte {
	trades := v.Trades[:min(limit, len(v.Trades))]
	return appendTradeList(appendHead(dst, in, v, v.TradesSeq), in, trades, m.signaturesOf(in, trades), limit)
}

// signaturesOf returns the transaction signatures of a mirrored instrument's trades,
// newest first, or nil if none is known.
func (m *pages) signaturesOf(in *market.Instrument, trades []marketdata.Trade) [][64]byte {
	if m.signatures == nil || in.Source != market.Mirrored || len(trades) == 0 {
		return nil
	}
	newest, oldest := trades[0].Ordinal, trades[len(trades)-1].Ordinal
	if oldest == 0 || newest-oldest >= MaxTrades {
		return nil // from before the instrument was mirrored
	}
	list, err := m.signatures.Signatures(in.ID, oldest, newest)
	if err != nil {
		return nil // the store's readiness check reports the error; the trades are valid without
	}
	out := make([][64]byte, len(trades))
	for i := range trades {
		if at := trades[i].Ordinal - oldest; at < uint64(len(list)) {
			out[i] = list[at]
		}
	}
	return out
}

// serveTradesFile is serveTrades with an optional symbol, which defaults to the first
// instrument, as in serveCandles.
func (m *pages) serveTradesFile(query []byte) (*wire.Page, *wire.Problem) {
	if _, count := wire.Param(query, "symbol"); count == 0 {
		first := append([]byte("symbol="), m.set.Get(0).Symbol...)
		query = append(append(first, '&'), query...)
	}
	return m.serveTrades(query)
}

func (m *pages) serveTicker(query []byte) (*wire.Page, *wire.Problem) {
	in, bad := m.instrument(query)
	if bad != nil {
		return nil, bad
	}
	v := m.view(in.ID)
	return m.ticker[in.ID].get(in, v, v.TickerSeq, 0, appendTicker), nil
}

// get returns the page of a view and limit, and renders it if it is not cached. The ETag
// has everything that can differ: epoch, engine sequence, channel sequence and limit.
func (s *pageSlots) get(in *market.Instrument, v *marketdata.View, seq uint64, limit int,
	render func([]byte, *market.Instrument, *marketdata.View, int) []byte,
) *wire.Page {
	slot := &s[limit%limitSlots]
	old := slot.Load()
	if old != nil && old.view == v && old.limit == limit {
		return old.page
	}
	room := 1024
	if old != nil && old.limit == limit {
		room = len(old.page.Body) + len(old.page.Body)/8
	}
	etag := make([]byte, 0, 48)
	etag = append(etag, `"e`...)
	for _, n := range [...]uint64{v.Epoch, v.EngineSeq, seq, uint64(limit)} {
		etag = append(strconv.AppendUint(etag, n, 10), '-')
	}
	etag[len(etag)-1] = '"'
	p := &wire.Page{Body: render(make([]byte, 0, room), in, v, limit), ETag: etag}
	slot.Store(&slotPage{v, limit, p})
	return p
}

// serveSymbols serves the configuration and status of all symbols. A page is valid until
// a status changes.
func (m *pages) serveSymbols([]byte) (*wire.Page, *wire.Problem) {
	var buf [256]uint8 // more instruments allocate
	status := m.appendStatus(buf[:0])
	if cached := m.symbols.Load(); cached != nil && bytes.Equal(cached.status, status) {
		return cached.page, nil
	}
	set := m.set
	if m.all != nil {
		set = m.all.Set
	}
	fresh := &symbolsPage{status: bytes.Clone(status), page: wire.NewPage(appendSymbols(nil, set, status))}
	m.symbols.Store(fresh)
	return fresh.page, nil
}

// appendStatus appends the status of every instrument of all shards.
func (m *pages) appendStatus(dst []uint8) []uint8 {
	for i := range m.set.Len() {
		dst = append(dst, m.view(market.InstrumentID(i)).Status)
	}
	for i := m.set.Len(); m.all != nil && i < m.all.Set.Len(); i++ {
		dst = append(dst, m.all.Status(market.InstrumentID(i)))
	}
	return dst
}
