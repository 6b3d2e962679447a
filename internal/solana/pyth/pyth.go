// Package pyth decodes the accounts of price updates of Pyth's receiver program on Solana.
//
// An account of 134 bytes, little-endian, as the receiver's SDK 0.6 lays it out:
//
//	  0 u64 kind ‖ 8 [32] write authority ‖ 40 u8 verification (0 partial, 1 full)
//	    partial: ‖ u8 number of guardian signatures, so the rest begins a byte later
//	 41 [32] feed ‖ 73 i64 price ‖ 81 u64 confidence ‖ 89 i32 exponent
//	 93 i64 publish time ‖ 101 i64 previous publish time ‖ 109 i64 average price
//	117 u64 average confidence ‖ 125 u64 posted slot ‖ zero
//
// The receiver writes an account only after it has verified the guardians' signatures.
// So a price is genuine if the account's owner is the receiver and the verification is
// full. The write authority proves nothing: anybody may post a genuine update.
//
// The decoder is written by hand because solana-go does not have this layout.
//
// Concurrency: pure functions and values.
package pyth

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

const (
	updateKind = 0xcdf47e9d6323f122 // sha256("account:PriceUpdateV2")[:8]
	updateSize = 134
	messageAt  = 41
	fullLevel  = 1
	// minExponent bounds how small a price's unit may be: 10^-18.
	minExponent = -18
)

// Errors, wrapped with the detail.
var (
	// ErrAccount means that the account is not a price update of the receiver program.
	ErrAccount = errors.New("pyth: not a price update account")
	// ErrFeed means that the update belongs to another feed.
	ErrFeed = errors.New("pyth: the update belongs to another feed")
	// ErrUnverified means that not all guardian signatures were verified.
	ErrUnverified = errors.New("pyth: the update is only partially verified")
	// ErrPrice means that a number of the update is out of range.
	ErrPrice = errors.New("pyth: the update has no valid price")
)

// Feed is the id of a price feed, such as SOL/USD. The ids are the same on every chain.
type Feed [32]byte

// ParseFeed reads 64 hexadecimal digits, with or without 0x before them.
func ParseFeed(text string) (f Feed, err error) {
	b, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil || len(b) != len(f) {
		return f, fmt.Errorf("pyth: feed id %q: must be 64 hexadecimal digits", text)
	}
	return Feed(b), nil
}

// String returns the 64 digits.
func (f Feed) String() string { return hex.EncodeToString(f[:]) }

// Update is one verified price, in dollars a unit of the feed's base asset.
type Update struct {
	Feed        Feed
	Price       market.USDPrice // rounded down to 10^-9 dollars
	Confidence  market.USDPrice // half the width of the interval around Price, rounded up
	PublishedAt int64           // Unix seconds
	PostedSlot  uint64
}

// Read decodes the price update of a feed from an account of the receiver program.
// Errors: [ErrAccount], [ErrUnverified], [ErrFeed], [ErrPrice].
func Read(a *rpc.Account, receiver solana.Address, feed Feed) (Update, error) {
	switch {
	case a == nil:
		return Update{}, fmt.Errorf("%w: no such account on the chain", ErrAccount)
	case a.Owner != receiver:
		return Update{}, fmt.Errorf("%w: %s is owned by %s", ErrAccount, solana.Base58(a.Address), solana.Base58(a.Owner))
	case len(a.Data) != updateSize || binary.LittleEndian.Uint64(a.Data) != updateKind:
		return Update{}, fmt.Errorf("%w: %s has %d bytes of another kind", ErrAccount, solana.Base58(a.Address), len(a.Data))
	case a.Data[messageAt-1] != fullLevel:
		return Update{}, fmt.Errorf("%w: its level is %d", ErrUnverified, a.Data[messageAt-1])
	}
	m := a.Data[messageAt:]
	if Feed(m[:32]) != feed {
		return Update{}, fmt.Errorf("%w: %s", ErrFeed, Feed(m[:32]))
	}
	price, confidence := int64(binary.LittleEndian.Uint64(m[32:])), binary.LittleEndian.Uint64(m[40:])
	exponent := int32(binary.LittleEndian.Uint32(m[48:]))
	u := Update{Feed: feed, PublishedAt: int64(binary.LittleEndian.Uint64(m[52:])), PostedSlot: binary.LittleEndian.Uint64(m[84:])}
	if price <= 0 || u.PublishedAt <= 0 || exponent > 0 || exponent < minExponent {
		return Update{}, fmt.Errorf("%w: price %d × 10^%d of time %d", ErrPrice, price, exponent, u.PublishedAt)
	}
	var ok bool
	if u.Price, ok = dollars(uint64(price), exponent, market.MulDivFloor); !ok || u.Price == 0 {
		return Update{}, fmt.Errorf("%w: price %d × 10^%d is out of range", ErrPrice, price, exponent)
	}
	if u.Confidence, ok = dollars(confidence, exponent, market.MulDivCeil); !ok {
		return Update{}, fmt.Errorf("%w: confidence %d × 10^%d is out of range", ErrPrice, confidence, exponent)
	}
	return u, nil
}

// dollars returns n × 10^exponent in units of 10^-9 dollars; false if that is more than
// market.MaxUSDPrice.
func dollars(n uint64, exponent int32, round func(a, b, d uint64) (uint64, error)) (market.USDPrice, bool) {
	v, err := round(n, market.Pow10(market.USDPriceDecimals), market.Pow10(int(-exponent)))
	return market.USDPrice(v), err == nil && v <= uint64(market.MaxUSDPrice)
}

// Append appends the account data of a fully verified update, with the exponent -9, for
// local chains.
func Append(dst []byte, u Update, authority solana.Address) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, updateKind)
	dst = append(append(dst, authority[:]...), fullLevel)
	dst = append(dst, u.Feed[:]...)
	price := min(uint64(u.Price), math.MaxInt64)
	dst = binary.LittleEndian.AppendUint64(dst, price)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(u.Confidence))
	dst = binary.LittleEndian.AppendUint32(dst, ^uint32(market.USDPriceDecimals)+1)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(u.PublishedAt))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(u.PublishedAt-1))
	dst = binary.LittleEndian.AppendUint64(dst, price)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(u.Confidence))
	return append(binary.LittleEndian.AppendUint64(dst, u.PostedSlot), 0)
}
