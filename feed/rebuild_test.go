package feed

import (
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fasthttp/websocket"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/marketdata"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// clientBook is a client's book of one symbol, built from the messages' text as an
// integrator would.
type clientBook struct {
	seq        uint64
	epoch      string
	bids, asks map[string]string
}

// apply applies an l2 message and returns what is wrong with it.
func (b *clientBook) apply(m *msg) error {
	switch {
	case m.Type == "snapshot":
		b.bids, b.asks = map[string]string{}, map[string]string{}
	case m.PrevSeq != b.seq || m.Seq != b.seq+1 || m.Epoch != b.epoch:
		return fmt.Errorf("a gap: at %s %d, then %s", b.epoch, b.seq, m.raw)
	}
	b.seq, b.epoch = m.Seq, m.Epoch
	for _, side := range []struct {
		levels map[string]string
		change [][2]string
	}{{b.bids, m.Bids}, {b.asks, m.Asks}} {
		for _, l := range side.change {
			if l[1] != "0" {
				side.levels[l[0]] = l[1]
				continue
			}
			if _, there := side.levels[l[0]]; !there {
				return fmt.Errorf("level %s is deleted but was not there: %s", l[0], m.raw)
			}
			delete(side.levels, l[0])
		}
	}
	if sum := b.checksum(); sum != m.Checksum {
		return fmt.Errorf("checksum %d of the book, %d of the message: %s", sum, m.Checksum, m.raw)
	}
	return nil
}

// side returns the levels best first.
func side(levels map[string]string, bids bool) [][2]string {
	list := make([][2]string, 0, len(levels))
	for p, q := range levels {
		list = append(list, [2]string{p, q})
	}
	sort.Slice(list, func(i, j int) bool {
		a, _ := strconv.ParseFloat(list[i][0], 64)
		b, _ := strconv.ParseFloat(list[j][0], 64)
		return a < b != bids
	})
	return list
}

// checksum follows Kraken's guide literally: strings, with points and leading zeros
// removed.
func (b *clientBook) checksum() uint32 {
	var text strings.Builder
	for _, levels := range [][][2]string{side(b.asks, false), side(b.bids, true)} {
		for _, l := range levels[:min(10, len(levels))] {
			for _, number := range l {
				text.WriteString(strings.TrimLeft(strings.ReplaceAll(number, ".", ""), "0"))
			}
		}
	}
	return crc32.ChecksumIEEE([]byte(text.String()))
}

// viewLog is a sink that keeps every published view.
type viewLog struct {
	mu    sync.Mutex
	views map[string]*marketdata.View
}

func (a *viewLog) MarketUpdate(_, next *marketdata.View, _ []marketdata.Trade) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.views[viewKey(next.Instrument, next.DepthSeq)] = next
}

func viewKey(in market.InstrumentID, seq uint64) string { return fmt.Sprint(in, "/", seq) }

func (a *viewLog) view(in market.InstrumentID, seq uint64) *marketdata.View {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.views[viewKey(in, seq)]
}

// same returns how a client's side differs from the view's first levels.
func same(got [][2]string, want []market.Level, depth int, in *market.Instrument) error {
	want = want[:min(depth, len(want))]
	if len(got) != len(want) {
		return fmt.Errorf("%d levels, the view has %d", len(got), len(want))
	}
	for i, l := range want {
		price, qty := string(in.AppendPrice(nil, l.Price)), string(in.AppendQty(nil, l.Qty))
		if got[i] != [2]string{price, qty} {
			return fmt.Errorf("level %d is %v, the view has %s %s", i, got[i], price, qty)
		}
	}
	return nil
}

