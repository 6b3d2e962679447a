package feed

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"blockdesk/engine/marketdata"
	"blockdesk/engine/orders"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// l3Message is a message of the channel l3: [id, price, quantity].
type l3Message struct {
	Type     string
	Seq      uint64
	PrevSeq  uint64 `json:"prev_seq"`
	Bids     [][3]string
	Asks     [][3]string
	Checksum uint32
}

// clientOrders is a client's order-by-order book, built from the messages' text as an
// integrator would: each price has a queue, and a new order goes to its end.
type clientOrders struct {
	seq        uint64
	bids, asks [][3]string // best price first, each price in priority
}

// apply applies an l3 message and returns what is wrong with it.
func (b *clientOrders) apply(raw []byte) error {
	var m l3Message
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	switch {
	case m.Type == "snapshot":
		b.bids, b.asks = nil, nil
	case m.PrevSeq != b.seq || m.Seq != b.seq+1:
		return fmt.Errorf("a gap: at %d, then %s", b.seq, raw)
	}
	b.seq = m.Seq
	var err error
	if b.bids, err = applyOrders(b.bids, m.Bids, true); err == nil {
		b.asks, err = applyOrders(b.asks, m.Asks, false)
	}
	if err == nil && b.checksum() != m.Checksum {
		err = fmt.Errorf("checksum %d of the book, %d of the message", b.checksum(), m.Checksum)
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, raw)
	}
	return nil
}

func applyOrders(list, changes [][3]string, bids bool) ([][3]string, error) {
	price := func(o [3]string) float64 {
		p, _ := strconv.ParseFloat(o[1], 64)
		return p
	}
	for _, c := range changes {
		at := slices.IndexFunc(list, func(o [3]string) bool { return o[0] == c[0] })
		switch {
		case at < 0 && c[2] == "0":
			return nil, fmt.Errorf("order %s is deleted but was not there", c[0])
		case c[2] == "0":
			list = slices.Delete(list, at, at+1)
		case at >= 0:
			list[at] = c
		default:
			end := slices.IndexFunc(list, func(o [3]string) bool { return price(o) != price(c) && price(o) < price(c) == bids })
			if end < 0 {
				end = len(list)
			}
			list = slices.Insert(list, end, c)
		}
	}
	return list, nil
}

// checksum follows the document: ids, and strings with points and leading zeros removed.
func (b *clientOrders) checksum() uint32 {
	var text strings.Builder
	for _, list := range [...][][3]string{b.asks, b.bids} {
		for _, o := range list[:min(10, len(list))] {
			text.WriteString(o[0])
			for _, number := range o[1:] {
				text.WriteString(strings.TrimLeft(strings.ReplaceAll(number, ".", ""), "0"))
			}
		}
	}
	return crc32.ChecksumIEEE([]byte(text.String()))
}

// sameOrders returns how a client's side differs from the view's.
func sameOrders(got [][3]string, want []orders.Order, in *market.Instrument) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d orders, the view has %d", len(got), len(want))
	}
	for i, o := range want {
		text := [3]string{strconv.FormatUint(uint64(o.ID), 10), string(in.AppendPrice(nil, o.Price)), string(in.AppendQty(nil, o.Qty))}
		if got[i] != text {
			return fmt.Errorf("order %d is %v, the view has %v", i, got[i], text)
		}
	}
	return nil
}

// checkOrders returns how the orders of a view differ from its levels.
func checkOrders(list []orders.Order, levels []market.Level) error {
	sums := make([]market.Level, 0, len(levels))
	for _, o := range list {
		if n := len(sums); n > 0 && sums[n-1].Price == o.Price {
			sums[n-1].Qty += o.Qty
		} else {
			sums = append(sums, market.Level{Price: o.Price, Qty: o.Qty})
		}
	}
	if len(list) < orders.MaxOrders && !slices.Equal(sums, levels) {
		return fmt.Errorf("the orders make %v, the levels are %v", sums, levels)
	}
	return nil
}

