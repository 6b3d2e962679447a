package mirror

import (
	"encoding/binary"
	"fmt"
	"math"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// OpenBook v2 is an Anchor program: each account begins with an 8-byte discriminator. A
// market, little-endian:
//
//	  9 u8 base decimals ‖ u8 quote decimals ‖ 48 i64 end of trading, 0 for never
//	200 bids ‖ 232 asks ‖ 448 i64 quote lot ‖ 456 i64 base lot
//	576 base mint ‖ 608 quote mint
//
// Bids and asks:
//
//	  8 u32 root of the orders at a price ‖ u32 of them
//	 16 u32 root of the orders pegged to an oracle ‖ u32 of them
//	312 u8 0 bids, 1 asks ‖ 3 bytes ‖ u32 nodes ever used
//	840 nodes of 88 bytes
//
// Of a leaf, beside what every crit-bit tree has: 2 u16 seconds of life, 0 for
// ever ‖ 64 u64 when it was placed.
//
// The price of a pegged order depends on its oracle's account; such orders are
// counted and not shown.
const (
	openBookMarketKind = 0x9ac6e30037d5bedb // sha256("account:Market")[:8]
	openBookSideKind   = 0x396182b28de12c48 // sha256("account:BookSide")[:8]
	openBookMarket     = 848
	openBookNodes      = 840
	openBookNode       = 88
	openBookMaxNodes   = 1024
)

var openBookLayout = lotLayout{
	market:    readOpenBookMarket,
	side:      readOpenBookSide,
	unexpired: openBookUnexpired,
	maxLots:   math.MaxInt64,
}

// anchorKind checks an account's size and discriminator.
func anchorKind(a *rpc.Account, kind uint64, size int, what string) error {
	if len(a.Data) != size || binary.LittleEndian.Uint64(a.Data) != kind {
		return fmt.Errorf("%w: %s is not a %s: it has %d bytes", ErrAccount, solana.Base58(a.Address), what, len(a.Data))
	}
	return nil
}

func readOpenBookMarket(l *Listing, a *rpc.Account) (m lotMarket, err error) {
	if err := anchorKind(a, openBookMarketKind, openBookMarket, "OpenBook market"); err != nil {
		return m, err
	}
	d := a.Data
	m = lotMarket{
		bids: solana.Address(d[200:232]), asks: solana.Address(d[232:264]),
		quoteLot: binary.LittleEndian.Uint64(d[448:]), baseLot: binary.LittleEndian.Uint64(d[456:]),
		closes: int64(binary.LittleEndian.Uint64(d[48:])),
	}
	if m.quoteLot > math.MaxInt64 || m.baseLot > math.MaxInt64 {
		return m, malformed(a.Address, "a lot size is negative")
	}
	base, quote := Coin{solana.Address(d[576:608]), d[9]}, Coin{solana.Address(d[608:640]), d[10]}
	return m, l.coins(base, quote)
}

func readOpenBookSide(a *rpc.Account, side market.Side) (t critTree, unshown int, err error) {
	if err := anchorKind(a, openBookSideKind, openBookNodes+openBookMaxNodes*openBookNode, "side of an OpenBook market"); err != nil {
		return t, 0, err
	}
	d := a.Data
	kind := byte(1)
	if side == market.Buy {
		kind = 0
	}
	if d[312] != kind {
		return t, 0, fmt.Errorf("%w: %s holds no %s orders", ErrAccount, solana.Base58(a.Address), side)
	}
	root, leaves := binary.LittleEndian.Uint32(d[8:]), binary.LittleEndian.Uint32(d[12:])
	pegged, used := binary.LittleEndian.Uint32(d[20:]), binary.LittleEndian.Uint32(d[316:])
	if used > openBookMaxNodes || pegged > used {
		return t, 0, malformed(a.Address, "its header counts %d nodes, of which %d pegged orders", used, pegged)
	}
	return critTree{a.Address, d[openBookNodes:], openBookNode, int(used), root, uint64(leaves)}, int(pegged), nil
}

// openBookUnexpired is the program's own rule. An order that was placed after the clock counts
// as unexpired; only a lying node returns one.
func openBookUnexpired(leaf []byte, at Clock) bool {
	life, placed := uint64(binary.LittleEndian.Uint16(leaf[2:])), binary.LittleEndian.Uint64(leaf[64:])
	return life == 0 || uint64(at.Unix) < placed || uint64(at.Unix)-placed < life
}
