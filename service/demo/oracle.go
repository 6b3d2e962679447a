package demo

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"blockdesk/internal/repeat"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/pyth"
	"blockdesk/market"
	"blockdesk/service/config"
)

const (
	// oracleEvery is the time between two price updates, as often as Pyth publishes to a
	// sponsored account at most.
	oracleEvery = time.Second
	// oracleLamports keeps a price update account alive.
	oracleLamports = 1_825_020
	// oracleConfidence is the width of the confidence interval, as a divisor of the price.
	oracleConfidence = 2_000
)

// quotedAsset is an asset whose price the demo's oracle publishes.
type quotedAsset struct {
	name string
	home market.USDPrice
	// step is the largest move of a second in 10^-5 of the price; 0: it stands still.
	step int64
}

// quotedAssets move like SOL and like a dollar.
var quotedAssets = []quotedAsset{{config.SolAsset, 150_000_000_000, 40}, {"SLUSD", 999_000_000, 0}}

// feedOf returns the feed of an asset: that of mainnet, or one of the demo's own.
func feedOf(asset string) pyth.Feed {
	if feed, ok := pyth.FeedOf(asset); ok {
		return feed
	}
	return sha256.Sum256([]byte("blockdesk demo price feed: " + asset + "/USD"))
}

// priceRules are the sources of the demo's prices: its own oracle, and behind it the
// operator, whose prices the configuration begins with.
func priceRules(c *config.Config) config.Prices {
	rules := config.Prices{}
	for _, q := range quotedAssets {
		sold := q.name == config.SolAsset
		for i := range c.RFQ.Pairs {
			sold = sold || config.BaseOf(c.RFQ.Pairs[i].Symbol) == q.name
		}
		if sold {
			rule := config.DefaultPriceRule()
			rule.FeedID = feedOf(q.name).String()
			rules[q.name] = rule
		}
	}
	return rules
}

// Oracle publishes price updates on the demo's chain, as Pyth's receiver does on others,
// with prices that move like a market's.
type Oracle struct {
	chain  *sandbox.Node
	prices []market.USDPrice // by quotedAssets
	random *rand.Rand
	log    *slog.Logger
	failed bool
}

// NewOracle makes the oracle of a chain.
func NewOracle(chain *sandbox.Node, log *slog.Logger) *Oracle {
	o := &Oracle{chain: chain, random: rand.New(rand.NewPCG(rand.Uint64(), 0)), log: log}
	for _, q := range quotedAssets {
		o.prices = append(o.prices, q.home)
	}
	return o
}

// Run publishes until ctx ends. A failure is logged once, until it is over.
func (o *Oracle) Run(ctx context.Context) error {
	repeat.Every(ctx, oracleEvery, func(ctx context.Context) {
		err := o.publish(ctx)
		if err != nil && !o.failed && ctx.Err() == nil {
			o.log.Warn("demo oracle: price updates fail", "error", err)
		}
		o.failed = err != nil
		for i := range quotedAssets {
			o.prices[i] = o.moved(i)
		}
	})
	return nil
}

// moved returns the next price of an asset: a random step, and a pull back towards its
// home, which holds it within a few percent.
func (o *Oracle) moved(i int) market.USDPrice {
	q, price := &quotedAssets[i], int64(o.prices[i])
	if q.step == 0 {
		return q.home
	}
	price += price / 100_000 * (o.random.Int64N(2*q.step+1) - q.step)
	return market.USDPrice(price + (int64(q.home)-price)/100)
}

// publish writes the present prices into the accounts of their feeds.
func (o *Oracle) publish(ctx context.Context) error {
	var errs []error
	for i, q := range quotedAssets {
		feed := feedOf(q.name)
		account, err := pyth.AccountOf(feed, 0)
		if err == nil {
			data := pyth.Append(nil, pyth.Update{
				Feed: feed, Price: o.prices[i], Confidence: o.prices[i] / oracleConfidence, PublishedAt: time.Now().Unix(),
			}, solana.PythPushOracleProgram)
			err = o.chain.Call(ctx, "sandbox_setAccount", map[string]any{
				"pubkey": solana.Base58(account), "lamports": oracleLamports, "owner": solana.Base58(solana.PythReceiverProgram),
				"data": base64.StdEncoding.EncodeToString(data),
			}, nil)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
