package httpgw

import (
	"cmp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"blockdesk/catalog"
	"blockdesk/engine/marketdata"
	"blockdesk/engine/rfq"
	marketapi "blockdesk/httpgw/market"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// mergedView presents all shards as one, for documents that list everything. Its
// instruments are those of this shard, with their numbers, and then those of the others
// in the order of the configuration. It leaves out the desk of a shard that is older
// than deskStale, because old prices and offers are no longer valid.
type mergedView struct {
	set      *market.Instruments
	own      catalog.Views
	desk     rfqapi.DeskReader // of this shard; nil = none
	ownFacts func() *catalog.Facts
	shards   *shardRouter
	first    map[*remoteShard]market.InstrumentID // number of a shard's first instrument
	shardOf  []*remoteShard                       // by InstrumentID; nil = this shard
	clock    func() int64

	merged atomic.Pointer[mergedDesk]
	facts  atomic.Pointer[mergedFacts]
}

// mergedDesk and mergedFacts are cached results with the inputs they were made from.
type mergedDesk struct {
	own   *rfq.View
	parts []*partialDesk // by remote shard; nil = stale
	view  *rfq.View
}

type mergedFacts struct {
	own   *catalog.Facts
	parts []*partialFacts
	live  []bool
	facts *catalog.Facts
}

// reasonUnreachable is the degradation reason of a pair whose shard cannot be reached (our
// choice).
const reasonUnreachable = "group_unreachable"

func newMergedView(o *Options, shards *shardRouter, desk terms.Desk, views catalog.Views, facts func() *catalog.Facts) (*mergedView, error) {
	w := &mergedView{
		own: views, shards: shards, first: map[*remoteShard]market.InstrumentID{}, clock: o.Clock, ownFacts: facts,
	}
	if desk != nil {
		w.desk = desk
	}
	var all []market.Instrument
	for i := range o.Instruments.Len() {
		all = append(all, *o.Instruments.Get(market.InstrumentID(i)))
		w.shardOf = append(w.shardOf, nil)
	}
	for _, to := range shards.all {
		w.first[to] = market.InstrumentID(len(all))
		for _, in := range to.Instruments {
			in.ID = market.InstrumentID(len(all))
			all = append(all, in)
			w.shardOf = append(w.shardOf, to)
		}
	}
	var err error
	w.set, err = market.NewInstruments(all)
	return w, err
}

// freshDesk returns the last desk of a shard, or nil if it is stale.
func (w *mergedView) freshDesk(to *remoteShard) *partialDesk {
	if p := to.last.desk.Load(); p != nil && w.clock()-p.at < int64(deskStale) {
		return p
	}
	return nil
}

// View returns the view of an instrument, or nil if there is none now. That of another
// shard's instrument has only the status and the best prices.
func (w *mergedView) View(id market.InstrumentID) *marketdata.View {
	to := w.shardOf[id]
	if to == nil {
		return w.own.View(id)
	}
	if p := w.freshDesk(to); p != nil {
		return &p.tops[id-w.first[to]]
	}
	return nil
}

// statusOf returns the status of another shard's instrument.
func (w *mergedView) statusOf(id market.InstrumentID) uint8 {
	if v := w.View(id); v != nil {
		return v.Status
	}
	return marketapi.StatusUnknown
}

// mergedDeskView is mergedView for [pages].
type mergedDeskView struct{ *mergedView }

// View returns the desks of all shards as one: the same value until one changes. Its Seq
// is that of this shard's desk.
func (w mergedDeskView) View() *rfq.View {
	own := w.desk.View()
	if own == nil {
		own = &rfq.View{}
	}
	if cached := w.merged.Load(); cached != nil && cached.isOf(own, w) {
		return cached.view
	}
	parts := make([]*partialDesk, len(w.shards.all))
	for i, to := range w.shards.all {
		parts[i] = w.freshDesk(to)
	}
	fresh := &mergedDesk{own: own, parts: parts, view: mergeDesks(own, parts)}
	w.merged.Store(fresh)
	return fresh.view
}

// isOf reports whether the inputs have not changed.
func (m *mergedDesk) isOf(own *rfq.View, w mergedDeskView) bool {
	if m.own != own && (own.Seq != 0 || m.own.Seq != 0) {
		return false
	}
	for i, to := range w.shards.all {
		a, b := m.parts[i], w.freshDesk(to)
		if a != b && (a == nil || b == nil || &a.raw[0] != &b.raw[0]) {
			return false
		}
	}
	return true
}

// mergeDesks appends the pairs, tickets and locks of the other desks to those of own.
// Policy and rails come from own, because they are configured alike in all shards.
func mergeDesks(own *rfq.View, parts []*partialDesk) *rfq.View {
	v := *own
	v.Pairs, v.Locks, v.Tickets = slices.Clone(own.Pairs), slices.Clone(own.Locks), slices.Clone(own.Tickets)
	for _, p := range parts {
		if p == nil || !p.Enabled {
			continue
		}
		v.At = max(v.At, p.At)
		v.Pairs = append(v.Pairs, p.Pairs...)
		v.Tickets = append(v.Tickets, p.Tickets...)
		for _, l := range p.Locks {
			switch l.Scope {
			case rfq.LockPair:
				v.Locks = append(v.Locks, l)
			case rfq.LockAll, rfq.LockClock: // locks the pairs of that shard only
				for i := range p.Pairs {
					if of := p.Pairs[i].Instrument; l.Locked {
						v.Locks = append(v.Locks, rfq.Lock{Scope: rfq.LockPair, Instrument: of, Locked: true, Since: l.Since, Reason: l.Reason})
					}
				}
			case rfq.LockDeliveries: // shown once, locked if it is in any shard
				v.Locks = mergeDeliveries(v.Locks, l)
			}
		}
	}
	slices.SortFunc(v.Tickets, func(a, b *rfq.Ticket) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(v.Locks, func(a, b rfq.Lock) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Instrument, b.Instrument), cmp.Compare(a.Rail, b.Rail))
	})
	return &v
}

