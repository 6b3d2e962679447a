package mirror_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
)

const cycle = 10 * time.Second

// TestServiceFollows: the service reads a book, a pool and its swaps, and follows them.
func TestServiceFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		fees := solana.Address{31: 77}
		r.o.Pairs[0].Observed = []solana.Address{fees, {31: 78}}
		r.chain.more[fees] = vaultAccount(fees, sceneKey(keyQuoteMint), 321)
		for i := range 20 {
			await.VirtualSleep(t, time.Minute)
			r.chain.act(buys(10+market.Amount(i), 30))
		}
		r.start()
		s := r.after(2*cycle + time.Second)
		p := &s.Pairs[0]
		if p.AgreeingNodes != 2 || p.At.Slot != s.Slot || p.Orders != 2 || p.Price != mirror.BookPrice || p.Err != nil || p.BaseSupply != 5e12 || p.QuoteSupply != 7e12 {
			t.Errorf("%+v", p)
		}
		if p.Pool == nil || p.Pool.BaseBalance != r.chain.past.vaults[0] || p.Pool.QuoteBalance != r.chain.past.vaults[1] || p.Proof != p.Pool.Proof() {
			t.Errorf("pool %+v", p.Pool)
		}
		if len(p.Observed) != 1 || p.Observed[0] != (mirror.Holding{Account: fees, Mint: sceneKey(keyQuoteMint), Amount: 321}) {
			t.Errorf("observed %+v", p.Observed)
		}
		if w := &p.Swaps; w.Rolling.Day.Status != mirror.Exact || w.Rolling.Day.Swaps != 20 || !w.Rolling.Totals.Complete || w.Traders != 1 || w.Numbered != 20 || w.Newest.Signature != s.LastSignature {
			t.Errorf("swaps %+v", w)
		}
		if s.Reasons != 0 || s.Active != "a" || s.Failover || len(s.Upstreams) != 2 || s.Lag > 10 {
			t.Errorf("%+v", s)
		}
		r.sameTrades("the past")
		last := r.engine.refreshes[len(r.engine.refreshes)-1]
		if len(last.Bids) != 1 || last.Bids[0] != (market.Level{Price: 99_000, Qty: 7e6}) || last.Asks[0] != (market.Level{Price: 101_000, Qty: 9e6}) || last.Slot != p.At.Slot {
			t.Errorf("refresh %+v", last)
		}
		r.chain.act(buys(100, 7))
		r.chain.act(func(s *scene) { s.sell(1, 100, 300) })
		r.chain.act(func(s *scene) { s.c.Failed = true })
		if w := r.after(cycle).Pairs[0].Swaps; w.Rolling.Day.Swaps != 22 || w.Rolling.Last.Side != market.Sell {
			t.Errorf("later %+v", w.Rolling)
		}
		r.stop()
		r.sameTrades("later")
	})
}

