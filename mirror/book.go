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
	// MaxLevels bounds the levels a side that a listing may ask for.
	MaxLevels = 1000
	// MaxBookAccount bounds a book's account in bytes: the runtime's own limit.
	MaxBookAccount = 10 << 20
)

// Errors, wrapped with the account that they concern.
var (
	// ErrListing: what is to be mirrored is described wrongly, or the market on
	// chain is not what the listing says.
	ErrListing = errors.New("mirror: not what the listing says")
	// ErrAccount: an account is missing or of another program or kind.
	ErrAccount = errors.New("mirror: not the account that was asked for")
	// ErrMalformed: an account that its program would not have written.
	ErrMalformed = errors.New("mirror: malformed account")
	// ErrClosed: a market that the program no longer trades on.
	ErrClosed = errors.New("mirror: the market is closed")
)

// Layout says how a market's accounts are laid out.
type Layout uint8

const (
	// Manifest: one account with a red-black tree a side.
	Manifest Layout = 1
	// Serum v3 and OpenBook v1: a market and a crit-bit tree a side.
	Serum Layout = 2
	// OpenBook v2: the same with larger nodes and with expiry.
	OpenBook Layout = 3
)

// String returns the word for logs and messages.
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

// Listing says which on-chain market an instrument mirrors. It does not change
// once a Book is opened from it.
type Listing struct {
	Instrument *market.Instrument
	Layout     Layout
	// Program owns the accounts: on mainnet one of internal/solana's.
	Program, Market solana.Address
	Base, Quote     Coin
	// Levels is how many levels a side are read, 1 to MaxLevels.
	Levels int
}

// Level is one price of an on-chain book, which may join several orders and,
// where the tick is coarser than the chain's, several of its prices.
type Level struct {
	// Price in ticks of the instrument, 1 to its MaxPrice.
	Price market.Price
	// Size in atoms of the base mint, exact, above 0.
	Size market.Amount
}

// Depth is what a book shows. The zero value is ready to be decoded into.
type Depth struct {
	// Bids and Asks are best first, one level a price.
	Bids, Asks []Level
	// Orders is how many live orders the levels are made of.
	Orders int
	// Omitted is how many live orders on the way the instrument cannot express:
	// below the tick, above MaxPrice, of a size past 64 bits, or pegged to an
	// oracle that the book's accounts do not tell.
	Omitted int
}

// Book reads the accounts of one market.
type Book interface {
	// Accounts are what Decode wants, in its order. The caller may not change
	// the slice.
	Accounts() []solana.Address
	// Decode replaces into, whose slices are used again, by what the accounts
	// show as of a bank: orders that have expired by its clock are left out. The
	// accounts are of one slot; one that does not exist is nil. They are not
	// kept. On an error into is empty. Errors: ErrAccount, ErrMalformed,
	// ErrClosed, ErrListing.
	Decode(into *Depth, at Clock, accounts []*rpc.Account) error
}

// Open makes the Book of a listing from its market's account, from which a
// Serum or OpenBook book learns where its sides are. Errors: those of Decode.
func Open(l Listing, account *rpc.Account) (Book, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	switch l.Layout {
	case Manifest:
		return openManifest(l, account)
	case Serum:
		return openLots(l, &serumLayout, account)
	case OpenBook:
		return openLots(l, &openBookLayout, account)
	default:
		return nil, fmt.Errorf("%w: %s: layout %d", ErrListing, l.Instrument.Symbol, l.Layout)
	}
}

// reset empties d and keeps its memory.
func (d *Depth) reset() { *d = Depth{Bids: d.Bids[:0], Asks: d.Asks[:0]} }

// take makes what has been gathered of both sides d's.
func (d *Depth) take(bids, asks *levelBuilder) {
	*d = Depth{bids.levels, asks.levels, bids.orders + asks.orders, bids.omitted + asks.omitted}
}

// count refuses an answer of another length than was asked for.
func count(accounts []*rpc.Account, wanted []solana.Address) error {
	if len(accounts) != len(wanted) {
		return fmt.Errorf("%w: %d accounts instead of %d", ErrAccount, len(accounts), len(wanted))
	}
	return nil
}

// check holds an account against the address and the program that it must have.
func check(a *rpc.Account, address, program solana.Address) error {
	switch {
	case a == nil:
		return fmt.Errorf("%w: %s does not exist", ErrAccount, solana.Text(address))
	case a.Address != address:
		return fmt.Errorf("%w: %s instead of %s", ErrAccount, solana.Text(a.Address), solana.Text(address))
	case a.Owner != program:
		return fmt.Errorf("%w: %s is owned by %s", ErrAccount, solana.Text(address), solana.Text(a.Owner))
	case len(a.Data) > MaxBookAccount:
		return fmt.Errorf("%w: %s has %d bytes", ErrMalformed, solana.Text(address), len(a.Data))
	}
	return nil
}

// malformed wraps ErrMalformed with the account and what is wrong with it.
func malformed(address solana.Address, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrMalformed, solana.Text(address), fmt.Sprintf(format, args...))
}

// closed wraps ErrClosed with the market.
func closed(address solana.Address) error {
	return fmt.Errorf("%w: %s", ErrClosed, solana.Text(address))
}

// coins holds what a market says of its mints against the listing. Decimals that
// the market does not tell are the listing's.
func (l *Listing) coins(base, quote Coin) error {
	if base != l.Base || quote != l.Quote {
		return fmt.Errorf("%w: %s: market %s trades %s (%d decimals) for %s (%d)", ErrListing, l.Instrument.Symbol,
			solana.Text(l.Market), solana.Text(base.Mint), base.Decimals, solana.Text(quote.Mint), quote.Decimals)
	}
	return nil
}

// validate reports the first rule that the listing breaks.
func (l *Listing) validate() error {
	switch {
	case l.Base.Mint == l.Quote.Mint:
		return fmt.Errorf("%w: %s: base and quote are the mint %s", ErrListing, l.Instrument.Symbol, solana.Text(l.Base.Mint))
	case l.Base.Decimals > token.MaxDecimals || l.Quote.Decimals > token.MaxDecimals:
		return fmt.Errorf("%w: %s: %d and %d decimals: at most %d", ErrListing, l.Instrument.Symbol, l.Base.Decimals, l.Quote.Decimals, token.MaxDecimals)
	case l.Levels < 1 || l.Levels > MaxLevels:
		return fmt.Errorf("%w: %s: %d levels: 1 to %d", ErrListing, l.Instrument.Symbol, l.Levels, MaxLevels)
	}
	return nil
}
