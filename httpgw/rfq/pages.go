package rfq

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Refresh is the cycle (docs/specification.md 1.4), in nanoseconds: the maximum age of a
// document's ts and of its check for stale prices.
const Refresh = int64(10 * time.Second)

// document is a document of the desk.
type document uint8

const (
	docStatus document = iota
	docSellable
	docTickets
	docCompact
	docLevels
	docPairs
	docTokens
	docRails
	docManifest
	docDiscovery
	docBoard
	docDesk
	documentCount
)

// DeskReader has the methods of the desk that reads need. View returns the newest view, or nil before
// the first. It must not block, and a returned view must not change.
type DeskReader interface {
	View() *rfq.View
}

// pages renders and caches the desk's documents.
type pages struct {
	source DeskSource
	chain  terms.Settlement // nil = the chain is unavailable
	// health returns the chain's health; nil = unknown
	health    func() desk.ChainHealth
	network   func() string
	prices    func() []desk.AssetPrice // nil: no asset has a rule
	about     *wire.Description
	urls      catalog.URLs
	now       func() int64 // Unix nanoseconds
	startedAt int64        // when the service started

	snapshot  atomic.Pointer[snapshot]
	tickets   ticketCache
	cache     [documentCount]wire.PageCache[*snapshot]
	emptyView rfq.View // before the first view
}

// cycle is a span of Refresh, aligned to its multiples, with the mid prices of our books
// at its first read. Prices change only between cycles; otherwise a busy book would
// change the text of every ticket at every claim.
type cycle struct {
	from, until int64             // Unix nanoseconds
	midPrices   []market.USDPrice // by InstrumentID; 0 = none
}

// snapshot has the data that all documents of a view and a cycle share. It is immutable.
type snapshot struct {
	view  *rfq.View
	cycle *cycle
	// ts is the start of the cycle, the view's last change, or the last time at which a price
	// grew too old or a ticket expired, whichever is the latest, so that concurrent readers
	// render the same bytes. until is when the next of these happens.
	ts, until int64
	pairs     []pairState // by Instrument
	chain     chainState
	network   string // execution_network
	// sellable is the ticket that sells now; nil = none, and whyNot has the reason.
	sellable *rfq.Ticket
	whyNot   string
}

// pairState is a pair at a snapshot's time.
type pairState struct {
	*rfq.Pair
	in       *market.Instrument
	base     []byte          // the members base_mint and base_symbol
	min, max market.USDPrice // corridor of the reference price; 0 = no anchor yet

	reference market.USDPrice // reference price of the pair; 0 = none
	why       event.Reason    // why there is no reference price
	lock      *rfq.Lock       // lock of the whole pair; nil = none
	selling   market.Rails    // rails that have quotes
	closed    event.Reason    // why its first rail has none
}

func newPages(of DeskSource, o *Options) *pages {
	return &pages{
		source: of, chain: o.Backend.Settlement, health: o.Health, network: o.Network, prices: o.Prices, about: o.About, urls: o.URLs, now: o.Now, startedAt: o.Now(),
		tickets: ticketCache{about: o.About},
	}
}

// serve returns the reader of one document.
func (p *pages) serve(d document) func([]byte) (*wire.Page, *wire.Problem) {
	return func([]byte) (*wire.Page, *wire.Problem) { return p.get(d), nil }
}

// get returns the page of the newest view and the present cycle.
func (p *pages) get(d document) *wire.Page {
	e := p.current()
	if page := p.cache[d].Get(e); page != nil {
		return page
	}
	body := p.render(d, e)
	if d == docTickets || d == docCompact || d == docBoard {
		return p.cache[d].Put(e, &wire.Page{Body: body, ETag: bookETag(e.view.Seq, body)})
	}
	return p.cache[d].Put(e, wire.NewPage(body))
}

