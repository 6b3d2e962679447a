package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
)

// pastChain is the list of transactions that name a pool, oldest first.
type pastChain struct {
	list       []*ledger.Confirmed
	vaults     [2]market.Amount
	slot       uint64
	at         int64
	transacted int
}

func newPastChain() *pastChain {
	return &pastChain{vaults: [2]market.Amount{1_000_000, 1_000_000}, slot: 100_000, at: epoch}
}

// add adds a transaction some slots and seconds later.
func (c *pastChain) add(slots uint64, seconds int64, act func(s *scene)) {
	c.slot, c.at = c.slot+slots, c.at+seconds
	c.transacted++
	s := newScene()
	s.c.Tx.Signatures[0] = solana.Signature{byte(c.transacted), byte(c.transacted >> 8)}
	s.c.Slot, s.c.BlockTime = c.slot, c.at
	if len(c.list) == 0 {
		// Create the pool: its vaults did not exist before.
		s.absent[keyBaseVault], s.absent[keyQuoteVault] = true, true
		s.before[keyBaseVault], s.before[keyQuoteVault] = 0, 0
		s.amount = s.before
		s.programs[keyOther] = keyToken
		s.pool(1).transfer(2, keyUserBase, keyBaseVault, c.vaults[0]).transfer(2, keyUserQuote, keyQuoteVault, c.vaults[1])
	} else {
		s.before[keyBaseVault], s.before[keyQuoteVault] = c.vaults[0], c.vaults[1]
		s.amount = s.before
		act(s)
	}
	if !s.c.Failed {
		c.vaults = [2]market.Amount{s.amount[keyBaseVault], s.amount[keyQuoteVault]}
	}
	c.list = append(c.list, s.confirmed())
}

func buys(base, quote market.Amount) func(s *scene) { return func(s *scene) { s.buy(1, base, quote) } }

// index returns the index of a signature's transaction, -1 if there is none.
func (c *pastChain) index(s solana.Signature) int {
	for i := range c.list {
		if c.list[i].Signature() == s {
			return i
		}
	}
	return -1
}

// naive sums the swaps after start of the first n transactions.
func (c *pastChain) naive(n int, start int64) (swaps int, base, quote uint64) {
	pair := scenePair()
	for _, confirmed := range c.list[:n] {
		trace, err := pair.Decode(confirmed)
		if err != nil {
			panic(err)
		}
		for i := range trace.Movements {
			if m := &trace.Movements[i]; m.Kind == mirror.Swap && trace.Time > start {
				swaps, base, quote = swaps+1, base+uint64(m.Base.Atoms), quote+uint64(m.Quote.Atoms)
			}
		}
	}
	return swaps, base, quote
}

// pastNode is a node of a pastChain with the faults that its fields set.
type pastNode struct {
	*pastChain
	// lag is the number of newest transactions that it lacks, floor the number of oldest
	// ones that it has deleted.
	lag, floor int
	// hidden is omitted from lists, -1 = none.
	hidden int
	// listErr and err are the errors of lists and transactions.
	listErr, err error
	missing      bool
	// lost is listed but missing.
	lost solana.Signature
	// change alters a copy of a transaction.
	change func(c *ledger.Confirmed)
	lists  []rpc.Page
	reads  int
}

func (n *pastNode) Signatures(_ context.Context, account solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.SignatureInfo, error) {
	n.lists = append(n.lists, page)
	if account != sceneKey(keyPool) || level != rpc.Finalized {
		return nil, fmt.Errorf("asked for %s, %v", solana.Base58(account), level)
	}
	if n.listErr != nil {
		return nil, n.listErr
	}
	have := n.list[:max(len(n.list)-n.lag, 0)]
	for len(have) > 0 && len(have) < len(n.list) && have[len(have)-1].Slot == n.list[len(have)].Slot {
		have = have[:len(have)-1] // a slot is final as a whole
	}
	if len(have) > 0 && page.MinSlot > have[len(have)-1].Slot || len(have) == 0 && page.MinSlot > 0 {
		return nil, &rpc.Error{Kind: rpc.Behind}
	}
	from := len(have)
	if page.Before != (solana.Signature{}) {
		// A node has no answer about an unknown transaction.
		if from = n.index(page.Before); from < 0 || from >= len(have) {
			return nil, nil
		}
	}
	var list []rpc.SignatureInfo
	for i := from - 1; i >= n.floor && len(list) < page.Limit; i-- {
		c := have[i]
		if c.Signature() == page.Until {
			break
		}
		if i != n.hidden {
			list = append(list, rpc.SignatureInfo{Signature: c.Signature(), Slot: c.Slot, BlockTime: c.BlockTime, Failed: c.Failed})
		}
	}
	return list, nil
}

