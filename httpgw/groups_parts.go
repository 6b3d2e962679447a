package httpgw

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Documents about all instruments are made of the groups' parts. Each gateway
// asks the others for theirs all the time, so that no reader waits for a group,
// and one that does not answer is missed before it is asked for.

const (
	deskEvery  = time.Second              // between two looks at another group's desk and books
	factsEvery = time.Duration(refresh)   // and at its facts, which stand for a cycle
	partTime   = 2 * time.Second          // what one look may take
	partStale  = 5 * time.Second          // after which a desk that has not been seen is not shown
	factsStale = factsEvery + 2*partStale // and facts
	pathParts  = "/group/"                // of no route: only other gateways are answered
	partDesk   = pathParts + "desk"
	partFacts  = pathParts + "facts"
)

// deskPart is a group's desk and the tops of its books, as gob. Instruments are
// numbered as in the group.
type deskPart struct {
	Desk     bool
	View     rfq.View // without Sellable and Operators
	Sellable market.TicketID
	Books    []bookTop // by InstrumentID
	at       int64     // when it was asked for, on Options.Clock
	raw      []byte    // that it was decoded from
	tops     []engine.View
}

// bookTop is what prices are made of.
type bookTop struct {
	Status   uint8
	Bid, Ask market.Level // zero = none
}

// factsPart is a group's share of the catalog's facts, as gob.
type factsPart struct {
	Pairs  []catalog.Pair
	Tokens []catalog.Token
	Desk   catalog.Desk
	at     int64
}

// seen is what a group has shown last; nil = nothing yet.
type seen struct {
	desk  atomic.Pointer[deskPart]
	facts atomic.Pointer[factsPart]
}

// servePart answers another gateway, and nobody else: for everybody it is a path
// that there is not.
func (d *door) servePart(ctx *fasthttp.RequestCtx, path []byte) bool {
	g := d.g
	if !bytes.HasPrefix(path, []byte(pathParts)) || !ctx.IsGet() {
		return false
	}
	from, bad := g.groups.arrived(ctx)
	if from == nil || bad != nil {
		return false
	}
	var part any
	switch string(path) {
	case partDesk:
		part = g.deskPart()
	case partFacts:
		if g.wide.ownFacts == nil {
			return false
		}
		f := g.wide.ownFacts()
		part = &factsPart{Pairs: f.Pairs, Tokens: f.Tokens, Desk: f.Desk}
	default:
		return false
	}
	var out bytes.Buffer
	if err := gob.NewEncoder(&out).Encode(part); err != nil {
		panic("httpgw: a part that cannot be encoded: " + err.Error())
	}
	ctx.SetContentType("application/octet-stream")
	ctx.SetBody(out.Bytes())
	return true
}

func (g *Gateway) deskPart() *deskPart {
	p := &deskPart{Desk: g.desk != nil, Books: make([]bookTop, g.market.set.Len())}
	if p.Desk {
		v := g.deskView()
		p.View = *v
		if v.Sellable != nil {
			p.Sellable = v.Sellable.ID
		}
		p.View.Sellable, p.View.Operators = nil, nil
	}
	for i := range p.Books {
		v := g.market.view(market.InstrumentID(i))
		p.Books[i].Status = v.Status
		if len(v.Bids) > 0 {
			p.Books[i].Bid = v.Bids[0]
		}
		if len(v.Asks) > 0 {
			p.Books[i].Ask = v.Asks[0]
		}
	}
	return p
}

