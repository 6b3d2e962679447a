package settle

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/market"
)

const (
	killAfter   = 150 // tries in a round before the kill, at most
	killClaimS  = 5   // life of a reservation, in seconds
	killBuyers  = 4
	faultsEvery = 150 * time.Millisecond
	moreRounds  = 20 // at most, where too little was bought in those asked for

	// Here blockhashes do expire, after 15 s, and claims are given back.
	killSlot          = 100 * time.Millisecond
	killFinalizeSlots = 12
)

// tumult is a desk that is killed while people buy from it and the chain fails.
type tumult struct {
	*chaintest.Rig
	mu       sync.Mutex
	claims   map[string]bool                             // every claim that an answer has named
	payments map[string]bool                             // signatures of what was sent to the chain
	tries    map[string]int                              // by what was tried
	made     int                                         // tries
	unpaid   map[*chaintest.Buyer][]chaintest.OwnPayment // what some claims ask for, to be paid some time later
}

// TestSettleKill kills the service at moments that it does not expect, between a
// claim and the end of its transaction, while the chain drops sends, loses
// answers, lags and goes away. After the last restart every claim must have ended
// rightly, and what the chain says must be what the desk's records say, to the
// atom. BLOCKDESK_SETTLE_ROUNDS asks for more rounds, BLOCKDESK_SEED for the same
// choices again; the moments are new each time.
func TestSettleKill(t *testing.T) {
	runtest.SkipUnderRace(t, "it waits for a chain most of the time, and the tests of settle race the same code")
	t.Parallel()
	rounds := int(programtest.FromEnv(t, "BLOCKDESK_SETTLE_ROUNDS", 5))
	seed := runtest.Seed(t)
	for i, name := range []string{"key in the service", "key in a signer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newTumult(t, i == 1).run(rounds, rand.New(rand.NewPCG(seed, uint64(i))))
		})
	}
}

func newTumult(t *testing.T, signer bool) *tumult {
	t.Helper()
	return &tumult{
		Rig: chaintest.Start(t, chaintest.Options{Wallets: killBuyers, ClaimTTL: killClaimS, Signer: signer, Hangs: true, BlockhashSlots: chaintest.MainnetBlockhash, Chain: func(o *sandbox.Options) {
			o.SlotTime, o.FinalizeSlots = killSlot, killFinalizeSlots
		}}),
		claims: map[string]bool{}, payments: map[string]bool{}, tries: map[string]int{}, unpaid: map[*chaintest.Buyer][]chaintest.OwnPayment{},
	}
}

func (k *tumult) run(rounds int, rng *rand.Rand) {
	k.T.Helper()
	var buyers []*chaintest.Buyer
	for i := range killBuyers {
		buyers = append(buyers, k.Wallet(i+1).Handshake())
		for _, symbol := range []string{"SLUSD", "92C"} { // so that no transaction pays rent
			k.Control("fund", map[string]any{"wallet": k.Setup.Wallets[i].Address, "symbol": symbol, "amount": "1"})
		}
	}
	k.Control("advance", map[string]any{"slots": killFinalizeSlots + 1})
	was, before := k.Holdings(), allTransactions(k.Rig)
	var records map[string]claimRecord
	for round := 0; round < rounds || round < rounds+moreRounds && !k.boughtBothWays(records); round++ {
		k.round(rng, buyers)
		programtest.VerifyJournal(k.T, k.Server)
		var node sync.WaitGroup
		if rng.IntN(3) == 0 { // the service comes back before the chain does
			k.Control("setNode", map[string]any{"mode": "503"})
			node.Go(func() { k.up(2 * time.Second) })
		}
		if err := k.Server.Restart(context.Background()); err != nil {
			k.T.Fatalf("round %d: %v", round, err)
		}
		node.Wait()
		if round >= rounds-1 {
			k.Control("heal", map[string]any{})
			records = k.settleAll()
		}
	}
	k.reconcile(was, before, records)
	k.summary(records)
	if err := k.Server.Stop(); err != nil {
		k.T.Fatal(err)
	}
	programtest.VerifyJournal(k.T, k.Server)
}