// List returns a page of a single node.
func (n *pastNode) List(ctx context.Context, account solana.Address, page rpc.Page) (mirror.List, error) {
	list, err := n.Signatures(ctx, account, page, rpc.Finalized)
	return listOf(list, page), err
}

func listOf(list []rpc.SignatureInfo, page rpc.Page) mirror.List {
	l := mirror.List{More: len(list) == page.Limit}
	for _, s := range list {
		l.Entries = append(l.Entries, mirror.Entry{SignatureInfo: s})
	}
	return l
}

func (n *pastNode) Transaction(_ context.Context, s solana.Signature, level rpc.Commitment) (*ledger.Confirmed, bool, error) {
	n.reads++
	i := n.index(s)
	if n.err != nil || n.missing || i < n.floor || s == n.lost || level != rpc.Finalized {
		return nil, false, n.err
	}
	c := *n.list[i]
	if c.Failed {
		panic("a failed transaction is asked for")
	}
	if n.change != nil {
		n.change(&c)
	}
	return &c, true, nil
}

// follower is a backfill with its windows.
type follower struct {
	t rapid.TB
	*mirror.Backfill
	o       mirror.BackfillOptions
	windows *mirror.Windows
	node    *pastNode
	now     int64
	kinds   map[mirror.ProgressKind]int
	errs    []error // of passed over transactions
}

func follow(t rapid.TB, node *pastNode, o mirror.BackfillOptions) *follower {
	t.Helper()
	o.Pair, o.Account = scenePair(), sceneKey(keyPool)
	f := &follower{t: t, o: o, windows: newWindows(t, mirror.WindowOptions{}), node: node, now: node.at, kinds: map[mirror.ProgressKind]int{}}
	f.from(mirror.Cursor{})
	return f
}

// from begins at a cursor, as after a restart.
func (f *follower) from(at mirror.Cursor) {
	f.t.Helper()
	b, err := mirror.NewBackfill(f.o, at)
	if err != nil {
		f.t.Fatal(err)
	}
	f.Backfill = b
}

// step makes one step.
func (f *follower) step() error {
	f.t.Helper()
	p, err := f.Step(context.Background(), f.node)
	if err != nil {
		if p.Kind != 0 || !p.AsOf.IsZero() {
			f.t.Fatalf("%+v with %v", p, err)
		}
		return err
	}
	f.kinds[p.Kind]++
	if p.Err != nil {
		f.errs = append(f.errs, p.Err)
	}
	if _, err := f.windows.Apply(&p); err != nil {
		f.t.Fatal(err)
	}
	return nil
}

// poll polls and steps until there is no request or a step fails.
func (f *follower) poll() error {
	f.t.Helper()
	f.now += 10
	f.Poll(time.Unix(f.now, 0), 0)
	for steps := 0; f.Next().Kind != 0; steps++ {
		if steps > 10_000 {
			f.t.Fatal("it does not come to an end")
		}
		if err := f.step(); err != nil {
			return err
		}
	}
	return nil
}

// wants compares the day with the first n transactions of the chain.
func (f *follower) wants(n int) {
	f.t.Helper()
	r := f.windows.At(time.Unix(f.now, 0))
	swaps, base, quote := f.node.naive(n, f.now-day)
	if !r.Day.Status.Proven() || r.Day.Swaps != swaps || r.Day.Base.Lo != base || r.Day.Quote.Lo != quote {
		f.t.Fatalf("%+v; want %d swaps of %d and %d", r.Day, swaps, base, quote)
	}
}