// bookETag returns the ETag of a list of the book: its Seq and two 32-bit checksums.
// SHA-256 of a large book would cost more than the rest of a change.
func bookETag(seq uint64, body []byte) []byte {
	etag := strconv.AppendUint(append(make([]byte, 0, 48), `"s`...), seq, 10)
	var sums [8]byte
	binary.BigEndian.PutUint32(sums[:4], crc32.Checksum(body, castagnoli))
	binary.BigEndian.PutUint32(sums[4:], crc32.ChecksumIEEE(body))
	etag = hex.AppendEncode(append(etag, '-'), sums[:])
	return append(etag, '"')
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// current returns the snapshot of the newest view and the present cycle.
func (p *pages) current() *snapshot {
	v, now := p.source.Desk.View(), p.now()
	if v == nil {
		v = &p.emptyView
	}
	old, chain, network := p.snapshot.Load(), p.chainState(), p.network()
	var c *cycle
	if old != nil && now >= old.cycle.from && now < old.cycle.until {
		if c = old.cycle; old.view == v && old.chain == chain && old.network == network && now < old.until {
			return old
		}
	} else {
		c = p.source.newCycle(now)
	}
	e := &snapshot{view: v, cycle: c, chain: chain, network: network, pairs: make([]pairState, 0, len(v.Pairs))}
	e.ts, e.until = lifetime(v, max(c.from, v.At), now, c.until)
	for i := range v.Pairs {
		if in := p.source.Instruments.Get(v.Pairs[i].Instrument); in != nil {
			e.pairs = append(e.pairs, pairAt(e, &v.Pairs[i], in))
		}
	}
	if e.sellable = v.SellableNow(c, e.ts); e.sellable == nil {
		e.whyNot = notSold(v, c, e.ts)
	}
	p.snapshot.Store(e)
	return e
}

// lifetime returns the latest time from at to now, and the earliest from now to until, at
// which what a view sells changes by itself: a price grows too old, or a ticket expires.
func lifetime(v *rfq.View, at, now, until int64) (from, to int64) {
	from, to = at, until
	changes := func(when int64) {
		if when <= now {
			from = max(from, when)
		} else {
			to = min(to, when)
		}
	}
	price := func(published, set, maxAge int64) {
		if since := cmp.Or(published, set); since != 0 && maxAge != 0 {
			changes(since + maxAge + 1)
		}
	}
	for i := range v.Pairs {
		price(v.Pairs[i].PublishedAt, v.Pairs[i].AnchorAt, v.Pairs[i].MaxAge)
	}
	for i := range v.RailPrices {
		price(v.RailPrices[i].PublishedAt, v.RailPrices[i].At, v.RailPrices[i].MaxAge)
	}
	for _, t := range v.Tickets {
		if t.ExpiresAt != 0 && t.State == rfq.TicketOpen {
			changes(t.ExpiresAt)
		}
	}
	return from, to
}

// noTicket is the reason why nothing is sold if no ticket is open (our choice).
const noTicket = "no_open_ticket"

// notSold returns why the ticket that would sell first is not sold: the reason of its first
// rail.
func notSold(v *rfq.View, books rfq.Prices, at int64) string {
	t := rfq.Sellable(v.Tickets)
	if t == nil {
		return noTicket
	}
	for r := market.RailUSDC; r < market.RailCount; r++ {
		if t.Rails.Has(r) {
			return v.SaleRefusal(t, r, books, at).String()
		}
	}
	return event.ReasonRailNotAccepted.String()
}

func (p *pages) render(d document, e *snapshot) []byte {
	switch d {
	case docSellable:
		return p.renderSellable(e)
	case docTickets:
		return p.renderTickets(e)
	case docCompact:
		return p.renderCompact(e)
	case docBoard:
		return p.renderBoard(e)
	case docLevels:
		return wire.Encode(levelsOf(&e.view.Policy))
	case docPairs:
		return wire.Encode(pairsOf(e))
	case docTokens:
		return wire.Encode(tokensOf(e))
	case docRails:
		return wire.Encode(railsDocument{OK: true, Active: activeRails(e.view), Priority: wire.Rails(market.AllRails)})
	case docManifest:
		return wire.Encode(p.manifest(e))
	case docDiscovery:
		return wire.Encode(p.discovery(e))
	case docDesk:
		return wire.Encode(p.deskStatus(e))
	default:
		return wire.Encode(p.status(e))
	}
}

// pair returns the pair of an instrument, or nil if the desk does not sell it.
func (e *snapshot) pair(id market.InstrumentID) *pairState {
	i, ok := slices.BinarySearchFunc(e.pairs, id, func(n pairState, id market.InstrumentID) int {
		return cmp.Compare(n.Instrument, id)
	})
	if !ok {
		return nil
	}
	return &e.pairs[i]
}
