package mirror

import (
	"fmt"

	"blockdesk/internal/solana/rpc"
)

// Open makes the Book of a listing. account is the market's; a Serum or OpenBook market
// names its sides there. Errors: those of Decode.
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
		return nil, fmt.Errorf("%w: %s: unknown layout %d", ErrListing, l.Instrument.Symbol, l.Layout)
	}
}