// chainOf makes a pool with n buys, ten seconds apart.
func chainOf(n int) *pastChain {
	c := newPastChain()
	for i := range n + 1 {
		c.add(25, 10, buys(market.Amount(i), 10))
	}
	return c
}

func (n *pastNode) well() { *n = pastNode{pastChain: n.pastChain, hidden: -1} }

func nodeOf(c *pastChain) *pastNode { return &pastNode{pastChain: c, hidden: -1} }

// TestBackfill follows a chain from its beginning, through growth and a downtime.
func TestBackfill(t *testing.T) {
	node := nodeOf(chainOf(20))
	f := follow(t, node, mirror.BackfillOptions{PageSize: 4})
	if f.Next() != (mirror.Request{}) {
		t.Error("it asks before it is polled")
	}
	if err := f.poll(); err != nil {
		t.Fatal(err)
	}
	f.wants(21)
	if !f.Cursor().Complete || node.reads != 21 || f.Pending() != 0 {
		t.Errorf("%+v after %d reads", f.Cursor(), node.reads)
	}
	// Nothing new: one list, which contains the newest transaction, and no read.
	node.lists = nil
	if err := f.poll(); err != nil {
		t.Fatal(err)
	}
	if len(node.lists) != 1 || node.lists[0] != (rpc.Page{Until: node.list[19].Signature(), Limit: 4}) || node.reads != 21 {
		t.Errorf("lists %+v", node.lists)
	}
	// After a downtime of 30 transactions: pages back to the newest read, then oldest
	// first.
	for range 30 {
		node.add(1, 10, buys(1, 10))
	}
	f.from(f.Cursor())
	f.now = node.at
	node.lists = nil
	if err := f.poll(); err != nil {
		t.Fatal(err)
	}
	f.wants(51)
	if len(node.lists) != 8 || node.reads != 51 || f.kinds[mirror.ReadNewer] != 30 || f.Pending() != 0 {
		t.Errorf("%d lists, %d reads, %v", len(node.lists), node.reads, f.kinds)
	}
}

// TestBackfillEmpty: a pool without history is followed from its first transaction.
func TestBackfillEmpty(t *testing.T) {
	node := nodeOf(newPastChain())
	f := follow(t, node, mirror.BackfillOptions{})
	if err := f.poll(); err != nil || f.windows.At(time.Unix(f.now, 0)).AsOf.IsZero() {
		t.Fatal(err)
	}
	node.add(1, 10, nil)
	node.add(1, 10, buys(5, 10))
	f.now = node.at
	if err := f.poll(); err != nil {
		t.Fatal(err)
	}
	f.wants(2)
}

// TestBackfillHorizon: the past is read up to the horizon, and new transactions come
// first.
func TestBackfillHorizon(t *testing.T) {
	c := newPastChain()
	for range 40 {
		c.add(1000, 6*3600, buys(1, 10))
	}
	node := nodeOf(c)
	f := follow(t, node, mirror.BackfillOptions{PageSize: 7, Horizon: 8 * mirror.Day})
	if err := f.poll(); err != nil {
		t.Fatal(err)
	}
	if r := f.windows.At(time.Unix(f.now, 0)); r.Week.Status != mirror.Exact || r.Week.Swaps != 28 || r.Totals.Complete || node.reads > 33 {
		t.Errorf("%+v after %d reads", r, node.reads)
	}
	// Polled within the past, it first requests new transactions.
	f = follow(t, node, mirror.BackfillOptions{PageSize: 7})
	f.Poll(time.Unix(f.now, 0), 0)
	for range 3 {
		if err := f.step(); err != nil {
			t.Fatal(err)
		}
	}
	c.add(1, 10, buys(1, 10))
	f.Poll(time.Unix(f.now+10, 0), c.slot)
	if request := f.Next(); request.Kind != mirror.RequestList || request.Page.MinSlot != c.slot || request.Page.Until == (solana.Signature{}) {
		t.Errorf("%+v", request)
	}
	for range 2 {
		if err := f.step(); err != nil {
			t.Fatal(err)
		}
	}
	if f.kinds[mirror.ReadNewer] != 1 {
		t.Errorf("%v", f.kinds)
	}
}

