package mirror_test

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/engine"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
)

// TestServiceMaxRecorded: snapshots beyond the limit are deleted, oldest first.
func TestServiceMaxRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.o.SnapshotEvery = time.Second
		r.start()
		s := r.after((mirror.MaxSnapshots + 3) * cycle)
		r.stop()
		list := s.Pairs[0].Swaps.Snapshots
		if len(list) != mirror.MaxSnapshots || r.kv.count('r') != mirror.MaxSnapshots || list[0].At-list[len(list)-1].At != 10*(mirror.MaxSnapshots-1) {
			t.Errorf("%d snapshots, %d on disk", len(list), r.kv.count('r'))
		}
		r.kv = r.kv.crash(0)
		r.start()
		again := r.after(2 * cycle).Pairs[0].Swaps.Snapshots
		r.stop()
		if len(again) != mirror.MaxSnapshots || !slices.Contains(again, list[0]) {
			t.Errorf("%d snapshots after a restart", len(again))
		}
	})
}

// TestServiceUnconfirmed: an engine without durable progress gets at most the limit, and the
// rest later.
func TestServiceUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 4096
		r := newRig(t, 1)
		r.engine.held = true
		for range most + 2 {
			r.chain.act(buys(1, 2))
		}
		r.start()
		r.after(cycle + cycle/2)
		if n := len(r.engine.trades); n != most {
			t.Errorf("published %d", n)
		}
		r.engine.mu.Lock()
		r.engine.durable, r.engine.held = len(r.engine.trades), false
		r.engine.mu.Unlock()
		r.after(2 * cycle)
		r.stop()
		if n := len(r.engine.trades); n != most+2 || r.engine.refused != 0 {
			t.Errorf("published %d, %d of them twice", n, r.engine.refused)
		}
	})
}

// TestServiceNumbersInParts: many transactions with many swaps make no commit beyond the
// limit.
func TestServiceNumbersInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, each = 4096, 18
		r := newRig(t, 1)
		for range most/each + 20 {
			r.chain.act(func(s *scene) {
				for range each {
					s.buy(1, 1, 2)
				}
			})
		}
		r.start()
		r.after(cycle)
		r.stop()
		r.sameTrades("in parts")
		if len(r.engine.trades) <= most || r.kv.most() > most+each {
			t.Errorf("%d trades, %d steps in one commit", len(r.engine.trades), r.kv.most())
		}
	})
}

// TestRefreshAndTrade: the engine accepts books and trades within its limits.
func TestRefreshAndTrade(t *testing.T) {
	levels := make([]market.Level, mirror.MaxShownLevels)
	for i := range levels {
		levels[i] = market.Level{Price: market.Price(i + 1), Qty: engine.MaxMirrorQty}
	}
	book := engine.MirrorBook(mirror.Refresh{Instrument: 3, Slot: 1, Asks: levels})
	if _, err := engine.MirrorRefreshCommands(nil, &book); err != nil || mirror.MaxShownLevels != engine.MaxMirrorLevels {
		t.Error(err)
	}
	swap := engine.MirrorSwap(mirror.Trade{Instrument: 3, Ordinal: 1, Price: 1, Qty: market.MaxQty, Side: market.Buy, At: 1, Slot: 1})
	if _, err := engine.MirrorTradeCommand(&swap); err != nil {
		t.Error(err)
	}
}

// TestServiceTraders counts distinct fee payers, up to the limit.
func TestServiceTraders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		paidBy := func(payer byte) func(s *scene) {
			return func(s *scene) {
				s.c.Keys[keyPayer] = solana.Address{payer}
				s.buy(1, 10, 20)
			}
		}
		for _, payer := range []byte{1, 2, 1, 3, 2} {
			r.chain.act(paidBy(payer))
		}
		r.start()
		if n := r.after(2 * cycle).Pairs[0].Swaps.Traders; n != 3 {
			t.Errorf("%d traders", n)
		}
		r.stop()
		for key, head := range r.kv.Content() {
			if key[0] == 'h' { // it ends with the number of traders
				r.kv.Put(key, binary.LittleEndian.AppendUint64([]byte(head[:len(head)-8]), mirror.MaxTraders-1))
			}
		}
		r.start()
		for payer := range byte(3) {
			r.chain.act(paidBy(10 + payer))
		}
		s := r.after(2 * cycle).Pairs[0].Swaps
		r.stop()
		if s.Traders != mirror.MaxTraders || s.Rolling.Day.Swaps != 8 {
			t.Errorf("%+v", s)
		}
	})
}

// TestServiceReconstructed: an incomplete history comes with the totals of the snapshot
// before it.
func TestServiceReconstructed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.chain.act(buys(10, 20))
		r.start()
		r.after(2 * cycle)
		r.chain.act(buys(10, 20))
		if s := r.after(7 * time.Hour).Pairs[0].Swaps; s.Reconstructed != (mirror.Snapshot{}) || s.Snapshots[0].Swaps != 2 {
			t.Errorf("a whole history: %+v", s)
		}
		r.chain.mu.Lock()
		r.chain.past.floor = len(r.chain.past.list) // the node has forgotten it
		r.chain.mu.Unlock()
		r.chain.act(buys(11, 20))
		s := r.after(10 * time.Minute).Pairs[0].Swaps
		r.stop()
		if s.Rolling.Totals.Complete || s.Rolling.Totals.Swaps != 1 || s.Reconstructed.Swaps != 2 || s.Reconstructed.Base != (market.Uint128{Lo: 20}) || s.Rolling.Day.Status != mirror.Partial {
			t.Errorf("%+v", s)
		}
		r.sameTrades("over two histories")
	})
}

// countingNode records the times of account requests.
type countingNode struct {
	*fakeChain
	mu    sync.Mutex
	times map[time.Time]int
}

func (n *countingNode) AccountsFromEach(ctx context.Context, list []solana.Address, level rpc.Commitment, minSlot uint64) ([]rpc.NodeAccounts, error) {
	n.mu.Lock()
	n.times[n.now()]++
	n.mu.Unlock()
	return n.fakeChain.AccountsFromEach(ctx, list, level, minSlot)
}

// TestServiceSpreadsCalls: pairs are spread over a cycle, because nodes limit calls.
func TestServiceSpreadsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pairs = 4
		r := newRig(t, 1)
		r.o.Pairs = nil
		for i := range pairs {
			p := scenePairOf(market.InstrumentID(i))
			p.Pool, p.Book = mirror.PoolListing{}, bothPair().Book
			r.o.Pairs = append(r.o.Pairs, p)
		}
		node := &countingNode{fakeChain: r.chain, times: map[time.Time]int{}}
		s, err := mirror.New(r.o, node, r.engine, r.kv)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*cycle+cycle/2)
		defer cancel()
		begun := r.chain.now()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
		apart := map[time.Time]bool{}
		for at, n := range node.times {
			if at.After(begun) {
				apart[at] = true
				if n != 1 {
					t.Errorf("%d pairs ask %v after the start", n, at.Sub(begun))
				}
			}
		}
		if len(apart) < 4*pairs {
			t.Errorf("asked at %d times", len(apart))
		}
	})
}
