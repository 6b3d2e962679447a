package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/feedtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// mirrorPairsConfig mirrors both pairs of a chainMarket, beside an instrument of
// the service's own.
const mirrorPairsConfig = `rfq: {enabled: false, pairs: []}
chain: {timeout_ms: %[11]d, attempt_timeout_ms: %[12]d}
instruments:
  - {symbol: SLUSD/USDC, price_decimals: 6, qty_decimals: 6, tick: "0.0001", lot: "0.01", min_qty: "0.01", max_qty: "100000000", max_price: "1000000", book_source: mirrored}
  - {symbol: 92C/SLUSD, price_decimals: 6, qty_decimals: 6, tick: "0.0001", lot: "0.01", min_qty: "0.01", max_qty: "100000000", max_price: "1000000", book_source: mirrored}
  - {symbol: STOCK/USDC, price_decimals: 6, qty_decimals: 6, tick: "0.0001", lot: "0.01", min_qty: "0.01", max_qty: "100000000", max_price: "1000000", book_source: matched}
mirror:
  rpc_urls: %[1]q
  every_ms: 200
  stale_after_ms: 3000
  clock_tolerance_s: 3600
  record_every_s: 2
  reach_days: 0
  pairs:
    - symbol: SLUSD/USDC
      base_mint: %[2]s
      base_decimals: 6
      quote_mint: %[3]s
      quote_decimals: 6
      book: {layout: manifest, market: %[4]s}
      pool: {layout: raydium_cpmm, address: %[5]s}
      observed: [{address: %[6]s, role: guarantee_reserve, label: reserve}]
    - symbol: 92C/SLUSD
      base_mint: %[7]s
      base_decimals: 6
      quote_mint: %[2]s
      quote_decimals: 6
      pool: {layout: vault_pair, address: %[8]s, base_vault: %[9]s, quote_vault: %[10]s}
`

// ownSymbol is the instrument that is matched here.
const ownSymbol = "STOCK/USDC"

// mirrorRig is the service, the nodes that it reads, and the market behind them.
type mirrorRig struct {
	t     *testing.T
	m     *chainMarket
	nodes []*chainNode
	s     *server.Server
	watch *watcher
	// hangs: nodes may not answer, and the service does not wait long for them.
	hangs bool

	// running stops the market, which then signals stopped.
	running context.CancelFunc
	stopped chan error
}

// newMirrorRig starts all of it.
func newMirrorRig(t *testing.T, seed uint64) *mirrorRig {
	t.Helper()
	r := &mirrorRig{t: t, m: newChainMarket(t, seed), hangs: true}
	var urls []string
	for range 3 {
		n := newChainNode(t, r.m.cluster)
		r.nodes = append(r.nodes, n)
		urls = append(urls, n.URL)
	}
	r.start(strings.Join(urls, ","))
	r.watch = newWatcher(r)
	t.Cleanup(r.watch.end)
	return r
}

// start starts the service on some nodes.
func (r *mirrorRig) start(urls string) {
	r.t.Helper()
	first, second := r.m.pools[0], r.m.pools[1]
	timeoutMS, attemptMS := 60_000, 50_000
	if r.hangs {
		timeoutMS, attemptMS = 4_000, 1_500
	}
	config := fmt.Sprintf(mirrorPairsConfig, urls, chaintest.Text(first.base.coin.Mint), chaintest.Text(first.quote.coin.Mint),
		chaintest.Text(r.m.book.at), chaintest.Text(first.at), r.m.setup.Desk.Accounts["SLUSD"], chaintest.Text(second.base.coin.Mint),
		chaintest.Text(second.at), chaintest.Text(second.base.account), chaintest.Text(second.quote.account), timeoutMS, attemptMS)
	r.s = programtest.Start(r.t, programtest.Config(r.t, config))
}

// behind is the lag of the service, in slots, at which the market waits for it. A machine
// on which no two nodes answer within one slot gets longer slots.
const behind = 40