// TestBackfillFaults: the effect of a faulty node on a backfill that has read all but
// three transactions, and how it continues once the node is healthy.
func TestBackfillFaults(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(n *pastNode)
		want error
		// passed is the number of failed polls before the transaction is skipped, 0 =
		// never.
		passed int
	}{
		"down":               {func(n *pastNode) { n.listErr = &rpc.Error{Kind: rpc.Down} }, nil, 0},
		"down for one":       {func(n *pastNode) { n.err = &rpc.Error{Kind: rpc.Down} }, nil, 0},
		"behind":             {func(n *pastNode) { n.lag = 4 }, mirror.ErrHistory, 0},
		"empty":              {func(n *pastNode) { n.lag = 1000 }, mirror.ErrHistory, 0},
		"forgetful":          {func(n *pastNode) { n.floor = 22 }, mirror.ErrHistory, 0},
		"not found":          {func(n *pastNode) { n.missing = true }, mirror.ErrNotFound, 8},
		"a wrong answer":     {func(n *pastNode) { n.err = &rpc.Error{Kind: rpc.WrongAnswer} }, nil, 8},
		"known to some":      {func(n *pastNode) { n.err = rpc.ErrNoMajority }, mirror.ErrNotFound, 0},
		"nodes disagree":     {func(n *pastNode) { n.err = rpc.ErrDisagree }, rpc.ErrDisagree, 8},
		"another slot":       {func(n *pastNode) { n.change = func(c *ledger.Confirmed) { c.Slot++ } }, mirror.ErrHistory, 8},
		"another time":       {func(n *pastNode) { n.change = func(c *ledger.Confirmed) { c.BlockTime++ } }, mirror.ErrHistory, 8},
		"failed after all":   {func(n *pastNode) { n.change = func(c *ledger.Confirmed) { c.Failed = true } }, mirror.ErrHistory, 8},
		"no vault balances":  {func(n *pastNode) { n.change = func(c *ledger.Confirmed) { c.TokensAfter = nil } }, mirror.ErrNoBalance, 1},
		"transfers left out": {func(n *pastNode) { n.change = func(c *ledger.Confirmed) { c.Inner = nil } }, mirror.ErrUnbalanced, 1},
	} {
		t.Run(name, func(t *testing.T) {
			node := nodeOf(chainOf(20))
			f := follow(t, node, mirror.BackfillOptions{})
			if err := f.poll(); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				node.add(1, 10, buys(1, 10))
			}
			f.now = node.at
			before := f.Cursor()
			c.harm(node)
			for i := 1; i <= max(c.passed, 9); i++ {
				err := f.poll()
				if c.passed > 0 && i >= c.passed {
					if len(f.errs) == 0 || c.want != nil && !errors.Is(f.errs[0], c.want) {
						t.Fatalf("after %d polls: %v, %v", i, err, f.errs)
					}
					break
				}
				if err == nil || c.want != nil && !errors.Is(err, c.want) || f.Cursor() != before {
					t.Fatalf("poll %d: %v, %+v", i, err, f.Cursor())
				}
			}
			node.well()
			for range 2 { // an old list may be too old
				if err := f.poll(); err != nil {
					t.Fatal(err)
				}
			}
			if c.passed == 0 {
				f.wants(len(node.list))
				return
			}
			// A skipped transaction makes the windows uncertain, not wrong.
			if r := f.windows.At(time.Unix(f.now, 0)); r.Day.Status != mirror.Uncertain || r.Day.Swaps != 0 {
				t.Errorf("%+v", r.Day)
			}
			f.now += day + 100
			if err := f.poll(); err != nil {
				t.Fatal(err)
			}
			f.wants(len(node.list))
		})
	}
}

