// Package marketdata answers the market data requests of FIX clients: books and trades (V →
// W and X), the trading status of an instrument (e → f), and the instruments themselves
// (x → y, c → d). It sends through package session, and holds no order.
//
// A book is read from the immutable views of a Source, never from the matcher. Subscribers
// with the same options share a channel, whose increment is made once. A client that is
// slow misses increments and gets a snapshot instead (it is conflated); trades that no
// longer fit are dropped and counted. Statuses follow the durable events, so that a status
// is never ahead of the reports of the same session.
//
// Limits: a limit of subscriptions a session, of either kind; maxWaitingTrades.
package marketdata

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/engine/marketdata"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Source is where snapshots come from: feed.Feed. Its methods may be called from any goroutine.
// A nil view = nothing yet.
type Source interface {
	View(market.InstrumentID) *marketdata.View
	// WantOrders makes the views of an instrument have their orders, from one on that comes
	// soon, until release is called; false = it has none.
	WantOrders(market.InstrumentID) (release func(), ok bool)
}

// Limits of market data.
const (
	// maxWaitingTrades is how many trades of an instrument wait for their message;
	// beyond it the oldest are dropped and counted.
	maxWaitingTrades = 1024
	// StaleBytes is how much a client may be behind before its increments are replaced
	// by one snapshot, sent when it has caught up.
	StaleBytes = 64 << 10
	// staleTick is the pause between two looks at clients that are behind.
	staleTick = 100 * time.Millisecond
)

// Books serves subscriptions to books and trades (V, W, X). Update stores views for Run and
// returns; Run makes one increment of all stored updates. An increment is encoded once for
// all subscribers with the same instrument, depth, entry types and choice of custom fields.
//
// A subscriber that does not keep up gets no increments: a snapshot replaces them. All
// subscribers of a channel share its last view, so an increment fits for each of them.
type Books struct {
	server      *session.Server
	source      Source
	instruments *market.Instruments
	limit       int           // subscriptions of a session
	wake        chan struct{} // capacity 1

	pendingMu sync.Mutex // guards pending; never held while sending
	pending   map[market.InstrumentID]*pendingUpdate

	mu            sync.Mutex
	channels      map[market.InstrumentID][]*channel
	subscriptions map[*session.Session]map[string][]*member // by MDReqID
	out           session.Outbox
	body          []byte

	listening          atomic.Int64 // channels
	conflated, dropped atomic.Uint64
}

// pendingUpdate has the changes of one instrument that are not sent yet.
type pendingUpdate struct {
	next   *marketdata.View
	trades []marketdata.Trade // oldest first
}

// channel is one stream of increments.
type channel struct {
	wire.BookFormat
	last    *marketdata.View // the view that every member has, unless it is stale
	members []*member
	release func() // of the source's orders; nil = the channel has levels
}

// ready reports whether last is complete: while it lacks the channel's orders, all members wait
// for their snapshot.
func (c *channel) ready() bool { return !c.Orders || c.last.Orders != nil }

// member is one session's subscription to a channel.
type member struct {
	session *session.Session
	reqID   string
	channel *channel
	stale   bool // gets a snapshot next
}

// NewBooks returns the books of source; nil = no market data. limit is how many instruments
// a session may subscribe to.
func NewBooks(v *session.Server, source Source, instruments *market.Instruments, limit int) *Books {
	return &Books{
		server: v, source: source, instruments: instruments, limit: limit, wake: make(chan struct{}, 1),
		pending:       make(map[market.InstrumentID]*pendingUpdate),
		channels:      make(map[market.InstrumentID][]*channel),
		subscriptions: make(map[*session.Session]map[string][]*member),
	}
}

