package mirror

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/feedtest"
	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// fixBook is a book that a FIX client makes of what it is sent.
type fixBook struct {
	mu     sync.Mutex
	sides  map[string]map[string]string // quantity by price, by MDEntryType
	whole  bool
	moved  int                 // updates
	others chan map[int]string // messages that are no market data
}

// take applies a message.
func (b *fixBook) take(m *fixclient.Message) error {
	fields := map[int]string{}
	var entries []map[int]string
	m.Fields(func(tag int, value []byte) bool {
		// An entry begins with its action, or, in a snapshot, with its type.
		if tag == 279 || tag == 269 && fields[35] == "W" {
			entries = append(entries, map[int]string{})
		}
		if len(entries) > 0 {
			entries[len(entries)-1][tag] = string(value)
		}
		fields[tag] = string(value)
		return true
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	switch fields[35] {
	case "W":
		b.sides, b.whole = map[string]map[string]string{"0": {}, "1": {}}, true
	case "X":
		b.moved++
	default:
		b.others <- fields
		return nil
	}
	for _, e := range entries {
		side, price := b.sides[e[269]], e[270]
		if _, there := side[price]; e[279] == "2" && !there {
			return fmt.Errorf("%s is deleted and was not there", price)
		}
		if e[279] == "2" {
			delete(side, price)
		} else {
			side[price] = e[271]
		}
	}
	return nil
}

// levels are a side's, best first.
func (b *fixBook) levels(kind string) [][2]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := [][2]string{}
	for price, qty := range b.sides[kind] {
		out = append(out, [2]string{price, qty})
	}
	slices.SortFunc(out, func(x, y [2]string) int {
		if kind == "0" {
			x, y = y, x
		}
		return cmp.Or(cmp.Compare(len(x[0]), len(y[0])), strings.Compare(x[0], y[0]))
	})
	return out
}

// updates returns how many have come.
func (b *fixBook) updates() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.moved
}

// overFIX subscribes to the mirrored book as to any.
func (r *mirrorRig) overFIX() (*fixclient.Client, *fixBook) {
	r.t.Helper()
	b := &fixBook{others: make(chan map[int]string, 100)}
	client, err := fixclient.Dial(context.Background(), fixclient.Options{
		Addr: r.s.Addresses.FIX, SenderCompID: programtest.FirmA, TargetCompID: "BLOCKDESK", Username: programtest.FirmA, Password: programtest.Password,
		Timeout: runtest.HangTimeout,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	runtest.Start(r.t, func(ctx context.Context) error { return client.Run(ctx, b.take) })
	const request = "262=m\x01263=1\x01264=100\x01265=1\x01267=2\x01269=0\x01269=1\x01146=1\x0155=SLUSD/USDC\x01"
	if err := client.Send("V", []byte(request)); err != nil {
		r.t.Fatal(err)
	}
	await.True(r.t, "a snapshot over FIX", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.whole
	})
	return client, b
}

// checkFIX compares the book of FIX with REST's, and sends orders: the
// mirrored instrument takes none, the service's own does.
func (r *mirrorRig) checkFIX(client *fixclient.Client, b *fixBook, want *mirroredDepth) {
	r.t.Helper()
	await.True(r.t, "the same book over FIX", func() bool {
		return slices.Equal(b.levels("0"), want.Bids) && slices.Equal(b.levels("1"), want.Asks)
	})
	if moved := b.updates(); moved < 3 {
		r.t.Errorf("only %d updates over FIX", moved)
	}
	for i, c := range []struct{ symbol, status, reason string }{
		{"SLUSD/USDC", "8", "NOT_MATCHED"},
		{"92C/SLUSD", "8", "NOT_MATCHED"},
		{ownSymbol, "0", ""},
	} {
		id := fmt.Sprint("order-", i)
		body := fmt.Sprintf("11=%s\x0155=%s\x0154=1\x0138=5.00\x0140=2\x0144=1.0000\x0159=1\x0160=%s\x01", id, c.symbol, time.Now().UTC().Format("20060102-15:04:05"))
		if err := client.Send("D", []byte(body)); err != nil {
			r.t.Fatal(err)
		}
		m := await.Receive(r.t, "the answer to an order for "+c.symbol, b.others)
		if m[35] != "8" || m[11] != id || m[39] != c.status || !strings.Contains(strings.ToUpper(m[58]), c.reason) {
			r.t.Errorf("an order for %s: %v", c.symbol, m)
		}
	}
}

// checkSymbols: what is mirrored says so.
func (r *mirrorRig) checkSymbols() {
	r.t.Helper()
	var answer struct {
		Symbols []struct {
			Symbol string `json:"symbol"`
			Source string `json:"book_source"`
		}
	}
	programtest.GetJSON(r.t, r.s.Addresses.API+"/api/v1/market/symbols", &answer)
	got := map[string]string{}
	for _, s := range answer.Symbols {
		got[s.Symbol] = s.Source
	}
	if got["SLUSD/USDC"] != "mirrored" || got["92C/SLUSD"] != "mirrored" || got[ownSymbol] != "matched" {
		r.t.Errorf("symbols: %v", got)
	}
}

// CheckStatus waits for a status record of the end, and holds it to the ledger.
func (r *mirrorRig) checkStatus() {
	r.t.Helper()
	var s mirrorStatus
	ended, p := time.Now(), r.m.pools[0]
	// Documents stand for a cycle.
	await.True(r.t, "a status record of now without degradation", func() bool {
		programtest.GetJSON(r.t, r.s.Addresses.API+"/api/v1/market/status", &s)
		return s.At.After(ended) && s.Slot == r.now() && slices.Equal(s.Degradation.Reasons, []string{"not_mainnet"}) && p.isLast(s.Health.Signature, r.m.cluster)
	})
	if s.Pool == nil {
		r.t.Fatal("no pool")
	}
	got := fmt.Sprintf("%+v", *s.Pool)
	names := []string{chaintest.Text(p.at), chaintest.Text(p.base.coin.Mint), chaintest.Text(p.quote.coin.Mint), chaintest.Text(p.base.account), chaintest.Text(p.quote.account)}
	atoms := []string{fmt.Sprint(p.base.atoms), fmt.Sprint(p.quote.atoms)}
	want := fmt.Sprintf("{ID:%s BaseMint:%s QuoteMint:%s BaseVault:%s QuoteVault:%s Base:%s Quote:%s Slot:%d Proof:",
		names[0], names[1], names[2], names[3], names[4], atoms[0], atoms[1], r.now())
	if !strings.HasPrefix(got, want) {
		r.t.Errorf("the pool is %s,\nwant %s", got, want)
	}
	numbered := p.numbered()
	if last := numbered[len(numbered)-1].signature; s.Signature != last {
		r.t.Errorf("the last trade is %s, want %s", s.Signature, last)
	}
	r.checkFigures(&s)
	for _, snapshot := range append(s.Past, s.Current) {
		r.checkSnapshot(&snapshot)
	}
	if len(s.Past) < 3 {
		r.t.Errorf("only %d snapshots", len(s.Past))
	}
}

// isLast reports whether the pool has no newer transaction, failed ones among them.
func (p *chainPool) isLast(signature string, c *chainCluster) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.landed[signature]
	for _, l := range c.landed {
		if l.slot > last.slot && l.of(p) {
			return false
		}
	}
	return ok && last.of(p)
}