// randomOrders sends random orders on all instruments around a moving middle, which rest,
// trade or are cancelled.
func randomOrders(d *testFeed, rng *rand.Rand, commands int) {
	type live struct {
		in   market.InstrumentID
		id   market.OrderID
		side market.Side
	}
	var open []live
	middle := []market.Price{1000, 5000, 300}
	for range commands {
		in := market.InstrumentID(rng.IntN(len(middle)))
		middle[in] += market.Price(rng.IntN(3) - 1)
		at := market.Side(1 + rng.IntN(2))
		switch roll := rng.IntN(10); {
		case roll < 5 || len(open) == 0:
			away := market.Price(rng.IntN(150))
			price := middle[in] - away
			if at == market.Sell {
				price = middle[in] + away
			}
			id := d.order(in, at, max(price, 1), market.Qty(1+rng.IntN(1000)))
			open = append(open, live{in, id, at})
		case roll < 9:
			i := rng.IntN(len(open))
			c := engine.Command{Kind: engine.CancelOrder, Instrument: open[i].in}
			c.Order = book.Order{ID: open[i].id, Participant: market.ParticipantID(open[i].side)}
			d.submit(c)
			open[i] = open[len(open)-1]
			open = open[:len(open)-1]
		default:
			c := engine.Command{Kind: engine.NewOrder, Instrument: in}
			c.Order = book.Order{
				ID: d.engine.OrderIDs().Next(), Qty: market.Qty(1 + rng.IntN(3000)), Side: at,
				Type: book.Market, TIF: book.IOC, STP: book.STPCancelNewest, Participant: market.ParticipantID(at),
			}
			d.submit(c)
		}
	}
}

// stepCounter counts the steps of randomOrders, by which readers stop and continue.
type stepCounter struct {
	desk  *testFeed
	steps atomic.Int64
	ended atomic.Bool
}

func newStepCounter(d *testFeed) *stepCounter { return &stepCounter{desk: d} }

func (p *stepCounter) step() { p.steps.Add(1) }

// end makes all readers continue.
func (p *stepCounter) end() { p.ended.Store(true) }

// rest returns after that many more steps, or at the end.
func (p *stepCounter) rest(steps int) error {
	last := p.steps.Load() + int64(steps)
	return await.Poll(context.Background(), "the flow's next steps", func() bool { return p.ended.Load() || p.steps.Load() >= last })
}

// slowConn is a connection whose owner often stops reading for some steps. Its first stop
// may last until a client has fallen behind.
type slowConn struct {
	net.Conn
	pace *stepCounter
	rng  *rand.Rand
	long bool
	open bool // the upgrade is behind it
	read int
}

func (s *slowConn) Read(p []byte) (int, error) {
	if !s.open {
		return s.Conn.Read(p)
	}
	if s.read++; s.long && s.read == 4 {
		err := await.Poll(context.Background(), "somebody to fall behind", func() bool {
			return s.pace.ended.Load() || s.pace.desk.feed.Stats().Collapsed > 0
		})
		if err != nil {
			return 0, err
		}
	}
	if s.rng.IntN(5) == 0 {
		if err := s.pace.rest(s.rng.IntN(40)); err != nil {
			return 0, err
		}
	}
	return s.Conn.Read(p)
}

