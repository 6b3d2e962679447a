package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/catalog"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/service/config"
)

const (
	// factsCycle is how long facts stand (description, 1.4).
	factsCycle = 10 * time.Second
)

// factsBook makes the facts that the catalog's documents are made of, when the
// first one asks in a cycle. Nothing on the way of an order comes by here.
type factsBook struct {
	s       *service
	service catalog.Service // all but what the gateway tells
	clock   func() time.Time

	making sync.Mutex
	kept   atomic.Pointer[cycleFacts]
}

// cycleFacts are the facts of one cycle, which begins at a whole multiple of
// factsCycle.
type cycleFacts struct {
	cycle time.Time
	facts *catalog.Facts
}

func newFactsBook(s *service) *factsBook {
	b := &factsBook{s: s, clock: time.Now}
	c := s.cfg
	b.service = catalog.Service{
		Name: "blockdesk", Operator: c.Operator.Name, Market: c.Operator.Market, Website: c.Operator.Website, GitHub: c.Operator.GitHub,
		FeeBps: uint16(c.RFQ.FeeBps), Network: httpgw.ExecutionNetwork, ConfiguredAt: catalog.Time(b.clock().UnixNano()),
		Limits: catalog.Limits{
			Market: c.HTTP.MarketDataPerMinute, MarketBurst: c.HTTP.MarketDataBurst,
			Partner: c.HTTP.PartnerPerMinute, PartnerBurst: c.HTTP.PartnerBurst,
		},
		Build: catalog.Build{Version: version, SourceCommit: sourceCommit()}, ProgramID: programID(c),
	}
	b.service.Build.ExecutableHash = s.program.hash
	return b
}

// sourceCommit is the commit that the program was built from, as the Go tool has
// noted it; empty where it has not, or where the source had changes beside it.
func sourceCommit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			return ""
		}
	}
	return commit
}

// executableHash is that of the file that runs.
func executableHash() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// now returns the facts of the present cycle. Whoever comes while they are made
// gets those of the cycle before, or waits where there are none.
func (b *factsBook) now() *catalog.Facts {
	cycle := b.clock().Truncate(factsCycle)
	kept := b.kept.Load()
	if kept != nil && kept.cycle.Equal(cycle) {
		return kept.facts
	}
	if kept == nil {
		b.making.Lock()
	} else if !b.making.TryLock() {
		return kept.facts
	}
	defer b.making.Unlock()
	if kept = b.kept.Load(); kept != nil && kept.cycle.Equal(cycle) {
		return kept.facts
	}
	fresh := &cycleFacts{cycle, b.make(catalog.Time(b.clock().UnixNano()))}
	b.kept.Store(fresh)
	return fresh.facts
}

func (b *factsBook) make(at catalog.Time) *catalog.Facts {
	urls := b.s.http.URLs()
	f := &catalog.Facts{
		At: at, Service: b.service,
		URLs:   catalog.URLs{Base: urls.Base, API: urls.API, WS: urls.WS, Mirror: urls.Mirror, Native: urls.Native},
		Tokens: factsTokens(b.s.cfg), Chain: b.chain(),
	}
	var desk *rfq.View
	if b.s.cfg.RFQ.Enabled {
		desk = b.s.desk.View()
		f.Desk = b.desk(desk)
	}
	m := &pairFacts{
		instruments: b.s.instruments, views: b.s.feed, history: b.s.history, chain: b.s.mirrorFacts(), desk: desk, at: int64(at),
	}
	m.tell(f)
	return f
}

