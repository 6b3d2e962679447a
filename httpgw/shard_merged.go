package httpgw

import (
	"cmp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/engine/rfq"
	marketapi "blockdesk/httpgw/market"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// wideView is all groups as one, for the documents that list everything. Its
// instruments are ours, with our numbers, and then the others' in the order of
// the configuration. What another group has not shown for deskStale is left out:
// a price or an offer of then is none of now.
type wideView struct {
	set      *market.Instruments
	own      catalog.Views
	desk     rfqapi.DeskReader // ours; nil = none
	ownFacts func() *catalog.Facts
	shards   *shardRouter
	first    map[*remoteShard]market.InstrumentID // number of its first instrument
	shardOf  []*remoteShard                       // by InstrumentID; nil = ours
	clock    func() int64

	merged atomic.Pointer[mergedDesk]
	facts  atomic.Pointer[mergedFacts]
}

// mergedDesk and mergedFacts are good for what they are made of.
type mergedDesk struct {
	own   *rfq.View
	parts []*partialDesk // by remote group; nil = not seen lately
	view  *rfq.View
}

type mergedFacts struct {
	own   *catalog.Facts
	parts []*partialFacts
	live  []bool
	facts *catalog.Facts
}

// reasonUnreachable is why a pair of another group shows less than it should (our
// choice).
const reasonUnreachable = "group_unreachable"

func newMergedView(g *Gateway, views catalog.Views, facts func() *catalog.Facts) (*wideView, error) {
	w := &wideView{
		own: views, shards: g.shards, first: map[*remoteShard]market.InstrumentID{}, clock: g.opts.Clock, ownFacts: facts,
	}
	if g.desk != nil {
		w.desk = g.desk
	}
	var all []market.Instrument
	for i := range g.opts.Instruments.Len() {
		all = append(all, *g.opts.Instruments.Get(market.InstrumentID(i)))
		w.shardOf = append(w.shardOf, nil)
	}
	for _, to := range g.shards.all {
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

// lately returns what a group's desk has shown, nil where that is too long ago.
func (w *wideView) freshDesk(to *remoteShard) *partialDesk {
	if p := to.last.desk.Load(); p != nil && w.clock()-p.at < int64(deskStale) {
		return p
	}
	return nil
}

// View returns a view of one of all instruments; of another group's it has the
// status and the best prices. nil = nothing is known now.
func (w *wideView) View(id market.InstrumentID) *engine.View {
	to := w.shardOf[id]
	if to == nil {
		return w.own.View(id)
	}
	if p := w.freshDesk(to); p != nil {
		return &p.tops[id-w.first[to]]
	}
	return nil
}

// statusOf returns the status of an instrument of another group.
func (w *wideView) statusOf(id market.InstrumentID) uint8 {
	if v := w.View(id); v != nil {
		return v.Status
	}
	return marketapi.StatusUnknown
}

// mergedDeskView is wideView for [pages].
type mergedDeskView struct{ *wideView }

// View returns the desks of all groups as one. It is the same until one changes.
// Its Seq is our desk's.
func (w mergedDeskView) View() *rfq.View {
	own := w.desk.View()
	if own == nil {
		own = &rfq.View{}
	}
	if kept := w.merged.Load(); kept != nil && kept.isOf(own, w) {
		return kept.view
	}
	parts := make([]*partialDesk, len(w.shards.all))
	for i, to := range w.shards.all {
		parts[i] = w.freshDesk(to)
	}
	fresh := &mergedDesk{own: own, parts: parts, view: mergeDesks(own, parts)}
	w.merged.Store(fresh)
	return fresh.view
}

// isOf reports whether nothing has changed of what it is made of.
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

// mergeDesks puts the pairs, tickets and locks of other desks behind ours. Policy
// and rails are ours: all groups are configured alike.
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
			case rfq.LockAll: // of that group: it keeps its pairs shut, and not ours
				for i := range p.Pairs {
					if of := p.Pairs[i].Instrument; l.Locked {
						v.Locks = append(v.Locks, rfq.Lock{Scope: rfq.LockPair, Instrument: of, Locked: true, Since: l.Since, Reason: l.Reason})
					}
				}
			}
		}
	}
	slices.SortFunc(v.Tickets, func(a, b *rfq.Ticket) int { return cmp.Compare(a.ID, b.ID) })
	v.Sellable = rfq.Sellable(v.Tickets)
	slices.SortStableFunc(v.Locks, func(a, b rfq.Lock) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Instrument, b.Instrument), cmp.Compare(a.Rail, b.Rail))
	})
	return &v
}

// Facts returns the facts of all groups as one, ours first. Of a group that has
// not shown its own for factsStale only what does not change is told, and why.
func (w *wideView) Facts() *catalog.Facts {
	own := w.ownFacts()
	if kept := w.facts.Load(); kept != nil && kept.isOf(own, w) {
		return kept.facts
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

// factsOf returns the facts that a group has shown last, and whether they stand.
func (w *wideView) factsOf(to *remoteShard) (p *partialFacts, live bool) {
	p = to.last.facts.Load()
	return p, p != nil && w.clock()-p.at < int64(factsStale)
}

// isOf reports whether nothing has changed of what they are made of.
func (m *mergedFacts) isOf(own *catalog.Facts, w *wideView) bool {
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

// unseen is a pair of which only the configuration is known now.
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
	sum.UnderWay += d.UnderWay
	sum.RefundsDue += d.RefundsDue
	sum.RefundsUSDC += d.RefundsUSDC
	sum.RefundsSOL += d.RefundsSOL
}

// addTokens adds those that are new, and what another group knows more of one.
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

// shardsHeader names the groups that a list is made of.
var shardsHeader = []byte("X-Groups")

// appendShardAges appends the value of X-Groups: ours, then each other group with the
// age of what it has shown, or that it is not in the answer.
func (w *wideView) appendShardAges(dst []byte, of wire.Merged) []byte {
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
