package settle

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/settle/cosign"
	"blockdesk/settle/proof"
	"blockdesk/settle/store"
)

var (
	usdc        = solana.Address{1, 1}
	base        = solana.Address{2, 2}
	treasury    = solana.Address{3, 3}
	deskAddress = solana.Address{4, 4}
)

// chainNode has accounts, and a blockhash of now.
type chainNode struct {
	Node
	accounts map[solana.Address]*rpc.Account
	err      error
	at       time.Time
	asked    int
}

func (n *chainNode) Blockhash(context.Context) (rpc.Blockhash, error) {
	return rpc.Blockhash{Hash: solana.Hash{1}, LastValidBlockHeight: 1000, Slot: 1, FetchedAt: n.at}, n.err
}

func (n *chainNode) AccountsFromEach(_ context.Context, list []solana.Address, level rpc.Commitment, _ uint64) ([]rpc.NodeAccounts, error) {
	if level != rpc.Finalized || len(list) > rpc.MaxAccountsPerCall {
		return nil, errors.New("asked wrongly")
	}
	n.asked++
	found := make([]*rpc.Account, len(list))
	for i, a := range list {
		found[i] = n.accounts[a]
	}
	return []rpc.NodeAccounts{{Upstream: "chain", Err: n.err, Slot: 1, Accounts: found}}, nil
}

func (n *chainNode) GenesisFromEach(context.Context) ([]rpc.NodeGenesis, error) {
	return []rpc.NodeGenesis{{Upstream: "chain", Hash: solana.Hash{1}}}, nil
}

func (n *chainNode) put(a solana.Address, data []byte) {
	n.accounts[a] = &rpc.Account{Address: a, Owner: solana.TokenProgram, Lamports: 1, Data: data}
}

func mintData(decimals byte) []byte {
	data := make([]byte, 82)
	data[44], data[45] = decimals, 1
	return data
}

func tokenData(mint, owner solana.Address) []byte {
	data := make([]byte, 165)
	copy(data, mint[:])
	copy(data[32:], owner[:])
	data[108] = 1
	return data
}

// viewDesk has one view.
type viewDesk struct {
	Desk
	view *rfq.View
}

func (d *viewDesk) View() *rfq.View { return d.view }

type addressSigner struct {
	cosign.Signer
	address solana.Address
}

func (s *addressSigner) Address() solana.Address { return s.address }

// emptyKV is a store that has nothing.
type emptyKV struct{ kv.Store }

func (emptyKV) Get(key []byte) ([]byte, bool, error) {
	if key[0] == 1 {
		return []byte{1}, true, nil
	}
	return nil, false, nil
}
func (emptyKV) Scan(_, _ []byte, _ func(_, _ []byte) bool) error { return nil }

// readySettlement is a settlement that has all it needs, with an empty prover.
func readySettlement(t testing.TB) (*Settlement, *chainNode, *viewDesk, *addressSigner) {
	t.Helper()
	n := &chainNode{accounts: map[solana.Address]*rpc.Account{}, at: time.Now()}
	n.put(usdc, mintData(6))
	n.put(base, mintData(9))
	account, err := solana.TokenAccount(treasury, usdc, solana.TokenProgram)
	if err != nil {
		t.Fatal(err)
	}
	n.put(account, tokenData(usdc, treasury))
	v := &rfq.View{Pairs: []rfq.Pair{{Instrument: 1, BaseMint: base, BaseDecimals: 9}}}
	v.Policy.USDCMint, v.Policy.PayTo[market.RailUSDC] = usdc, treasury
	d, signer := &viewDesk{view: v}, &addressSigner{address: deskAddress}
	st, err := store.Open(emptyKV{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Budget: build.Budget{Units: 1}, Now: func() time.Time { return time.Unix(1001, 0) }}, d, n, st, signer)
	if err != nil {
		t.Fatal(err)
	}
	s.payments.prover.Store(&proof.Prover{})
	return s, n, d, signer
}