// round trades and fails for a while, then kills the service.
func (k *tumult) round(rng *rand.Rand, buyers []*chaintest.Buyer) {
	k.T.Helper()
	ctx, cancel := context.WithCancel(k.T.Context())
	defer cancel()
	var all sync.WaitGroup
	for _, b := range buyers {
		seed := rng.Uint64()
		all.Go(func() { k.trade(ctx, rand.New(rand.NewPCG(seed, 4)), b) })
	}
	faults := rand.New(rand.NewPCG(rng.Uint64(), 5))
	all.Go(func() { k.fail(ctx, faults) })
	k.awaitTries(10 + rng.IntN(killAfter))
	if k.Signer != nil && rng.IntN(2) == 0 { // the signer first, and not only with it
		k.KillSigner()
		k.awaitTries(rng.IntN(20))
		k.StartSigner()
		k.awaitTries(rng.IntN(20))
	}
	if err := k.Server.Kill(); err != nil {
		k.T.Fatal(err)
	}
	cancel()
	all.Wait()
	if rng.IntN(2) == 0 {
		k.Control("heal", map[string]any{})
	}
}

// awaitTries waits until the buyers have tried so many things more.
func (k *tumult) awaitTries(more int) {
	k.T.Helper()
	made := func() int {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.made
	}
	enough := made() + more
	await.Value(k.T, fmt.Sprintf("%d tries", enough), made, func(n int) bool { return n >= enough })
}

// fail has the chain fail in one way after another.
func (k *tumult) fail(ctx context.Context, rng *rand.Rand) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(faultsEvery): // sleep: paces the faults
		}
		n := 1 + rng.IntN(3)
		faults := []struct {
			method string
			params map[string]any
		}{
			{"dropSends", map[string]any{"count": n}},
			{"loseAnswers", map[string]any{"count": n}},
			{"failSends", map[string]any{"count": n}},
			{"delayLanding", map[string]any{"slots": 1 << rng.IntN(8)}}, // a blockhash lives for 150
			{"lag", map[string]any{"slots": 10 * n}},
			{"setNode", map[string]any{"mode": []string{"503", "reset", "hang"}[n-1]}},
			{"setNode", map[string]any{"mode": []string{"503", "reset", "hang"}[n-1]}},
			{"answerGarbage", map[string]any{"count": n, "kind": []string{"text", "empty", "truncated"}[n-1]}},
			{"heal", map[string]any{}},
			{"heal", map[string]any{}},
		}
		f := &faults[rng.IntN(len(faults))]
		if err := k.Try(f.method, f.params); err != nil {
			k.T.Error(err)
			return
		}
		if f.method == "setNode" {
			k.up(time.Duration(50+rng.IntN(700)) * time.Millisecond)
		}
	}
}

// up brings the node back after a while.
func (k *tumult) up(after time.Duration) {
	time.Sleep(after) // sleep: the fault that is planted lasts so long
	if err := k.Try("setNode", map[string]any{"mode": "up"}); err != nil {
		k.T.Error(err)
	}
}

// trade buys in one way after another until ctx ends.
func (k *tumult) trade(ctx context.Context, rng *rand.Rand, b *chaintest.Buyer) {
	for ctx.Err() == nil {
		d := chaintest.Deal{
			Ticket: []string{"T1", "T2"}[rng.IntN(2)], Fill: []string{"250", "1000"}[rng.IntN(2)],
			Rail: []string{"USDC", "SOL"}[rng.IntN(2)], Payer: []string{"desk", "taker"}[rng.IntN(2)],
		}
		switch rng.IntN(5) {
		case 0, 1:
			d.Payer = ""
			k.payFirst(ctx, rng, b, d)
		case 4:
			k.payLater(ctx, rng, b)
		case 2:
			k.together(ctx, rng, b, d, chaintest.PathBuild)
		case 3:
			k.together(ctx, rng, b, d, chaintest.PathAtomic)
		}
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond) // sleep: a buyer's pace
	}
}

