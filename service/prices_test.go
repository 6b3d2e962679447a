package service

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/pyth"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/prices"
)

// machineDesk is the desk's state machine on virtual time.
type machineDesk struct {
	mu     sync.Mutex
	m      *rfq.Machine
	seq    uint64
	token  uint64
	reader rfq.Reader
	out    *event.Sink
	quote  *rfq.Quote
	claim  *rfq.Claim
}

func (d *machineDesk) Do(r rfq.Request) (*desk.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	d.token++
	r.Head().RequestID = d.token
	d.out.Reset()
	d.m.Apply(rfq.AppendRequest(nil, r), rfq.Stamp{Seq: d.seq, At: time.Now().UnixNano()}, nil, d.out)
	result := &desk.Result{}
	for i := range d.out.Events() {
		record, _, ok := d.reader.Add(&d.out.Events()[i])
		if !ok {
			continue
		}
		switch record := record.(type) {
		case *rfq.Outcome:
			result.Outcome = *record
		case *rfq.Quote:
			copied := *record
			d.quote = &copied
		case *rfq.Claim:
			copied := *record
			d.claim = &copied
		}
	}
	return result, nil
}

// oracleNodes are nodes with one account of price updates.
type oracleNodes struct {
	mu    sync.Mutex
	price market.USDPrice
	dead  bool
}

var (
	testFeed    = pyth.Feed{7}
	testAccount = solana.Address{8}
)

func (n *oracleNodes) Upstreams() int { return 1 }

func (n *oracleNodes) AccountsFromEach(_ context.Context, list []solana.Address, _ rpc.Commitment, _ uint64) ([]rpc.NodeAccounts, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead {
		return nil, errors.New("no answer")
	}
	accounts := make([]*rpc.Account, len(list))
	for i := range list {
		data := pyth.Append(nil, pyth.Update{Feed: testFeed, Price: n.price, Confidence: n.price / 2000, PublishedAt: time.Now().Unix()}, solana.Address{})
		accounts[i] = &rpc.Account{Address: list[i], Owner: solana.PythReceiverProgram, Data: data}
	}
	return []rpc.NodeAccounts{{Accounts: accounts}}, nil
}

func (n *oracleNodes) set(price market.USDPrice, dead bool) {
	n.mu.Lock()
	n.price, n.dead = price, dead
	n.mu.Unlock()
	time.Sleep(2 * time.Second) // sleep: virtual time
	synctest.Wait()
}

// priceRig is a feed of the price of SOL, a pool of SLUSD, and a desk that sells by them.
type priceRig struct {
	*testing.T
	desk  *machineDesk
	nodes *oracleNodes
	pool  atomic.Uint64 // market.USDPrice
}

const usd = market.USDPrice(1_000_000_000)