// TestBackfillHidden: a swap that a node omits shows by the vaults' balances.
func TestBackfillHidden(t *testing.T) {
	for hidden := 2; hidden < 20; hidden += 3 {
		node := nodeOf(chainOf(20))
		node.hidden = hidden
		f := follow(t, node, mirror.BackfillOptions{PageSize: 6})
		if err := f.poll(); err != nil {
			t.Fatal(err)
		}
		if r := f.windows.At(time.Unix(f.now, 0)); r.Day.Status != mirror.Uncertain {
			t.Errorf("%d hidden: %+v", hidden, r.Day)
		}
	}
}

// TestBackfillSlots: future slots are refused, and a wrongly accepted one does not join
// other nodes' lists.
func TestBackfillSlots(t *testing.T) {
	const ahead = 10_000
	node := nodeOf(chainOf(3))
	f := follow(t, node, mirror.BackfillOptions{})
	f.Poll(time.Unix(f.now, 0), node.slot-ahead-1)
	if err := f.step(); !errors.Is(err, mirror.ErrHistory) {
		t.Error(err)
	}
	f.Poll(time.Unix(f.now, 0), node.slot-ahead)
	if err := f.step(); err != nil {
		t.Error(err)
	}
	if err := f.poll(); err != nil {
		t.Fatal(err)
	}
	node.list[len(node.list)-1].Slot++
	if err := f.poll(); !errors.Is(err, mirror.ErrHistory) {
		t.Error(err)
	}
	f.Poll(time.Unix(f.now, 0), 0)
	if _, err := f.Listed(listOf([]rpc.SignatureInfo{{Slot: node.slot}}, rpc.Page{})); !errors.Is(err, mirror.ErrHistory) {
		t.Errorf("no signature: %v", err)
	}
}

// TestBackfillBeginsWithinASlot: the run begins with the newest transaction of a slot
// with several. The earlier ones belong to the past and are not reported as new, although
// lists contain them, also after a restart.
func TestBackfillBeginsWithinASlot(t *testing.T) {
	for _, restart := range []bool{false, true} {
		c := chainOf(3)
		for range 3 {
			c.add(0, 0, buys(5, 5)) // in the slot of the last one
		}
		f := follow(t, nodeOf(c), mirror.BackfillOptions{})
		var newer, older []int
		step := func() {
			p, err := f.Step(t.Context(), f.node)
			if err != nil {
				t.Fatal(err)
			}
			at := f.node.index(p.Trace.Signature)
			switch p.Kind {
			case mirror.ReadNewer:
				newer = append(newer, at)
			case mirror.ReadOlder:
				older = append(older, at)
			}
		}
		f.Poll(time.Unix(f.now, 0), 0)
		step() // the list
		step() // the newest
		c.add(1, 1, buys(7, 7))
		if restart {
			f.from(f.Cursor())
		}
		f.Poll(time.Unix(f.now+10, 0), 0)
		for f.Next().Kind != 0 {
			step()
		}
		if want := []int{6, 5, 4, 3, 2, 1, 0}; !slices.Equal(older, want) {
			t.Errorf("restart %v: of the past %v, want %v", restart, older, want)
		}
		if want := []int{7}; !slices.Equal(newer, want) {
			t.Errorf("restart %v: new are %v, want %v", restart, newer, want)
		}
	}
}

// TestBackfillTime: a time ahead of ours counts as unknown.
func TestBackfillTime(t *testing.T) {
	node := nodeOf(chainOf(3))
	f := follow(t, node, mirror.BackfillOptions{})
	if err := f.poll(); err != nil {
		t.Fatal(err)
	}
	node.add(1, 1000, buys(1, 10))
	if err := f.poll(); err != nil {
		t.Fatal(err)
	}
	if r := f.windows.At(time.Unix(f.now, 0)); r.Day.Status != mirror.Uncertain || f.Cursor().Newest.Time != 0 {
		t.Errorf("%+v", r)
	}
}