// TestReady: Ready says what is missing, and asks no node for it.
func TestReady(t *testing.T) {
	account, err := solana.TokenAccount(treasury, usdc, solana.TokenProgram)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(n *chainNode, d *viewDesk, s *addressSigner)
		want  string // "" = ready
	}{
		"nothing": {func(*chainNode, *viewDesk, *addressSigner) {}, ""},
		"view":    {func(_ *chainNode, d *viewDesk, _ *addressSigner) { d.view = nil }, "the desk has published no view"},
		"signer":  {func(_ *chainNode, _ *viewDesk, s *addressSigner) { s.address = solana.Address{} }, "has not said its address yet"},
		"blockhash": {func(n *chainNode, _ *viewDesk, _ *addressSigner) {
			n.at = time.Now().Add(-maxBlockhashAge - 1)
		}, "no recent blockhash"},
		"chain":         {func(n *chainNode, _ *viewDesk, _ *addressSigner) { n.err = errAny }, "no recent blockhash"},
		"USDC mint":     {func(n *chainNode, _ *viewDesk, _ *addressSigner) { delete(n.accounts, usdc) }, "USDC: "},
		"USDC decimals": {func(n *chainNode, _ *viewDesk, _ *addressSigner) { n.put(usdc, mintData(9)) }, "has 9 decimals"},
		"base mint":     {func(n *chainNode, _ *viewDesk, _ *addressSigner) { delete(n.accounts, base) }, "base asset of instrument 1: "},
		"base decimals": {func(n *chainNode, _ *viewDesk, _ *addressSigner) { n.put(base, mintData(6)) }, "instrument 1 has 9 decimals"},
		"no mint":       {func(n *chainNode, _ *viewDesk, _ *addressSigner) { n.put(base, nil) }, "malformed"},
		"a fee on transfers": {func(n *chainNode, _ *viewDesk, _ *addressSigner) {
			data := append(make([]byte, 165), 1)
			copy(data, mintData(9))
			data = binary.LittleEndian.AppendUint16(data, 1)
			data = append(binary.LittleEndian.AppendUint16(data, 108), make([]byte, 108)...)
			n.put(base, data)
			n.accounts[base].Owner = solana.Token2022Program
		}, "an extension that is not supported"},
		"no account":        {func(n *chainNode, _ *viewDesk, _ *addressSigner) { delete(n.accounts, account) }, "has no USDC account"},
		"another's account": {func(n *chainNode, _ *viewDesk, _ *addressSigner) { n.put(account, tokenData(usdc, base)) }, "has no USDC account"},
		"a frozen account": {func(n *chainNode, _ *viewDesk, _ *addressSigner) {
			n.put(account, tokenData(usdc, treasury))
			n.accounts[account].Data[108] = 2
		}, "has no USDC account"},
		"no USDC at all": {func(n *chainNode, d *viewDesk, _ *addressSigner) {
			d.view.Policy.PayTo[market.RailUSDC] = solana.Address{}
			delete(n.accounts, usdc)
		}, ""},
	} {
		s, n, d, signer := readySettlement(t)
		c.spoil(n, d, signer)
		err := s.chain.refresh(t.Context())
		if ready := s.Ready(); c.want == "" && ready != nil || c.want != "" && (!errors.Is(ready, ErrNotReady) || !strings.Contains(ready.Error(), c.want)) {
			t.Errorf("%s: %v; the refresh: %v", name, ready, err)
		}
	}
}

// TestReadyToVerify: settlement is not ready before payments can be verified.
func TestReadyToVerify(t *testing.T) {
	s, _, _, _ := readySettlement(t)
	s.payments.prover.Store(nil)
	if err := s.chain.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(); !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "the watch for payments") {
		t.Error(err)
	}
}