// mergeDeliveries adds a shard's lock of deliveries to a list that has at most one.
func mergeDeliveries(list []rfq.Lock, l rfq.Lock) []rfq.Lock {
	l.By = 0 // an operator of another shard
	at := slices.IndexFunc(list, func(x rfq.Lock) bool { return x.Scope == rfq.LockDeliveries })
	switch {
	case at < 0:
		return append(list, l)
	case l.Locked && !list[at].Locked:
		list[at] = l
	}
	return list
}

// Facts returns the facts of all shards as one, those of this shard first. For a shard
// whose facts are older than factsStale it returns only what does not change, with the
// reason.
func (w *mergedView) Facts() *catalog.Facts {
	own := w.ownFacts()
	if cached := w.facts.Load(); cached != nil && cached.isOf(own, w) {
		return cached.facts
	}
	parts, live := make([]*partialFacts, len(w.shards.all)), make([]bool, len(w.shards.all))
	for i, to := range w.shards.all {
		parts[i], live[i] = w.factsOf(to)
	}
	f := *own
	f.Pairs, f.Tokens = slices.Clone(own.Pairs), slices.Clone(own.Tokens)
	for i, p := range parts {
		switch {
		case p == nil:
		case live[i]:
			f.Pairs = append(f.Pairs, p.Pairs...)
			addDesk(&f.Desk, &p.Desk)
			addTokens(&f, p.Tokens)
		default:
			for j := range p.Pairs {
				f.Pairs = append(f.Pairs, unreachablePair(&p.Pairs[j]))
			}
			addTokens(&f, p.Tokens)
		}
	}
	fresh := &mergedFacts{own: own, parts: parts, live: live, facts: &f}
	w.facts.Store(fresh)
	return fresh.facts
}

