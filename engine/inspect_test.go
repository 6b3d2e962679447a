package engine

import (
	"blockdesk/market"
)

// Status returns StatusTrading or StatusHalted, or 0 for an undefined instrument.
func (s *State) Status(in market.InstrumentID) uint8 {
	if int(in) >= len(s.instruments) {
		return 0
	}
	return s.instruments[in].status
}

// LastTrade returns the price of an instrument's last trade; 0 = none.
func (s *State) LastTrade(in market.InstrumentID) market.Price {
	if int(in) >= len(s.instruments) {
		return 0
	}
	return s.instruments[in].book.lastTrade()
}
