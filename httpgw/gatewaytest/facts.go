package gatewaytest

import (
	"blockdesk/catalog"
	"blockdesk/feed/archive"
	"blockdesk/market"
)

// Facts returns facts of the pairs of NewBooks, one of them with a pool.
func Facts() *catalog.Facts {
	one := market.USDPrice(1_000_000_000)
	return &catalog.Facts{
		At:      catalog.Time(1_795_262_400_000_000_000),
		Service: catalog.Service{Name: "blockdesk", Operator: `a "desk"`, Market: "test <&> market", FeeBps: 500, Network: catalog.ExecutionNetwork},
		URLs:    catalog.URLs{Base: "http://base", API: "http://api", WS: "ws://ws", Mirror: "http://base", Native: "http://base"},
		Tokens: []catalog.Token{
			{Mint: "SLUSDmint1111111111111111111111111111111111", Symbol: "SLUSD", Name: "SLUSD", Decimals: 6, Role: catalog.RoleBase},
			{Symbol: "92C", Name: "92C", Decimals: 6, Role: catalog.RoleBase},
			{Symbol: "USDC", Name: "USD Coin", Decimals: 6, Role: catalog.RoleSettlement},
		},
		Pairs: []catalog.Pair{
			{
				Symbol: "SLUSD/USDC", Base: "SLUSD", Quote: "USDC", Source: market.Matched, PriceUSD: one, PriceSource: catalog.FromBook,
				Epoch: 7, Defined: &archive.Definition{Seq: 2, At: 1_795_000_000_500_000_000}, Pool: &catalog.Pool{Address: Pool, Layout: "vault_pair", BaseDecimals: 6, QuoteDecimals: 6, Slot: 1},
			},
			{Symbol: "92C/SLUSD", Base: "92C", Quote: "SLUSD", Source: market.Mirrored, PriceSource: catalog.NoPrice},
		},
	}
}

// Pool is the address of the only pool of Facts.
const Pool = "Poo1111111111111111111111111111111111111111"
