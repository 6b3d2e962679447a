package desk

import "blockdesk/market"

// AssetPrice is the dollar price of an asset that has a rule of sources, for documents and
// metrics.
type AssetPrice struct {
	Asset       string          // symbol
	Price       market.USDPrice // 0 = none
	Confidence  market.USDPrice // half the width of the interval around Price; 0 = unknown
	Source      string          // pyth, pool or operator; empty = no price
	PublishedAt int64           // of Price, Unix nanoseconds
	Fault       string          // why there is no price; empty = there is one
	MaxAge      int64           // of every source, ns
	Sources     []PriceSource   // in the order of preference
}

// PriceSource is one source of an AssetPrice.
type PriceSource struct {
	Name        string
	Price       market.USDPrice // last read; 0 = none
	PublishedAt int64           // Unix nanoseconds
	Fault       string          // why it is not used; empty = it is usable
}
