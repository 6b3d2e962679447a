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
	usdc     = solana.Address{1, 1}
	base     = solana.Address{2, 2}
	treasury = solana.Address{3, 3}
	deskKey  = solana.Address{4, 4}
)

// groundNode has accounts, and a blockhash of now.
type groundNode struct {
	Node
	accounts map[solana.Address]*rpc.Account
	err      error
	at       time.Time
	asked    int
}

func (n *groundNode) Blockhash(context.Context) (rpc.Blockhash, error) {
	return rpc.Blockhash{Hash: solana.Hash{1}, LastValidBlockHeight: 1000, Slot: 1, FetchedAt: n.at}, n.err
}

func (n *groundNode) Accounts(_ context.Context, list []solana.Address, level rpc.Commitment, _ uint64) ([]*rpc.Account, uint64, error) {
	if level != rpc.Finalized || len(list) > rpc.MaxAccountsPerCall {
		return nil, 0, errors.New("asked wrongly")
	}
	n.asked++
	found := make([]*rpc.Account, len(list))
	for i, a := range list {
		found[i] = n.accounts[a]
	}
	return found, 1, n.err
}

func (n *groundNode) put(a solana.Address, data []byte) {
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

// groundDesk shows one view.
type groundDesk struct {
	Desk
	view *rfq.View
}

func (d *groundDesk) View() *rfq.View { return d.view }

type groundSigner struct {
	cosign.Signer
	address solana.Address
}

func (s *groundSigner) Address() solana.Address { return s.address }

// emptyKV is a store that has nothing.
type emptyKV struct{ kv.Store }

func (emptyKV) Get(key []byte) ([]byte, bool, error) {
	if key[0] == 1 {
		return []byte{1}, true, nil
	}
	return nil, false, nil
}
func (emptyKV) Scan(_, _ []byte, _ func(_, _ []byte) bool) error { return nil }

// grounded is a settlement that has all it needs; it looks at no payment.
func grounded(t testing.TB) (*Settlement, *groundNode, *groundDesk, *groundSigner) {
	t.Helper()
	n := &groundNode{accounts: map[solana.Address]*rpc.Account{}, at: time.Unix(1000, 0)}
	n.put(usdc, mintData(6))
	n.put(base, mintData(9))
	account, err := solana.TokenAccount(treasury, usdc, solana.TokenProgram)
	if err != nil {
		t.Fatal(err)
	}
	n.put(account, tokenData(usdc, treasury))
	v := &rfq.View{Pairs: []rfq.Pair{{Instrument: 1, BaseMint: base, BaseDecimals: 9}}}
	v.Policy.USDCMint, v.Policy.PayTo[market.RailUSDC] = usdc, treasury
	d, signer := &groundDesk{view: v}, &groundSigner{address: deskKey}
	st, err := store.Open(emptyKV{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Budget: build.Budget{Units: 1}, Now: func() time.Time { return time.Unix(1001, 0) }}, d, n, st, signer)
	if err != nil {
		t.Fatal(err)
	}
	s.prover.Store(&proof.Prover{})
	return s, n, d, signer
}

// TestReady: what is missing is told, and nothing is asked for it.
func TestReady(t *testing.T) {
	account, err := solana.TokenAccount(treasury, usdc, solana.TokenProgram)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(n *groundNode, d *groundDesk, s *groundSigner)
		want  string // "" = ready
	}{
		"nothing": {func(*groundNode, *groundDesk, *groundSigner) {}, ""},
		"view":    {func(_ *groundNode, d *groundDesk, _ *groundSigner) { d.view = nil }, "the desk shows nothing"},
		"signer":  {func(_ *groundNode, _ *groundDesk, s *groundSigner) { s.address = solana.Address{} }, "the signer has not told"},
		"blockhash": {func(n *groundNode, _ *groundDesk, _ *groundSigner) {
			n.at = time.Unix(1001, 0).Add(-maxBlockhashAge - 1)
		}, "no recent blockhash"},
		"chain":         {func(n *groundNode, _ *groundDesk, _ *groundSigner) { n.err = errAny }, "no recent blockhash"},
		"USDC mint":     {func(n *groundNode, _ *groundDesk, _ *groundSigner) { delete(n.accounts, usdc) }, "does not exist: USDC"},
		"USDC decimals": {func(n *groundNode, _ *groundDesk, _ *groundSigner) { n.put(usdc, mintData(9)) }, "has 9 decimals"},
		"base mint":     {func(n *groundNode, _ *groundDesk, _ *groundSigner) { delete(n.accounts, base) }, "does not exist: base of instrument 1"},
		"base decimals": {func(n *groundNode, _ *groundDesk, _ *groundSigner) { n.put(base, mintData(6)) }, "instrument 1 has 9 decimals"},
		"no mint":       {func(n *groundNode, _ *groundDesk, _ *groundSigner) { n.put(base, nil) }, "malformed"},
		"a fee on transfers": {func(n *groundNode, _ *groundDesk, _ *groundSigner) {
			data := append(make([]byte, 165), 1)
			copy(data, mintData(9))
			data = binary.LittleEndian.AppendUint16(data, 1)
			data = append(binary.LittleEndian.AppendUint16(data, 108), make([]byte, 108)...)
			n.put(base, data)
			n.accounts[base].Owner = solana.Token2022Program
		}, "unsupported mint extension"},
		"no account":        {func(n *groundNode, _ *groundDesk, _ *groundSigner) { delete(n.accounts, account) }, "has no USDC account"},
		"another's account": {func(n *groundNode, _ *groundDesk, _ *groundSigner) { n.put(account, tokenData(usdc, base)) }, "has no USDC account"},
		"a frozen account": {func(n *groundNode, _ *groundDesk, _ *groundSigner) {
			n.put(account, tokenData(usdc, treasury))
			n.accounts[account].Data[108] = 2
		}, "has no USDC account"},
		"no USDC at all": {func(n *groundNode, d *groundDesk, _ *groundSigner) {
			d.view.Policy.PayTo[market.RailUSDC] = solana.Address{}
			delete(n.accounts, usdc)
		}, ""},
	} {
		s, n, d, signer := grounded(t)
		c.spoil(n, d, signer)
		err := s.survey(t.Context())
		if ready := s.Ready(); c.want == "" && ready != nil || c.want != "" && (!errors.Is(ready, ErrNotReady) || !strings.Contains(ready.Error(), c.want)) {
			t.Errorf("%s: %v; the survey: %v", name, ready, err)
		}
	}
}