// take asks for a claim's transaction; nil where there is none.
func (k *tumult) take(ctx context.Context, b *chaintest.Buyer, d chaintest.Deal, way string) *chaintest.Built {
	got, err := post(ctx, b, way, b.Order(d, way))
	if err != nil {
		k.count(way + " without an answer")
		return nil
	}
	x := &chaintest.Built{}
	if json.Unmarshal(got.Body, x) != nil || x.ClaimID == "" {
		k.count(fmt.Sprintf("%s: %d %s %s", way, got.Status, got.Code, got.Reason))
		return nil
	}
	k.mu.Lock()
	k.claims[x.ClaimID] = true
	k.mu.Unlock()
	return x.Open(k.T)
}

func (k *tumult) count(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tries[what]++
	k.made++
}

// payFirst takes a modular claim and pays for it: rightly, short, twice, later, or
// not; and reports it, or leaves that to the desk.
func (k *tumult) payFirst(ctx context.Context, rng *rand.Rand, b *chaintest.Buyer, d chaintest.Deal) {
	x := k.take(ctx, b, d, chaintest.PathModular)
	if x == nil {
		return
	}
	asked := chaintest.OwnPayment{Memo: x.ClaimID, Reference: x.Payment.Reference, Rail: market.RailUSDC, Atoms: chaintest.ParseAtoms(x.Payment.AmountAtoms)}
	if d.Rail == "SOL" {
		asked.Rail = market.RailSOL
	}
	var signature string
	switch rng.IntN(8) {
	case 0:
		k.count("not paid, or later")
		k.mu.Lock()
		k.unpaid[b] = append(k.unpaid[b], asked)
		k.mu.Unlock()
		return
	case 1:
		k.count("paid short")
		asked.Atoms--
		signature = k.payOwn(ctx, b, asked)
	case 2:
		k.count("paid twice")
		k.payOwn(ctx, b, asked)
		signature = k.pay(ctx, b, x.Raw)
	default:
		k.count("paid")
		signature = k.pay(ctx, b, x.Raw)
	}
	if rng.IntN(2) == 0 || signature == "" {
		k.count("left to the watch")
		return
	}
	for range 1 + rng.IntN(30) {
		got, err := verify(ctx, b, rng.IntN(len(verifyPaths)), d.Ticket, signature)
		if err != nil || got.Status != 202 {
			return
		}
		time.Sleep(50 * time.Millisecond) // sleep: a buyer's pace
	}
}

// payLater pays for a claim of some time ago, which may have expired since.
func (k *tumult) payLater(ctx context.Context, rng *rand.Rand, b *chaintest.Buyer) {
	k.mu.Lock()
	list := k.unpaid[b]
	if len(list) == 0 {
		k.mu.Unlock()
		return
	}
	i := rng.IntN(len(list))
	asked := list[i]
	k.unpaid[b] = slices.Delete(list, i, i+1)
	k.mu.Unlock()
	k.count("paid later")
	k.payOwn(ctx, b, asked)
}

// payOwn pays in a transaction of the buyer's own.
func (k *tumult) payOwn(ctx context.Context, b *chaintest.Buyer, p chaintest.OwnPayment) string {
	for ctx.Err() == nil {
		if hash, err := b.Rig.TryBlockhash(ctx); err == nil {
			return k.send(ctx, b.Payment(p, hash))
		}
		time.Sleep(20 * time.Millisecond) // sleep: a buyer's pace
	}
	return ""
}

// pay pays in the transaction that the desk has made.
func (k *tumult) pay(ctx context.Context, b *chaintest.Buyer, unsigned []byte) string {
	return k.send(ctx, b.Sign(unsigned))
}

// hangs is how long a buyer waits for a chain that may not answer at all.
const hangs = time.Second

// send sends a signed transaction to the chain, which may lose it.
func (k *tumult) send(ctx context.Context, p chaintest.SignedPayment) string {
	k.mu.Lock()
	k.payments[p.Signature] = true
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, hangs)
	defer cancel()
	if k.Broadcast(ctx, p.Raw) != nil {
		k.count("payment not sent")
	}
	return p.Signature
}

