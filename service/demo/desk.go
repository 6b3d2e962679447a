package demo

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"blockdesk/service/config"
	"blockdesk/service/operator"
)

const (
	// priceEvery is the time between two settings of the prices, so that they do not go
	// stale.
	priceEvery = 10 * time.Minute
	// inventory of each pair's base asset.
	inventory = "50000000"
	solPrice  = "150"
	// snapshotEvery is the number of commands between snapshots: a demo of half an hour
	// makes some, and its restart is quick.
	snapshotEvery = 50_000
)

// prices are the anchors of the demo's pairs in USD, near the first prices of the books.
var prices = map[string]string{"SLUSD/USDC": "0.999", "92C/SLUSD": "0.34965"}

// Fill sets the empty values and placeholders of a demo's configuration, so that quotes work
// at once, and claims if its chain runs. It does not change another configuration.
func Fill(c *config.Config) {
	if !c.Demo {
		return
	}
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&c.RFQ.PayTo.USDC, Address(Treasury))
	fill(&c.RFQ.PayTo.SOL, Address(TreasurySOL))
	fill(&c.RFQ.SOLPriceUSD, solPrice)
	if c.Settle.SignerSocket == "" {
		fill(&c.Settle.KeyFile, KeyFile(ChainDir(c), Desk))
	}
	if c.Journal.SnapshotEvery == config.DefaultSnapshotEvery {
		c.Journal.SnapshotEvery = snapshotEvery
	}
	addPoolInstrument(c)
	if c.RFQ.USDCMint == config.PlaceholderUSDC {
		c.RFQ.USDCMint = Address(MintUSDC)
	}
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		if name := pairMints[p.BaseMint]; name != "" {
			p.BaseMint = Address(name)
		}
		if price, ok := prices[p.Symbol]; ok {
			fill(&p.ReferencePriceUSD, price)
			fill(&p.Inventory, inventory)
		}
	}
}

// Tickets is the number of tickets that the demo posts if all its pairs are sold.
const Tickets = 4

var tickets = [Tickets]struct {
	operator.TicketPost
	life time.Duration // 0: does not expire
}{
	{operator.TicketPost{Pair: "SLUSD/USDC", Label: "Demo block A", Tranches: []string{"2500000", "1000000", "250000"}}, 0},
	{operator.TicketPost{Pair: "SLUSD/USDC", Label: "Demo block B, USDC only", Tranches: []string{"250000", "100000"}, Rails: []string{"USDC"}}, 30 * 24 * time.Hour},
	{operator.TicketPost{Pair: "92C/SLUSD", Label: "Demo 92C block", Tranches: []string{"1000000", "250000"}}, 0},
	{operator.TicketPost{Pair: "SLUSD/USDC", Label: "Demo priority block", Tranches: []string{"500000", "25000"}, Priority: ptr(10)}, 0},
}

// Quote is the body of a quote request for part of the first ticket.
const Quote = `{"order_id":"T1","tranche_id":"T1-1","fill_usd":"1000","rail":"USDC"}`

func ptr[T any](v T) *T { return &v }

// Operate is the demo's operator until ctx ends: it posts tickets if there are none and
// repeats the prices, with requests to the admin address. Refused requests are logged.
func Operate(ctx context.Context, admin, token string, pairs []config.PairSetup, logger *slog.Logger) error {
	c := &operator.Client{URL: admin, Token: token, TokenSource: "the demo", HTTP: &http.Client{Timeout: operator.Timeout}}
	defer c.HTTP.CloseIdleConnections()
	tick := time.NewTicker(priceEvery)
	defer tick.Stop()
	posted := false
	for {
		err := renewPrices(ctx, c)
		if err == nil && !posted {
			err = postTickets(ctx, c, pairs)
			posted = err == nil
		}
		if err != nil && ctx.Err() == nil {
			logger.Warn("demo operator: request refused", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// renewPrices sets every known price again.
func renewPrices(ctx context.Context, c *operator.Client) error {
	var have operator.PricesAnswer
	if err := c.Get(ctx, "/desk/prices", &have); err != nil {
		return err
	}
	for _, p := range have.Prices {
		if p.PriceUSD == "" || len(p.Sources) > 0 {
			continue // those with sources renew themselves
		}
		if _, err := c.Do(ctx, "/desk/prices", operator.PriceChange{Pair: p.Pair, Rail: p.Rail, PriceUSD: p.PriceUSD}); err != nil {
			return fmt.Errorf("price of %s%s: %w", p.Pair, p.Rail, err)
		}
	}
	return nil
}

// postTickets posts the demo's tickets if the desk has none.
func postTickets(ctx context.Context, c *operator.Client, pairs []config.PairSetup) error {
	var have operator.TicketsAnswer
	if err := c.Get(ctx, "/desk/tickets", &have); err != nil || len(have.Tickets) > 0 {
		return err
	}
	sold := map[string]bool{}
	for i := range pairs {
		sold[pairs[i].Symbol] = true
	}
	for i := range tickets {
		t := tickets[i].TicketPost
		if !sold[t.Pair] {
			continue
		}
		if life := tickets[i].life; life > 0 {
			t.ExpiresAt = time.Now().Add(life).UTC().Format(time.RFC3339)
		}
		if _, err := c.Do(ctx, "/desk/tickets", &t); err != nil {
			return fmt.Errorf("ticket %s: %w", t.Label, err)
		}
	}
	return nil
}
