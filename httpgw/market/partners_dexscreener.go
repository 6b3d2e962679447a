package market

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// DEX Screener's block is a command of the engine: its sequence number grows by one,
// never decreases and survives a restart. The trades of a command are one transaction.
// All of this is our choice.

// latestBlock serves DEX Screener's latest-block: the newest block with a trade all of
// whose events are available.
func (p *partnerPages) latestBlock([]byte) (*wire.Page, *wire.Problem) {
	newest, bad := p.newestTrade()
	if bad != nil {
		return nil, bad
	}
	return wire.NewPage(append(appendBlock([]byte(`{"block":`), &newest), '}')), nil
}

// newestTrade returns the newest trade of all instruments whose command is complete, or a
// zero trade.
func (p *partnerPages) newestTrade() (newest engine.Trade, bad *wire.Problem) {
	last := p.lastCompleteSeq()
	for _, in := range p.instruments() {
		bad = p.scan(in, "", func(t *engine.Trade) bool {
			if t.Seq > last {
				return true
			}
			if t.Seq > newest.Seq {
				newest = *t
			}
			return false
		})
		if bad != nil {
			return newest, bad
		}
	}
	return newest, nil
}

// lastCompleteSeq returns the Seq of the last command all of whose trades are available.
func (p *partnerPages) lastCompleteSeq() uint64 {
	if p.history != nil {
		return p.history.Cursor()
	}
	return math.MaxUint64 // a view contains whole commands
}

func (p *partnerPages) instruments() []*market.Instrument {
	all := make([]*market.Instrument, p.market.set.Len())
	for i := range all {
		all[i] = p.market.set.Get(market.InstrumentID(i))
	}
	return all
}

func appendBlock(dst []byte, t *engine.Trade) []byte {
	dst = strconv.AppendUint(append(dst, `{"blockNumber":`...), t.Seq, 10)
	dst = strconv.AppendInt(append(dst, `,"blockTimestamp":`...), t.At/nanosPerSecond, 10)
	return append(dst, '}')
}

func (p *partnerPages) screenerAsset(query []byte) (*wire.Page, *wire.Problem) {
	id, bad := textParam(query, "id")
	if bad != nil {
		return nil, bad
	}
	if asset, ok := catalog.ScreenerAssetByID(p.facts(), id); ok {
		return wire.NewPage(catalog.Encode(asset)), nil
	}
	return nil, unknownNamed("id")
}

func (p *partnerPages) screenerPair(query []byte) (*wire.Page, *wire.Problem) {
	id, bad := textParam(query, "id")
	if bad != nil {
		return nil, bad
	}
	if pair, ok := catalog.ScreenerPairByID(p.facts(), id); ok {
		return wire.NewPage(catalog.Encode(pair)), nil
	}
	return nil, unknownNamed("id")
}

// swap is a trade with its instrument.
type swap struct {
	engine.Trade
	in *market.Instrument
}

// events serves DEX Screener's events: the swaps of the blocks fromBlock..toBlock, oldest
// first.
func (p *partnerPages) events(query []byte) (*wire.Page, *wire.Problem) {
	from, to, bad := blockRange(query)
	if bad != nil {
		return nil, bad
	}
	to = min(to, p.lastCompleteSeq())
	var all []swap
	for _, in := range p.instruments() {
		bad = p.scan(in, "fromBlock", func(t *engine.Trade) bool {
			if t.Seq >= from && t.Seq <= to {
				all = append(all, swap{*t, in})
			}
			return t.Seq >= from && len(all) <= MaxPartnerTrades
		})
		if bad != nil {
			return nil, bad
		}
		if len(all) > MaxPartnerTrades {
			return nil, &wire.Problem{
				Status: 400, Code: wire.CodeInvalidField, Field: "toBlock", Reason: "too_many_events",
				Text: "There are more than " + strconv.Itoa(MaxPartnerTrades) + " events in these blocks. Ask for fewer blocks.",
			}
		}
	}
	slices.SortFunc(all, func(a, b swap) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID)) })
	dst := append(make([]byte, 0, 64+400*len(all)), `{"events":[`...)
	index := 0
	for i := range all {
		if index++; i == 0 || all[i].Seq != all[i-1].Seq {
			index = 0
		}
		dst = appendSwap(appendComma(dst, i == 0), &all[i], index)
	}
	return wire.NewPage(append(dst, "]}"...)), nil
}

func blockRange(query []byte) (from, to uint64, bad *wire.Problem) {
	for _, one := range []struct {
		name string
		into *uint64
	}{{"fromBlock", &from}, {"toBlock", &to}} {
		if _, count := wire.Param(query, one.name); count == 0 {
			return 0, 0, wire.MissingField(one.name)
		}
		if *one.into, bad = numberParam(query, one.name, 0, math.MaxInt64); bad != nil {
			return 0, 0, bad
		}
	}
	if from > to {
		return 0, 0, &wire.Problem{
			Status: 400, Code: wire.CodeInvalidField, Field: "toBlock", Reason: "before_from", Text: "toBlock must not be before fromBlock.",
		}
	}
	return from, to, nil
}

// appendSwap appends an event. asset0 is the base token, so a buyer pays asset1. The
// trader is not published.
func appendSwap(dst []byte, s *swap, index int) []byte {
	dst = appendBlock(append(dst, `{"block":`...), &s.Trade)
	dst = strconv.AppendUint(append(dst, `,"eventType":"swap","txnId":"`...), s.Seq, 10)
	dst = strconv.AppendInt(append(dst, `","txnIndex":0,"eventIndex":`...), int64(index), 10)
	dst = append(append(dst, `,"maker":"undisclosed","pairId":"`...), catalog.Ticker(s.in.Symbol)...)
	base, quote := `","asset0Out":"`, `","asset1In":"`
	if s.Side == market.Sell {
		base, quote = `","asset0In":"`, `","asset1Out":"`
	}
	dst = s.in.AppendQty(append(dst, base...), s.Qty)
	dst = appendQuoteAmount(append(dst, quote...), s.in, &s.Trade)
	dst = s.in.AppendPrice(append(dst, `","priceNative":"`...), s.Price)
	return append(dst, `"}`...)
}