func (l *landing) of(p *chainPool) bool {
	return slices.ContainsFunc(l.parts, func(part poolMove) bool { return part.pool == p })
}

// volume is what the first swaps of a pool have moved of its quote asset, which is
// worth a dollar.
func (p *chainPool) volume(swaps int) string {
	sum := big.NewInt(0)
	for i := range p.swaps[:min(swaps, len(p.swaps))] {
		sum.Add(sum, new(big.Int).SetUint64(p.swaps[i].quote))
	}
	return sixDigits(sum)
}

// ui is an amount of atoms as documents write it.
func ui(atoms uint64) string { return sixDigits(new(big.Int).SetUint64(atoms)) }

// checkFigures holds windows and totals to the ledger. Everything since the pool's
// creation is within the day, so its change has no reference.
func (r *mirrorRig) checkFigures(s *mirrorStatus) {
	r.t.Helper()
	p := r.m.pools[0]
	got := []any{
		s.Swaps, s.Volume, s.FeesBase, s.FeesQuote, s.Traders, s.Rolling.Day.String(), s.Rolling.Week.String(),
		s.Rolling.DayStatus, s.Rolling.WeekStatus, s.Rolling.Delta, s.Rolling.ReferenceAt, s.Rolling.LastAt.Unix(),
	}
	volume := p.volume(len(p.swaps))
	want := []any{
		len(p.swaps), volume, ui(p.base.fees), ui(p.quote.fees), len(p.payers), volume, volume,
		"exact", "exact", json.Number(""),
		time.Time{},
		p.swaps[len(p.swaps)-1].unix,
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("figures %v,\nwant %v", got, want)
	}
}

// checkSnapshot: what was recorded was so: the vaults of a bank of the chain's own,
// and the sums of the swaps that were final.
func (r *mirrorRig) checkSnapshot(s *recordedSnapshot) {
	r.t.Helper()
	p := r.m.pools[0]
	var slot uint64
	if _, err := fmt.Sscanf(s.Reference, "slot %d", &slot); err != nil {
		r.t.Fatalf("snapshot %+v: %v", s, err)
	}
	held := r.m.cluster.held[slot]
	got := [2]string{strings.Replace(s.Base, ".", "", 1), strings.Replace(s.Quote, ".", "", 1)}
	if got != held || s.Volume != p.volume(s.Swaps) || s.Swaps > len(p.swaps) || s.Traders > len(p.payers) {
		r.t.Errorf("snapshot %+v, held were %v, the volume of its swaps is %s", s, held, p.volume(s.Swaps))
	}
}

// poolList is the document of all mirrored pools.
type poolList struct {
	Pools []struct {
		Symbol, Base, Quote string
		ID                  string `json:"pool_id"`
		BaseAtoms           string `json:"base_vault_balance_atoms"`
		QuoteAtoms          string `json:"quote_vault_balance_atoms"`
		Slot                uint64
	}
}

