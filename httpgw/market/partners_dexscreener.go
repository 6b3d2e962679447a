package market

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"

	"blockdesk/catalog"
	"blockdesk/engine/marketdata"
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
func (p *partnerPages) newestTrade() (newest marketdata.Trade, bad *wire.Problem) {
	last := p.lastCompleteSeq()
	for _, in := range p.instruments() {
		bad = p.scan(in, 0, "", func(t *marketdata.Trade) bool {
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

func appendBlock(dst []byte, t *marketdata.Trade) []byte {
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

// swap is a trade with its instrument, and its swap on the chain if it is known.
type swap struct {
	marketdata.Trade
	in    *market.Instrument
	chain ChainSwap
}

// events serves DEX Screener's events: the swaps of the blocks fromBlock..toBlock, oldest
// first. Any range can be read, in ranges of at most MaxPartnerEvents events, or a block
// alone, which may have MaxBlockEvents.
func (p *partnerPages) events(query []byte) (*wire.Page, *wire.Problem) {
	from, to, bad := blockRange(query)
	if bad != nil {
		return nil, bad
	}
	most := MaxPartnerEvents
	if from == to {
		most = MaxBlockEvents
	}
	to = min(to, p.lastCompleteSeq())
	var all []swap
	for _, in := range p.instruments() {
		before, err := p.firstAfter(in, to)
		if err != nil {
			return nil, historyFailed(err)
		}
		begin := len(all)
		bad = p.scanUpTo(max(MaxPartnerScan, most+1), in, before, "toBlock", func(t *marketdata.Trade) bool {
			if t.Seq >= from && t.Seq <= to {
				all = append(all, swap{Trade: *t, in: in})
			}
			return t.Seq >= from && len(all) <= most
		})
		if bad != nil && bad.Status != 400 {
			return nil, bad
		}
		if bad != nil || len(all) > most {
			return nil, &wire.Problem{
				Status: 400, Code: wire.CodeInvalidField, Field: "toBlock", Reason: "too_many_events",
				Text: "There are more than " + strconv.Itoa(most) + " events in these blocks. Ask for fewer blocks.",
			}
		}
		p.addChainSwaps(in, all[begin:])
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

// firstAfter returns the id of an instrument's first trade after the block to; 0 if there
// is none. Ids grow with blocks, so it halves the range of ids with each read.
func (p *partnerPages) firstAfter(in *market.Instrument, to uint64) (market.TradeID, error) {
	if p.history == nil {
		return 0, nil
	}
	newest, err := p.history.Trades(in.ID, 0, 1)
	if err != nil || len(newest) == 0 || newest[0].Seq <= to {
		return 0, err
	}
	lowest, after := market.TradeID(0), newest[0].ID
	for lowest+1 < after {
		middle := lowest + (after-lowest)/2
		t, err := p.history.Trades(in.ID, middle+1, 1) // the newest up to middle
		if err != nil {
			return 0, err
		}
		if len(t) == 0 || t[0].Seq <= to {
			lowest = middle
		} else {
			after = t[0].ID
		}
	}
	return after, nil
}

// addChainSwaps adds to the trades of a mirrored instrument, newest first, what the chain
// has of them. Without it a trade is published as the engine has it.
func (p *partnerPages) addChainSwaps(in *market.Instrument, trades []swap) {
	if p.swaps == nil || in.Source != market.Mirrored {
		return
	}
	for len(trades) > 0 {
		part := trades[:min(len(trades), MaxChainSwaps)]
		trades = trades[len(part):]
		from, to := part[len(part)-1].Ordinal, part[0].Ordinal
		if from == 0 || to-from >= MaxChainSwaps {
			continue // from before the instrument was mirrored
		}
		list, err := p.swaps.ChainSwaps(in.ID, from, to)
		if err != nil {
			return // the store's readiness check reports the error
		}
		for i := range part {
			if at := part[i].Ordinal - from; at < uint64(len(list)) {
				part[i].chain = list[at]
			}
		}
	}
}

// appendSwap appends an event. asset0 is the base token, so a buyer pays asset1. A swap of
// the chain has its transaction, its fee payer and its atoms; the traders of our own book
// are not published.
func appendSwap(dst []byte, s *swap, index int) []byte {
	c := &s.chain
	onChain := c.Signature != [64]byte{}
	dst = appendBlock(append(dst, `{"block":`...), &s.Trade)
	dst = append(dst, `,"eventType":"swap","txnId":`...)
	if onChain {
		dst = wire.AppendSignature(dst, &c.Signature)
	} else {
		dst = append(strconv.AppendUint(append(dst, '"'), s.Seq, 10), '"')
	}
	dst = strconv.AppendInt(append(dst, `,"txnIndex":0,"eventIndex":`...), int64(index), 10)
	dst = append(dst, `,"maker":"`...)
	if onChain {
		dst = append(dst, c.Payer...)
	} else {
		dst = append(dst, "undisclosed"...)
	}
	dst = append(append(dst, `","pairId":"`...), catalog.Ticker(s.in.Symbol)...)
	base, quote := `","asset0Out":"`, `","asset1In":"`
	if s.Side == market.Sell {
		base, quote = `","asset0In":"`, `","asset1Out":"`
	}
	if !onChain {
		dst = s.in.AppendQty(append(dst, base...), s.Qty)
		dst = appendQuoteAmount(append(dst, quote...), s.in, &s.Trade)
		dst = s.in.AppendPrice(append(dst, `","priceNative":"`...), s.Price)
		return append(dst, `"}`...)
	}
	dst = market.Uint128{Lo: uint64(c.Base)}.AppendDecimal(append(dst, base...), c.BaseDecimals)
	dst = market.Uint128{Lo: uint64(c.Quote)}.AppendDecimal(append(dst, quote...), c.QuoteDecimals)
	dst = c.appendPrice(append(dst, `","priceNative":"`...))
	dst = strconv.AppendUint(append(dst, `","metadata":{"slot":"`...), c.Slot, 10)
	return append(dst, `"}}`...)
}

// appendPrice appends the quote amount divided by the base amount, rounded down to 18
// decimals.
func (c *ChainSwap) appendPrice(dst []byte) []byte {
	const decimals = 18
	power := func(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
	n := new(big.Int).Mul(new(big.Int).SetUint64(uint64(c.Quote)), power(decimals+c.BaseDecimals))
	n.Quo(n, new(big.Int).Mul(new(big.Int).SetUint64(uint64(max(c.Base, 1))), power(c.QuoteDecimals)))
	text := fmt.Sprintf("%0*s", decimals+1, n)
	return append(append(append(dst, text[:len(text)-decimals]...), '.'), text[len(text)-decimals:]...)
}
