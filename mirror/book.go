package mirror

import (
	"errors"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

// Limits of a book.
const (
	// MaxLevels bounds the levels a side of a listing.
	MaxLevels = 1000
	// MaxBookAccount bounds a book's account in bytes, as the runtime does.
	MaxBookAccount = 10 << 20
)

// Errors, wrapped with the account concerned.
var (
	// ErrListing means that the listing is invalid, or that the on-chain market differs
	// from it.
	ErrListing = errors.New("mirror: the market differs from its entry in mirror.pairs")
	// ErrAccount means an account that is missing, or of another program or type.
	ErrAccount = errors.New("mirror: an account is not the expected one")
	// ErrMalformed means an account that its program would not have written.
	ErrMalformed = errors.New("mirror: an account is malformed")
	// ErrClosed means a market on which the program no longer trades.
	ErrClosed = errors.New("mirror: the market is closed")
)

// Layout is the account layout of a market.
type Layout uint8

const (
	// Manifest: one account with a red-black tree a side.
	Manifest Layout = 1
	// Serum: Serum v3 and OpenBook v1, a market and a crit-bit tree a side.
	Serum Layout = 2
	// OpenBook: OpenBook v2, the same with larger nodes and with expiry.
	OpenBook Layout = 3
)

// String returns the layout's name in the configuration.
func (l Layout) String() string {
	switch l {
	case Manifest:
		return "manifest"
	case Serum:
		return "serum"
	case OpenBook:
		return "openbook"
	default:
		return "layout?"
	}
}

// Coin is a mint and its decimals, at most [token.MaxDecimals].
type Coin struct {
	Mint     solana.Address
	Decimals uint8
}

// Listing names the on-chain market that an instrument mirrors. It must not change
// once a Book is opened from it.
type Listing struct {
	Instrument *market.Instrument
	Layout     Layout
	// Program owns the accounts; on mainnet it is one of the programs in
	// internal/solana.
	Program, Market solana.Address
	Base, Quote     Coin
	// Levels is the number of levels a side, 1 to MaxLevels.
	Levels int
}

// Level is one price of an on-chain book. It may join several orders and, if the
// instrument's tick is coarser, several on-chain prices.
type Level struct {
	// Price is in ticks of the instrument, 1 to its MaxPrice.
	Price market.Price
	// Size is in atoms of the base mint, exact, above 0.
	Size market.Amount
}

// Depth is the visible book. The zero value is ready for Decode.
type Depth struct {
	// Bids and Asks are best first, one level a price.
	Bids, Asks []Level
	// Orders is the number of live orders in the levels.
	Orders int
	// Omitted is the number of live orders that the instrument cannot express: below the
	// tick, above MaxPrice, of a size above 64 bits, or pegged to an oracle.
	Omitted int
}

// Book reads the accounts of one market.
type Book interface {
	// Accounts returns the accounts that Decode needs, in its order. The caller must not
	// change the slice.
	Accounts() []solana.Address
	// Decode replaces into, reusing its slices, by the book of the accounts as of at;
	// orders that have expired by then are left out. The accounts are of one slot; nil
	// means that one does not exist. Decode does not keep them. On an error into is
	// empty. Errors: ErrAccount, ErrMalformed, ErrClosed, ErrListing.
	Decode(into *Depth, at Clock, accounts []*rpc.Account) error
}

// reset empties d and keeps its memory.
func (d *Depth) reset() { *d = Depth{Bids: d.Bids[:0], Asks: d.Asks[:0]} }

// take moves the levels of both builders into d.
func (d *Depth) take(bids, asks *levelBuilder) {
	*d = Depth{bids.levels, asks.levels, bids.orders + asks.orders, bids.omitted + asks.omitted}
}

// count checks the number of accounts in an answer.
func count(accounts []*rpc.Account, wanted []solana.Address) error {
	if len(accounts) != len(wanted) {
		return fmt.Errorf("%w: %d accounts, want %d", ErrAccount, len(accounts), len(wanted))
	}
	return nil
}

// check checks an account's address and owner.
func check(a *rpc.Account, address, program solana.Address) error {
	switch {
	case a == nil:
		return fmt.Errorf("%w: %s does not exist", ErrAccount, solana.Base58(address))
	case a.Address != address:
		return fmt.Errorf("%w: got %s, want %s", ErrAccount, solana.Base58(a.Address), solana.Base58(address))
	case a.Owner != program:
		return fmt.Errorf("%w: %s is owned by program %s", ErrAccount, solana.Base58(address), solana.Base58(a.Owner))
	case len(a.Data) > MaxBookAccount:
		return fmt.Errorf("%w: %s has %d bytes", ErrMalformed, solana.Base58(address), len(a.Data))
	}
	return nil
}

// malformed wraps ErrMalformed with the account and the reason.
func malformed(address solana.Address, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrMalformed, solana.Base58(address), fmt.Sprintf(format, args...))
}

// closed wraps ErrClosed with the market.
func closed(address solana.Address) error {
	return fmt.Errorf("%w: %s", ErrClosed, solana.Base58(address))
}

// coins compares a market's mints and decimals with the listing.
func (l *Listing) coins(base, quote Coin) error {
	if base != l.Base || quote != l.Quote {
		return fmt.Errorf("%w: %s: market %s trades %s (%d decimals) for %s (%d)", ErrListing, l.Instrument.Symbol,
			solana.Base58(l.Market), solana.Base58(base.Mint), base.Decimals, solana.Base58(quote.Mint), quote.Decimals)
	}
	return nil
}

// validate checks the listing.
func (l *Listing) validate() error {
	switch {
	case l.Base.Mint == l.Quote.Mint:
		return fmt.Errorf("%w: %s: base and quote are the mint %s", ErrListing, l.Instrument.Symbol, solana.Base58(l.Base.Mint))
	case l.Base.Decimals > token.MaxDecimals || l.Quote.Decimals > token.MaxDecimals:
		return fmt.Errorf("%w: %s: %d and %d decimals: at most %d", ErrListing, l.Instrument.Symbol, l.Base.Decimals, l.Quote.Decimals, token.MaxDecimals)
	case l.Levels < 1 || l.Levels > MaxLevels:
		return fmt.Errorf("%w: %s: %d levels: must be 1 to %d", ErrListing, l.Instrument.Symbol, l.Levels, MaxLevels)
	}
	return nil
}
