package httpgw

// SettlementSources are the functions that /metrics asks about settlement, at
// each scrape. They must not block. A nil one leaves its metrics out.
type SettlementSources struct {
	Chain  func() ChainHealth
	Money  func() MoneyCounts
	Tokens func() int // DvP tokens that are good now
	// Counters are what the settlement counts itself.
	Counters []Counter
}

// Counter is a number that only grows while the process runs.
type Counter struct {
	Name  string // snake_case, the prefix blockdesk_settlement_ left out, ends in _total
	Help  string
	Value func() uint64
}