// TestBackfillRestarts: a history that does not join for long, or is too long, restarts.
func TestBackfillRestarts(t *testing.T) {
	const misses = 30
	node := nodeOf(chainOf(20))
	f := follow(t, node, mirror.BackfillOptions{})
	if err := f.poll(); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		node.add(1, 10, buys(1, 10))
	}
	f.now, node.floor = node.at, 25 // no node has the transaction where we were
	for i := range misses - 1 {
		if err := f.poll(); !errors.Is(err, mirror.ErrHistory) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if err := f.poll(); err != nil || f.kinds[mirror.Restarted] != 2 || f.Cursor() != (mirror.Cursor{}) || f.windows.At(time.Unix(f.now, 0)).Totals.Swaps != 0 {
		t.Fatalf("%v, %v", err, f.kinds)
	}
	if err := f.poll(); err != nil {
		t.Fatal(err)
	}
	if r := f.windows.At(time.Unix(f.now, 0)); r.Day.Status != mirror.Partial || r.Totals.Swaps != 5 {
		t.Errorf("%+v", r)
	}
}

// TestBackfillPending: at the limit the history joins; with one more transaction it
// restarts.
func TestBackfillPending(t *testing.T) {
	const most = 12
	for more, restarts := range []int{0, 1} {
		node := nodeOf(chainOf(20))
		f := follow(t, node, mirror.BackfillOptions{PageSize: 4, MaxPending: most})
		if err := f.poll(); err != nil {
			t.Fatal(err)
		}
		for range most + 4*more {
			node.add(1, 10, buys(1, 10))
		}
		f.now = node.at
		for range 2 {
			if err := f.poll(); err != nil {
				t.Fatal(err)
			}
		}
		// The first list begins a run; a discarded one and its successor are two more.
		if f.kinds[mirror.Restarted] != 1+2*restarts {
			t.Errorf("%d newer: %v", most+4*more, f.kinds)
		}
		f.wants(len(node.list))
	}
}