// together takes an atomic claim and submits it: once, several times, late, or
// not.
func (k *tumult) together(ctx context.Context, rng *rand.Rand, b *chaintest.Buyer, d chaintest.Deal, way string) {
	x := k.take(ctx, b, d, way)
	if x == nil {
		return
	}
	if rng.IntN(6) == 0 {
		k.count("not submitted")
		return
	}
	if rng.IntN(6) == 0 {
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond) // sleep: a buyer who hesitates
	}
	submitted := ""
	for range 1 + rng.IntN(3) {
		got, err := post(ctx, b, chaintest.PathSubmit, chaintest.Submission(x, b.Signed(x)))
		if err != nil {
			k.count("submit without an answer")
			continue
		}
		k.count(fmt.Sprintf("submit: %d %s %s %s", got.Status, got.Code, got.Reason, got.State))
		var s struct {
			Signature string `json:"signature"`
		}
		if got.Status != 200 || json.Unmarshal(got.Body, &s) != nil {
			continue
		}
		if submitted != "" && submitted != s.Signature {
			k.T.Errorf("%s: submitted twice, signature %s and %s", x.ClaimID, submitted, s.Signature)
		}
		submitted = s.Signature
	}
}

// ended are the states that a claim ends in.
var ended = []string{"settled", "expired", "released", "refund_due"}

// settleAll waits until every claim has ended, every payment that has landed is booked
// and the desk has nothing under way on the chain, and returns the records.
func (k *tumult) settleAll() map[string]claimRecord {
	k.T.Helper()
	// Pending transactions land or expire, and all that have landed are final.
	k.Control("advance", map[string]any{"slots": 300})
	k.AwaitBlockhash()
	ids := slices.Sorted(maps.Keys(k.claims))
	var records map[string]claimRecord
	await.Value(k.T, "all claims to end", func() (missing []string) {
		records = map[string]claimRecord{}
		booked := map[string]bool{}
		for _, id := range ids {
			c := record(k.Rig, id)
			records[id] = c
			if !slices.Contains(ended, c.State) {
				missing = append(missing, id+" "+c.State)
			}
			for _, p := range c.Payments {
				booked[p.Signature] = true
			}
		}
		for signature := range k.payments {
			if succeeded(k.Rig, signature) && !booked[signature] {
				missing = append(missing, "payment "+signature)
			}
		}
		if n := programtest.Metric(k.T, k.Server, "blockdesk_settlement_tracked"); n > 0 {
			missing = append(missing, fmt.Sprintf("%v transactions under way", n))
		}
		return missing
	}, func(missing []string) bool { return len(missing) == 0 })
	return records
}

// succeeded reports whether a transaction has landed and done what it says.
func succeeded(r *chaintest.Rig, signature string) bool {
	r.T.Helper()
	var got struct {
		Value []*struct {
			Err json.RawMessage `json:"err"`
		} `json:"value"`
	}
	r.Query("getSignatureStatuses", &got, []string{signature}, map[string]any{"searchTransactionHistory": true})
	return got.Value[0] != nil && string(got.Value[0].Err) == "null"
}

// onChain is a transaction as the chain has it.
type onChain struct {
	chaintest.Landed
	fee   uint64
	payer string
}

func (o *onChain) failed() bool { return string(o.Err) != "null" }

// claim is the claim that its memo names.
func (o *onChain) claim() string {
	if o.Memo == nil {
		return ""
	}
	_, text, _ := strings.Cut(*o.Memo, "] ") // "[14] C0000000000001"
	return text
}

// allTransactions are those with the desk, the treasury or a wallet in them, by
// signature.
func allTransactions(r *chaintest.Rig) map[string]*onChain {
	r.T.Helper()
	out := map[string]*onChain{}
	for _, address := range r.Parties() {
		for _, l := range r.TransactionsOf(address) {
			if out[l.Signature] == nil {
				out[l.Signature] = &onChain{Landed: l}
			}
		}
	}
	return out
}

