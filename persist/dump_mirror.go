package persist

import (
	"strconv"

	"blockdesk/engine"
	"blockdesk/market"
)

// appendRefresh writes a refresh of a mirrored book as JSON, its levels best first as
// [ticks, lots]. Bytes that are not a refresh are written in hex.
func appendRefresh(dst, data []byte) []byte {
	b, err := engine.DecodeMirrorBook(data)
	if err != nil {
		return appendHex(dst, data)
	}
	dst = append(dst, `{"instrument":`...)
	dst = strconv.AppendUint(dst, uint64(b.Instrument), 10)
	dst = append(dst, `,"slot":`...)
	dst = strconv.AppendUint(dst, b.Slot, 10)
	dst = appendLevels(append(dst, `,"bids":`...), b.Bids)
	dst = appendLevels(append(dst, `,"asks":`...), b.Asks)
	return append(dst, '}')
}

func appendLevels(dst []byte, levels []market.Level) []byte {
	dst = append(dst, '[')
	for i, l := range levels {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, '['), int64(l.Price), 10)
		dst = strconv.AppendInt(append(dst, ','), int64(l.Qty), 10)
		dst = append(dst, ']')
	}
	return append(dst, ']')
}