// TestBackfillAnswers: answers without a request are refused.
func TestBackfillAnswers(t *testing.T) {
	node := nodeOf(chainOf(3))
	f := follow(t, node, mirror.BackfillOptions{})
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, mirror.ErrAnswer) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 2 {
		_, err := f.Read(node.list[0])
		refused("a transaction", err)
		_, err = f.Unavailable(mirror.ErrNotFound)
		refused("no transaction", err)
		_, err = f.Skip()
		refused("a pass", err)
		if f.Next().Kind == 0 {
			_, err = f.Listed(mirror.List{})
			refused("a list", err)
			f.Poll(time.Unix(f.now, 0), 0)
		}
	}
	if err := f.step(); err != nil {
		t.Fatal(err)
	}
	_, err := f.Read(node.list[0])
	refused("another transaction", err)
	_, err = f.Listed(mirror.List{})
	refused("another list", err)
	for _, o := range []mirror.BackfillOptions{
		{},
		{Pair: scenePair()},
		{Pair: scenePair(), Account: solana.Address{1}, PageSize: 1},
		{Pair: scenePair(), Account: solana.Address{1}, PageSize: rpc.MaxSignaturesPerCall + 1},
		{Pair: scenePair(), Account: solana.Address{1}, MaxPending: -1},
		{Pair: scenePair(), Account: solana.Address{1}, Horizon: -1},
	} {
		if _, err := mirror.NewBackfill(o, mirror.Cursor{}); !errors.Is(err, mirror.ErrBackfillOptions) && !errors.Is(err, mirror.ErrVaults) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestBackfillProperty follows a growing chain through nodes that fail, lag, delete, hide
// and lie, and through restarts that lose the last results. Proven figures are always
// exact, and in the end every swap counts once.
func TestBackfillProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newPastChain()
		polled := false
		grow := func() {
			slots, seconds := rapid.SampledFrom([]uint64{0, 0, 1, 9}).Draw(t, "slots"), rapid.SampledFrom([]int64{0, 1, 3600}).Draw(t, "seconds")
			if polled {
				slots, polled = max(slots, 1), false // a final slot is whole
			}
			b, q := market.Amount(rapid.IntRange(1, 99).Draw(t, "base")), market.Amount(rapid.IntRange(1, 99).Draw(t, "quote"))
			c.add(slots, seconds, rapid.SampledFrom([]func(s *scene){
				buys(b, q), func(s *scene) { s.sell(1, b, q) },
				func(s *scene) { s.router(bothVaults...).buy(2, b, q).sell(2, q, b) },
				func(s *scene) { s.buy(1, b, q).c.Failed = true },
				func(s *scene) { s.transfer(1, keyOther, keyQuoteVault, q) },
			}).Draw(t, "act"))
		}
		for range rapid.IntRange(0, 30).Draw(t, "past") {
			grow()
		}
		f := follow(t, nodeOf(c), mirror.BackfillOptions{PageSize: rapid.IntRange(2, 9).Draw(t, "page")})
		cursors := []mirror.Cursor{{}}
		final := map[int64]int{} // how many were final at each poll
		check := func() {
			r := f.windows.At(time.Unix(f.now, 0))
			if !r.Day.Status.Proven() {
				return
			}
			// The cursor may have been set back.
			newest := max(f.node.index(f.Cursor().Newest.Signature)+1, f.node.index(r.Last.Key.Signature)+1, final[r.AsOf.Unix()])
			swaps, base, quote := c.naive(newest, f.now-day)
			if r.Day.Swaps != swaps || r.Day.Base.Lo != base || r.Day.Quote.Lo != quote {
				t.Fatalf("%+v; want %d swaps of %d and %d", r.Day, swaps, base, quote)
			}
		}
		poll := func() {
			f.now = max(f.now+10, c.at)
			final[f.now], polled = len(c.list), true
			f.Poll(time.Unix(f.now, 0), c.finalSlot())
		}
		for range rapid.IntRange(0, 60).Draw(t, "acts") {
			f.node.well()
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				poll()
			case 1:
				grow()
			case 2: // a crash: the cursor may be older than the published swaps
				back := min(rapid.IntRange(0, 3).Draw(t, "lost"), len(cursors)-1)
				f.from(cursors[len(cursors)-1-back])
				cursors = cursors[:len(cursors)-back]
			case 3:
				harm(t, f.node)
				fallthrough
			default:
				// After an error of a faulty node, poll again.
				if f.step() == nil {
					cursors = append(cursors, f.Cursor())
				}
				check()
			}
		}
		f.node.well()
		for range 20 { // more than a transaction is tried
			poll()
			for f.Next().Kind != 0 {
				if err := f.step(); err != nil {
					t.Fatal(err)
				}
				check()
			}
		}
		swaps, _, _ := c.naive(len(c.list), 0)
		if r := f.windows.At(time.Unix(f.now, 0)); len(f.errs) == 0 && r.Totals.Doubts == 0 && int(r.Totals.Swaps) != swaps {
			t.Fatalf("%d swaps counted of %d", r.Totals.Swaps, swaps)
		}
	})
}

// finalSlot is the newest slot with a transaction.
func (c *pastChain) finalSlot() uint64 {
	if len(c.list) == 0 {
		return 0
	}
	return c.slot
}

// harm makes a node faulty.
func harm(t *rapid.T, n *pastNode) {
	switch rapid.IntRange(0, 7).Draw(t, "harm") {
	case 0:
		n.listErr = &rpc.Error{Kind: rpc.Down}
	case 1:
		n.err = &rpc.Error{Kind: rpc.RateLimited}
	case 2:
		n.lag = rapid.IntRange(1, 5).Draw(t, "lag")
	case 3:
		n.floor = rapid.IntRange(1, 20).Draw(t, "floor")
	case 4:
		n.missing = true
	case 5:
		n.change = func(c *ledger.Confirmed) { c.Slot++ }
	case 6: // to leave out a round trip's calls would leave no trace
		n.change = func(c *ledger.Confirmed) { c.TokensAfter = nil }
	default:
		n.err = &rpc.Error{Kind: rpc.WrongAnswer}
	}
}
