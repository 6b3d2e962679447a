package rfq

import (
	"blockdesk/catalog"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Fixed words (docs/specification.md 1.9 and 9).
const (
	Version = "1.0.0"

	truthRule = "read the book from the public mirror, optionally confirm on the registry backend, " +
		"then submit the payment signature on the native surface (priority) rather than the fallback"
)

// Paths that documents print.
const (
	PathRFQ        = "/api/v1/rfq/"
	pathNative     = "/rfq-native/"
	PathTickets    = PathRFQ + "market-tickets"
	PathSellable   = PathRFQ + "current-sellable-ticket"
	PathCompact    = PathRFQ + "market-tickets.compact"
	pathLevels     = PathRFQ + "levels"
	PathPairs      = PathRFQ + "pairs"
	pathRails      = PathRFQ + "rails"
	pathManifest   = PathRFQ + "robot-manifest"
	PathStatus     = PathRFQ + "status"
	PathTokens     = PathRFQ + "tokens"
	pathDiscovery  = "/.well-known/svc-rfq.json"
	PathBoard      = "/api/v1/exchange/board"
	PathDeskStatus = "/api/v1/dvp/status"

	pathNativeTickets  = pathNative + "market-tickets.json"
	pathNativeSellable = pathNative + "current-sellable-ticket.json"
	PathNativeModular  = pathNative + "modular-claim-take"
	PathNativeAtomic   = pathNative + "atomic-claim-ticket"
	PathNativeVerify   = pathNative + "settlement/verify-payment"
	PathModular        = PathRFQ + "modular-claim-take"
	PathAtomic         = PathRFQ + "atomic-claim-ticket"
	PathAliasVerify    = PathRFQ + "native/settlement/verify-payment"
	PathFallbackVerify = PathRFQ + "settlement/verify-payment"
)

// statusDocument is GET /api/v1/rfq/status.
type statusDocument struct {
	OK          bool            `json:"ok"`
	Version     string          `json:"version"`
	APIVersion  string          `json:"api_version"`
	Seq         uint64          `json:"seq"`
	TS          wire.Time       `json:"ts"`
	UpdatedAt   wire.Time       `json:"updated_at"` // the book's last change
	Refresh     int64           `json:"refresh_s"`
	Accepting   bool            `json:"accepting"` // a claim of the smallest fill would be reserved now
	WhyNot      *string         `json:"accepting_reason"`
	Tickets     ticketCounts    `json:"tickets"`
	Volumes     ticketVolumes   `json:"open_tickets"`
	Sellable    *string         `json:"current_sellable_ticket"`
	Active      wire.Rails      `json:"active_rails"`
	Priority    wire.Rails      `json:"rail_priority"`
	Fills       []string        `json:"partial_fill_sizes_usd"`
	Locks       []lockJSON      `json:"locks"`
	Prices      []priceJSON     `json:"prices"`
	Chain       chainJSON       `json:"chain"`
	Surfaces    surfacesJSON    `json:"surfaces"`
	Recommended recommendedJSON `json:"recommended"`
	TruthRule   string          `json:"truth_rule"`
	Network     string          `json:"execution_network"`
	ChainID     int             `json:"control_chain_id"`
	ChainRole   string          `json:"control_chain_role"`
	ChainRPC    bool            `json:"control_chain_rpc_compatible"`
}

type ticketCounts struct {
	Total     int `json:"total"`
	Open      int `json:"open"`
	Exhausted int `json:"exhausted"`
	Withdrawn int `json:"withdrawn"`
	Expired   int `json:"expired"`
}

// ticketVolumes sums the tranches of the open tickets.
type ticketVolumes struct {
	Tranches  int      `json:"tranches"`
	Capacity  wire.USD `json:"capacity_usd"`
	Available wire.USD `json:"available_usd"`
	Reserved  wire.USD `json:"reserved_usd"`
	Filled    wire.USD `json:"filled_usd"`
}

// chainJSON reports whether claims can be settled now.
type chainJSON struct {
	Available bool    `json:"available"`
	Reason    *string `json:"reason"`
	Network   string  `json:"execution_network"`
}

type surfacesJSON struct {
	Mirror   surfaceJSON `json:"public_mirror"`
	Registry surfaceJSON `json:"registry_backend"`
	Native   surfaceJSON `json:"native_backend"`
	Frontend surfaceJSON `json:"public_frontend"`
}

type surfaceJSON struct {
	Role    string `json:"role"`
	BaseURL string `json:"base_url"`
}

// recommendedJSON is the truth rule as URLs.
type recommendedJSON struct {
	Read    adviceJSON `json:"read"`
	Confirm adviceJSON `json:"confirm"`
	Claim   adviceJSON `json:"claim"`
	Submit  adviceJSON `json:"submit"`
}

type adviceJSON struct {
	Surface string `json:"surface"`
	Method  string `json:"method"`
	URL     string `json:"url"`
}

func (p *pages) status(e *snapshot) statusDocument {
	v, urls := e.view, p.urls
	d := statusDocument{
		OK: true, Version: Version, APIVersion: catalog.APIVersion, Seq: v.Seq, TS: wire.Time(e.ts),
		UpdatedAt: p.updatedAt(v), Refresh: wholeSeconds(Refresh),
		Active: activeRails(v), Priority: wire.Rails(market.AllRails), Fills: fillSizes(),
		Locks: locksOf(e), Prices: priceList(e, p.prices), Chain: e.chainJSON(), Surfaces: surfacesOf(&urls),
		Recommended: recommendedJSON{
			Read:    adviceJSON{"public_mirror", "GET", urls.Mirror + PathTickets},
			Confirm: adviceJSON{"registry_backend", "GET", urls.API + PathTickets},
			Claim:   adviceJSON{"native_backend", "POST", urls.Native + PathNativeModular},
			Submit:  adviceJSON{"native_backend", "POST", urls.Native + PathNativeVerify},
		},
		TruthRule: truthRule, Network: e.network, ChainID: catalog.ControlChainID, ChainRole: catalog.ControlChainRole,
	}
	d.Accepting, d.WhyNot = e.accepting()
	if e.sellable != nil {
		d.Sellable = wire.NullIfEmpty(string(market.AppendTicketID(nil, e.sellable.ID)))
	}
	d.Tickets.Total = len(v.Tickets)
	for _, t := range v.Tickets {
		switch t.State {
		case rfq.TicketOpen:
			d.Tickets.Open++
			d.Volumes.add(t)
		case rfq.TicketExhausted:
			d.Tickets.Exhausted++
		case rfq.TicketWithdrawn:
			d.Tickets.Withdrawn++
		case rfq.TicketExpired:
			d.Tickets.Expired++
		}
	}
	return d
}

func (s *ticketVolumes) add(t *rfq.Ticket) {
	for i := range t.Tranches {
		tranche := &t.Tranches[i]
		s.Tranches++
		s.Capacity += wire.USD(tranche.Capacity)
		s.Available += wire.USD(tranche.Available())
		s.Reserved += wire.USD(tranche.Reserved)
		s.Filled += wire.USD(tranche.Filled)
	}
}

// accepting reports whether a claim of the smallest fill would be reserved now, or why not.
func (e *snapshot) accepting() (ok bool, whyNot *string) {
	switch {
	case e.chain != chainReady:
		return false, wire.NullIfEmpty(chainWords[e.chain])
	case e.sellable == nil:
		return false, wire.NullIfEmpty(e.whyNot)
	}
	return true, nil
}

// updatedAt returns the time of the book's last change, or of the service's start if that
// is later, because a restart may change the URLs.
func (p *pages) updatedAt(v *rfq.View) wire.Time { return wire.Time(max(v.At, p.startedAt)) }

// chainState says whether claims can be settled.
type chainState uint8

const (
	chainReady chainState = iota
	chainAbsent
	chainNotReady
)

var chainWords = [...]string{chainAbsent: "not_configured", chainNotReady: "not_ready"}

func (p *pages) chainState() chainState {
	switch {
	case p.chain == nil:
		return chainAbsent
	case p.chain.Ready() != nil:
		return chainNotReady
	}
	return chainReady
}

func (e *snapshot) chainJSON() chainJSON {
	return chainJSON{Available: e.chain == chainReady, Reason: wire.NullIfEmpty(chainWords[e.chain]), Network: e.network}
}

// surfacesOf returns the surfaces with their roles (docs/specification.md 1.8).
func surfacesOf(urls *catalog.URLs) surfacesJSON {
	return surfacesJSON{
		Mirror: surfaceJSON{
			"canonical public market source: reads of the RFQ book", urls.Mirror,
		},
		Registry: surfaceJSON{
			"historical DEX execution surface: confirmation of the book; fallback for signature submission", urls.API,
		},
		Native: surfaceJSON{
			"control chain runtime proxy, id 1492: prioritized claim construction and signature submission", urls.Native,
		},
		Frontend: surfaceJSON{
			"human surface plus proxy of the market API", urls.Base,
		},
	}
}

func (p *pages) deskStatus(e *snapshot) deskDocument {
	policy := &e.view.Policy
	d := deskDocument{
		OK: true, Seq: e.view.Seq, TS: wire.Time(e.ts), Locks: locksOf(e),
		Policy: policyJSON{
			Rounding: "price up, base amount down, payment up",
			FeeBps:   policy.FeeBps, FeeIn: true,
			QuoteTTL: wholeSeconds(policy.QuoteTTL), ClaimTTL: wholeSeconds(policy.ClaimTTL), Grace: wholeSeconds(policy.Grace),
			Unproven: unprovenJSON{
				TTL: wholeSeconds(min(policy.ClaimTTL, policy.UnprovenTTL)), PerClient: wire.USD(policy.UnprovenPerClient), Share: policy.UnprovenShareBps,
			},
			Dust: railAmounts{dustOf(policy, market.RailUSDC), dustOf(policy, market.RailSOL)}, Pairs: []pricePolicyJSON{},
		},
		Prices:    priceList(e, p.prices),
		Corridor:  []corridorJSON{},
		Inventory: inventoryTotals{Pairs: []inventoryJSON{}},
		Chain:     p.chainHealth(e),
	}
	for i := range e.pairs {
		n := &e.pairs[i]
		d.Policy.Pairs = append(d.Policy.Pairs, p.pricePolicy(e, n))
		for f := market.FillUSD(1); f <= market.FillCount; f++ {
			row := corridorJSON{Pair: n.in.Symbol, Fill: f.String(), Discount: policy.Discounts[f-1]}
			if n.max != 0 {
				row.Min, row.Max = wire.Price(policy.Price(n.min, f)), wire.Price(policy.Price(n.max, f))
			}
			d.Corridor = append(d.Corridor, row)
		}
		units := func(atoms uint64) wire.Units { return wire.Units{N: atoms, Decimals: n.BaseDecimals} }
		row := inventoryJSON{
			Pair: n.in.Symbol, Symbol: n.in.Base, Mint: wire.Address(n.BaseMint), Total: units(n.Inventory),
			Free: units(n.Free()), Reserved: units(n.Reserved), Sold: units(n.Sold),
		}
		if n.OnChainAt != 0 {
			held := units(n.OnChain)
			row.OnChain, row.OnChainAt = &held, wire.Time(n.OnChainAt)
		}
		d.Inventory.Pairs = append(d.Inventory.Pairs, row)
	}
	return d
}

// chainHealth returns the state of the chain and its nodes.
func (p *pages) chainHealth(e *snapshot) deskChainJSON {
	d := deskChainJSON{chainJSON: e.chainJSON(), Nodes: []nodeJSON{}}
	if p.health == nil {
		return d
	}
	h := p.health()
	d.Desk, d.Tracked, d.Slot = wire.Address(h.Desk), h.Tracked, wire.NullIfZero(h.Slot)
	if h.BlockhashAge > 0 {
		ms := h.BlockhashAge.Milliseconds()
		d.BlockhashAge = &ms
	}
	for _, n := range h.Nodes {
		one := nodeJSON{Name: n.Name, Available: n.Available, Slot: wire.NullIfZero(n.Slot)}
		if one.Slot != nil {
			one.Lag = &n.Lag
		}
		d.Nodes = append(d.Nodes, one)
	}
	return d
}