// TestReadyToVerify: who takes a claim can have its payment verified.
func TestReadyToVerify(t *testing.T) {
	s, _, _, _ := grounded(t)
	s.prover.Store(nil)
	if err := s.survey(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(); !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "looks at payments") {
		t.Error(err)
	}
}

// TestSurvey: accounts are read when something is missing or they are old, and not
// else; what is known stays known while the chain is away.
func TestSurvey(t *testing.T) {
	s, n, d, _ := grounded(t)
	now := time.Unix(1000, 0)
	s.options.Now = func() time.Time { return now }
	look := func(want int) {
		t.Helper()
		before := n.asked
		_ = s.survey(t.Context())
		if n.asked-before != want {
			t.Errorf("asked %d times, want %d", n.asked-before, want)
		}
	}
	look(2) // the mints, then the treasury's account
	look(0)
	now = now.Add(s.options.RefreshEvery)
	n.at = now
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
	now = now.Add(s.options.RefreshEvery)
	look(0)
	now = now.Add(-s.options.RefreshEvery)
	if err := s.Ready(); err != nil {
		t.Error(err)
	}
}

// TestManyMints: more mints than one call takes.
func TestManyMints(t *testing.T) {
	s, n, d, _ := grounded(t)
	d.view.Pairs = nil
	for i := range rpc.MaxAccountsPerCall + 1 {
		mint := solana.Address{6, byte(i), byte(i >> 8)}
		n.put(mint, mintData(6))
		d.view.Pairs = append(d.view.Pairs, rfq.Pair{Instrument: market.InstrumentID(i), BaseMint: mint, BaseDecimals: 6})
	}
	if err := s.survey(t.Context()); err != nil || s.Ready() != nil {
		t.Error(err, s.Ready())
	}
}

func TestReadyAllocates(t *testing.T) {
	s, _, _, _ := grounded(t)
	if err := s.survey(t.Context()); err != nil {
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
		if s, err := New(o, &groundDesk{}, &groundNode{}, nil, nil); !errors.Is(err, ErrOptions) || s != nil {
			t.Errorf("%s: a settlement: %v", name, err)
		}
	}
}

// TestLocks: two of one claim wait, two of different claims do not, and waiting
// ends with the context.
func TestLocks(t *testing.T) {
	l := newLocks()
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

// endingConsumer has no events, and ends as it is told to.
type endingConsumer struct{ end error }

func (c endingConsumer) Next(ctx context.Context) ([]event.Event, error) {
	if c.end != nil {
		return nil, c.end
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (endingConsumer) Release(int) {}

// TestRunEnds: with the engine, with the context, and with an error that is told.
func TestRunEnds(t *testing.T) {
	for name, c := range map[string]struct{ end, want error }{
		"the engine stops": {io.EOF, nil}, "the engine fails": {errAny, errAny}, "told to stop": {nil, nil},
	} {
		s, _, d, _ := grounded(t)
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