// checkPools compares the documents of pools and tokens with the ledger.
func (r *mirrorRig) checkPools() {
	r.t.Helper()
	// A second pool may be read a slot later than the first, which the status record follows.
	list := await.Value(r.t, fmt.Sprintf("%d pools of slot %d", len(r.m.pools), r.now()), func() (l poolList) {
		programtest.GetJSON(r.t, r.s.Addresses.API+"/api/v1/market/pools", &l)
		return l
	}, func(l poolList) bool {
		for i := range l.Pools {
			if l.Pools[i].Slot != r.now() {
				return false
			}
		}
		return len(l.Pools) == len(r.m.pools)
	})
	for i, p := range r.m.pools {
		got := list.Pools[i]
		if got.Symbol != p.symbol || got.ID != chaintest.Text(p.at) || got.BaseAtoms != fmt.Sprint(p.base.atoms) || got.QuoteAtoms != fmt.Sprint(p.quote.atoms) {
			r.t.Errorf("the pool is %+v, want %+v", got, p)
		}
	}
	body := programtest.Get(r.t, r.s.Addresses.API+"/api/v1/market/tokens")
	reserve := fmt.Sprintf(`{"address":"%s","amountUi":"100000000.000000","amountAtoms":"100000000000000"`, r.m.setup.Desk.Accounts["SLUSD"])
	if !strings.Contains(body, reserve) {
		r.t.Errorf("the tokens do not name %s: %s", reserve, body)
	}
}

// checkProof recomputes the hashes of the proof document from its content.
func (r *mirrorRig) checkProof() {
	r.t.Helper()
	var doc struct {
		Hash    string `json:"proof_hash"`
		Subject json.RawMessage
	}
	programtest.GetJSON(r.t, r.s.Addresses.API+"/api/v1/market/proof", &doc)
	var subject struct{ Pools []json.RawMessage }
	if err := json.Unmarshal(doc.Subject, &subject); err != nil || len(subject.Pools) != len(r.m.pools) {
		r.t.Fatalf("%d pools, %v: %s", len(subject.Pools), err, doc.Subject)
	}
	own := regexp.MustCompile(`,"proof_hash":"(sha256:[0-9a-f]{64})"`)
	sum := func(text []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(text)) }
	if got := sum(doc.Subject); got != doc.Hash {
		r.t.Errorf("the proof is %s, of its subject %s", doc.Hash, got)
	}
	for _, pool := range subject.Pools {
		reported := own.FindSubmatch(pool)
		if reported == nil || string(reported[1]) != sum(own.ReplaceAll(pool, nil)) {
			r.t.Errorf("the proof of %s is not its hash", pool)
		}
	}
}

// checkCandles compares the history's trades and candles with the ledger.
func (r *mirrorRig) checkCandles() map[string]*feedtest.Tape {
	r.t.Helper()
	tapes := map[string]*feedtest.Tape{}
	for _, p := range r.m.pools {
		var ids []uint64
		for _, t := range r.watch.trades[p.symbol] {
			ids = append(ids, t.ID)
		}
		tapes[p.symbol] = r.tape(p, ids)
	}
	feedtest.CheckHistory(r.t, r.s, tapes)
	return tapes
}

// overWebSocket starts independent clients that check every message's checksum and
// compare it with REST; none if they are not installed.
func overWebSocket(t *testing.T, r *mirrorRig) []*feedtest.Follower {
	t.Helper()
	if _, err := os.Stat(filepath.Join(programtest.ClientDir(t, "ws"), "node_modules", "ws")); err != nil {
		t.Log("not followed over the WebSocket: npm's ws is not installed (npm --prefix internal/clients/ws ci)")
		return nil
	}
	symbols := r.m.pools[0].symbol + "," + r.m.pools[1].symbol
	return []*feedtest.Follower{
		feedtest.Follow(t, r.s, "follow.mjs", symbols, "--disturb", "600", "--away", "700"),
		feedtest.Follow(t, r.s, "stream.mjs", symbols),
	}
}

// mirrorEnough reports whether a follower has compared and applied enough.
func mirrorEnough(c *feedtest.Followed) bool {
	return c.DepthCompared >= 4 && c.TradesCompared >= 4 && c.Updates >= 20
}

// checkFollowers ends the followers and compares their results with the ledger.
func checkFollowers(t *testing.T, list []*feedtest.Follower, tapes map[string]*feedtest.Tape) {
	t.Helper()
	for _, f := range list {
		c := f.Finish(t)
		for symbol, of := range tapes {
			if got := c.Tapes[symbol]; got.Trades != len(of.Trades) || got.SHA256 != of.Digest() {
				t.Errorf("%s: %d trades of %s, done were %d, or they differ", f.Name, got.Trades, symbol, len(of.Trades))
			}
		}
		if !mirrorEnough(c) {
			t.Errorf("%s has seen too little: %+v", f.Name, c)
		}
	}
}
