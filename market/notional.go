package market

// A notional is price × quantity, or a sum of such products. The engine, the
// gateways and the views keep it as ticks × lots in a Uint128: Mul(price, qty),
// summed by Uint128.Add. It becomes text here, once, exactly.

// NotionalDecimals is the number of fractional digits of a notional as text:
// PriceDecimals + QtyDecimals, at most MaxWideDecimals.
func (in *Instrument) NotionalDecimals() int {
	return int(in.PriceDecimals) + int(in.QtyDecimals)
}

// AppendTickLots appends n, in ticks × lots, as a decimal amount of the quote
// asset with NotionalDecimals fractional digits. It is exact for every n: the
// product with Tick and Lot is held in 256 bits.
func (in *Instrument) AppendTickLots(dst []byte, n Uint128) []byte {
	w, _ := wide{n.Lo, n.Hi}.times(in.Tick) // 192 bits
	w, _ = w.times(in.Lot)                  // 256 bits
	return w.appendDecimal(dst, in.NotionalDecimals())
}

// ParseTickLotsFloor reads a decimal amount of the quote asset, such as a limit,
// as ticks × lots rounded towards zero: a product passes the result exactly when
// it passes the amount. Errors: those of ParseUint128, and ErrZero for less than
// one tick × lot.
func (in *Instrument) ParseTickLotsFloor(text []byte) (Uint128, error) {
	n, err := ParseUint128(text, in.NotionalDecimals())
	if err != nil {
		return Uint128{}, err
	}
	n, _ = n.quoRem(in.Tick)
	n, _ = n.quoRem(in.Lot)
	if n == (Uint128{}) {
		return Uint128{}, ErrZero
	}
	return n, nil
}