// readFee reads the fee of a transaction, and its payer.
func readFee(r *chaintest.Rig, o *onChain) {
	r.T.Helper()
	var got struct {
		Meta struct {
			Fee uint64 `json:"fee"`
		} `json:"meta"`
		Transaction struct {
			Message struct {
				AccountKeys []string `json:"accountKeys"`
			} `json:"message"`
		} `json:"transaction"`
	}
	r.Query("getTransaction", &got, o.Signature, map[string]any{"encoding": "json", "commitment": "confirmed", "maxSupportedTransactionVersion": 0})
	o.fee, o.payer = got.Meta.Fee, got.Transaction.Message.AccountKeys[0]
}

// reconcile checks the chain against the desk's records: every balance, and each claim's
// transactions.
func (k *tumult) reconcile(was chaintest.Holdings, before map[string]*onChain, records map[string]claimRecord) {
	k.T.Helper()
	want := map[string]int64{}
	names := map[string]string{}
	for name, address := range k.Parties() {
		names[chaintest.Text(address)] = name
	}
	deliveries := map[string]int{}
	for signature, o := range allTransactions(k.Rig) {
		if before[signature] != nil {
			continue
		}
		readFee(k.Rig, o)
		want[names[o.payer]+" SOL"] -= int64(o.fee)
		if claim := o.claim(); !o.failed() && k.delivers(o) {
			if _, known := records[claim]; !known {
				k.T.Errorf("%s delivers for %q, which nobody has taken", signature, claim)
			}
			deliveries[claim]++
		}
	}
	symbols := map[string]string{"T1": "SLUSD", "T2": "92C"}
	for id, c := range records {
		wallet := names[c.Claim.Wallet]
		if c.State == "settled" {
			base := int64(chaintest.ParseAtoms(c.Claim.Base))
			want["desk "+symbols[c.Claim.Order]] -= base
			want[wallet+" "+symbols[c.Claim.Order]] += base
			if c.Claim.Way == "atomic" {
				paid := int64(chaintest.ParseAtoms(c.Payment.Atoms))
				want[wallet+" "+c.Claim.Rail] -= paid
				want["treasury "+c.Claim.Rail] += paid
			}
		}
		if n, wanted := deliveries[id], map[bool]int{true: 1}[c.State == "settled"]; n != wanted {
			k.T.Errorf("claim %s is %s and was delivered %d times", id, c.State, n)
		}
		for _, p := range c.Payments {
			paid := int64(chaintest.ParseAtoms(p.Atoms))
			want[names[p.Payer]+" "+p.Rail] -= paid
			want["treasury "+p.Rail] += paid
		}
	}
	maps.DeleteFunc(want, func(_ string, d int64) bool { return d == 0 })
	k.Moved(was, k.Holdings(), want)
}

// delivers reports whether a transaction moves the desk's tokens: whether the desk
// has signed it.
func (k *tumult) delivers(o *onChain) bool {
	k.T.Helper()
	var got struct {
		Transaction struct {
			Message struct {
				Header struct {
					Required int `json:"numRequiredSignatures"`
				} `json:"header"`
				AccountKeys []string `json:"accountKeys"`
			} `json:"message"`
		} `json:"transaction"`
	}
	k.Query("getTransaction", &got, o.Signature, map[string]any{"encoding": "json", "commitment": "confirmed", "maxSupportedTransactionVersion": 0})
	m := &got.Transaction.Message
	return slices.Contains(m.AccountKeys[:m.Header.Required], chaintest.Text(k.Desk))
}

// boughtBothWays reports whether claims of both ways have settled: a test that has
// seen nothing proves nothing.
func (k *tumult) boughtBothWays(records map[string]claimRecord) bool {
	ways := map[string]bool{}
	for _, c := range records {
		if c.State == "settled" {
			ways[c.Claim.Way] = true
		}
	}
	return ways["modular"] && ways["atomic"]
}

// summary logs what the test has seen.
func (k *tumult) summary(records map[string]claimRecord) {
	k.T.Helper()
	states := map[string]int{}
	for _, c := range records {
		states[c.Claim.Way+" "+c.State]++
	}
	k.T.Logf("%d claims: %v; %v", len(records), states, k.tries)
	if !k.boughtBothWays(records) {
		k.T.Error("too little was bought")
	}
}