// TestServiceDegrades: uncertain data is not published, and the state says why.
func TestServiceDegrades(t *testing.T) {
	for name, c := range map[string]struct {
		nodes  int
		change func(r *rig)
		want   []mirror.Reason
		// publishes: newer slots are still published.
		publishes bool
	}{
		"as it is":        {2, func(*rig) {}, nil, true},
		"a node is alone": {1, func(*rig) {}, nil, true},
		"no node answers": {2, func(r *rig) { r.chain.down = true }, []mirror.Reason{mirror.NoUpstream, mirror.Stale}, false},
		"two report different vaults at one slot": {2, func(r *rig) {
			r.chain.alter = func(node int, v *rpc.NodeAccounts) {
				if node == 1 {
					hollow(v)
				}
			}
		}, []mirror.Reason{mirror.Contradicted, mirror.Stale}, false},
		"one of three lies": {3, func(r *rig) {
			r.chain.alter = func(node int, v *rpc.NodeAccounts) {
				if node == 0 {
					hollow(v)
				}
			}
		}, []mirror.Reason{mirror.Contradicted}, true},
		"one of two is a slot ahead with another vault": {2, func(r *rig) {
			r.chain.alter = func(node int, v *rpc.NodeAccounts) {
				if node == 1 {
					hollow(v)
					moveTo(v, v.Slot+1, 0)
				}
			}
		}, []mirror.Reason{mirror.Contradicted, mirror.Stale}, false},
		"one of two is of the future": {2, func(r *rig) {
			r.chain.alter = func(node int, v *rpc.NodeAccounts) {
				if node == 0 {
					moveTo(v, v.Slot+1_000_000, 0)
				}
			}
		}, []mirror.Reason{mirror.FutureSlot}, true},
		"all are of the future": {2, func(r *rig) {
			r.chain.alter = func(_ int, v *rpc.NodeAccounts) { moveTo(v, v.Slot+1_000_000, 0) }
		}, []mirror.Reason{mirror.FutureSlot, mirror.Stale}, false},
		"the clock is ahead of ours": {1, func(r *rig) {
			r.chain.alter = func(_ int, v *rpc.NodeAccounts) { moveTo(v, v.Slot, 2*time.Minute) }
		}, []mirror.Reason{mirror.FutureSlot, mirror.Stale, mirror.HistoryBehind}, false},
		"the chain stands still": {1, func(r *rig) {
			slot, at := r.chain.slot(), r.chain.now()
			r.chain.alter = func(_ int, v *rpc.NodeAccounts) { moveTo(v, slot, at.Sub(r.chain.now())) }
		}, []mirror.Reason{mirror.NoUpstream, mirror.Stale, mirror.HistoryBehind}, false},
		"one of two stands still": {2, func(r *rig) {
			slot, at := r.chain.slot(), r.chain.now()
			r.chain.alter = func(node int, v *rpc.NodeAccounts) {
				if node == 0 {
					hollow(v)
					moveTo(v, slot, at.Sub(r.chain.now()))
				}
			}
		}, nil, true},
		"slots go back": {1, func(r *rig) {
			r.chain.alter = func(_ int, v *rpc.NodeAccounts) { moveTo(v, v.Slot-1000, 0) }
		}, []mirror.Reason{mirror.NoUpstream, mirror.Stale}, false},
		"a clock of another slot": {1, func(r *rig) {
			r.chain.alter = func(_ int, v *rpc.NodeAccounts) { v.Slot++ }
		}, []mirror.Reason{mirror.NoUpstream, mirror.BadAccount, mirror.Stale}, false},
		"the book is empty": {1, func(r *rig) { r.chain.book = nil }, []mirror.Reason{mirror.VaultPrice}, true},
		"the book is another program's": {
			1, func(r *rig) { r.chain.more[atMarket] = &rpc.Account{Address: atMarket, Data: make([]byte, 400)} },
			[]mirror.Reason{mirror.VaultPrice, mirror.BadAccount},
			false,
		},
		"a vault is gone": {1, func(r *rig) { r.chain.more[sceneKey(keyBaseVault)] = nil }, []mirror.Reason{mirror.BadAccount}, true},
		"a mint is gone":  {1, func(r *rig) { r.chain.more[sceneKey(keyBaseMint)] = nil }, []mirror.Reason{mirror.BadAccount, mirror.Stale}, false},
		"a mint has other decimals": {1, func(r *rig) {
			r.chain.more[sceneKey(keyQuoteMint)] = mintAccount(sceneKey(keyQuoteMint), 9, 1)
		}, []mirror.Reason{mirror.BadAccount, mirror.Stale}, false},
		"the engine refuses": {1, func(r *rig) {
			r.engine.mu.Lock()
			r.engine.err = errors.New("full")
			r.engine.mu.Unlock()
		}, []mirror.Reason{mirror.EngineRefuses}, false},
		"the history cannot be listed": {1, func(r *rig) { r.chain.past.listErr = errors.New("no") }, []mirror.Reason{mirror.HistoryBehind}, true},
		"the disk is gone":             {1, func(r *rig) { r.kv.left.Store(0); r.chain.past.add(1, 0, buys(1, 1)) }, []mirror.Reason{mirror.StoreFailed, mirror.HistoryBehind}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, c.nodes)
				r.start()
				if s := r.after(2*cycle + time.Second); s.Reasons != 0 {
					t.Fatalf("it begins with %v: %v", s.Reasons.Words(), s.Pairs[0].Err)
				}
				before := r.chain.slot()
				r.chain.mu.Lock()
				c.change(r)
				r.chain.mu.Unlock()
				s := r.after(2 * time.Minute)
				r.stop()
				var want mirror.Reasons
				for _, reason := range c.want {
					want = want.With(reason)
				}
				if s.Reasons != want {
					t.Errorf("%q, want %q: %v", s.Reasons.Words(), want.Words(), s.Pairs[0].Err)
				}
				if published := r.engine.Durable(3).Slot; (published > before) != c.publishes {
					t.Errorf("slot %d, then %d", before, published)
				}
				if p := s.Pairs[0].Pool; p != nil && p.BaseBalance < 900_000 {
					t.Errorf("published %+v", p)
				}
			})
		})
	}
}

