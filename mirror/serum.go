package mirror

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// Every account of Serum v3 and of OpenBook v1 begins with "serum", then u64
// flags, and ends with "padding". A market, little-endian:
//
//	 13 own address ‖ 53 base mint ‖ 85 quote mint
//	285 bids ‖ 317 asks ‖ 349 u64 base lot ‖ 357 u64 quote lot
//
// Bids and asks:
//
//	13 u64 nodes ever used ‖ u64 free ones ‖ u32 first free ‖ 33 u32 root
//	37 u64 leaves ‖ 45 nodes of 72 bytes
const (
	serumHead   = "serum"
	serumTail   = "padding"
	serumMarket = 388
	serumNodes  = 45
	serumNode   = 72
)

// Flags of an account.
const (
	serumInitialized = 1 << 0
	serumIsMarket    = 1 << 1
	serumIsBids      = 1 << 5
	serumIsAsks      = 1 << 6
	serumDisabled    = 1 << 7
	serumClosed      = 1 << 8
)

// serumLayout has orders that do not expire.
var serumLayout = lotLayout{
	market:    readSerumMarket,
	side:      readSerumSide,
	unexpired: func([]byte, Clock) bool { return true },
	maxLots:   math.MaxUint64,
}

// serumFlags checks both ends of an account and returns its flags.
func serumFlags(a *rpc.Account) (uint64, error) {
	d := a.Data
	if len(d) < serumNodes+len(serumTail) || !bytes.HasPrefix(d, []byte(serumHead)) || !bytes.HasSuffix(d, []byte(serumTail)) {
		return 0, malformed(a.Address, "%d bytes, not a Serum account", len(d))
	}
	return binary.LittleEndian.Uint64(d[len(serumHead):]), nil
}

func readSerumMarket(l *Listing, a *rpc.Account) (m lotMarket, err error) {
	flags, err := serumFlags(a)
	d := a.Data
	switch {
	case err != nil:
		return m, err
	case len(d) != serumMarket || flags&(serumInitialized|serumIsMarket) != serumInitialized|serumIsMarket:
		return m, fmt.Errorf("%w: %s is not a Serum market: it has flags %#x and %d bytes", ErrAccount, solana.Base58(a.Address), flags, len(d))
	case flags&(serumDisabled|serumClosed) != 0:
		return m, closed(a.Address)
	case solana.Address(d[13:45]) != a.Address:
		return m, malformed(a.Address, "it says that its address is %s", solana.Base58(solana.Address(d[13:45])))
	}
	// The market account has no decimals, so the listing's decimals are used.
	base, quote := Coin{solana.Address(d[53:85]), l.Base.Decimals}, Coin{solana.Address(d[85:117]), l.Quote.Decimals}
	return lotMarket{
		bids: solana.Address(d[285:317]), asks: solana.Address(d[317:349]),
		baseLot: binary.LittleEndian.Uint64(d[349:]), quoteLot: binary.LittleEndian.Uint64(d[357:]),
	}, l.coins(base, quote)
}

func readSerumSide(a *rpc.Account, side market.Side) (t critTree, unshown int, err error) {
	flags, err := serumFlags(a)
	if err != nil {
		return t, 0, err
	}
	want := uint64(serumInitialized | serumIsAsks)
	if side == market.Buy {
		want = serumInitialized | serumIsBids
	}
	if flags != want {
		return t, 0, fmt.Errorf("%w: %s holds no %s orders: flags %#x", ErrAccount, solana.Base58(a.Address), side, flags)
	}
	nodes := a.Data[serumNodes : len(a.Data)-len(serumTail)]
	used, leaves := binary.LittleEndian.Uint64(a.Data[13:]), binary.LittleEndian.Uint64(a.Data[37:])
	if used > uint64(len(nodes)/serumNode) {
		return t, 0, malformed(a.Address, "%d nodes do not fit %d bytes", used, len(nodes))
	}
	return critTree{a.Address, nodes, serumNode, int(used), binary.LittleEndian.Uint32(a.Data[33:]), leaves}, 0, nil
}
