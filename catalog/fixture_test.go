package catalog

import (
	"time"

	"blockdesk/market"
)

func at(text string) Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return Time(t.UnixNano())
}

func decimal(text string, decimals int) Decimal {
	n, err := market.ParseDecimal([]byte(text), decimals)
	if err != nil {
		panic(err)
	}
	return Decimal{Units: market.Uint128{Lo: n}, Decimals: decimals}
}

func pointer[T any](v T) *T { return &v }

// bare are the facts of a service without a chain, before its first trade.
func bare() *Facts {
	pair := func(symbol, base, quote string) Pair {
		return Pair{
			Symbol: symbol, Base: base, Quote: quote, Source: market.Matched, PriceDecimals: 6, QtyDecimals: 6,
			Tick: decimal("0.000001", 6), Lot: decimal("0.000001", 6), MinQty: decimal("0.01", 6),
			PriceSource: NoPrice, Epoch: 1,
			Windows: Windows{Day: Window{Status: WindowNoTrades}, Week: Window{Status: WindowNoTrades}},
		}
	}
	return &Facts{
		At: at("2026-11-20T12:00:00Z"),
		Service: Service{
			Name: "blockdesk", Operator: "Example Desk", Market: "SLUSD market (demo)", Website: "https://desk.example",
			FeeBps: 500, Network: "solana-mainnet-beta",
			ConfiguredAt: at("2026-11-19T08:00:00Z"),
			Limits:       Limits{Market: 60, MarketBurst: 20, Partner: 300, PartnerBurst: 60},
			Build:        Build{Version: "1.2.3", SourceCommit: "0123456789abcdef0123456789abcdef01234567"},
		},
		URLs: URLs{
			Base: "http://127.0.0.1:8080", API: "http://127.0.0.1:8000", WS: "ws://127.0.0.1:8081",
			Mirror: "http://127.0.0.1:8080", Native: "http://127.0.0.1:8080",
		},
		Tokens: []Token{
			{Mint: "DUw5U71V3NiRQgmTaZrxqQsn7qkvVR3wSN4iJ4PY8ESN", Symbol: "SLUSD", OnchainSymbol: "SLUSDc", Name: "Staked Dollar", Decimals: 6, Role: RoleBase},
			{Mint: "A2qZvQ5dfYP6TFecjFkqJ1i9n5EnS3hFfSiZYWFHXzge", Symbol: "92C", Name: "Ninety-two C", Decimals: 6, Role: RoleBase, LogoURI: "https://desk.example/92c.svg"},
			{Mint: "8LNcMh2TqrE6yUJWMZnR2mKcymu6XYU9mYxY1LVC15Zk", Symbol: "USDC", Name: "USD Coin", Decimals: 6, Role: RoleSettlement},
		},
		Pairs: []Pair{pair("SLUSD/USDC", "SLUSD", "USDC"), pair("92C/SLUSD", "92C", "SLUSD")},
	}
}

