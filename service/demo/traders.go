// Package demo has what serve --demo adds to a service: participants with known passwords
// that trade with each other over FIX, an operator that posts tickets, and a local chain
// with public keys.
//
// All of it uses the service from outside, as a client, an operator or a node of the chain
// would. Keys and passwords are public, so a demo serves loopback addresses only and
// settles on a chain of this machine only. If a part fails, the service continues without
// it and logs why.
package demo

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

// The demo's market: the maker's levels and how often both participants act.
const (
	levels     = 20
	makerEvery = 120 * time.Millisecond
	takerEvery = 700 * time.Millisecond
	retryAfter = time.Second
)

// startPrices are the first mid prices, in quote units × 10^-6.
var startPrices = map[string]uint64{"SLUSD/USDC": 999_000, "92C/SLUSD": 350_000}

// Trade runs a market maker and a taker until ctx ends, each a client of the FIX
// gateway like any other. A session that ends is opened again.
func Trade(ctx context.Context, fixAddress, target string, instruments []market.Instrument, logger *slog.Logger) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range []string{Maker, Taker} {
		group.Go(func() error {
			for ctx.Err() == nil {
				t := newTrader(name, instruments)
				if err := t.run(ctx, fixAddress, target); err != nil && ctx.Err() == nil {
					logger.Warn("demo trader's session ended", "participant", name, "error", err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(retryAfter):
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// trader is one session. A maker keeps an order at each level and side of an instrument; a
// taker sends immediate orders.
type trader struct {
	name   string
	books  []*pairBook
	client *fixclient.Client
	rng    *rand.Rand
	prefix string
	next   int

	mu    sync.Mutex // guards orders and each order in it
	slots map[string]*levelOrder
}

type pairBook struct {
	in   *market.Instrument
	mid  uint64 // price, in ticks
	step uint64 // ticks between levels
}

// levelOrder is the order at one price level: its ClOrdID, empty if there is none, and
// whether a report is outstanding.
type levelOrder struct {
	book    *pairBook
	side    market.Side
	level   int
	id      string
	waiting bool
}

func newTrader(name string, instruments []market.Instrument) *trader {
	now := uint64(time.Now().UnixNano())
	t := &trader{
		name: name, rng: rand.New(rand.NewPCG(now, uint64(len(name)))),
		prefix: strconv.FormatUint(now, 36) + "-", slots: map[string]*levelOrder{},
	}
	for i := range instruments {
		in := &instruments[i]
		if in.Source != market.Matched {
			continue
		}
		mid, ok := startPrices[in.Symbol]
		if !ok {
			mid = 1_000_000
		}
		scaled, err := market.MulDivFloor(mid, market.Pow10(int(in.PriceDecimals)), 1_000_000*in.Tick)
		if err != nil || scaled < 1000 || scaled >= uint64(in.MaxPrice)/2 {
			continue // its ticks are too coarse or too fine for the demo's prices
		}
		t.books = append(t.books, &pairBook{in: in, mid: scaled, step: max(scaled/4000, 1)})
	}
	return t
}

// logonTimeout bounds a logon of the demo's traders: a machine that is busy compiling needs
// long to verify a password.
const logonTimeout = time.Minute

func (t *trader) run(ctx context.Context, address, target string) error {
	client, err := fixclient.Dial(ctx, fixclient.Options{
		Addr: address, SenderCompID: t.name, TargetCompID: target, Username: t.name, Password: Password,
		Timeout: logonTimeout,
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
		act, every := t.take, takerEvery
		if t.name == Maker {
			act, every = t.make, makerEvery
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

// make moves the mid price a little and replaces the orders of a few levels.
func (t *trader) make(b *pairBook) error {
	t.drift(b)
	for range 4 {
		side, level := market.Side(1+t.rng.IntN(2)), t.rng.IntN(levels)
		if err := t.quote(b, side, level); err != nil {
			return err
		}
	}
	return nil
}

// drift moves the mid price a little.
func (t *trader) drift(b *pairBook) {
	anchor := startPrices[b.in.Symbol]
	if home, err := market.MulDivFloor(anchor, market.Pow10(int(b.in.PriceDecimals)), 1_000_000*b.in.Tick); err == nil && home > 0 {
		b.mid = (b.mid*199 + home) / 200 // drifts back, so that a demo left alone stays in its band
	}
	b.mid += uint64(t.rng.IntN(int(b.step)+1)) - b.step/2
}

// offer returns the price and quantity of the maker's order at a level.
func (t *trader) offer(b *pairBook, side market.Side, level int) (price, qty uint64) {
	away := b.step * uint64(level+1)
	price = b.mid + away
	if side == market.Buy {
		price = b.mid - away
	}
	return price, uint64(b.in.MinQty) * uint64(50_000+t.rng.IntN(500_000)) / 100
}

func (t *trader) quote(b *pairBook, side market.Side, level int) error {
	key := b.in.Symbol + "/" + side.String() + "/" + strconv.Itoa(level)
	price, qty := t.offer(b, side, level)
	t.mu.Lock()
	o := t.slots[key]
	if o == nil {
		o = &levelOrder{book: b, side: side, level: level}
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

// cross returns a small order that crosses the spread.
func (t *trader) cross(b *pairBook) (side market.Side, price, qty uint64) {
	side = market.Side(1 + t.rng.IntN(2))
	price = b.mid + 20*b.step
	if side == market.Sell {
		price = b.mid - 20*b.step
	}
	return side, price, uint64(b.in.MinQty) * uint64(1_000+t.rng.IntN(40_000)) / 100
}

// take crosses the spread with a small immediate order.
func (t *trader) take(b *pairBook) error {
	side, price, qty := t.cross(b)
	return t.client.Send("D", t.order(b, side, t.newID(), price, qty, "59=3\x01"))
}

func (t *trader) newID() string {
	t.next++
	return t.prefix + strconv.Itoa(t.next)
}

func (t *trader) order(b *pairBook, side market.Side, id string, price, qty uint64, more string) []byte {
	body := append([]byte("11="), id...)
	body = append(append(body, "\x0155="...), b.in.Symbol...)
	body = append(body, '\x01', '5', '4', '=', '0'+byte(side))
	body = time.Now().UTC().AppendFormat(append(body, "\x0160="...), "20060102-15:04:05.000")
	body = b.in.AppendQty(append(body, "\x0138="...), market.Qty(min(qty, uint64(b.in.MaxQty))))
	body = b.in.AppendPrice(append(body, "\x0140=2\x0144="...), market.Price(price))
	return append(append(body, '\x01'), more...)
}

// report updates the maker's orders. A taker's orders are immediate.
func (t *trader) report(m *fixclient.Message) error {
	typ := m.Type()
	if t.name != Maker || typ != "8" && typ != "9" {
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
		// Filled, cancelled, rejected, or replaced too late: the order has ended.
		if typ == "9" || status == "2" || status == "4" || status == "8" || status == "C" {
			o.id = ""
		}
		return nil
	}
	return nil
}