// factsTokens are the tokens of all instruments and USDC, each once. A token that
// another one is priced in is a quote token, USDC apart.
func factsTokens(c *config.Config) []catalog.Token {
	var all []catalog.Token
	at := map[string]int{}
	add := func(symbol string, role catalog.Role, decimals int) *catalog.Token {
		i, ok := at[symbol]
		if !ok {
			i, at[symbol] = len(all), len(all)
			all = append(all, catalog.Token{Symbol: symbol, Name: symbol, Role: role, Decimals: uint8(decimals)})
		}
		t := &all[i]
		if role == catalog.RoleQuote {
			t.Role = role
		}
		return t
	}
	for i := range c.Instruments {
		base, quote, _ := strings.Cut(c.Instruments[i].Symbol, "/")
		add(base, catalog.RoleBase, c.Instruments[i].QtyDecimals)
		add(quote, catalog.RoleQuote, c.Instruments[i].PriceDecimals)
	}
	usdc := add(config.SettlementToken, catalog.RoleSettlement, market.RailUSDC.Decimals())
	usdc.Role, usdc.Decimals, usdc.Mint = catalog.RoleSettlement, uint8(market.RailUSDC.Decimals()), config.RealMint(c.RFQ.USDCMint)
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		base, _, _ := strings.Cut(p.Symbol, "/")
		t := add(base, catalog.RoleBase, p.BaseDecimals)
		t.Mint, t.Decimals = config.RealMint(p.BaseMint), uint8(p.BaseDecimals)
	}
	for i := range c.Mirror.Pairs {
		p := &c.Mirror.Pairs[i]
		base, quote, _ := strings.Cut(p.Symbol, "/")
		tellMint(&all[at[base]], p.BaseMint, p.BaseDecimals)
		tellMint(&all[at[quote]], p.QuoteMint, p.QuoteDecimals)
	}
	for i := range c.Tokens {
		describeToken(&c.Tokens[i], &all[at[c.Tokens[i].Symbol]])
	}
	return all
}

func describeToken(c *config.Token, t *catalog.Token) {
	if c.Name != "" {
		t.Name = c.Name
	}
	t.OnchainSymbol, t.LogoURI, t.MetadataURI = c.OnchainSymbol, c.LogoURI, c.MetadataURI
	t.ImageURI, t.ImageIPFS, t.ImageGateway = c.ImageURI, c.ImageIPFSURI, c.ImageGatewayURL
	if c.CoinMarketCapID != 0 {
		id := uint64(c.CoinMarketCapID)
		t.CoinMarketCapID = &id
	}
}

// chain is what settlement knows of its nodes, for where no market is read.
func (b *factsBook) chain() catalog.Chain {
	if b.s.settlement.core == nil {
		return catalog.Chain{Selection: "none"}
	}
	nodes := b.s.settlement.core.Health().Nodes
	c := catalog.Chain{Configured: true, Selection: selectionMode}
	for i := range nodes {
		n := &nodes[i]
		p := provider(n)
		if n.Available && n.Slot > 0 && c.Active == "" {
			lag := n.Lag
			c.Active, c.LatencyMS, c.Slot, c.SlotBehind, c.Failover = n.Name, p.LatencyMS, n.Slot, &lag, i > 0
		}
		c.MostSlot, c.SyncedAt = max(c.MostSlot, n.Slot), max(c.SyncedAt, p.LastOkAt)
		addProvider(&c, p)
	}
	c.Synced = c.Active != "" && b.clock().Sub(time.Unix(0, int64(c.SyncedAt))) < 2*factsCycle
	return c
}

// maxRefunds bounds the refunds that are summed up; they are counted beyond it.
const maxRefunds = 10_000

func (b *factsBook) desk(v *rfq.View) catalog.Desk {
	d := catalog.Desk{Enabled: true}
	if v != nil {
		for _, t := range v.Tickets {
			open := t.State == rfq.TicketOpen
			if open {
				d.OpenTickets++
			}
			for i := range t.Tranches {
				tr := &t.Tranches[i]
				d.ReservedUSD += tr.Reserved
				d.SettledUSD += tr.Filled
				if open {
					d.CapacityUSD += tr.Capacity
					d.AvailableUSD += tr.Available()
				}
			}
		}
	}
	if core := b.s.settlement.core; core != nil {
		h := core.Health()
		d.UnderWay, d.RefundsDue = uint64(h.Working), uint64(h.Money.Refunds)
		for _, p := range core.RefundsDue(solana.Signature{}, maxRefunds) {
			if p.Rail == market.RailUSDC {
				d.RefundsUSDC += market.Amount(p.Amount)
			} else {
				d.RefundsSOL += market.Amount(p.Amount)
			}
		}
	}
	return d
}
