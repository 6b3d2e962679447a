package service

import (
	"blockdesk/engine/marketdata"
	"blockdesk/feed/archive"
	marketapi "blockdesk/httpgw/market"
	"blockdesk/market"
)

// replicaHistory is the archive of a follower. It begins where the follower has joined;
// the leader answers requests that reach further back.
type replicaHistory struct{ *archive.Archive }

// Trades returns marketapi.ErrAtLeader if older ones may be missing.
func (h replicaHistory) Trades(in market.InstrumentID, before market.TradeID, limit int) ([]marketdata.Trade, error) {
	trades, err := h.Archive.Trades(in, before, limit)
	return trades, h.complete(len(trades), limit, err)
}

// Candles returns marketapi.ErrAtLeader if older ones may be missing.
func (h replicaHistory) Candles(in market.InstrumentID, i archive.Interval, before int64, limit int) ([]archive.Candle, error) {
	candles, err := h.Archive.Candles(in, i, before, limit)
	return candles, h.complete(len(candles), limit, err)
}

func (h replicaHistory) complete(have, limit int, err error) error {
	if err == nil && have < limit && h.CompleteSince() != 0 {
		return marketapi.ErrLeaderOnly
	}
	return err
}
