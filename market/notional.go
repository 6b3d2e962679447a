package market

// A notional is price × quantity, or a sum of such products, in ticks × lots:
// Mul(price, qty), added with Uint128.Add.

// NotionalDecimals returns the fractional digits of a notional as text: PriceDecimals +
// QtyDecimals, at most MaxWideDecimals.
func (in *Instrument) NotionalDecimals() int { return int(in.PriceDecimals) + int(in.QtyDecimals) }

// AppendTickLots appends a notional as a decimal amount of the quote asset with
// NotionalDecimals fractional digits. It is exact for every n, because the product
// with Tick and Lot is computed in 256 bits.
func (in *Instrument) AppendTickLots(dst []byte, n Uint128) []byte {
	w, _ := wide{n.Lo, n.Hi}.times(in.Tick) // 192 bits
	w, _ = w.times(in.Lot)                  // 256 bits
	return w.appendDecimal(dst, in.NotionalDecimals())
}

// AppendLots appends a sum of quantities as an exact decimal with QtyDecimals fractional
// digits.
func (in *Instrument) AppendLots(dst []byte, n Uint128) []byte {
	w, _ := wide{n.Lo, n.Hi}.times(in.Lot) // 192 bits
	return w.appendDecimal(dst, int(in.QtyDecimals))
}

// ParseTickLotsFloor parses a decimal amount of the quote asset, such as a risk limit,
// into ticks × lots, rounded down. A notional exceeds the result exactly when it
// exceeds the amount. Errors: those of ParseUint128, and ErrZero for less than one
// tick × lot.
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

// MidPrice returns (bid + ask) ÷ 2 in 10^-9 quote units, rounded up. ok is false if that
// needs more than 64 bits; the result may exceed MaxUSDPrice.
func (in *Instrument) MidPrice(bid, ask Price) (mid USDPrice, ok bool) {
	sum := Mul(uint64(bid+ask), in.Tick) // in 10^-PriceDecimals
	shift := int(in.PriceDecimals) - USDPriceDecimals
	if shift >= 0 {
		n, err := sum.DivCeil(2 * Pow10(shift))
		return USDPrice(n), err == nil
	}
	n, err := MulDivCeil(sum.Lo, Pow10(-shift), 2)
	return USDPrice(n), err == nil && sum.Hi == 0
}