// pace waits until the next slot may open: not sooner than slotPause after the last,
// and the later, the further the service is behind.
func (r *mirrorRig) pace(ctx context.Context) {
	pause := slotPause
	if r.watch != nil {
		r.watch.mu.Lock()
		reported := r.watch.slot
		r.watch.mu.Unlock()
		if now := r.now(); reported > 0 && now > reported+behind {
			pause *= time.Duration((now - reported) / behind * 2)
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(pause): // sleep: paces the market
	}
}

// trade runs the market until rest.
func (r *mirrorRig) trade() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	r.running, r.stopped = cancel, make(chan error, 1)
	go func() {
		var err error
		for err == nil && ctx.Err() == nil {
			if r.pace(ctx); ctx.Err() == nil {
				err = r.m.step()
			}
		}
		if err != nil {
			r.watch.fail(err)
		}
		r.stopped <- err
	}()
	r.t.Cleanup(func() {
		if r.running != nil {
			r.rest()
		}
	})
}

// rest stops the market; its effects are in the ledger.
func (r *mirrorRig) rest() {
	r.t.Helper()
	r.running()
	r.running = nil
	if err := <-r.stopped; err != nil {
		r.t.Fatal(err)
	}
}

// idle passes empty slots, so that everything is final.
func (r *mirrorRig) idle(slots int) {
	r.t.Helper()
	for range slots {
		r.pace(r.t.Context())
		if err := r.m.close(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// restart ends the service and starts it again.
func (r *mirrorRig) restart(politely bool) {
	r.t.Helper()
	end := r.s.Kill
	if politely {
		end = r.s.Stop
	}
	if err := end(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.s.Restart(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// numbered are the swaps of a pool that the instrument can express, in the chain's
// order.
func (p *chainPool) numbered() (list []doneSwap) {
	for i := range p.swaps {
		if _, ok := p.swaps[i].trade(); ok {
			list = append(list, p.swaps[i])
		}
	}
	return list
}

// tape returns the trades that must be published of a pool's swaps, with their ordinals.
func (r *mirrorRig) tape(p *chainPool, ids []uint64) *feedtest.Tape {
	of := &feedtest.Tape{In: market.Instrument{PriceDecimals: mirrorPriceDecimals, QtyDecimals: mirrorQtyDecimals, Tick: mirrorTick, Lot: mirrorLot}}
	for i, s := range p.numbered() {
		t, _ := s.trade()
		if i < len(ids) {
			t.ID = ids[i]
		}
		of.Trades = append(of.Trades, t)
	}
	return of
}

// mirroredTrade is a trade of REST's, with the transaction that it was.
type mirroredTrade struct {
	feedtest.PublishedTrade
	Signature string `json:"signature"`
	Source    string `json:"source"`
}

// mirroredDepth is a book of REST's.
type mirroredDepth struct {
	Bids, Asks [][2]string
	Source     string
	Slot       *uint64
	Epoch      string
	Seq        uint64
}

// watcher polls REST all the time and compares each answer with the ledger: a book must
// be a majority's for its slot, slots and trades never go back, and no restart changes
// what was published.
type watcher struct {
	r      *mirrorRig
	api    string
	stop   chan struct{}
	done   sync.WaitGroup
	client *http.Client

	mu     sync.Mutex
	err    error
	slot   uint64 // the last published one
	depths int    // answers
	slots  map[uint64]bool
	trades map[string][]mirroredTrade
	pools  int // states of the pool that were held to the ledger
	status map[string]bool
}

func newWatcher(r *mirrorRig) *watcher {
	w := &watcher{
		r: r, api: r.s.Addresses.API, stop: make(chan struct{}), client: &http.Client{Timeout: runtest.HangTimeout}, slots: map[uint64]bool{},
		trades: map[string][]mirroredTrade{}, status: map[string]bool{},
	}
	w.every(20*time.Millisecond, w.depth)
	w.every(50*time.Millisecond, func() error { return w.follow("SLUSD/USDC") })
	w.every(50*time.Millisecond, func() error { return w.follow("92C/SLUSD") })
	w.every(300*time.Millisecond, w.state)
	return w
}

// every repeats a check until it fails or the test ends.
func (w *watcher) every(pause time.Duration, do func() error) {
	w.done.Go(func() {
		for {
			select {
			case <-w.stop:
				return
			case <-time.After(pause):
			}
			if err := do(); err != nil {
				w.fail(err)
				return
			}
		}
	})
}

// fail records a failure.
func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
}

// end stops the watching.
func (w *watcher) end() {
	if w.stop != nil {
		close(w.stop)
		w.done.Wait()
		w.client.CloseIdleConnections()
		w.stop = nil
	}
}

// check fails the test with the recorded failures.
func (w *watcher) check() {
	w.r.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		w.r.t.Fatal(w.err)
	}
}

// get reads a document; ok is false while the service is down or answers 503.
func (w *watcher) get(path string, into any) (ok bool, err error) {
	resp, err := w.client.Get(w.api + "/api/v1/market/" + path)
	if err != nil {
		return false, nil
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return false, nil
	}
	if resp.StatusCode == http.StatusServiceUnavailable { // the history is a moment behind the feed
		return false, nil
	}
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%s: status %d: %.300s", path, resp.StatusCode, &body)
	}
	return true, json.Unmarshal(body.Bytes(), into)
}

// depth compares a book with the nodes' banks of its slot.
func (w *watcher) depth() error {
	var d mirroredDepth
	if ok, err := w.get("depth?limit=100&symbol=SLUSD/USDC", &d); !ok || err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.Slot == nil {
		if w.slot != 0 {
			return fmt.Errorf("no book after that of slot %d", w.slot)
		}
		return nil
	}
	if *d.Slot < w.slot {
		return fmt.Errorf("slot %d after slot %d", *d.Slot, w.slot)
	}
	w.slot = *d.Slot
	w.depths++
	w.slots[w.slot] = true
	for _, b := range w.r.m.cluster.allowed(*d.Slot) {
		if slices.Equal(b.bids, d.Bids) && slices.Equal(b.asks, d.Asks) {
			return nil
		}
	}
	text := fmt.Sprintf("a book of slot %d that no majority has reported:\n%v\n%v", *d.Slot, d.Bids, d.Asks)
	for _, b := range w.r.m.cluster.allowed(*d.Slot) {
		text += fmt.Sprintf("\ntold was\n%v\n%v", b.bids, b.asks)
	}
	return errors.New(text)
}

// follow reads the trades since its last call.
func (w *watcher) follow(symbol string) error {
	w.mu.Lock()
	known := w.trades[symbol]
	w.mu.Unlock()
	var fresh []mirroredTrade // newest first
	for before := uint64(1<<63 - 1); ; {
		var page struct{ Trades []mirroredTrade }
		ok, err := w.get(fmt.Sprintf("trades?limit=100&symbol=%s&before=%d", symbol, before), &page)
		if !ok || err != nil {
			return err
		}
		for _, t := range page.Trades {
			if len(known) > 0 && t.ID <= known[len(known)-1].ID {
				if t != known[len(known)-1] {
					return fmt.Errorf("%s: trade %+v is now %+v", symbol, known[len(known)-1], t)
				}
				return w.take(symbol, fresh)
			}
			fresh = append(fresh, t)
		}
		if len(page.Trades) < 100 {
			if len(known) > 0 {
				return fmt.Errorf("%s: trade %d is gone", symbol, known[len(known)-1].ID)
			}
			return w.take(symbol, fresh)
		}
		before = page.Trades[99].ID
	}
}

func (w *watcher) take(symbol string, fresh []mirroredTrade) error {
	slices.Reverse(fresh)
	for _, t := range fresh {
		if !w.r.m.cluster.final(t.Signature) {
			return fmt.Errorf("%s: %+v is published, but not final", symbol, t)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trades[symbol] = append(w.trades[symbol], fresh...)
	return nil
}

// recordedSnapshot is a state of the market that was recorded.
type recordedSnapshot struct {
	Reference string `json:"snapshot_reference"`
	Base      string `json:"base_vault_ui"`
	Quote     string `json:"quote_vault_ui"`
	Swaps     int    `json:"swaps_total"`
	Volume    string `json:"volume_usd"`
	Traders   int    `json:"traders_estimated"`
}

// mirrorStatus has the members of the status record that the test reads.
type mirrorStatus struct {
	At        time.Time `json:"timestamp_exact"`
	Slot      uint64    `json:"slot"`
	Signature string    `json:"last_trade_signature"`
	Pool      *struct {
		ID         string `json:"pool_id"`
		BaseMint   string `json:"base_mint"`
		QuoteMint  string `json:"quote_mint"`
		BaseVault  string `json:"base_vault"`
		QuoteVault string `json:"quote_vault"`
		Base       string `json:"base_vault_balance_atoms"`
		Quote      string `json:"quote_vault_balance_atoms"`
		Slot       uint64 `json:"slot"`
		Proof      string `json:"proof_hash"`
	} `json:"onchain_pool_state"`
	Swaps     int                `json:"swaps_total_onchain"`
	Volume    string             `json:"volume_cumulative_onchain"`
	FeesBase  string             `json:"fees_base_cumulative_ui"`
	FeesQuote string             `json:"fees_quote_cumulative_ui"`
	Traders   int                `json:"traders_estimated_total"`
	Current   recordedSnapshot   `json:"current_active_snapshot"`
	Past      []recordedSnapshot `json:"historical_snapshots"`

	Degradation struct {
		Degraded bool     `json:"degraded"`
		Reasons  []string `json:"reasons"`
		Failover bool     `json:"rpc_failover_active"`
		Price    string   `json:"price_source"`
	} `json:"degradation_state"`
	Rolling struct {
		Day         json.Number `json:"exact_24h_volume_usd"`
		Week        json.Number `json:"exact_7d_volume_usd"`
		Delta       json.Number `json:"exact_delta_24h_percent"`
		LastAt      time.Time   `json:"exact_last_indexed_trade_ts"`
		ReferenceAt time.Time   `json:"exact_window_reference_trade_ts"`
		DayStatus   string      `json:"status_24h"`
		WeekStatus  string      `json:"status_7d"`
	} `json:"rolling_windows"`
	Health struct {
		Active    string `json:"activeRpcUrl"`
		Slot      uint64 `json:"latestSlotSeen"`
		Signature string `json:"lastSignatureSeen"`
		Providers []struct {
			Available bool `json:"available"`
		} `json:"providers"`
	} `json:"rpc_health"`
}

// state compares the status record's pool with the ledger and records the degradation
// reasons.
func (w *watcher) state() error {
	var s mirrorStatus
	if ok, err := w.get("status", &s); !ok || err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, word := range s.Degradation.Reasons {
		w.status[word] = true
	}
	if s.Pool == nil {
		return nil
	}
	p := w.r.m.pools[0]
	for _, b := range w.r.m.cluster.allowed(s.Pool.Slot) {
		if b.atoms(p.base.account) == s.Pool.Base && b.atoms(p.quote.account) == s.Pool.Quote {
			w.pools++
			return nil
		}
	}
	return fmt.Errorf("the pool of slot %d holds %s and %s, which no majority has reported", s.Pool.Slot, s.Pool.Base, s.Pool.Quote)
}

// published returns the published trades, by symbol and signature.
func (w *watcher) published() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	reported := map[string]bool{}
	for symbol, list := range w.trades {
		for _, t := range list {
			reported[symbol+t.Signature] = true
		}
	}
	return reported
}

// seen reports whether the status record has had a reason.
func (w *watcher) seen(word string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status[word]
}

// atoms is what a token account holds, in the form of documents.
func (b *bank) atoms(at solana.Address) string {
	data, err := b.data(solana.Base58(at))
	if err != nil || len(data) < 72 {
		return ""
	}
	return fmt.Sprint(le64(data[64:]))
}
