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
	// ts is the start of the cycle or the view's last change, whichever is later, so that
	// concurrent readers render the same bytes.
	ts    int64
	pairs []pairState // by Instrument
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
}

func newPages(of DeskSource, o *Options) *pages {
	return &pages{
		source: of, chain: o.Backend.Settlement, health: o.Health, about: o.About, urls: o.URLs, now: o.Now, startedAt: o.Now(),
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
	old := p.snapshot.Load()
	var c *cycle
	if old != nil && now >= old.cycle.from && now < old.cycle.until {
		if c = old.cycle; old.view == v {
			return old
		}
	} else {
		c = p.source.newCycle(now)
	}
	e := &snapshot{view: v, cycle: c, ts: max(c.from, v.At), pairs: make([]pairState, 0, len(v.Pairs))}
	for i := range v.Pairs {
		if in := p.source.Instruments.Get(v.Pairs[i].Instrument); in != nil {
			e.pairs = append(e.pairs, pairAt(e, &v.Pairs[i], in))
		}
	}
	p.snapshot.Store(e)
	return e
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
		return wire.Encode(p.discovery())
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
