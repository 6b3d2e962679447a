// Package settle measures the settlement of claims: a build, a submission, the proof of a
// payment, and whole atomic trades until the chain has finalized them.
//
// The chain is the local one of package sandbox, which executes every transaction for
// real. It runs in one process on the same cores as the service and its clients, with
// slots of 100 ms, so the figures are lower bounds of what the service can do and include
// no network. Requests in flight are bounded by settleFlight.
package settle

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"blockdesk/bench"
	"blockdesk/bench/server"
	"blockdesk/internal/sandbox"
)

// Benchmark holds the options of the settlement benchmark.
type Benchmark struct {
	Exe     string // the program; required
	Dir     string // scratch folder; required
	Sandbox string // folder of the local chain's server; empty: the program's own
	Trades  int    // whole settlements; default 6,000
}

// Sizes of the parts.
const (
	settleTakers   = 8
	settleBuilds   = 2_000
	settleOneByOne = 1_000 // submissions one by one
	settleProofs   = 6_000 // payments to be verified
	settleEach     = 60    // of them for one claim
	settleFlight   = 16    // requests in flight
	settleBurst    = 100   // requests that follow each other
)

// settleBench is one run of the settlement benchmark.
type settleBench struct {
	o      Benchmark
	r      *bench.Report
	chain  *sandbox.Node
	setup  *sandbox.Setup
	srv    *server.Server
	takers []*taker
}

// Run measures settlement on the local chain, which executes every
// transaction for real and shares the machine with the service and its clients:
// a build and a submission one at a time, proofs of payment, and whole atomic
// trades until the chain has finalized them.
func (o Benchmark) Run(ctx context.Context) (_ *bench.Report, err error) {
	if o.Trades == 0 {
		o.Trades = 6_000
	}
	b := &settleBench{o: o, r: bench.NewReport("settle")}
	end, err := b.start(ctx)
	defer func() { err = errors.Join(err, end()) }()
	if err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context) error{b.builds, b.submissions, b.trades, b.proofs} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	b.r.Notes = append(b.r.Notes,
		"durability interval: the build and the claim are not synced, the signed bytes always are, before they are sent",
		"the chain is LiteSVM behind our JSON-RPC server in Node, one process on the same cores; slots of 100 ms, finalized after 31",
		"a submission is verified, simulated on the chain, permitted, signed and stored before it is answered",
		"the CPU of a build is the service's whole process: its other work on the chain is in it")
	return b.r, nil
}

// start runs the chain and the service. end stops what has been started, after an
// error too.
func (b *settleBench) start(ctx context.Context) (end func() error, err error) {
	end = func() (err error) {
		if b.srv != nil {
			err = b.srv.Stop()
		}
		if b.chain != nil {
			err = errors.Join(err, b.chain.Stop())
		}
		return err
	}
	keys := filepath.Join(b.o.Dir, "chain")
	chain, err := sandbox.Options{
		Dir: b.o.Sandbox, SetupDir: keys, SlotTime: 100 * time.Millisecond, Wallets: settleTakers, History: 100_000,
	}.Unpacked()
	if err != nil {
		return end, err
	}
	if b.chain, err = sandbox.Start(ctx, chain); err != nil {
		return end, err
	}
	if b.setup, err = sandbox.ReadSetup(keys); err != nil {
		return end, err
	}
	dir := filepath.Join(b.o.Dir, "service")
	participants, err := server.WriteParticipants(dir, server.Password, "BENCH")
	if err != nil {
		return end, err
	}
	b.srv, err = server.Start(ctx, b.o.Exe, dir, b.config(keys)+fmt.Sprintf("fix: {participants_file: %q}\n", participants))
	if err != nil {
		return end, err
	}
	if err := b.offer(); err != nil {
		return end, err
	}
	order, tranche, err := server.FirstOffer(b.srv.Addresses.Base)
	if err != nil {
		return end, err
	}
	for i, wallet := range b.setup.Wallets {
		t, err := newTaker(b.srv.Addresses.Base, server.Visitor+1+i, b.setup, wallet)
		if err != nil {
			return end, err
		}
		t.order, t.tranche = order, tranche
		b.takers = append(b.takers, t)
	}
	return end, nil
}