// TestServiceWaitsForAgreement: nodes a slot apart return different data of a moving
// book, and one of them is asked again.
func TestServiceWaitsForAgreement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		apart := true
		r.chain.alter = func(node int, v *rpc.NodeAccounts) {
			if node == 0 {
				return
			}
			if apart {
				hollow(v)
				moveTo(v, v.Slot+1, 0)
			}
			apart = !apart
		}
		r.start()
		s := r.after(3 * cycle)
		if p := &s.Pairs[0]; s.Reasons.Has(mirror.Contradicted) || s.Reasons.Has(mirror.Unconfirmed) || p.AgreeingNodes != 2 || p.Pool == nil || p.Pool.BaseBalance != r.chain.past.vaults[0] {
			t.Errorf("%q: %+v, %v", s.Reasons.Words(), p.Pool, p.Err)
		}
		r.chain.alterAnswers(func(node int, v *rpc.NodeAccounts) {
			if node == 1 {
				hollow(v)
				moveTo(v, 200_000+uint64(r.chain.asks), 0)
			}
		})
		r.stop()
	})
}

// TestServiceNodes: the state says which node is used and which is refused.
func TestServiceNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3)
		r.o.Pairs[0].Pool = mirror.PoolListing{}
		r.chain.alter = func(node int, v *rpc.NodeAccounts) {
			if node == 1 {
				moveTo(v, v.Slot, -time.Hour)
			}
		}
		r.start()
		s := r.after(time.Second)
		r.stop()
		if s.Upstreams[0].Refused != nil || s.Upstreams[1].Refused == nil || s.Upstreams[2].Refused != nil || s.Pairs[0].AgreeingNodes != 2 {
			t.Errorf("%+v", s.Upstreams)
		}
		if p := &s.Pairs[0]; p.Pool != nil || p.Swaps.Numbered != 0 || p.Price != mirror.BookPrice || len(r.engine.refreshes) != 1 {
			t.Errorf("a book alone: %+v", p)
		}
	})
}

// TestServiceOpensLater: an account that does not exist at first is opened later, and the
// rest is followed meanwhile.
func TestServiceOpensLater(t *testing.T) {
	for name, address := range map[string]solana.Address{"the market": atMarket, "the pool": sceneKey(keyPool)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1)
				p := &r.o.Pairs[0]
				pool, accounts := makePool()
				p.Base, p.Quote, p.Pool = baseCoin, quoteCoin, mirror.PoolListing{Pool: sceneKey(keyPool), Program: pool.Program}
				for _, a := range append(accounts, mintAccount(baseCoin.Mint, baseCoin.Decimals, 1), mintAccount(quoteCoin.Mint, quoteCoin.Decimals, 1)) {
					r.chain.more[a.Address] = a
				}
				book := manifestData(r.chain.book)
				r.chain.more[atMarket] = &rpc.Account{Address: atMarket, Owner: solana.ManifestProgram, Data: book}
				accounts[2].Address = sceneKey(keyPool)
				r.chain.more[sceneKey(keyPool)] = accounts[2]
				there := r.chain.more[address]
				r.chain.more[address] = nil
				r.start()
				s := r.after(2 * cycle)
				if p := &s.Pairs[0]; !p.Reasons.Has(mirror.BadAccount) || (p.Pool == nil) != (address != atMarket) || (p.Orders == 0) != (address == atMarket) || p.AgreeingNodes != 1 {
					t.Errorf("%q %+v", s.Reasons.Words(), p)
				}
				r.chain.mu.Lock()
				r.chain.more[address] = there
				r.chain.mu.Unlock()
				s = r.after(2 * cycle)
				r.stop()
				if p := &s.Pairs[0]; p.Reasons.Has(mirror.BadAccount) || p.Pool == nil || p.Pool.BaseFees != 7 || p.Orders != 2 {
					t.Errorf("%q %+v, %v", s.Reasons.Words(), p, p.Err)
				}
			})
		})
	}
}

