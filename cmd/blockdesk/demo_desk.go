package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"blockdesk/service/config"
)

const (
	// demoPriceEvery is how often the demo's operator says the prices again, so
	// that they do not grow too old.
	demoPriceEvery = 10 * time.Minute
	// demoInventory is how much of each pair's base asset the demo sells.
	demoInventory = "50000000"
	demoSOLPrice  = "150"
)

// demoPrices are the anchors of the demo's pairs in USD: where its books' prices
// begin.
var demoPrices = map[string]string{"SLUSD/USDC": "0.999", "92C/SLUSD": "0.34965"}

// fillDemo gives a demo what its configuration leaves open, so that quotes work
// at once, and claims where its chain runs. It replaces nothing but placeholders.
func fillDemo(c *config.Config) {
	if !c.Demo {
		return
	}
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&c.RFQ.PayTo.USDC, demoAddress(demoTreasury))
	fill(&c.RFQ.PayTo.SOL, demoAddress(demoTill))
	fill(&c.RFQ.SOLPriceUSD, demoSOLPrice)
	if c.Settle.SignerSocket == "" {
		fill(&c.Settle.KeyFile, demoKeyFile(chainDir(c), demoDesk))
	}
	if c.RFQ.USDCMint == config.PlaceholderUSDC {
		c.RFQ.USDCMint = demoAddress(demoMintUSDC)
	}
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		if name := demoPairMints[p.BaseMint]; name != "" {
			p.BaseMint = demoAddress(name)
		}
		if price, ok := demoPrices[p.Symbol]; ok {
			fill(&p.ReferencePriceUSD, price)
			fill(&p.Inventory, demoInventory)
		}
	}
}

// demoTickets are posted when the desk has none.
var demoTickets = []struct {
	ticketPost
	lives time.Duration // 0 = for ever
}{
	{ticketPost{Pair: "SLUSD/USDC", Label: "Demo block A", Tranches: []string{"2500000", "1000000", "250000"}}, 0},
	{ticketPost{Pair: "SLUSD/USDC", Label: "Demo block B, USDC only", Tranches: []string{"250000", "100000"}, Rails: []string{"USDC"}}, 30 * 24 * time.Hour},
	{ticketPost{Pair: "92C/SLUSD", Label: "Demo 92C block", Tranches: []string{"1000000", "250000"}}, 0},
	{ticketPost{Pair: "SLUSD/USDC", Label: "Demo priority block", Tranches: []string{"500000", "25000"}, Priority: ptr(10)}, 0},
}

// demoQuote asks for a piece of the first of them.
const demoQuote = `{"order_id":"T1","tranche_id":"T1-1","fill_usd":"1000","rail":"USDC"}`

// demoClaim claims one for the demo's first wallet.
func demoClaim() string {
	return fmt.Sprintf(`{"bot_wallet":"%s","order_id":"T1","tranche_id":"T1-1","fill_usd":"1000"}`, demoAddress(fmt.Sprintf(demoWallet, 1)))
}

func ptr[T any](v T) *T { return &v }

// runDemoDesk is the demo's operator: it posts tickets where there are none, and
// says the prices now and then, by the same requests over the admin address as
// any operator.
func runDemoDesk(ctx context.Context, admin, token string, pairs []config.PairSetup, logger *slog.Logger) error {
	c := &operatorClient{admin: admin, token: token, from: "the demo", http: &http.Client{Timeout: operatorTimeout}}
	defer c.http.CloseIdleConnections()
	tick := time.NewTicker(demoPriceEvery)
	defer tick.Stop()
	posted := false
	for {
		err := c.demoPrice(ctx)
		if err == nil && !posted {
			err = c.demoPost(ctx, pairs)
			posted = err == nil
		}
		if err != nil && ctx.Err() == nil {
			logger.Warn("the demo's operator is refused", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// demoPrice says every price again that there is.
func (c *operatorClient) demoPrice(ctx context.Context) error {
	var have pricesAnswer
	if err := c.get(ctx, "/desk/prices", &have); err != nil {
		return err
	}
	for _, p := range have.Prices {
		if p.PriceUSD == "" {
			continue
		}
		if _, err := c.do(ctx, "/desk/prices", priceChange{Pair: p.Pair, Rail: p.Rail, PriceUSD: p.PriceUSD}); err != nil {
			return fmt.Errorf("price of %s%s: %w", p.Pair, p.Rail, err)
		}
	}
	return nil
}

// demoPost posts the tickets.
func (c *operatorClient) demoPost(ctx context.Context, pairs []config.PairSetup) error {
	var have ticketsAnswer
	if err := c.get(ctx, "/desk/tickets", &have); err != nil || len(have.Tickets) > 0 {
		return err
	}
	sold := map[string]bool{}
	for i := range pairs {
		sold[pairs[i].Symbol] = true
	}
	for i := range demoTickets {
		t := demoTickets[i].ticketPost
		if !sold[t.Pair] {
			continue
		}
		if lives := demoTickets[i].lives; lives > 0 {
			t.ExpiresAt = time.Now().Add(lives).UTC().Format(time.RFC3339)
		}
		if _, err := c.do(ctx, "/desk/tickets", &t); err != nil {
			return fmt.Errorf("ticket %s: %w", t.Label, err)
		}
	}
	return nil
}