// config returns the configuration of a desk with the chain's mints and without limits on
// clients. The watch for unreported payments polls too rarely to find the benchmark's
// payments before they are verified.
func (b *settleBench) config(keys string) string {
	return fmt.Sprintf(`log: {level: warn}
durability: {mode: interval, interval_ms: 5}
http: {market_data_per_minute: 0, partner_per_minute: 0, rfq_writes_per_minute: 0, dvp_per_minute: 0, handshake_per_minute: 0}
chain: {rpc_urls: %q}
settle: {key_file: %q, watch_ms: 600000}
rfq:
  wallet_claims: 65535
  usdc_mint: %s
  sol_price_usd: "150"
  pay_to: {USDC: %[4]s, SOL: %[4]s}
  pairs:
    - {symbol: SLUSD/USDC, base_mint: %[5]s, base_decimals: 6, rails: [USDC, SOL], price_source: operator, reference_price_usd: "0.999", corridor_bps: 1000, max_age_s: 3600, inventory: "90000000"}
`, b.chain.URL(), filepath.Join(keys, b.setup.Desk.Keypair), b.setup.Mints["USDC"].Address, b.setup.Treasury.Address, b.setup.Mints["SLUSD"].Address)
}

// offer posts the one ticket that is sold from.
func (b *settleBench) offer() error {
	token, err := os.ReadFile(filepath.Join(b.srv.DataDir(), "operator.token"))
	if err != nil {
		return err
	}
	var req fasthttp.Request
	req.SetRequestURI(b.srv.Addresses.Admin + "/desk/tickets")
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetContentType("application/json")
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.SetBodyString(`{"pair":"` + server.Symbol + `","label":"Block","tranches":["80000000"]}`)
	if _, _, err := server.RequestFrom(server.Visitor, &req, fasthttp.StatusOK); err != nil {
		return err
	}
	return server.AwaitTickets(b.srv.Addresses.Base, 1)
}

// post sends a request on a line of its own.
func (b *settleBench) post(target, bearer string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	host := strings.TrimPrefix(b.srv.Addresses.Base, "http://")
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		target, host, bearer, len(text), text), nil
}