// decodeDeskPart reads a part, whose instruments get their numbers from first on;
// there are count of them, and what names others is an error.
func decodeDeskPart(raw []byte, first, count market.InstrumentID) (*deskPart, error) {
	p := &deskPart{raw: raw}
	if err := gob.NewDecoder(bytes.NewReader(raw)).Decode(p); err != nil {
		return nil, fmt.Errorf("httpgw: desk of a group: %w", err)
	}
	if len(p.Books) != int(count) {
		return nil, fmt.Errorf("httpgw: a group has %d instruments, and %d by our configuration", len(p.Books), count)
	}
	bad := false
	number := func(id *market.InstrumentID) {
		bad = bad || *id >= count
		*id += first
	}
	for i := range p.View.Pairs {
		pair := &p.View.Pairs[i]
		if number(&pair.Instrument); pair.Via != rfq.NoInstrument {
			number(&pair.Via)
		}
	}
	for i := range p.View.Locks {
		if l := &p.View.Locks[i]; l.Scope == rfq.LockPair {
			number(&l.Instrument)
		}
	}
	for _, t := range p.View.Tickets {
		if number(&t.Instrument); len(t.Tranches) > rfq.MaxTranches {
			bad = true
		}
	}
	if bad {
		return nil, fmt.Errorf("httpgw: a group's desk has instruments that it has not")
	}
	p.View.Sellable = p.View.Ticket(p.Sellable)
	p.tops = make([]engine.View, len(p.Books))
	for i := range p.tops {
		v, b := &p.tops[i], &p.Books[i]
		v.Instrument, v.Status = first+market.InstrumentID(i), b.Status
		if b.Bid != (market.Level{}) {
			v.Bids = []market.Level{b.Bid}
		}
		if b.Ask != (market.Level{}) {
			v.Asks = []market.Level{b.Ask}
		}
	}
	return p, nil
}

func decodeFactsPart(raw []byte) (*factsPart, error) {
	p := &factsPart{}
	if err := gob.NewDecoder(bytes.NewReader(raw)).Decode(p); err != nil {
		return nil, fmt.Errorf("httpgw: facts of a group: %w", err)
	}
	return p, nil
}

// follow keeps what one other group shows until ctx ends.
func (g *Gateway) follow(ctx context.Context, to *remoteGroup) error {
	ticks := time.NewTicker(deskEvery)
	defer ticks.Stop()
	factsDue := g.opts.Clock()
	for {
		now := g.opts.Clock()
		g.lookAtDesk(to, now)
		if g.wide.ownFacts != nil && now >= factsDue {
			if g.lookAtFacts(to, now) {
				factsDue = now + int64(factsEvery)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// partRoute stands for the parts' row in the table, which they have none of.
var partRoute = &route{method: methodGet, surfaces: onBase}

// look asks for one part; nil where it cannot be had now.
func (g *Gateway) look(to *remoteGroup, path string) []byte {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	said := &hop{from: g.groups.own, client: netip.IPv4Unspecified()}
	bad := g.groups.ask(to, partRoute, said, []byte(path), request, response, min(partTime, g.groups.timeout))
	if bad != nil || response.StatusCode() != fasthttp.StatusOK {
		return nil
	}
	return bytes.Clone(response.Body())
}

func (g *Gateway) lookAtDesk(to *remoteGroup, now int64) {
	raw := g.look(to, partDesk)
	if raw == nil {
		return
	}
	if old := to.seen.desk.Load(); old != nil && bytes.Equal(old.raw, raw) {
		same := *old
		same.at = now
		to.seen.desk.Store(&same)
		return
	}
	p, err := decodeDeskPart(raw, g.wide.first[to], market.InstrumentID(len(to.Instruments)))
	if err != nil {
		g.log.Warn("what another group shows cannot be used", "group", to.Name, "error", err)
		return
	}
	p.at = now
	to.seen.desk.Store(p)
}

func (g *Gateway) lookAtFacts(to *remoteGroup, now int64) bool {
	raw := g.look(to, partFacts)
	if raw == nil {
		return false
	}
	p, err := decodeFactsPart(raw)
	if err != nil {
		g.log.Warn("what another group shows cannot be used", "group", to.Name, "error", err)
		return false
	}
	p.at = now
	to.seen.facts.Store(p)
	return true
}