// Update stores a view, and never blocks for long. While there is no channel it does
// nothing: a channel that begins counts itself before it reads its first view, which the
// feed has stored before it calls.
func (m *Books) Update(next *marketdata.View, trades []marketdata.Trade) {
	if m.listening.Load() == 0 {
		return
	}
	m.pendingMu.Lock()
	b := m.pending[next.Instrument]
	if b == nil {
		b = &pendingUpdate{}
		m.pending[next.Instrument] = b
	}
	b.next = next
	b.trades = append(b.trades, trades...)
	if over := len(b.trades) - maxWaitingTrades; over > 0 {
		m.dropped.Add(uint64(over))
		b.trades = append(b.trades[:0], b.trades[over:]...)
	}
	m.pendingMu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends or a store fails.
func (m *Books) Run(ctx context.Context) error {
	tick := time.NewTicker(staleTick)
	defer tick.Stop()
	for {
		select {
		case <-m.wake:
			if err := m.publish(); err != nil {
				return err
			}
		case <-tick.C:
			if err := m.refresh(); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// publish sends the pending updates.
func (m *Books) publish() error {
	m.pendingMu.Lock()
	boxes := m.pending
	m.pending = make(map[market.InstrumentID]*pendingUpdate, len(boxes))
	m.pendingMu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(boxes)) {
		for _, c := range m.channels[id] {
			if err := m.advance(c, boxes[id]); err != nil {
				return err
			}
		}
	}
	return nil
}

// advance brings the members of c to the view of b.
func (m *Books) advance(c *channel, b *pendingUpdate) error {
	ready := c.ready()
	switch {
	case c.Orders && b.next.Orders == nil, ready && b.next.EngineSeq <= c.last.EngineSeq:
		return nil
	case !ready:
		c.last = b.next
	default:
		var entries int
		m.body, entries = c.AppendIncrement(m.body[:0], c.last, b.next, b.trades)
		if c.last = b.next; entries == 0 {
			return nil
		}
	}
	for _, member := range c.members {
		if member.behind() {
			member.stale = true
			m.conflated.Add(1)
			continue
		}
		if member.stale {
			if err := m.snapshot(member); err != nil {
				return err
			}
			continue
		}
		if err := m.send(member, "X", m.body); err != nil {
			return err
		}
	}
	return nil
}

// refresh sends a snapshot to the members that have caught up.
func (m *Books) refresh() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, requests := range m.subscriptions {
		for _, members := range requests {
			for _, member := range members {
				if member.stale && member.channel.ready() && !member.behind() {
					if err := m.snapshot(member); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// behind reports whether the client has not read the bytes that were sent to it.
func (m *member) behind() bool { return m.session.Behind(StaleBytes) }

func (m *Books) snapshot(to *member) error {
	if to.stale = !to.channel.ready(); to.stale {
		return nil
	}
	return m.send(to, "W", to.channel.AppendSnapshot(nil, to.channel.last))
}

func (m *Books) send(to *member, msgType string, body []byte) error {
	m.out.Scratch = append(append(m.out.Scratch[:0], to.reqID...), body...)
	return m.out.Send(to.session, msgType, wire.TagMDReqID, m.out.Scratch, false)
}

// view returns the present view of an instrument, an empty one before the first.
func (m *Books) view(in *market.Instrument) *marketdata.View {
	if m.source != nil {
		if v := m.source.View(in.ID); v != nil {
			return v
		}
	}
	return &marketdata.View{Instrument: in.ID}
}

// subscribe adds a session to the channels of r and sends the snapshots.
func (m *Books) subscribe(s *session.Session, r *wire.MarketDataRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	requests := m.subscriptions[s]
	if requests == nil {
		requests = make(map[string][]*member)
		m.subscriptions[s] = requests
	}
	for _, in := range r.Instruments {
		c := m.channel(in, r)
		member := &member{session: s, reqID: string(r.ReqID), channel: c}
		c.members = append(c.members, member)
		requests[member.reqID] = append(requests[member.reqID], member)
		if err := m.snapshot(member); err != nil {
			return err
		}
	}
	return nil
}

// channel returns the channel of a request on one instrument. It needs mu.
func (m *Books) channel(in *market.Instrument, r *wire.MarketDataRequest) *channel {
	format := r.Format(in)
	for _, c := range m.channels[in.ID] {
		if c.BookFormat == format {
			return c
		}
	}
	m.listening.Add(1)
	c := &channel{BookFormat: format}
	if c.Orders {
		c.release, _ = m.source.WantOrders(in.ID)
	}
	c.last = m.view(in)
	m.channels[in.ID] = append(m.channels[in.ID], c)
	return c
}

// count returns how many instruments a session has subscribed to, and whether
// it uses the request id.
func (m *Books) count(s *session.Session, reqID []byte) (n int, used bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	requests := m.subscriptions[s]
	for _, members := range requests {
		n += len(members)
	}
	_, used = requests[string(reqID)]
	return n, used
}

// unsubscribe ends a subscription and reports whether there was one.
func (m *Books) unsubscribe(s *session.Session, reqID []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	members, ok := m.subscriptions[s][string(reqID)]
	m.remove(members)
	delete(m.subscriptions[s], string(reqID))
	return ok
}

// Drop ends all subscriptions of a session.
func (m *Books) Drop(s *session.Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, members := range m.subscriptions[s] {
		m.remove(members)
	}
	delete(m.subscriptions, s)
}

// remove takes members out of their channels, and ends channels without any. It
// needs mu.
func (m *Books) remove(members []*member) {
	for _, gone := range members {
		c := gone.channel
		c.members = slices.DeleteFunc(c.members, func(x *member) bool { return x == gone })
		if len(c.members) == 0 {
			id := c.Instrument.ID
			m.listening.Add(-1)
			if c.release != nil {
				c.release()
			}
			m.channels[id] = slices.DeleteFunc(m.channels[id], func(x *channel) bool { return x == c })
			if len(m.channels[id]) == 0 {
				delete(m.channels, id)
			}
		}
	}
}

// Followed reports whether anyone has a subscription. Any goroutine.
func (m *Books) Followed() bool { return m.listening.Load() > 0 }

// Counts returns the number of subscriptions, and how many updates were conflated and
// how many subscriptions dropped so far.
func (m *Books) Counts() (subscriptions int, conflated, dropped uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, requests := range m.subscriptions {
		for _, members := range requests {
			subscriptions += len(members)
		}
	}
	return subscriptions, m.conflated.Load(), m.dropped.Load()
}

// Request handles a V, on the session's goroutine.
func (m *Books) Request(s *session.Session, frame []byte) *wire.Reject {
	r, refusal := wire.DecodeMarketData(frame, m.instruments, m.limit)
	switch {
	case refusal != nil:
		return m.refuse(s, &r, refusal)
	case m.source == nil:
		return wire.BusinessReject(wire.RejNotAvailable, r.ReqID, wire.CodeUnsupported+": no market data on this node")
	}
	r.Custom = s.Custom.Load()
	if r.Action == '2' {
		if !m.unsubscribe(s, r.ReqID) {
			return m.refuse(s, &r, wire.Refuse(0, wire.CodeUnknownSubscription, "MDReqID (262) %.64q", r.ReqID))
		}
		return nil
	}
	n, used := m.count(s, r.ReqID)
	if used {
		return m.refuse(s, &r, wire.Refuse('1', wire.CodeInvalidField, "MDReqID (262) %.64q is in use", r.ReqID))
	}
	if r.Orders {
		if in := m.withoutOrders(&r); in != nil {
			return m.refuse(s, &r, wire.Refuse('7', wire.CodeUnsupported, "AggregatedBook (266) N: %s has no orders", in.Symbol))
		}
	}
	if r.Action == '0' {
		for _, in := range r.Instruments {
			format := r.Format(in)
			s.Out.Scratch = append(s.Out.Scratch[:0], r.ReqID...)
			s.Out.Scratch = format.AppendSnapshot(s.Out.Scratch, m.view(in))
			s.Send("W", wire.TagMDReqID, s.Out.Scratch, false)
		}
		return nil
	}
	if n+len(r.Instruments) > m.limit {
		return m.refuse(s, &r, wire.Refuse('2', wire.CodeOverloaded, "more than %d subscriptions of a session", m.limit))
	}
	if err := m.subscribe(s, &r); err != nil {
		m.server.Fail(err)
	}
	return nil
}

// withoutOrders returns the first instrument of r whose source has no orders, or nil.
func (m *Books) withoutOrders(r *wire.MarketDataRequest) *market.Instrument {
	for _, in := range r.Instruments {
		release, ok := m.source.WantOrders(in.ID)
		if !ok {
			return in
		}
		release()
	}
	return nil
}

func (m *Books) refuse(s *session.Session, r *wire.MarketDataRequest, refusal *wire.Refusal) *wire.Reject {
	m.server.Rejects.Add(1)
	s.Out.Scratch = append(s.Out.Scratch[:0], r.ReqID[:min(len(r.ReqID), wire.MaxMDReqID)]...)
	if refusal.Reason != 0 {
		s.Out.Scratch = append(append(s.Out.Scratch, "\x01281="...), byte(refusal.Reason))
	}
	s.Out.Scratch = wire.AppendText(append(s.Out.Scratch, "\x0158="...), refusal.Text)
	s.Send("Y", wire.TagMDReqID, s.Out.Scratch, false)
	return nil
}
