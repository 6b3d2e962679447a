package persist

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/market"
)

// object appends members to a JSON object that already has one.
type object struct{ dst []byte }

func (o *object) name(name string) {
	o.dst = append(append(append(o.dst, `,"`...), name...), `":`...)
}

func (o *object) number(name string, v uint64) {
	o.name(name)
	o.dst = strconv.AppendUint(o.dst, v, 10)
}

// present writes a number unless it is 0.
func (o *object) present(name string, v uint64) {
	if v != 0 {
		o.number(name, v)
	}
}

// signed writes a number unless it is 0.
func (o *object) signed(name string, v int64) {
	if v != 0 {
		o.name(name)
		o.dst = strconv.AppendInt(o.dst, v, 10)
	}
}

func (o *object) boolean(name string, v bool) {
	o.name(name)
	o.dst = strconv.AppendBool(o.dst, v)
}

func (o *object) text(name, v string) {
	if v != "" {
		o.name(name)
		o.dst = appendJSONText(o.dst, []byte(v))
	}
}

// word writes the name of a value, or its number if it has none.
func (o *object) word(name string, v uint64, words map[uint64]string) {
	if words[v] == "" {
		o.number(name, v)
		return
	}
	o.text(name, words[v])
}

func (o *object) rail(name string, r market.Rail) {
	if r.Valid() {
		o.text(name, r.String())
	} else {
		o.number(name, uint64(r))
	}
}

// rails writes a set of rails, as a number if it has unknown bits.
func (o *object) rails(name string, set market.Rails) {
	if set&^market.AllRails != 0 {
		o.number(name, uint64(set))
		return
	}
	o.name(name)
	o.dst = append(o.dst, '[')
	for r, more := market.RailUSDC, false; r < market.RailCount; r++ {
		if set.Has(r) {
			if more {
				o.dst = append(o.dst, ',')
			}
			o.dst, more = append(append(append(o.dst, '"'), r.String()...), '"'), true
		}
	}
	o.dst = append(o.dst, ']')
}

func (o *object) fill(f market.FillUSD) {
	if f.Valid() {
		o.text("fill_usd", f.String())
	} else {
		o.number("fill_usd", uint64(f))
	}
}

func (o *object) ticket(id market.TicketID) {
	o.name("order_id")
	o.dst = append(market.AppendTicketID(append(o.dst, '"'), id), '"')
}

func (o *object) tranche(ticket market.TicketID, id market.TrancheID) {
	o.name("tranche_id")
	o.dst = append(market.AppendTrancheID(append(o.dst, '"'), ticket, id), '"')
}

func (o *object) claim(id market.ClaimID) {
	o.name("claim_id")
	o.dst = append(market.AppendClaimID(append(o.dst, '"'), id), '"')
}

func (o *object) decimal(v uint64, decimals int) {
	o.dst = append(market.AppendDecimal(append(o.dst, '"'), v, decimals), '"')
}

func (o *object) usd(name string, v market.USD) {
	o.name(name)
	o.decimal(uint64(v), market.USDDecimals)
}

// price writes a price unless it is 0, which means none.
func (o *object) price(name string, v market.USDPrice) {
	if v != 0 {
		o.name(name)
		o.decimal(uint64(v), market.USDPriceDecimals)
	}
}

func (o *object) atoms(name string, v uint64) {
	o.name(name)
	o.decimal(v, 0)
}

func (o *object) duration(name string, ns int64) {
	if ns != 0 {
		o.text(name, time.Duration(ns).String())
	}
}

func (o *object) time(name string, at int64) {
	if at != 0 {
		o.name(name)
		o.dst = append(time.Unix(0, at).UTC().AppendFormat(append(o.dst, '"'), time.RFC3339Nano), '"')
	}
}

func (o *object) hex(name string, v []byte) {
	o.name(name)
	o.dst = appendHex(o.dst, v)
}

func (o *object) base58(name string, v []byte) { o.text(name, base58.Encode(v)) }

// address writes an address unless it is zero, which means none.
func (o *object) address(name string, a market.Address) {
	if a != (market.Address{}) {
		o.base58(name, a[:])
	}
}

// appendJSONText writes bytes as a JSON string, and every byte outside printable ASCII
// as its code point, so that no id is lost or misread.
func appendJSONText(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, b := range text {
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b < ' ' || b > '~':
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}

func appendHex(dst, v []byte) []byte { return append(hex.AppendEncode(append(dst, '"'), v), '"') }
