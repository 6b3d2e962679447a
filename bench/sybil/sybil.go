// Package sybil measures how much of a desk's capacity clients without proof of a wallet
// can hold: many client addresses with many fresh keys reserve all that they can and pay
// nothing, while a buyer with proof of its wallet reserves too.
//
// The desk has the default limits and settles on a local chain. The result is a graph of
// the share that the attack holds, sampled every sampleEvery from the clients' own records
// of what they were granted, and the share of the buyer's claims that succeeded. At most
// maxClients addresses attack.
package sybil

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"blockdesk/bench"
	"blockdesk/bench/server"
	"blockdesk/internal/sandbox"
)

// Benchmark holds the options of the attack.
type Benchmark struct {
	Exe      string        // the program; required
	Dir      string        // scratch folder; required
	Sandbox  string        // folder of the local chain's server; empty: the program's own
	Duration time.Duration // of the attack; default 10 minutes
	Clients  int           // client addresses of the attack, 1 to maxClients; default 1,000
	Keys     int           // wallets that the attack names, at least 1; default 10,000
}

const (
	maxClients = 60_000
	// capacity is the only tranche, in dollars. All the attack's clients together ask for
	// more, by their own limit of 25,000 each.
	capacity = 5_000_000
	// attackRate is the attack's requests a second, and attackers those in flight.
	attackRate, attackers = 100, 32
	// The buyer claims buyerFill dollars every buyerEvery, with buyerKeys wallets in turn.
	// Its claims live for two minutes and hold a third of the tranche.
	buyerFill, buyerEvery, buyerKeys = 25_000, 2500 * time.Millisecond, 64
	// sampleEvery is the time between two points of the graph.
	sampleEvery = 2 * time.Second
	// grace is the default of rfq.grace_s: a claim holds its capacity so long after its end.
	grace = 30 * time.Second
	// shareGoal is the default of rfq.unproven_share_bps in per cent.
	shareGoal = 30
)

// attack is one run.
type attack struct {
	o       Benchmark
	r       *bench.Report
	chain   *sandbox.Node
	srv     *server.Server
	order   string
	tranche string
	keys    []string

	mu sync.Mutex
	// held are the claims without proof that were granted, by the time at which they return
	// their capacity.
	held     []holding
	granted  int
	refused  int // by a limit of the desk
	limited  int // 429
	failures map[string]int
}

type holding struct {
	dollars float64
	until   time.Time
}

// Run attacks a desk with the default limits on a local chain.
func (o Benchmark) Run(ctx context.Context) (_ *bench.Report, err error) {
	if o.Duration == 0 {
		o.Duration = 10 * time.Minute
	}
	if o.Clients == 0 {
		o.Clients = 1000
	}
	if o.Keys == 0 {
		o.Keys = 10_000
	}
	if o.Duration < sampleEvery || o.Clients < 1 || o.Clients > maxClients || o.Keys < 1 {
		return nil, fmt.Errorf("sybil: an attack of %v from %d addresses with %d keys: want at least %v, 1 to %d, at least 1",
			o.Duration, o.Clients, o.Keys, sampleEvery, maxClients)
	}
	a := &attack{o: o, r: bench.NewReport("sybil"), failures: map[string]int{}}
	defer func() { err = errors.Join(err, a.stop()) }()
	if err := a.start(ctx); err != nil {
		return nil, err
	}
	if a.keys, err = freshWallets(o.Keys); err != nil {
		return nil, err
	}
	if err := a.run(ctx); err != nil {
		return nil, err
	}
	a.r.Notes = append(a.r.Notes,
		fmt.Sprintf("%d client addresses with %d fresh wallets for %v: %d claims granted, %d refused by the desk, %d by the limits of requests",
			o.Clients, o.Keys, o.Duration, a.granted, a.refused, a.limited),
		"limits are the defaults: 25,000 USD an address, 30 % of what claims with proof have left, 45 s without a payment and 30 s of grace",
		"the share is computed from the clients' own record: each granted claim counts until its end and the grace after it")
	return a.r, nil
}