// factsOf returns the last facts of a shard, and whether they are fresh.
func (w *mergedView) factsOf(to *remoteShard) (p *partialFacts, live bool) {
	p = to.last.facts.Load()
	return p, p != nil && w.clock()-p.at < int64(factsStale)
}

// isOf reports whether the inputs have not changed.
func (m *mergedFacts) isOf(own *catalog.Facts, w *mergedView) bool {
	if m.own != own {
		return false
	}
	for i, to := range w.shards.all {
		if p, live := w.factsOf(to); m.parts[i] != p || m.live[i] != live {
			return false
		}
	}
	return true
}

// unreachablePair returns a pair reduced to its configuration.
func unreachablePair(p *catalog.Pair) catalog.Pair {
	never := catalog.Window{Status: catalog.WindowUnproven, Why: reasonUnreachable}
	return catalog.Pair{
		Symbol: p.Symbol, Base: p.Base, Quote: p.Quote, Source: p.Source, Unreachable: true, PriceDecimals: p.PriceDecimals, QtyDecimals: p.QtyDecimals,
		Tick: p.Tick, Lot: p.Lot, MinQty: p.MinQty, Epoch: p.Epoch, PriceSource: catalog.NoPrice,
		BaseVolume24h: catalog.Decimal{Decimals: p.BaseVolume24h.Decimals}, QuoteVolume24h: catalog.Decimal{Decimals: p.QuoteVolume24h.Decimals},
		Windows: catalog.Windows{Day: never, Week: never}, Reasons: []string{reasonUnreachable},
	}
}

func addDesk(sum, d *catalog.Desk) {
	sum.Enabled = sum.Enabled || d.Enabled
	sum.OpenTickets += d.OpenTickets
	sum.CapacityUSD += d.CapacityUSD
	sum.AvailableUSD += d.AvailableUSD
	sum.ReservedUSD += d.ReservedUSD
	sum.SettledUSD += d.SettledUSD
	sum.FeesUSD += d.FeesUSD
	sum.UnderWay += d.UnderWay
	sum.RefundsDue += d.RefundsDue
	sum.RefundsUSDC += d.RefundsUSDC
	sum.RefundsSOL += d.RefundsSOL
	sum.Unmatched += d.Unmatched
	sum.UnmatchedUSDC += d.UnmatchedUSDC
	sum.UnmatchedSOL += d.UnmatchedSOL
}

// addTokens adds new tokens, and the mint of a token that only the other shard knows.
func addTokens(f *catalog.Facts, tokens []catalog.Token) {
	for i := range tokens {
		at := slices.IndexFunc(f.Tokens, func(t catalog.Token) bool { return t.Symbol == tokens[i].Symbol })
		switch {
		case at < 0:
			f.Tokens = append(f.Tokens, tokens[i])
		case f.Tokens[at].Mint == "" && tokens[i].Mint != "":
			role := f.Tokens[at].Role
			f.Tokens[at] = tokens[i]
			f.Tokens[at].Role = max(role, tokens[i].Role)
		}
	}
}

// shardsHeader names the shards that a document covers.
var shardsHeader = []byte("X-Groups")

// appendShardAges appends the value of X-Groups: this shard, then each other shard with
// the age of its data, or ";unreachable" if its data is left out.
func (w *mergedView) appendShardAges(dst []byte, of wire.Merged) []byte {
	dst = append(dst, w.shards.name...)
	for _, to := range w.shards.all {
		dst = append(append(dst, ", "...), to.Name...)
		at, stale := int64(0), int64(deskStale)
		if p := to.last.desk.Load(); p != nil && of == wire.MergedDesks {
			at = p.at
		}
		if p := to.last.facts.Load(); p != nil && of == wire.MergedFacts {
			at, stale = p.at, int64(factsStale)
		}
		age := w.clock() - at
		if at == 0 || age >= stale {
			dst = append(dst, ";unreachable"...)
			continue
		}
		dst = strconv.AppendInt(append(dst, ";age_ms="...), age/int64(time.Millisecond), 10)
	}
	return dst
}
