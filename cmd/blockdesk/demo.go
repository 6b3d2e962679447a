package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/fixgw/fixclient"
	"blockdesk/market"
)

// The demo's market: what the maker shows and how often both act.
const (
	demoLevels     = 12
	demoMakerEvery = 120 * time.Millisecond
	demoTakerEvery = 700 * time.Millisecond
	demoRetry      = time.Second
)

// demoMid is where the demo's prices begin, in quote units × 10^-6.
var demoMid = map[string]uint64{"SLUSD/USDC": 999_000, "92C/SLUSD": 350_000}

// runDemo trades until ctx ends: a market maker and a taker, each a FIX session
// of our own gateway like any client's. A session that ends is opened again.
func runDemo(ctx context.Context, fixAddress, target string, instruments []market.Instrument, logger *slog.Logger) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range []string{demoMaker, demoTaker} {
		group.Go(func() error {
			for ctx.Err() == nil {
				t := newDemoTrader(name, instruments)
				if err := t.run(ctx, fixAddress, target); err != nil && ctx.Err() == nil {
					logger.Warn("demo trader's session ended", "participant", name, "error", err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(demoRetry):
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// demoTrader is one session. A maker keeps one order a level, side and
// instrument; a taker sends immediate orders.
type demoTrader struct {
	name   string
	books  []*demoBook
	client *fixclient.Client
	rng    *rand.Rand
	prefix string
	next   int

	mu    sync.Mutex // guards orders and each order in it
	slots map[string]*demoOrder
}

type demoBook struct {
	in   *market.Instrument
	mid  uint64 // ticks
	step uint64 // ticks between levels
}

// demoOrder is one level's order: the ClOrdID it goes by, empty while it has
// none, and whether an answer is outstanding.
type demoOrder struct {
	book    *demoBook
	side    market.Side
	level   int
	id      string
	waiting bool
}

func newDemoTrader(name string, instruments []market.Instrument) *demoTrader {
	now := uint64(time.Now().UnixNano())
	t := &demoTrader{
		name: name, rng: rand.New(rand.NewPCG(now, uint64(len(name)))),
		prefix: strconv.FormatUint(now, 36) + "-", slots: map[string]*demoOrder{},
	}
	for i := range instruments {
		in := &instruments[i]
		if in.Source != market.Matched {
			continue
		}
		mid, ok := demoMid[in.Symbol]
		if !ok {
			mid = 1_000_000
		}
		scaled, err := market.MulDivFloor(mid, market.Pow10(int(in.PriceDecimals)), 1_000_000*in.Tick)
		if err != nil || scaled < 1000 || scaled >= uint64(in.MaxPrice)/2 {
			continue // its ticks are too coarse or too fine for the demo's prices
		}
		t.books = append(t.books, &demoBook{in: in, mid: scaled, step: max(scaled/4000, 1)})
	}
	return t
}

func (t *demoTrader) run(ctx context.Context, address, target string) error {
	client, err := fixclient.Dial(ctx, fixclient.Options{
		Addr: address, SenderCompID: t.name, TargetCompID: target, Username: t.name, Password: demoPassword,
	})
	if err != nil {
		return err
	}
	t.client = client
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := client.Run(ctx, t.report); err != nil {
			return err
		}
		return fmt.Errorf("session closed")
	})
	group.Go(func() error {
		act, every := t.take, demoTakerEvery
		if t.name == demoMaker {
			act, every = t.make, demoMakerEvery
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
			for _, b := range t.books {
				if err := act(b); err != nil {
					return err
				}
			}
		}
	})
	return group.Wait()
}

// make moves the middle a little and renews a few levels.
func (t *demoTrader) make(b *demoBook) error {
	anchor := demoMid[b.in.Symbol]
	if home, err := market.MulDivFloor(anchor, market.Pow10(int(b.in.PriceDecimals)), 1_000_000*b.in.Tick); err == nil && home > 0 {
		b.mid = (b.mid*199 + home) / 200 // drifts back, so that a demo left alone stays in its band
	}
	b.mid += uint64(t.rng.IntN(int(b.step)+1)) - b.step/2
	for range 4 {
		side, level := market.Side(1+t.rng.IntN(2)), t.rng.IntN(demoLevels)
		if err := t.quote(b, side, level); err != nil {
			return err
		}
	}
	return nil
}

func (t *demoTrader) quote(b *demoBook, side market.Side, level int) error {
	key := b.in.Symbol + "/" + side.String() + "/" + strconv.Itoa(level)
	away := b.step * uint64(level+1)
	price := b.mid + away
	if side == market.Buy {
		price = b.mid - away
	}
	qty := uint64(b.in.MinQty) * uint64(50_000+t.rng.IntN(500_000)) / 100
	t.mu.Lock()
	o := t.slots[key]
	if o == nil {
		o = &demoOrder{book: b, side: side, level: level}
		t.slots[key] = o
	}
	if o.waiting {
		t.mu.Unlock()
		return nil
	}
	old := o.id
	o.id, o.waiting = t.newID(), true
	id := o.id
	t.mu.Unlock()
	body := t.order(b, side, id, price, qty, "59=1\x01")
	if old == "" {
		return t.client.Send("D", body)
	}
	return t.client.Send("G", append(body, "41="+old+"\x01"...))
}

// take crosses the spread with a small immediate order.
func (t *demoTrader) take(b *demoBook) error {
	side := market.Side(1 + t.rng.IntN(2))
	price := b.mid + 20*b.step
	if side == market.Sell {
		price = b.mid - 20*b.step
	}
	qty := uint64(b.in.MinQty) * uint64(1_000+t.rng.IntN(40_000)) / 100
	return t.client.Send("D", t.order(b, side, t.newID(), price, qty, "59=3\x01"))
}

func (t *demoTrader) newID() string {
	t.next++
	return t.prefix + strconv.Itoa(t.next)
}

func (t *demoTrader) order(b *demoBook, side market.Side, id string, price, qty uint64, more string) []byte {
	body := append([]byte("11="), id...)
	body = append(append(body, "\x0155="...), b.in.Symbol...)
	body = append(body, '\x01', '5', '4', '=', '0'+byte(side))
	body = time.Now().UTC().AppendFormat(append(body, "\x0160="...), "20060102-15:04:05.000")
	body = b.in.AppendQty(append(body, "\x0138="...), market.Qty(min(qty, uint64(b.in.MaxQty))))
	body = b.in.AppendPrice(append(body, "\x0140=2\x0144="...), market.Price(price))
	return append(append(body, '\x01'), more...)
}

// report follows the maker's orders; a taker's need no following.
func (t *demoTrader) report(m *fixclient.Message) error {
	typ := m.Type()
	if t.name != demoMaker || typ != "8" && typ != "9" {
		return nil
	}
	id, status := string(m.Get(11)), string(m.Get(39))
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.slots {
		if o.id != id {
			continue
		}
		o.waiting = false
		// Filled, cancelled, rejected; or an amend that came too late: the order
		// it named is gone.
		if typ == "9" || status == "2" || status == "4" || status == "8" || status == "C" {
			o.id = ""
		}
		return nil
	}
	return nil
}