// live are the facts of a service that has traded and reads a chain.
func live() *Facts {
	f := bare()
	f.Service.ProgramID = "CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C"
	f.Service.Build.ExecutableHash = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	p := &f.Pairs[0]
	p.Last, p.LastQty = pointer(decimal("0.999", 6)), pointer(decimal("12.5", 6))
	p.Bid, p.Ask = pointer(decimal("0.998", 6)), pointer(decimal("1", 6))
	p.LastAt, p.LastTrade, p.Side = at("2026-11-20T11:59:30Z"), 4242, market.Sell
	p.BaseVolume24h, p.QuoteVolume24h, p.Trades24h = decimal("1000", 6), decimal("999", 6), 42
	p.Seq = 7
	p.PriceUSD, p.PriceSource, p.Floor = 999_000_001, FromBook, 900_000_000
	p.VisibleUSD, p.GuaranteeUSD = 5_000_000_000, 1_234_567_890_000
	p.Candle = &Candle{
		Open: at("2026-11-20T11:00:00Z"), O: decimal("0.99", 6), H: decimal("1", 6), L: decimal("0.98", 6),
		C: decimal("0.999", 6), BaseVolume: decimal("10", 6), QuoteVolume: decimal("9.99", 6), Trades: 3,
	}
	p.Pool = &Pool{
		Address: "PooLSLUSDUSDC1111111111111111111111111111111", Program: "CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C", Layout: "raydium_cpmm", BaseMint: "DUw5U71V3NiRQgmTaZrxqQsn7qkvVR3wSN4iJ4PY8ESN", QuoteMint: "8LNcMh2TqrE6yUJWMZnR2mKcymu6XYU9mYxY1LVC15Zk", BaseVault: "VauLtBase11111111111111111111111111111111111",
		QuoteVault: "VauLtQuote1111111111111111111111111111111111", LPMint: "LPmint11111111111111111111111111111111111111", BaseAtoms: 1_500_000_000_000, QuoteAtoms: 1_498_500_000_000,
		BaseDecimals: 6, QuoteDecimals: 6, FeeBps: pointer(uint16(25)), Spot: 999_000_000, Slot: 330_442_322,
		At: at("2026-11-20T11:59:58Z"),
	}
	p.Windows = Windows{
		Day: Window{
			Status: WindowExact, VolumeUSD: 999_000_000, Trades: 42, DeltaPercent: pointer(Percent(-125)),
			ReferenceAt: at("2026-11-19T12:01:00Z"),
		},
		Week: Window{Status: WindowUnproven}, LastAt: at("2026-11-20T11:59:30Z"),
	}
	p.Totals = Totals{
		OnchainSwaps: 100, ReconstructedSwaps: 20, MatchedTrades: 42, MatchedUSD: 999_000_000, OnchainUSD: 10_000_000_000, ReconstructedUSD: 2_000_000_000,
		FeesBase: decimal("3.5", 6), FeesQuote: decimal("4.25", 6), FeesUnknown: decimal("0", 6), FeesUSD: 7_750_000,
		Traders: 9, TradersFrom: "distinct_signers",
		Sales: Sales{Count: 3, DayCount: 1, VolumeUSD: 3_000_000_000, FeesUSD: 150_000_000, DayUSD: 1_000_000_000},
	}
	f.Tokens[0].CoinMarketCapID = pointer(uint64(4242))
	f.Tokens[0].Supply = pointer(market.Amount(10_000_000_000_000))
	f.Tokens[0].Accounts = []Account{
		{Address: "ReserveSLUSD11111111111111111111111111111111", Amount: 1_234_567_890_000, Role: GuaranteeReserve, Label: "guarantee reserve", Slot: 330_442_322},
		{Address: "FeeVauLtSLUSD1111111111111111111111111111111", Amount: 1_500_000, Role: FeeVaultBase, Label: "fees", Pool: "PooLSLUSDUSDC1111111111111111111111111111111", PoolLabel: "SLUSD/USDC"},
	}
	f.Chain = Chain{
		Configured: true, Synced: true, SyncedAt: at("2026-11-20T11:59:58Z"), Slot: 330_442_322, LastSig: "EXAMPLEswapSignature11111111111111111111111111111111111111111111111111111111111111111111",
		Selection: "preferred_primary_with_failover", Primary: "https://rpc.example", Fallbacks: []string{"https://rpc2.example"},
		Active: "https://rpc.example", MaxSlot: 330_442_325, SlotBehind: pointer(uint64(3)), LatencyMS: pointer(int64(80)),
		Providers: []Provider{
			{URL: "https://rpc.example", Available: true, LatestSlot: 330_442_325, LatencyMS: pointer(int64(80)), LastOkAt: at("2026-11-20T11:59:58Z")},
			{URL: "https://rpc2.example", LastError: "timeout"},
		},
	}
	f.Desk = Desk{
		Enabled: true, OpenTickets: 2, CapacityUSD: 1_000_000_000_000, AvailableUSD: 900_000_000_000, ReservedUSD: 1_500_000_000,
		SettledUSD: 3_000_000_000, FeesUSD: 150_000_000, UnderWay: 1, RefundsDue: 2, RefundsUSDC: 250_000_000, RefundsSOL: 1_500_000_000,
		Unmatched: 1, UnmatchedUSDC: 250_000_000,
	}
	f.Snapshots = []Snapshot{
		snapshot("s1", "2026-11-18T00:00:00Z", 80, 8_000_000_000, 400_000_000),
		snapshot("s3", "2026-11-20T00:00:00Z", 120, 12_000_000_000, 600_000_000),
		snapshot("s2", "2026-11-19T00:00:00Z", 100, 10_000_000_000, 1),
	}
	return f
}

func snapshot(key, when string, swaps uint64, volume, fees market.USD) Snapshot {
	return Snapshot{
		Key: key, Label: key, Heading: "State of " + when, At: at(when), Pool: "PooLSLUSDUSDC1111111111111111111111111111111", LPMint: "LPmint11111111111111111111111111111111111111",
		BaseVault: decimal("1500000", 6), QuoteVault: decimal("1498500", 6), TotalBase: decimal("1500001.5", 6),
		TotalQuote: decimal("1498500", 6), UserBase: decimal("1.5", 6), Swaps: swaps, Traders: 9, VolumeUSD: volume,
		FeesUSD: fees, VolumeTokens: decimal("12000", 6), FeesTokens: decimal("600", 6), FeeBps: 500, Price: 999_000_000,
		Source: "recorder", Reference: "slot 330442322",
	}
}
