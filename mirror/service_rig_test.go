package mirror_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
	"blockdesk/persist/kv/kvtest"
)

// mintAccount is an initialized mint.
func mintAccount(at solana.Address, decimals uint8, supply uint64) *rpc.Account {
	d := make([]byte, 82)
	u64(d, 36, supply)
	d[44], d[45] = decimals, 1
	return &rpc.Account{Address: at, Owner: solana.TokenProgram, Data: d}
}

// fakeChain is a pastChain that grows with time, a slot every half second, with the
// accounts of a pool and a book. alter changes the nodes' answers.
type fakeChain struct {
	mu      sync.Mutex
	started time.Time
	past    *pastNode
	book    []order
	more    map[solana.Address]*rpc.Account
	names   []string
	// alter changes a node's answer; its error also refuses lists.
	alter func(node int, v *rpc.NodeAccounts)
	// final turns a view into one of a final slot.
	final func(v *rpc.NodeAccounts)
	// alterList changes a node's list.
	alterList func(node int, page rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo
	asks      int
	down      bool
	// wrong is the error of our clock, slow the time to read a transaction.
	wrong time.Duration
	slow  time.Duration
}

func newFakeChain(nodes int) *fakeChain {
	c := &fakeChain{
		started: time.Now(), past: &pastNode{pastChain: newPastChain(), hidden: -1}, more: map[solana.Address]*rpc.Account{},
		book: []order{{bid: true, price: market.Uint128{Lo: 99e15}, size: 7e6}, {price: market.Uint128{Lo: 101e15}, size: 9e6}},
	}
	for i := range nodes {
		c.names = append(c.names, string(rune('a'+i)))
	}
	c.past.add(0, 0, nil)
	return c
}

// now is the clock of the chain and the service.
func (c *fakeChain) now() time.Time { return time.Unix(epoch, 0).Add(time.Since(c.started)) }

func (c *fakeChain) slot() uint64 {
	return 100_000 + uint64(time.Since(c.started)/(500*time.Millisecond))
}

// act makes a transaction now.
func (c *fakeChain) act(do func(s *scene)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.past.slot, c.past.at = c.slot(), c.now().Unix()
	c.past.add(0, 0, do)
}

func (c *fakeChain) alterAnswers(alter func(node int, v *rpc.NodeAccounts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alter = alter
}

// account returns the account of an address; nil if it does not exist.
func (c *fakeChain) account(a solana.Address) *rpc.Account {
	if own, ok := c.more[a]; ok {
		return own
	}
	switch a {
	case solana.ClockSysvar:
		return clockAccount(c.slot(), uint64(c.now().Unix()))
	case sceneKey(keyBaseMint):
		return mintAccount(a, 6, 5e12)
	case sceneKey(keyQuoteMint):
		return mintAccount(a, 6, 7e12)
	case sceneKey(keyBaseVault):
		return vaultAccount(a, sceneKey(keyBaseMint), uint64(c.past.vaults[0]))
	case sceneKey(keyQuoteVault):
		return vaultAccount(a, sceneKey(keyQuoteMint), uint64(c.past.vaults[1]))
	case atMarket:
		d := manifestData(c.book)
		d[9], d[10] = 6, 6
		copy(d[16:], c.mint(keyBaseMint))
		copy(d[48:], c.mint(keyQuoteMint))
		return &rpc.Account{Address: a, Owner: solana.ManifestProgram, Data: d}
	}
	return nil
}

func (c *fakeChain) mint(key int) []byte { a := sceneKey(key); return a[:] }

func (c *fakeChain) AccountsFromEach(_ context.Context, list []solana.Address, level rpc.Commitment, minSlot uint64) ([]rpc.NodeAccounts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks++
	views := make([]rpc.NodeAccounts, len(c.names))
	for i, name := range c.names {
		v := rpc.NodeAccounts{Upstream: name, Slot: c.slot()}
		for _, a := range list {
			v.Accounts = append(v.Accounts, c.account(a))
		}
		if c.alter != nil {
			c.alter(i, &v)
		}
		if c.final != nil && level == rpc.Finalized {
			c.final(&v)
		}
		if c.down || v.Err == nil && v.Slot < minSlot {
			v = rpc.NodeAccounts{Upstream: name, Err: &rpc.Error{Kind: rpc.Behind, Upstream: name}}
		}
		views[i] = v
	}
	return views, nil
}

func (c *fakeChain) SignaturePageFromEach(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.NodeSignatures, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a != sceneKey(keyBaseVault) {
		return nil, errors.New("the history of another account")
	}
	slot := page.MinSlot
	page.MinSlot = 0 // the chain goes on without transactions too
	views := make([]rpc.NodeSignatures, len(c.names))
	for i, name := range c.names {
		list, err := c.past.Signatures(ctx, sceneKey(keyPool), page, level)
		views[i] = rpc.NodeSignatures{Upstream: name, Err: err, List: list}
		if c.alterList != nil && err == nil {
			asked := page
			asked.MinSlot = slot
			views[i].List = c.alterList(i, asked, list)
		}
	}
	return views, nil
}

func (c *fakeChain) TransactionByMajority(ctx context.Context, s solana.Signature, level rpc.Commitment) (*ledger.Confirmed, bool, error) {
	time.Sleep(c.slow) // sleep: a node's answer takes so long, in virtual time
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.past.Transaction(ctx, s, level)
}

func (c *fakeChain) Health() []rpc.UpstreamHealth {
	list := make([]rpc.UpstreamHealth, len(c.names))
	for i, name := range c.names {
		list[i] = rpc.UpstreamHealth{Name: name, Available: true, Slot: c.slot()}
	}
	return list
}

// moveTo changes the slot of a view and of its clock.
func moveTo(v *rpc.NodeAccounts, slot uint64, by time.Duration) {
	unix := int64(binary.LittleEndian.Uint64(v.Accounts[0].Data[32:])) + int64(by/time.Second)
	v.Slot, v.Accounts[0] = slot, clockAccount(slot, uint64(unix))
}

// hollow empties the base vault of a view of the whole pair.
func hollow(v *rpc.NodeAccounts) {
	for i, a := range v.Accounts {
		if a != nil && a.Address == sceneKey(keyBaseVault) {
			v.Accounts[i] = vaultAccount(a.Address, sceneKey(keyBaseMint), 1)
		}
	}
}

// fakeEngine validates like the real engine. crash loses commands that are not durable.
type fakeEngine struct {
	mu        sync.Mutex
	refreshes []mirror.Refresh
	trades    []mirror.Trade
	durable   int // of trades
	held      bool
	err       error
	refused   int // trades out of order
}

func (e *fakeEngine) Refresh(r mirror.Refresh) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil && (len(e.refreshes) == 0 || r.Slot > e.refreshes[len(e.refreshes)-1].Slot) {
		r.Bids, r.Asks = slices.Clone(r.Bids), slices.Clone(r.Asks)
		e.refreshes = append(e.refreshes, r)
	}
	return e.err
}

func (e *fakeEngine) Trade(t mirror.Trade) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.err != nil:
	case t.Ordinal != uint64(len(e.trades))+1:
		e.refused++
	default:
		e.trades = append(e.trades, t)
		if !e.held {
			e.durable = len(e.trades)
		}
	}
	return e.err
}