// TestServiceBelievesNoSlotAlone: a slot that no majority has reached changes nothing.
func TestServiceBelievesNoSlotAlone(t *testing.T) {
	for name, c := range map[string]struct {
		ahead     uint64
		refreshes int
	}{"some slots ahead": {100, 3}, "far ahead": {1_000_000, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2)
				r.chain.alter = func(node int, v *rpc.NodeAccounts) {
					if node == 1 {
						moveTo(v, v.Slot+c.ahead, 0)
					}
				}
				r.start()
				s := r.after(2*cycle + time.Second)
				r.stop()
				if s.Slot > r.chain.slot() || len(r.engine.refreshes) != c.refreshes || s.Reasons.Has(mirror.Contradicted) != (c.refreshes == 0) {
					t.Errorf("slot %d of %d, %d refreshes: %q", s.Slot, r.chain.slot(), len(r.engine.refreshes), s.Reasons.Words())
				}
			})
		})
	}
}

// TestServiceLeavesGiantsOut: an order of more lots than the engine takes, or of less
// than one, does not stop the book and is counted.
func TestServiceLeavesGiantsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		most := uint64(1) << 60
		r.o.Pairs[0].Instrument.Lot = 10
		most *= 10
		r.chain.book = []order{
			{bid: true, price: market.Uint128{Lo: 97e15}, size: 9},
			{bid: true, price: market.Uint128{Lo: 99e15}, size: most + 10},
			{bid: true, price: market.Uint128{Lo: 98e15}, size: most},
			{price: market.Uint128{Lo: 101e15}, size: most},
			{price: market.Uint128{Lo: 102e15}, size: most + 10},
		}
		r.start()
		s := r.after(time.Second)
		r.stop()
		if got := r.engine.refreshes[0]; len(got.Bids) != 1 || got.Bids[0].Price != 98_000 || len(got.Asks) != 1 || got.Asks[0].Price != 101_000 || s.Pairs[0].Err != nil || s.Pairs[0].OmittedLevels != 3 || s.Pairs[0].OmittedOrders != 0 {
			t.Errorf("%+v, %+v", got, s.Pairs[0])
		}
	})
}

// TestServiceNeverBefore: the state before the first reading.
func TestServiceNeverBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.chain.down = true
		r.start()
		s := r.after(time.Second)
		r.stop()
		if !s.Reasons.Has(mirror.NotRead) || s.Slot != 0 || !s.SyncedAt.IsZero() || s.Pairs[0].Price != mirror.NoPrice {
			t.Errorf("%q %+v", s.Reasons.Words(), s)
		}
	})
}

// TestServiceRestarts: after a restart the state is complete without reading the past, of
// which only what the windows need was kept.
func TestServiceRestarts(t *testing.T) {
	for name, c := range map[string]struct {
		swaps     int
		apart     time.Duration
		reach     time.Duration
		published int
		stored    int // transactions
	}{
		"all of the past":              {30, 8 * time.Hour, -1, 30, 23},
		"what the windows need":        {30, 8 * time.Hour, 0, 25, 24},
		"the newest before the window": {8, 5 * mirror.Day, 0, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1)
				r.o.Lookback = c.reach
				for i := range c.swaps {
					await.VirtualSleep(t, c.apart)
					r.chain.act(buys(10, 30+market.Amount(i)))
				}
				r.start()
				before := r.after(cycle).Pairs[0].Swaps
				r.stop()
				reads := r.chain.past.reads
				for range 3 {
					r.kv = r.kv.crash(1 << 20)
					r.start()
					after := r.after(2 * cycle).Pairs[0].Swaps
					r.stop()
					if after.Rolling.Totals != before.Rolling.Totals || after.Traders != before.Traders || after.Numbered != uint64(c.published) ||
						after.Rolling.Week != before.Rolling.Week || after.Rolling.Week.Status != mirror.Exact || len(after.Snapshots) != 1 {
						t.Fatalf("%+v\nwas %+v", after, before)
					}
				}
				if r.chain.past.reads != reads || r.engine.refused != 0 || len(r.engine.trades) != c.published {
					t.Errorf("%d transactions were read again, %d trades published, %d twice", r.chain.past.reads-reads, len(r.engine.trades), r.engine.refused)
				}
				if n := r.kv.count('t'); n != c.stored {
					t.Errorf("%d transactions are kept", n)
				}
			})
		})
	}
}