// TestRefresh: accounts are read if one is missing or they are old, and not
// otherwise; what is known stays known while the chain is away.
func TestRefresh(t *testing.T) {
	s, n, d, _ := readySettlement(t)
	now := time.Unix(1000, 0)
	s.clock = func() time.Time { return now }
	look := func(want int) {
		t.Helper()
		before := n.asked
		_ = s.chain.refresh(t.Context())
		if n.asked-before != want {
			t.Errorf("asked %d times, want %d", n.asked-before, want)
		}
	}
	look(2) // the mints, then the treasury's account
	look(0)
	now = now.Add(s.chain.refreshEvery)
	look(2)
	more := solana.Address{5, 5}
	v := *d.view
	v.Pairs = append(v.Pairs[:1:1], rfq.Pair{Instrument: 2, BaseMint: more, BaseDecimals: 6})
	d.view = &v
	look(2) // a new pair, whose mint is missing
	look(2)
	if s.Ready() == nil {
		t.Error("ready without a mint")
	}
	n.put(more, mintData(6))
	look(2)
	n.err = errAny
	now = now.Add(s.chain.refreshEvery)
	look(0)
	now = now.Add(-s.chain.refreshEvery)
	if err := s.Ready(); err != nil {
		t.Error(err)
	}
}

// TestManyMints: more mints than one call takes.
func TestManyMints(t *testing.T) {
	s, n, d, _ := readySettlement(t)
	d.view.Pairs = nil
	for i := range rpc.MaxAccountsPerCall + 1 {
		mint := solana.Address{6, byte(i), byte(i >> 8)}
		n.put(mint, mintData(6))
		d.view.Pairs = append(d.view.Pairs, rfq.Pair{Instrument: market.InstrumentID(i), BaseMint: mint, BaseDecimals: 6})
	}
	if err := s.chain.refresh(t.Context()); err != nil || s.Ready() != nil {
		t.Error(err, s.Ready())
	}
}

func TestReadyAllocates(t *testing.T) {
	s, _, _, _ := readySettlement(t)
	if err := s.chain.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = s.Ready() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestOptions(t *testing.T) {
	good := Options{Budget: build.Budget{Units: 1}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(o *Options){
		"no budget":        func(o *Options) { o.Budget = build.Budget{} },
		"a dear budget":    func(o *Options) { o.Budget.MicroLamports = 1 << 60 },
		"deliverers":       func(o *Options) { o.Deliverers = MaxDeliverers + 1 },
		"fewer deliverers": func(o *Options) { o.Deliverers = -1 },
		"treasury":         func(o *Options) { o.Treasury = make([]solana.Address, MaxTreasury+1) },
		"a pause":          func(o *Options) { o.RetryFirst = -1 },
		"pauses":           func(o *Options) { o.RetryFirst, o.RetryMax = time.Minute, time.Second },
		"a time":           func(o *Options) { o.SignTimeout = -1 },
		"the tracker's":    func(o *Options) { o.Broadcast.PollEvery = -1 },
	} {
		o := good
		spoil(&o)
		if err := o.Validate(); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
		if s, err := New(o, &viewDesk{}, &chainNode{}, nil, nil); !errors.Is(err, ErrOptions) || s != nil {
			t.Errorf("%s: a settlement: %v", name, err)
		}
	}
}

// TestLocks: two calls for one claim wait for each other, two for different claims do
// not, and waiting ends with the context.
func TestLocks(t *testing.T) {
	l := newClaimLocks()
	unlock, err := l.lock(t.Context(), 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := l.try(5); ok {
		t.Error("locked twice")
	}
	if other, ok := l.try(6); !ok {
		t.Error("another claim waits")
	} else {
		other()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.lock(ctx, 5); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	unlock()
	if again, ok := l.try(5); !ok {
		t.Error("not given back")
	} else {
		again()
	}
}

// endingConsumer has no events, and ends with an error.
type endingConsumer struct{ end error }

func (c endingConsumer) Next(ctx context.Context) ([]event.Event, error) {
	if c.end != nil {
		return nil, c.end
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (endingConsumer) Release(int) {}

// TestRunEnds: Run ends with the engine, with the context, or with an error.
func TestRunEnds(t *testing.T) {
	for name, c := range map[string]struct{ end, want error }{
		"the engine stops": {io.EOF, nil}, "the engine fails": {errAny, errAny}, "the context ends": {nil, nil},
	} {
		s, _, d, _ := readySettlement(t)
		d.view = nil
		ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
		if c.end == nil {
			time.AfterFunc(20*time.Millisecond, cancel)
		}
		if err := s.Run(ctx, endingConsumer{c.end}); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}