// oneByOne measures requests one after the other on one connection, in bursts; next
// makes one of them, which is not timed. The first burst is warm-up.
func (b *settleBench) oneByOne(ctx context.Context, name string, n int, next func() ([]byte, error)) (*bench.Series, error) {
	l, err := server.DialLine(strings.TrimPrefix(b.srv.Addresses.Base, "http://"))
	if err != nil {
		return nil, err
	}
	defer l.Socket.Close()
	s := &bench.Series{Name: name, Hist: bench.NewHistogram()}
	burst := make([][]byte, settleBurst)
	for done := -settleBurst; done < n; done += settleBurst {
		for i := range burst {
			if burst[i], err = next(); err != nil {
				return nil, err
			}
		}
		if done == 0 {
			*s = bench.Series{Name: name, Hist: bench.NewHistogram()}
		}
		if err := b.burst(ctx, l, burst, s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	s.Summary = bench.Summarize(s.Hist)
	b.r.Series = append(b.r.Series, s)
	return s, nil
}

// burst sends requests one after the other, and adds the time and the service's
// CPU time to s.
func (b *settleBench) burst(ctx context.Context, l *server.Line, requests [][]byte, s *bench.Series) error {
	before, err := bench.CPUOf(b.srv.PID())
	if err != nil {
		return err
	}
	start := time.Now()
	for _, request := range requests {
		if err := l.Trips(ctx, request, 1, s.Hist); err != nil {
			return err
		}
	}
	s.Elapsed += time.Since(start)
	after, err := bench.CPUOf(b.srv.PID())
	s.Ops, s.CPU = s.Ops+int64(len(requests)), s.CPU+after-before
	return err
}

// builds measures a build over HTTP, one at a time.
func (b *settleBench) builds(ctx context.Context) error {
	t := b.takers[0]
	request, err := b.post(buildTarget, t.bearer, t.buildBody())
	if err != nil {
		return err
	}
	s, err := b.oneByOne(ctx, "build, one in flight", settleBuilds, func() ([]byte, error) { return request, nil })
	if err != nil {
		return err
	}
	b.r.Ratios = append(b.r.Ratios,
		bench.Ratio{Name: "build p50, ms", Value: float64(s.Summary.P50) / 1e6, Goal: 0.5, AtMost: true},
		bench.Ratio{Name: "CPU a build, µs", Value: float64(s.CPU.Microseconds()) / float64(s.Ops), Goal: 60, AtMost: true})
	return nil
}

// submissions measures the way from a signed build to the desk's signature.
func (b *settleBench) submissions(ctx context.Context) error {
	sync, err := bench.Fdatasyncs(ctx, b.r, b.o.Dir, 2*time.Second, 500)
	if err != nil {
		return err
	}
	t := b.takers[0]
	s, err := b.oneByOne(ctx, "submit, one in flight", settleOneByOne, func() ([]byte, error) {
		o, err := t.build()
		if err != nil {
			return nil, err
		}
		body, err := t.submission(&o)
		if err != nil {
			return nil, err
		}
		return b.post(submitTarget, t.bearer, body)
	})
	if err != nil {
		return err
	}
	b.r.Ratios = append(b.r.Ratios, bench.Ratio{
		Name: "submit p50, ms, less one fdatasync's", Value: float64(s.Summary.P50-sync.Summary.P50) / 1e6, Goal: 1, AtMost: true,
	})
	return b.settled(ctx, settleOneByOne+settleBurst)
}

// each runs work n times, settleFlight at once, each on one of the takers.
func (b *settleBench) each(ctx context.Context, n int, work func(i int, t *taker) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for variant := range settleFlight {
		group.Go(func() error {
			for i := variant; i < n && ctx.Err() == nil; i += settleFlight {
				if err := work(i, b.takers[variant%len(b.takers)]); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// trades makes whole settlements and waits until the chain has finalized all.
func (b *settleBench) trades(ctx context.Context) error {
	had, err := b.settledSoFar()
	if err != nil {
		return err
	}
	s := &bench.Series{Name: fmt.Sprintf("atomic settlements, %d in flight, until the last is finalized", settleFlight), Ops: int64(b.o.Trades)}
	start, before := time.Now(), b.srv.CPU()
	if err := b.each(ctx, b.o.Trades, func(_ int, t *taker) error { return t.settle() }); err != nil {
		return err
	}
	if err := b.settled(ctx, had+b.o.Trades); err != nil {
		return err
	}
	s.Elapsed, s.CPU = time.Since(start), b.srv.CPU()-before
	b.r.Series = append(b.r.Series, s)
	b.r.Ratios = append(b.r.Ratios, bench.Ratio{
		Name: "atomic settlements a second, finalized", Value: float64(s.Ops) / s.Elapsed.Seconds(), Goal: 300,
	})
	return nil
}

// proofs pays for claims on the chain, many times each, and has the desk verify the
// payments: first when they are new to it, then again. One payment of each claim leads
// to a delivery, the others to a refund due, so that proofs are measured and not
// deliveries.
func (b *settleBench) proofs(ctx context.Context) error {
	requests, err := b.payments(ctx)
	if err != nil {
		return err
	}
	for _, pass := range []struct {
		name string
		goal float64
	}{{"payments verified on the chain a second", 3_000}, {"known payments answered a second", 0}} {
		s := &bench.Series{Name: fmt.Sprintf("%s, %d in flight", pass.name, settleFlight), Ops: int64(len(requests)), Hist: bench.NewHistogram()}
		start, before := time.Now(), b.srv.CPU()
		if err := b.volley(ctx, requests, s); err != nil {
			return fmt.Errorf("%s: %w", pass.name, err)
		}
		s.Elapsed, s.CPU = time.Since(start), b.srv.CPU()-before
		s.Summary = bench.Summarize(s.Hist)
		b.r.Series = append(b.r.Series, s)
		b.r.Ratios = append(b.r.Ratios, bench.Ratio{Name: pass.name, Value: float64(s.Ops) / s.Elapsed.Seconds(), Goal: pass.goal})
		due, err := b.metric("refunds_due")
		if want := len(requests) - len(requests)/settleEach; err == nil && due != want {
			err = fmt.Errorf("%s: %d refunds are due, not %d", pass.name, due, want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// payments makes claims, pays settleEach times for each on the chain and returns
// the requests that verify the payments, once those are finalized.
func (b *settleBench) payments(ctx context.Context) ([][]byte, error) {
	requests := make([][]byte, settleProofs)
	signatures := make([]string, settleProofs)
	err := b.each(ctx, settleProofs/settleEach, func(i int, t *taker) error {
		body := map[string]string{"bot_wallet": t.address, "order_id": t.order, "tranche_id": t.tranche, "fill_usd": settleFill}
		var o offered
		if err := t.post(modularTarget, body, fasthttp.StatusOK, &o); err != nil {
			return err
		}
		for k := range settleEach {
			raw, err := t.signVariant(o.Transaction, uint64(k))
			if err != nil {
				return err
			}
			at := i*settleEach + k
			options := map[string]any{"encoding": "base64", "skipPreflight": true}
			if err := b.chain.Call(ctx, "sendTransaction", []any{base64.StdEncoding.EncodeToString(raw), options}, &signatures[at]); err != nil {
				return err
			}
			requests[at], err = b.post(verifyTarget, "", map[string]string{
				"order_id": t.order, "tranche_id": t.tranche, "l1_signature": signatures[at],
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for at := 0; at < len(signatures); at += maxStatuses {
		if err := b.finalized(ctx, signatures[at:min(at+maxStatuses, len(signatures))]); err != nil {
			return nil, err
		}
	}
	return requests, nil
}

// maxStatuses is how many statuses one call returns.
const maxStatuses = 256

// finalized waits until all of the transactions are finalized.
func (b *settleBench) finalized(ctx context.Context, signatures []string) error {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var statuses struct {
			Value []*struct {
				Err                any
				ConfirmationStatus string
			}
		}
		options := map[string]any{"searchTransactionHistory": true}
		if err := b.chain.Call(ctx, "getSignatureStatuses", []any{signatures, options}, &statuses); err != nil {
			return err
		}
		final := 0
		for _, s := range statuses.Value {
			if s != nil && s.Err == nil && s.ConfirmationStatus == "finalized" {
				final++
			}
		}
		if final == len(signatures) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d payments are finalized after 30 s", final, len(signatures))
		}
	}
}

// volley sends the requests over settleFlight connections.
func (b *settleBench) volley(ctx context.Context, requests [][]byte, s *bench.Series) error {
	variants := make([]*bench.Series, settleFlight)
	group, ctx := errgroup.WithContext(ctx)
	for variant := range settleFlight {
		variants[variant] = &bench.Series{Hist: bench.NewHistogram()}
		group.Go(func() error {
			l, err := server.DialLine(strings.TrimPrefix(b.srv.Addresses.Base, "http://"))
			if err != nil {
				return err
			}
			defer l.Socket.Close()
			l.Refusals = true // a refund due is answered with an error
			for i := variant; i < len(requests); i += settleFlight {
				if err := l.Trips(ctx, requests[i], 1, variants[variant].Hist); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	for _, variant := range variants {
		s.Hist.Merge(variant.Hist)
	}
	return err
}

// settled waits until the service has settled n claims in all.
func (b *settleBench) settled(ctx context.Context, n int) error {
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		have, err := b.settledSoFar()
		if err != nil || have >= n {
			return err
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%d of %d claims are settled: %w", have, n, ctx.Err())
		}
	}
}

func (b *settleBench) settledSoFar() (int, error) { return b.metric("settled_total") }

// metric returns one of settlement's values of /metrics.
func (b *settleBench) metric(name string) (int, error) {
	resp, err := http.Get(b.srv.Addresses.Admin + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for lines := server.MetricsLines(resp.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "blockdesk_settlement_"+name+" "); ok {
			n, err := strconv.ParseFloat(text, 64)
			return int(n), err
		}
	}
	return 0, fmt.Errorf("metrics: no settlement_%s", name)
}