// TestServiceRecords: one snapshot in each interval, and no other.
func TestServiceRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.o.SnapshotEvery = time.Hour
		r.start()
		for range 5 {
			r.after(time.Hour)
			r.chain.act(buys(10, 30))
		}
		r.after(cycle)
		r.chain.alterAnswers(func(_ int, v *rpc.NodeAccounts) { v.Err = errors.New("down") })
		list := r.after(3 * time.Hour).Pairs[0].Swaps.Snapshots
		r.stop()
		if len(list) != 6 {
			t.Fatalf("%d snapshots", len(list))
		}
		for i, s := range list[:5] {
			if s.At-list[i+1].At < 1800 || s.At/3600 == list[i+1].At/3600 || s.Swaps > 5 || !s.Complete || s.BaseBalance != market.Amount(1_000_000-10*s.Swaps) || s.Slot == 0 {
				t.Errorf("%d: %+v", i, s)
			}
		}
	})
}

// TestServiceRecordsAllOfThePast: no snapshot before the past was read.
func TestServiceRecordsAllOfThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		const swaps = 5
		for range swaps {
			r.chain.act(buys(10, 30))
		}
		r.chain.slow = time.Minute // a transaction
		r.start()
		if s := r.after(3 * time.Minute).Pairs[0].Swaps; len(s.Snapshots) != 0 || s.Rolling.Totals.Swaps == 0 || s.Rolling.Totals.Swaps >= swaps {
			t.Errorf("after %d of %d swaps: snapshots %+v", s.Rolling.Totals.Swaps, swaps, s.Snapshots)
		}
		list := r.after(time.Hour).Pairs[0].Swaps.Snapshots
		r.stop()
		if len(list) == 0 || list[len(list)-1].Swaps != swaps || !list[len(list)-1].Complete {
			t.Errorf("%+v", list)
		}
	})
}

// TestServiceStore: the service refuses records that it has not written.
func TestServiceStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.kv.Put("v", []byte("\x02"))
		if _, err := mirror.New(r.o, r.chain, r.engine, r.kv); !errors.Is(err, mirror.ErrRecord) {
			t.Error(err)
		}
		r.kv.Put("v", []byte("\x01"))
		r.o.Every = -1
		if _, err := mirror.New(r.o, r.chain, r.engine, r.kv); !errors.Is(err, mirror.ErrOptions) {
			t.Error(err)
		}
		r.kv, r.o.Every = newMemKV(), 0
		r.chain.act(buys(3, 4))
		r.start()
		r.after(2 * cycle)
		r.stop()
		for key, value := range r.kv.Content() {
			if key == "v" || key[0] == 'p' {
				continue
			}
			spoils := map[string]string{"cut": value[:len(value)-1], "longer": value + "\x00", "another version": "\x09" + value[1:], "empty": ""}
			if key[0] == 't' || key[0] == 's' {
				spoils["gone"] = ""
			}
			for what, spoilt := range spoils {
				if key[0] == 's' {
					r.engine.trades, r.engine.durable = nil, 0 // so that it is published again
				}
				r.kv = r.kv.crash(1 << 20)
				r.kv.Put(key, []byte(spoilt))
				if what == "gone" {
					r.kv.Drop(key)
				}
				r.start()
				s := r.after(cycle)
				r.stop()
				if !s.Reasons.Has(mirror.StoreFailed) || !errors.Is(s.Pairs[0].Err, mirror.ErrRecord) {
					t.Errorf("record %c, %s: %q, %v", key[0], what, s.Reasons.Words(), s.Pairs[0].Err)
				}
				r.kv.Put(key, []byte(value))
			}
		}
	})
}