// followOrders reads l3 of one symbol up to the last view's sequence number, and returns the
// first error.
func (c *client) followOrders(views *viewLog, in *market.Instrument, last func() *marketdata.View) error {
	b := &clientOrders{}
	for {
		if v := last(); v != nil && b.seq == v.DepthSeq {
			return nil
		}
		m, err := c.tryNext()
		if err != nil {
			return err
		}
		if m.Channel != "l3" {
			continue
		}
		if err := b.apply([]byte(m.raw)); err != nil {
			return err
		}
		v := views.view(in.ID, m.Seq)
		switch {
		case v == nil || v.Orders == nil:
			return fmt.Errorf("no view with orders had seq %d", m.Seq)
		case checkOrders(v.Orders.Bids, v.Bids) != nil:
			return checkOrders(v.Orders.Bids, v.Bids)
		case checkOrders(v.Orders.Asks, v.Asks) != nil:
			return checkOrders(v.Orders.Asks, v.Asks)
		}
		if err := sameOrders(b.bids, v.Orders.Bids, in); err != nil {
			return fmt.Errorf("bids at %d: %w", m.Seq, err)
		}
		if err := sameOrders(b.asks, v.Orders.Asks, in); err != nil {
			return fmt.Errorf("asks at %d: %w", m.Seq, err)
		}
	}
}

const subscribeOrders = `{"action":"SUBSCRIBE_MARKET","channels":["l3"],"symbols":["%s"]}`

// TestRebuildOrders: every client that joins within random orders, also one that falls behind
// repeatedly, rebuilds the orders exactly.
func TestRebuildOrders(t *testing.T) {
	views := &viewLog{views: map[string]*marketdata.View{}}
	d := newTestFeedWith(t, func(f *Feed) { f.Attach(views) }, func(o *Options) { o.MaxPerIP, o.SendBuffer, o.MaxPending = 100, 4<<10, 4<<10 })
	seed := runtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 7))
	randomOrders(d, rng, 12)
	d.settle()
	var readers sync.WaitGroup
	pace := newStepCounter(d)
	defer pace.end()
	var over atomic.Bool
	list := instruments()
	join := func(n int) {
		in := &list[n%len(list)]
		c := d.dial()
		if n < 4 {
			c = d.dialSlow(pace, seed, n)
		}
		c.send(fmt.Sprintf(subscribeOrders, in.Symbol))
		readers.Go(func() {
			err := c.followOrders(views, in, func() *marketdata.View {
				if !over.Load() {
					return nil
				}
				return d.feed.View(in.ID)
			})
			if err != nil {
				t.Errorf("reader %d of %s: %v", n, in.Symbol, err)
			}
		})
	}
	for round := range 250 {
		if round%20 == 0 {
			join(round / 20)
		}
		randomOrders(d, rng, 12)
		d.settle()
		pace.step()
	}
	over.Store(true)
	for i := range list {
		d.order(market.InstrumentID(i), market.Buy, 1, 1)
	}
	pace.end()
	readers.Wait()
	if d.feed.Stats().Collapsed == 0 {
		t.Error("nobody fell behind: this run shows little")
	}
}

// TestOrdersComeInAQuietMarket: the first subscriber needs no event to get the orders, also
// those that are older than the feed, and the views have none before.
func TestOrdersComeInAQuietMarket(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.QuietAfter = 3600e9 })
	d.order(0, market.Buy, 100, 5)
	d.order(0, market.Buy, 100, 7)
	d.settle()
	if v := d.feed.View(0); v.Orders != nil || len(v.Bids) != 1 {
		t.Fatalf("the view has %+v", v)
	}
	c := d.dial()
	c.send(fmt.Sprintf(subscribeOrders, "SLUSD/USDC"))
	m := c.wait("l3", "snapshot")
	b := &clientOrders{}
	if err := b.apply([]byte(m.raw)); err != nil || len(b.bids) != 2 || b.bids[0][2] != "0.000005" || b.bids[1][2] != "0.000007" {
		t.Fatalf("%v: %s", err, m.raw)
	}
	if release, ok := d.feed.WantOrders(1); !ok {
		t.Error("no orders of a matched instrument")
	} else {
		release()
	}
	if _, ok := d.feed.WantOrders(99); ok {
		t.Error("orders of an instrument that does not exist")
	}
}