func (e *fakeEngine) Durable(market.InstrumentID) (t mirror.Durable) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.refreshes); n > 0 {
		t.Slot = e.refreshes[n-1].Slot
	}
	if t.Ordinal = uint64(e.durable); e.durable > 0 {
		t.TradedAt = e.trades[e.durable-1].At
	}
	return t
}

// memKV is a store in memory whose commits fail after a number of them.
type memKV struct {
	*kvtest.Memory
	left atomic.Int64 // commits until all fail; below 0: none fails
}

func newMemKV() *memKV { return memKVOf(kvtest.New()) }

func memKVOf(m *kvtest.Memory) *memKV {
	k := &memKV{Memory: m}
	k.left.Store(-1)
	m.Before(func(bool) error {
		if k.left.Load() == 0 {
			return kvtest.ErrBroken
		}
		k.left.Add(-1)
		return nil
	})
	return k
}

// most returns the largest number of changes in a commit.
func (k *memKV) most() (most int) {
	for n := range k.Commits() {
		most = max(most, k.Changes(n))
	}
	return most
}

// count returns how many records of a kind there are.
func (k *memKV) count(kind byte) int { return len(k.Keys(string(kind))) }

// crash returns the store after a crash with that many unsynced commits on disk.
func (k *memKV) crash(unsynced int) *memKV {
	return memKVOf(k.Prefix(min(k.Synced()+unsynced, k.Commits())))
}

// rig is a service on a fake chain in a synctest bubble.
type rig struct {
	t      testing.TB
	chain  *fakeChain
	engine *fakeEngine
	kv     *memKV
	o      mirror.Options
	s      *mirror.Service
	stop   func()
}

// bothPair has a book and a pool.
func bothPair() mirror.Pair {
	p := scenePairOf(3)
	p.Book = mirror.Listing{Layout: mirror.Manifest, Program: solana.ManifestProgram, Market: atMarket}
	return p
}

func newRig(t testing.TB, nodes int) *rig {
	c := newFakeChain(nodes)
	return &rig{t: t, chain: c, engine: &fakeEngine{}, kv: newMemKV(), o: mirror.Options{Pairs: []mirror.Pair{bothPair()}, Now: c.now}}
}

// start runs the service until stop.
func (r *rig) start() {
	r.t.Helper()
	s, err := mirror.New(r.o, r.chain, r.engine, r.kv)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	r.s, r.stop = s, func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	}
}

// after waits and returns the service's state.
func (r *rig) after(d time.Duration) *mirror.State {
	await.VirtualSleep(r.t, d)
	synctest.Wait()
	return r.s.State()
}

// wanted returns the trades of all swaps of the chain.
func (r *rig) wanted() (list []mirror.Trade) {
	vaults := scenePair()
	for _, c := range r.chain.past.list {
		trace, err := vaults.Decode(c)
		if err != nil {
			r.t.Fatal(err)
		}
		for i := range trace.Movements {
			m := &trace.Movements[i]
			if m.Kind != mirror.Swap {
				continue
			}
			price := uint64(m.Quote.Atoms) * 1_000_000
			if m.Side() == market.Buy {
				price += uint64(m.Base.Atoms) - 1
			}
			list = append(list, mirror.Trade{
				Instrument: 3, Ordinal: uint64(len(list)) + 1, Price: market.Price(price / uint64(m.Base.Atoms)),
				Qty: market.Qty(m.Base.Atoms), Side: m.Side(), At: c.BlockTime * 1e9, Slot: c.Slot,
			})
		}
	}
	return list
}

// sameTrades checks that the engine has every swap, once, in the chain's order.
func (r *rig) sameTrades(when string) {
	r.t.Helper()
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	if want := r.wanted(); !slices.Equal(r.engine.trades, want) {
		r.t.Errorf("%s: %d trades, want %d:\n%+v\n%+v", when, len(r.engine.trades), len(want), r.engine.trades, want)
	}
}
