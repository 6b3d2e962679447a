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

// MidPrice returns (bid + ask) ÷ 2 in 10^-9 quote units, rounded up; 0 past the
// largest price.
func (in *Instrument) MidPrice(bid, ask Price) USDPrice {
	sum := Mul(uint64(bid+ask), in.Tick) // of 10^-PriceDecimals
	shift := int(in.PriceDecimals) - USDPriceDecimals
	var n uint64
	var err error
	switch {
	case shift >= 0:
		n, err = sum.DivCeil(2 * Pow10(shift))
	case sum.Hi != 0:
		return 0
	default:
		n, err = MulDivCeil(sum.Lo, Pow10(-shift), 2)
	}
	if err != nil || n > uint64(MaxUSDPrice) {
		return 0
	}
	return USDPrice(n)
}