// TestServiceCrashes: a crash at each commit, with none or all unsynced commits on disk
// and some engine commands lost, publishes each swap once, in order.
func TestServiceCrashes(t *testing.T) {
	for _, unsynced := range []int{0, 1, 1 << 20} {
		for at, more := 1, true; more; at++ {
			t.Run(fmt.Sprintf("commit %d, %d unsynced", at, unsynced), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { more = crashAt(t, at, unsynced) })
			})
		}
	}
}

// crashAt reports whether the run reached the commit.
func crashAt(t *testing.T, at, unsynced int) (more bool) {
	r := newRig(t, 1)
	for i := range 4 {
		await.VirtualSleep(t, time.Minute)
		r.chain.act(buys(10+market.Amount(i), 30))
	}
	r.kv.left.Store(int64(at))
	r.engine.held = at%2 == 0
	r.start()
	r.after(2 * cycle)
	for i := range 3 {
		r.chain.act(func(s *scene) { s.sell(1, 10, 20+market.Amount(i)).buy(1, 5, 40) })
		r.after(cycle)
	}
	r.stop()
	more = r.kv.left.Load() == 0
	r.kv = r.kv.crash(unsynced)
	e := r.engine
	if e.held {
		e.durable = len(e.trades) / 2
	}
	e.trades, e.held = e.trades[:e.durable], false
	r.start()
	r.after(2 * cycle)
	r.chain.act(buys(1, 2))
	s := r.after(4 * cycle)
	r.stop()
	if s.Reasons != 0 || s.Pairs[0].Swaps.Rolling.Day.Swaps != 4+3*2+1 {
		t.Errorf("%q %v: %+v", s.Reasons.Words(), s.Pairs[0].Err, s.Pairs[0].Swaps.Rolling.Day)
	}
	r.sameTrades("after the crash")
	return more
}

// TestServiceResubmits: trades that a running engine has lost are submitted again.
func TestServiceResubmits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.engine.held = true
		for range 5 {
			r.chain.act(buys(10, 30))
		}
		r.start()
		r.after(2 * cycle)
		r.engine.mu.Lock()
		r.engine.trades, r.engine.durable, r.engine.held = r.engine.trades[:2], 2, false
		r.engine.mu.Unlock()
		r.after(4 * cycle)
		r.stop()
		r.sameTrades("published again")
	})
}

// TestServiceKeepsOrdinals: published swaps are on disk with their ordinals, so a node
// that has deleted some of them changes none.
func TestServiceKeepsOrdinals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		for range 5 {
			r.chain.act(buys(10, 30))
		}
		r.start()
		r.after(2*cycle + time.Second)
		r.chain.act(buys(20, 30))
		r.chain.act(buys(21, 30))
		r.after(cycle)
		r.stop()
		r.kv, r.chain.past.floor = r.kv.crash(0), len(r.chain.past.list)-1
		r.start()
		r.after(time.Second)
		r.chain.act(buys(22, 30))
		r.after(10 * time.Minute)
		r.stop()
		r.sameTrades("after the crash")
	})
}

// TestServiceOutlivesDisk: a store that fails for a while loses no swap.
func TestServiceOutlivesDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.start()
		r.after(2 * cycle)
		for left := range 4 {
			r.kv.left.Store(int64(left))
			r.chain.act(buys(10, 30))
			r.chain.act(buys(10, 31))
			r.after(2 * cycle)
			r.kv.left.Store(-1)
			r.chain.act(buys(10, 32))
			if s := r.after(2 * cycle); s.Reasons != 0 {
				t.Errorf("%q: %v", s.Reasons.Words(), s.Pairs[0].Err)
			}
		}
		r.stop()
		r.sameTrades("with a disk that comes and goes")
	})
}

