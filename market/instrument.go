package market

import (
	"errors"
	"fmt"
)

// BookSource says where an instrument's book comes from.
type BookSource uint8

const (
	Matched  BookSource = 1 // our own order book: takes orders
	Mirrored BookSource = 2 // read-only copy of an on-chain book: refuses orders
)

// String returns the wire word of `book_source`.
func (b BookSource) String() string {
	switch b {
	case Matched:
		return "matched"
	case Mirrored:
		return "mirrored"
	default:
		return "unknown"
	}
}

// MaxSymbol is the longest symbol in bytes, e.g. "SLUSD/USDC".
const MaxSymbol = 32

// Instrument describes one tradable pair. It is immutable once the engine has it. A
// price of n ticks is n × Tick × 10^-PriceDecimals quote units per base unit; a
// quantity of n lots is n × Lot × 10^-QtyDecimals base units.
type Instrument struct {
	ID     InstrumentID
	Symbol string // "BASE/QUOTE"
	Base   string
	Quote  string

	PriceDecimals uint8  // fractional digits of a price on every surface
	QtyDecimals   uint8  // fractional digits of a quantity on every surface
	Tick          uint64 // in 10^-PriceDecimals quote units, at least 1
	Lot           uint64 // in 10^-QtyDecimals base units, at least 1

	MinQty   Qty   // at least 1
	MaxQty   Qty   // at most the constant MaxQty
	MaxPrice Price // highest price of an order, in ticks
	Source   BookSource
}

// Errors of Instrument.ParsePrice and ParseQty, in addition to those of ParseDecimal.
var (
	ErrNotOnTick = errors.New("price is not a multiple of the tick")
	ErrNotOnLot  = errors.New("quantity is not a multiple of the lot")
	ErrZero      = errors.New("must be greater than zero")
)

// Validate returns an error that names the first invalid field and its value.
func (in *Instrument) Validate() error {
	if err := in.validateNames(); err != nil {
		return err
	}
	switch {
	case in.PriceDecimals > MaxDecimals:
		return fmt.Errorf("%s: price_decimals %d: must be at most %d", in.Symbol, in.PriceDecimals, MaxDecimals)
	case in.QtyDecimals > MaxDecimals:
		return fmt.Errorf("%s: qty_decimals %d: must be at most %d", in.Symbol, in.QtyDecimals, MaxDecimals)
	case in.Tick == 0:
		return fmt.Errorf("%s: tick must be greater than zero", in.Symbol)
	case in.Lot == 0:
		return fmt.Errorf("%s: lot must be greater than zero", in.Symbol)
	case in.MinQty < 1 || in.MinQty > in.MaxQty:
		return fmt.Errorf("%s: min_qty %d lots: must be 1 to max_qty (%d)", in.Symbol, in.MinQty, in.MaxQty)
	case in.MaxQty > MaxQty:
		return fmt.Errorf("%s: max_qty %d lots: must be at most %d", in.Symbol, in.MaxQty, MaxQty)
	case in.MaxPrice < 1 || in.MaxPrice > MaxPrice:
		return fmt.Errorf("%s: max_price %d ticks: must be 1 to %d", in.Symbol, in.MaxPrice, MaxPrice)
	case in.Source != Matched && in.Source != Mirrored:
		return fmt.Errorf("%s: book_source: must be matched or mirrored", in.Symbol)
	}
	if Mul(uint64(in.MaxPrice), in.Tick).Hi != 0 {
		return fmt.Errorf("%s: max_price × tick: %w", in.Symbol, ErrOverflow)
	}
	if Mul(uint64(in.MaxQty), in.Lot).Hi != 0 {
		return fmt.Errorf("%s: max_qty × lot: %w", in.Symbol, ErrOverflow)
	}
	return nil
}

// validateNames allows only characters that need no escape in JSON, FIX fields, URL
// paths and metric labels, because every gateway copies symbols unescaped.
func (in *Instrument) validateNames() error {
	switch {
	case in.Symbol == "" || len(in.Symbol) > MaxSymbol:
		return fmt.Errorf("symbol %q: must be 1 to %d bytes", in.Symbol, MaxSymbol)
	case !isAssetCode(in.Base):
		return fmt.Errorf("symbol %q: base %q must be letters, digits, '.', '_' or '-'", in.Symbol, in.Base)
	case !isAssetCode(in.Quote):
		return fmt.Errorf("symbol %q: quote %q must be letters, digits, '.', '_' or '-'", in.Symbol, in.Quote)
	case in.Base == in.Quote:
		return fmt.Errorf("symbol %q: base and quote must differ", in.Symbol)
	case in.Symbol != in.Base+"/"+in.Quote:
		return fmt.Errorf("symbol %q: must be BASE/QUOTE of base %q and quote %q", in.Symbol, in.Base, in.Quote)
	}
	return nil
}

func isAssetCode(code string) bool {
	for i := range len(code) {
		c := code[i]
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return code != ""
}

// ParsePrice parses a decimal price into ticks. Errors: those of ParseDecimal, ErrZero,
// ErrNotOnTick, and ErrOverflow above the constant MaxPrice. The engine, not the
// parser, enforces the instrument's own MaxPrice.
func (in *Instrument) ParsePrice(text []byte) (Price, error) {
	n, err := parseUnits(text, int(in.PriceDecimals), in.Tick, uint64(MaxPrice), ErrNotOnTick)
	return Price(n), err
}

// ParseQty parses a decimal quantity into lots. Errors: those of ParseDecimal, ErrZero,
// ErrNotOnLot, and ErrOverflow above the constant MaxQty.
func (in *Instrument) ParseQty(text []byte) (Qty, error) {
	n, err := parseUnits(text, int(in.QtyDecimals), in.Lot, uint64(MaxQty), ErrNotOnLot)
	return Qty(n), err
}

func parseUnits(text []byte, decimals int, unit, most uint64, notOnUnit error) (uint64, error) {
	v, err := ParseDecimal(text, decimals)
	switch {
	case err != nil:
		return 0, err
	case v == 0:
		return 0, ErrZero
	case v%unit != 0:
		return 0, notOnUnit
	case v/unit > most:
		return 0, ErrOverflow
	}
	return v / unit, nil
}

// AppendPrice appends p as an exact decimal with PriceDecimals fractional digits. It
// keeps the sign of a negative p, so that a reject can show the invalid price.
func (in *Instrument) AppendPrice(dst []byte, p Price) []byte {
	return appendUnits(dst, int64(p), in.Tick, int(in.PriceDecimals))
}

// AppendQty appends q as an exact decimal with QtyDecimals fractional digits. q may
// exceed MaxQty, as the sum of a level does, or be negative.
func (in *Instrument) AppendQty(dst []byte, q Qty) []byte {
	return appendUnits(dst, int64(q), in.Lot, int(in.QtyDecimals))
}

func appendUnits(dst []byte, n int64, unit uint64, decimals int) []byte {
	magnitude := uint64(n)
	if n < 0 {
		dst = append(dst, '-')
		magnitude = -magnitude
	}
	return Mul(magnitude, unit).AppendDecimal(dst, decimals)
}