// run lets all clients work until the attack is over.
func (a *attack) run(ctx context.Context) error {
	proven := &bench.Series{Name: "claims with proof during the attack", Hist: bench.NewHistogram()}
	graph := &bench.Graph{Name: "Share of the tranche", Unit: "%", Lines: []bench.Line{{Name: "held without proof"}, {Name: "reserved in all"}}}
	start, before := time.Now(), a.srv.CPU()
	attacking, end := context.WithTimeout(ctx, a.o.Duration)
	defer end()
	group, attacking := errgroup.WithContext(attacking)
	a.attackers(attacking, group)
	var failed []string
	group.Go(func() (err error) {
		failed, err = a.buy(attacking, proven)
		return err
	})
	group.Go(func() error { return a.sample(attacking, start, graph) })
	if err := group.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	proven.Elapsed, proven.CPU, proven.Summary = time.Since(start), a.srv.CPU()-before, bench.Summarize(proven.Hist)
	a.r.Series, a.r.Graphs = append(a.r.Series, proven), append(a.r.Graphs, graph)
	a.r.Ratios = append(a.r.Ratios,
		bench.Ratio{Name: "claims with proof that succeed, per cent", Value: 100 * (1 - float64(len(failed))/float64(max(proven.Ops, 1))), Goal: 100},
		bench.Ratio{Name: "most of the tranche held without proof, per cent", Value: graph.Lines[0].Max(), Goal: shareGoal, AtMost: true})
	if len(failed) > 0 {
		a.r.Notes = append(a.r.Notes, "the first refusal of a claim with proof: "+failed[0])
	}
	for text, n := range a.failures {
		a.r.Notes = append(a.r.Notes, fmt.Sprintf("%d × an unexpected answer to the attack: %s", n, text))
	}
	return nil
}

// start runs the chain and the service, and posts the ticket.
func (a *attack) start(ctx context.Context) (err error) {
	keys := filepath.Join(a.o.Dir, "chain")
	chain, err := sandbox.Options{Dir: a.o.Sandbox, SetupDir: keys, SlotTime: 400 * time.Millisecond, Wallets: 1}.Unpacked()
	if err != nil {
		return err
	}
	if a.chain, err = sandbox.Start(ctx, chain); err != nil {
		return err
	}
	setup, err := sandbox.ReadSetup(keys)
	if err != nil {
		return err
	}
	config := fmt.Sprintf(`log: {level: warn}
durability: {mode: interval, interval_ms: 5}
chain: {rpc_urls: %q}
settle: {key_file: %q}
rfq:
  usdc_mint: %s
  sol_price_usd: "150"
  pay_to: {USDC: %[4]s, SOL: %[4]s}
  pairs:
    - {symbol: SLUSD/USDC, base_mint: %[5]s, base_decimals: 6, rails: [USDC, SOL], price_source: operator, reference_price_usd: "0.999", corridor_bps: 1000, max_age_s: 3600, inventory: "90000000"}
`, a.chain.URL(), filepath.Join(keys, setup.Desk.Keypair), setup.Mints["USDC"].Address, setup.Treasury.Address, setup.Mints["SLUSD"].Address)
	dir := filepath.Join(a.o.Dir, "service")
	participants, err := server.WriteParticipants(dir, server.Password, "BENCH")
	if err != nil {
		return err
	}
	if a.srv, err = server.Start(ctx, a.o.Exe, dir, config+fmt.Sprintf("fix: {participants_file: %q}\n", participants)); err != nil {
		return err
	}
	if err := a.offer(); err != nil {
		return err
	}
	a.order, a.tranche, err = server.FirstOffer(a.srv.Addresses.Base)
	return err
}

// offer posts the ticket.
func (a *attack) offer() error {
	token, err := os.ReadFile(filepath.Join(a.srv.DataDir(), "operator.token"))
	if err != nil {
		return err
	}
	var req fasthttp.Request
	req.SetRequestURI(a.srv.Addresses.Admin + "/desk/tickets")
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetContentType("application/json")
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.SetBodyString(fmt.Sprintf(`{"pair":%q,"label":"Block","tranches":["%d"]}`, server.Symbol, capacity))
	if _, _, err := server.RequestFrom(server.Visitor, &req, fasthttp.StatusOK); err != nil {
		return err
	}
	return server.AwaitTickets(a.srv.Addresses.Base, 1)
}

func (a *attack) stop() (err error) {
	if a.srv != nil {
		err = a.srv.Stop()
	}
	if a.chain != nil {
		err = errors.Join(err, a.chain.Stop())
	}
	return err
}

// freshWallets returns the addresses of new key pairs.
func freshWallets(n int) ([]string, error) {
	list := make([]string, n)
	for i := range list {
		key, _, err := ed25519.GenerateKey(nil)
		if err != nil {
			return nil, err
		}
		list[i] = addressOf(key)
	}
	return list, nil
}