// TestServiceLosesStore: without its store the service publishes nothing twice and
// continues with the next ordinal.
func TestServiceLosesStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		for range 5 {
			r.chain.act(buys(10, 30))
		}
		r.start()
		r.after(2 * cycle)
		r.stop()
		r.kv = newMemKV()
		r.start()
		r.after(2 * time.Minute)
		r.chain.act(buys(20, 30))
		s := r.after(2 * cycle)
		r.stop()
		r.sameTrades("with a new store")
		if w := &s.Pairs[0].Swaps; w.Rolling.Day.Swaps != 6 || w.Numbered != 6 || s.Reasons != 0 {
			t.Errorf("%+v", w)
		}
	})
}

// TestServiceOldStore: ordinals that the store lacks keep their swaps, whether an older
// store was restored or another pool was mirrored meanwhile.
func TestServiceOldStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		for range 5 {
			r.chain.act(buys(10, 30))
		}
		r.start()
		r.after(2 * cycle)
		r.stop()
		old := r.kv.crash(1 << 20)
		for i := range 3 { // of another pool
			if err := r.engine.Trade(mirror.Trade{Instrument: 3, Ordinal: uint64(6 + i), Price: 1, Qty: 1, Side: market.Buy, At: r.chain.now().UnixNano(), Slot: 1}); err != nil {
				t.Fatal(err)
			}
		}
		r.chain.act(buys(11, 30)) // as long as the other one was followed
		r.kv = old
		r.start()
		r.after(2 * time.Minute)
		r.chain.act(buys(20, 30))
		s := r.after(2 * cycle)
		r.stop()
		list, err := r.s.Signatures(3, 5, 9)
		past := r.chain.past.list
		if err != nil || list[0] != past[len(past)-3].Signature() || list[4] != past[len(past)-1].Signature() {
			t.Errorf("trades 5 and 9 are of %v: %v", list, err)
		}
		for i, sig := range list[1:4] {
			if sig != (solana.Signature{}) {
				t.Errorf("trade %d of another pool is said to be of %s", 6+i, sig)
			}
		}
		if n := len(r.engine.trades); n != 9 || r.engine.trades[8].Qty != 20 || r.engine.refused != 0 {
			t.Errorf("%d trades: %+v", n, r.engine.trades)
		}
		if w := &s.Pairs[0].Swaps; w.Rolling.Day.Swaps != 7 || w.Numbered != 9 || s.Reasons != 0 {
			t.Errorf("%+v", w)
		}
	})
}

// TestServiceJoinsRuns: a node that has deleted the newest transaction makes the history
// restart, and no swap is published twice.
func TestServiceJoinsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		for range 6 {
			await.VirtualSleep(t, time.Minute)
			r.chain.act(func(s *scene) { s.buy(1, 10, 30).sell(1, 3, 2) })
		}
		r.start()
		r.after(2 * cycle)
		r.chain.mu.Lock()
		r.chain.past.hidden = len(r.chain.past.list) - 1
		r.chain.mu.Unlock()
		r.chain.act(buys(5, 6))
		r.after(8 * time.Minute)
		r.chain.mu.Lock()
		r.chain.past.hidden = -1
		r.chain.mu.Unlock()
		r.chain.act(buys(7, 8))
		s := r.after(time.Minute)
		r.stop()
		// The swap's slot is after that of the last published one, which the new run
		// lacks: nothing is lost either.
		r.sameTrades("over two runs")
		if s.Pairs[0].Swaps.Numbered != 14 {
			t.Errorf("%+v", s.Pairs[0].Swaps)
		}
	})
}

// TestServiceOmittedSwaps counts swaps that the instrument cannot express.
func TestServiceOmittedSwaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.o.Pairs[0].Instrument.Lot = 100
		r.chain.act(buys(99, 30))
		r.chain.act(buys(100, 30))
		r.start()
		s := r.after(2 * cycle)
		r.stop()
		if w := &s.Pairs[0].Swaps; w.OmittedSwaps != 1 || w.Numbered != 1 || w.Rolling.Day.Swaps != 2 || r.engine.trades[0].Qty != 1 {
			t.Errorf("%+v", w)
		}
	})
}