// dialSlow connects reader n, which often stops reading. The first one stops until a
// client has fallen behind.
func (d *testFeed) dialSlow(p *stepCounter, seed uint64, n int) *client {
	d.t.Helper()
	conn := &slowConn{pace: p, rng: rand.New(rand.NewPCG(seed, uint64(n))), long: n == 0}
	dialer := websocket.Dialer{NetDial: func(network, addr string) (_ net.Conn, err error) {
		conn.Conn, err = tight.Dial(network, addr)
		return conn, err
	}, ReadBufferSize: 1 << 10}
	ws, _, err := dialer.Dial("ws://"+d.addr+"/ws/rfq", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	conn.open = true
	d.t.Cleanup(func() { _ = ws.Close() })
	return &client{t: d.t, ws: ws}
}

// follow reads l2 and trades of one symbol up to the last views' sequence numbers, and
// returns the first error.
func (c *client) follow(d *testFeed, views *viewLog, in *market.Instrument, depth int, last func() *marketdata.View) error {
	b, tape := &clientBook{}, uint64(0)
	var lastTrade uint64
	for {
		if v := last(); v != nil && b.seq == v.DepthSeq && tape == v.TradesSeq {
			return nil
		}
		m, err := c.tryNext()
		if err != nil {
			return err
		}
		switch {
		case m.Channel == "trades" && m.Type != "snapshot" && (m.PrevSeq != tape || m.Seq != tape+1):
			return fmt.Errorf("a gap in trades: at %d, then %s", tape, m.raw)
		case m.Channel == "trades":
			if m.Type == "snapshot" {
				lastTrade = 0
			}
			tape = m.Seq
			for _, t := range m.Trades {
				if t.ID <= lastTrade {
					return fmt.Errorf("trade %d after %d", t.ID, lastTrade)
				}
				lastTrade = t.ID
			}
		case m.Channel == "l2":
			if err := b.apply(m); err != nil {
				return err
			}
			v := views.view(in.ID, m.Seq)
			if v == nil {
				return fmt.Errorf("no view had seq %d", m.Seq)
			}
			if err := same(side(b.bids, true), v.Bids, depth, in); err != nil {
				return fmt.Errorf("bids at %d: %w", m.Seq, err)
			}
			if err := same(side(b.asks, false), v.Asks, depth, in); err != nil {
				return fmt.Errorf("asks at %d: %w", m.Seq, err)
			}
		}
	}
}

// Every client that joins within random orders rebuilds the book of its depth exactly: no
// gap, the right checksum and the view's levels at every message.
func TestRebuild(t *testing.T) {
	views := &viewLog{views: map[string]*marketdata.View{}}
	d := newTestFeedWith(t, func(f *Feed) { f.Attach(views) }, func(o *Options) { o.MaxPerIP = 100 })
	seed := runtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	const rounds = 200
	var readers sync.WaitGroup
	var joins [rounds][]func()
	var over atomic.Bool // the flow has ended and the feed has it all
	list := instruments()
	for i := range list {
		in := &list[i]
		for _, depth := range depths {
			c, round := d.dial(), rng.IntN(rounds/2)
			joins[round] = append(joins[round], func() {
				c.send(fmt.Sprintf(`{"action":"SUBSCRIBE_MARKET","channels":["l2","trades"],"symbols":["%s"],"depth":%d}`, in.Symbol, depth))
				readers.Go(func() {
					err := c.follow(d, views, in, depth, func() *marketdata.View {
						if !over.Load() {
							return nil
						}
						return d.feed.View(in.ID)
					})
					if err != nil {
						t.Errorf("%s depth %d: %v", in.Symbol, depth, err)
					}
				})
			})
		}
	}
	for _, joining := range joins {
		for _, join := range joining {
			join()
		}
		for range 6 {
			randomOrders(d, rng, 10)
			d.settle()
		}
	}
	over.Store(true)
	// One more change, so that no client waits for a message that never comes.
	for i := range list {
		d.order(market.InstrumentID(i), market.Buy, 1, 1)
	}
	readers.Wait()
	if n := d.feed.Stats().MessagesOut; n < 1000 {
		t.Errorf("%d messages: this run shows little", n)
	}
}

// So does a client that falls behind repeatedly, whose updates collapse into snapshots.
func TestRebuildBehind(t *testing.T) {
	views := &viewLog{views: map[string]*marketdata.View{}}
	d := newTestFeedWith(t, func(f *Feed) { f.Attach(views) }, func(o *Options) { o.SendBuffer, o.MaxPending = 4<<10, 4<<10 })
	seed := runtest.Seed(t)
	in := &instruments()[0]
	rng := rand.New(rand.NewPCG(seed, 99))
	// The log has no view from before the first change, for which a quick reader would
	// ask.
	randomOrders(d, rng, 12)
	d.settle()
	var readers sync.WaitGroup
	pace := newStepCounter(d)
	defer pace.end()
	var over atomic.Bool
	for i, depth := range depths {
		c := d.dialSlow(pace, seed, i)
		c.send(fmt.Sprintf(`{"action":"SUBSCRIBE_MARKET","channels":["l2","trades"],"symbols":["%s"],"depth":%d}`, in.Symbol, depth))
		readers.Go(func() {
			err := c.follow(d, views, in, depth, func() *marketdata.View {
				if !over.Load() {
					return nil
				}
				return d.feed.View(in.ID)
			})
			if err != nil {
				t.Errorf("depth %d: %v", depth, err)
			}
		})
	}
	for range 300 {
		randomOrders(d, rng, 12)
		d.settle()
		pace.step()
	}
	over.Store(true)
	d.order(0, market.Buy, 1, 1)
	pace.end()
	readers.Wait()
	if d.feed.Stats().Collapsed == 0 {
		t.Error("no client fell behind: this run shows nothing")
	}
}
