package wire

import "bytes"

// Content returns a hash of all fields that the gateway reads, except ClOrdID: texts by
// their bytes, numbers by their values. Requests with different content have different ones.
// It is stored with the answer; never 0.
func (r *OrderRequest) Content(msgType byte) uint64 {
	h := content(0).add([]byte{msgType})
	for _, value := range [...][]byte{
		r.OrigClOrdID, r.OrderID, r.Symbol, r.Side, number(r.qty), number(r.maxFloor), number(r.minQty), r.OrdType,
		number(r.price), number(r.stop), r.tif, r.expireDate, r.expireTime, r.execInst, r.MassType, r.quoteID, r.Account,
	} {
		h = h.add(value)
	}
	if r.selfTrade != nil { // without it the hash is that of an older version
		h = h.add(r.selfTrade)
	}
	if r.onDisconnect != nil {
		h = h.add([]byte("8013=")).add(r.onDisconnect)
	}
	if r.massSession != nil {
		h = h.add([]byte("5620=")).add(r.massSession)
	}
	return h.sum()
}

// number returns a decimal without the zeros that do not change its value: 007.500 is 7.5.
func number(text []byte) []byte {
	if bytes.IndexByte(text, '.') >= 0 {
		text = bytes.TrimRight(bytes.TrimRight(text, "0"), ".")
	}
	return bytes.TrimLeft(text, "0")
}

// content is an FNV-1a hash of values.
type content uint64

func (h content) add(value []byte) content {
	const offset, prime = 14695981039346656037, 1099511628211
	if h == 0 {
		h = offset
	}
	for _, c := range value {
		h = (h ^ content(c)) * prime
	}
	return (h ^ SOH) * prime
}

func (h content) sum() uint64 { return max(1, uint64(h)) }