// runPrices runs body beside the feed, with a desk that is open for business.
func runPrices(t *testing.T, body func(r *priceRig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &priceRig{T: t, desk: &machineDesk{m: rfq.New(), out: event.NewGrowingSink(64)}, nodes: &oracleNodes{price: 150 * usd}}
		r.pool.Store(uint64(usd))
		policy := rfq.Policy{
			QuoteTTL: 15e9, ClaimTTL: 120e9, FeeBps: 500, WalletClaims: 8, Rules: rfq.RulesGuarded, Grace: 30e9,
			UnprovenTTL: 45e9, UnprovenPerClient: rfq.MaxCapacity, UnprovenShareBps: market.MaxBps,
		}
		for rail := market.RailUSDC; rail < market.RailCount; rail++ {
			policy.PayTo[rail] = market.Address{byte(rail)}
		}
		pair := rfq.Pair{
			BaseMint: market.Address{9}, BaseDecimals: 6, Rails: market.AllRails, Source: rfq.SourceOperator,
			CorridorBps: 1000, MaxAge: 60e9, Via: rfq.NoInstrument,
		}
		pair.FirmBps[market.RailUSDC], pair.FirmBps[market.RailSOL] = 100, 150
		r.must(&rfq.SetPolicy{Policy: policy})
		r.must(&rfq.SetPair{Pair: pair})
		r.must(&rfq.SetInventory{Atoms: 1e15})
		r.must(&rfq.SetOperator{Of: rfq.Operator{ID: 1, Name: "ann"}})
		r.must(&rfq.PostTicket{Header: rfq.Header{Operator: 1}, Label: "Block", Capacities: []market.USD{1e12}})

		rule := func(s prices.Source) prices.Rule {
			return prices.Rule{Sources: []prices.Source{s}, MaxAge: 60e9, MaxSpreadBps: 100, MaxConfidenceBps: 50}
		}
		feed := &priceFeed{desk: r.desk, log: slog.New(slog.DiscardHandler), assets: []pricedAsset{
			{Asset: prices.Asset{Name: "SOL", Rule: rule(prices.Pyth), FeedID: testFeed, Account: testAccount}, rail: true},
			{Asset: prices.Asset{Name: "SLUSD", Rule: rule(prices.Pool), Window: 5 * time.Minute, Pool: func() (market.USDPrice, int64, bool) {
				return market.USDPrice(r.pool.Load()), time.Now().Truncate(10 * time.Second).UnixNano(), true
			}}, pairs: []market.InstrumentID{0}},
		}}
		var err error
		feed.Feed, err = prices.NewFeed(prices.Options{
			Assets: []prices.Asset{feed.assets[0].Asset, feed.assets[1].Asset}, Nodes: r.nodes, Publish: feed.publish, Logger: feed.log,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go feed.Run(ctx)
		r.pass(6 * time.Minute) // until the pool has an average
		body(r)
		stop()
		synctest.Wait()
	})
}

func (r *priceRig) pass(d time.Duration) {
	time.Sleep(d) // sleep: virtual time
	synctest.Wait()
}

func (r *priceRig) do(q rfq.Request) event.Reason {
	r.Helper()
	result, err := r.desk.Do(q)
	if err != nil {
		r.Fatal(err)
	}
	return result.Reason
}

func (r *priceRig) must(q rfq.Request) {
	r.Helper()
	if why := r.do(q); why != 0 {
		r.Fatalf("%T: %s", q, why)
	}
}

// paid takes a claim over SOL and pays it.
func (r *priceRig) paid() market.ClaimID {
	r.Helper()
	r.must(&rfq.TakeClaim{Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailSOL, Mode: rfq.Modular, Wallet: market.Address{5}, Proven: true})
	c := *r.desk.claim
	r.must(&rfq.ProvePayment{
		Claim: c.ID, Rail: market.RailSOL, Signature: [64]byte{byte(c.ID), byte(c.ID >> 8)}, Payer: market.Address{5},
		Amount: c.Terms.Payment, Slot: 1, BlockTime: time.Now().Unix(),
	})
	return c.ID
}

// TestFallWithinAClaim: nothing is delivered once SOL has fallen by more than the desk
// stands for since the claim, however far, and everything if it has risen.
func TestFallWithinAClaim(t *testing.T) {
	for _, c := range []struct {
		price market.USDPrice
		want  event.Reason
	}{
		{150 * usd * 9_990 / 10_000, 0},
		{150 * usd * 9_860 / 10_000, 0},
		{150 * usd * 9_840 / 10_000, event.ReasonPriceCorridor},
		{150 * usd * 9_500 / 10_000, event.ReasonPriceCorridor},
		{150 * usd * 9_010 / 10_000, event.ReasonPriceCorridor},
		{150 * usd * 7_000 / 10_000, event.ReasonPriceCorridor},
		{150 * usd * 13_000 / 10_000, 0},
	} {
		runPrices(t, func(r *priceRig) {
			id := r.paid()
			r.nodes.set(c.price, false)
			if why := r.do(&rfq.BeginDelivery{Claim: id, Proof: [32]byte{1}}); why != c.want {
				r.Errorf("SOL at %d: %s, want %s", c.price, why, c.want)
			}
		})
	}
}

// TestStalePriceHoldsDeliveries: while Pyth stands still nothing is quoted or delivered;
// when it goes on, so do the deliveries.
func TestStalePriceHoldsDeliveries(t *testing.T) {
	runPrices(t, func(r *priceRig) {
		id := r.paid()
		r.nodes.set(150*usd, true)
		r.pass(90 * time.Second)
		if why := r.do(&rfq.BeginDelivery{Claim: id, Proof: [32]byte{1}}); why != event.ReasonPriceUnavailable && why != event.ReasonPriceStale {
			r.Errorf("a delivery without a price: %s", why)
		}
		quote := &rfq.RequestQuote{Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailSOL}
		if why := r.do(quote); why != event.ReasonPriceUnavailable && why != event.ReasonPriceStale {
			r.Errorf("a quote without a price: %s", why)
		}
		quote.Rail = market.RailUSDC
		r.must(quote) // which needs no price of SOL
		r.nodes.set(150*usd, false)
		r.must(&rfq.BeginDelivery{Claim: id, Proof: [32]byte{1}})
	})
}

// TestPoolOfAMoment: a pool that is bent for one reading hardly moves the price; one that
// has moved for good does.
func TestPoolOfAMoment(t *testing.T) {
	runPrices(t, func(r *priceRig) {
		delivers := func(id market.ClaimID) {
			r.must(&rfq.BeginDelivery{Claim: id, Proof: [32]byte{1}})
			r.must(&rfq.ExpireDelivery{Claim: id, Proof: [32]byte{1}})
		}
		before := r.paid()
		for _, bent := range []market.USDPrice{100 * usd, usd / 100} {
			r.pool.Store(uint64(bent))
			r.pass(10 * time.Second)
			delivers(before)
			meanwhile := r.paid()
			r.pool.Store(uint64(usd))
			r.pass(10 * time.Second)
			delivers(meanwhile)
		}
		delivers(before)
		id := r.paid()
		r.pool.Store(uint64(2 * usd))
		r.pass(100 * time.Second)
		if why := r.do(&rfq.BeginDelivery{Claim: id, Proof: [32]byte{2}}); why != event.ReasonPriceCorridor {
			r.Errorf("a base asset that is worth twice: %s", why)
		}
	})
}

// TestQuoteAfterAMove: a quote ends when the price moves by more than the desk stands for.
func TestQuoteAfterAMove(t *testing.T) {
	runPrices(t, func(r *priceRig) {
		r.must(&rfq.RequestQuote{Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailSOL})
		quote := r.desk.quote.ID
		r.nodes.set(75*usd, false)
		claim := &rfq.TakeClaim{Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailSOL, Mode: rfq.Modular, Quote: quote, Wallet: market.Address{5}, Proven: true}
		if why := r.do(claim); why == 0 {
			r.Error("a quote from before SOL has halved is taken")
		}
	})
}
