package mirror

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

// A pool of Raydium's CPMM program, little-endian:
//
//	  0 u64 kind ‖ 72 vault 0 ‖ vault 1 ‖ 136 LP mint ‖ 168 mint 0 ‖ mint 1
//	232 token program 0 ‖ token program 1 ‖ 329 u8 status
//	330 u8 LP decimals ‖ u8 decimals 0 ‖ u8 decimals 1 ‖ 333 u64 LP supply
//	341 u64 protocol fees 0 ‖ 1 ‖ u64 fund fees 0 ‖ 1 ‖ 397 u64 creator fees 0 ‖ 1
const (
	cpmmKind = 0x46dec3d7f5e3edf7 // sha256("account:PoolState")[:8]
	cpmmSize = 637
	// cpmmNoSwaps is the status bit that stops swaps.
	cpmmNoSwaps = 1 << 2
)

// PoolListing names the on-chain pool that has an instrument's reserves.
type PoolListing struct {
	Pool        solana.Address
	Base, Quote Coin
	// Program is the CPMM program that owns the pool, whose account names its vaults.
	// Zero for any other pool, of which only the vaults are read.
	Program solana.Address
	// BaseVault and QuoteVault are given where Program is zero.
	BaseVault, QuoteVault solana.Address
}

// PoolState is a pool's state as of a slot.
type PoolState struct {
	Pool                  solana.Address
	Base, Quote           Coin
	BaseVault, QuoteVault solana.Address
	// BaseBalance and QuoteBalance are the balances of the vaults, in atoms.
	BaseBalance, QuoteBalance market.Amount
	// BaseFees and QuoteFees are the part of the balances that are uncollected fees of the
	// protocol, the fund and the creator; 0 without Program.
	BaseFees, QuoteFees market.Amount
	// Stopped: the program refuses swaps.
	Stopped bool
	At      Clock
}

// reserve is one side of a pool. A zero program means either token program.
type reserve struct {
	address, program solana.Address
	coin             Coin
	fees             uint64
}

// Pool reads the accounts of one pool.
type Pool struct {
	listing  PoolListing
	accounts []solana.Address
}

// OpenPool makes the Pool of a listing. account is the pool's, where a CPMM pool names
// its vaults; it is ignored if the listing names them. Errors: [ErrListing],
// [ErrAccount], [ErrMalformed].
func OpenPool(l PoolListing, account *rpc.Account) (*Pool, error) {
	if l.Base.Decimals > token.MaxDecimals || l.Quote.Decimals > token.MaxDecimals {
		return nil, fmt.Errorf("%w: pool %s: tokens of %d and %d decimals: too many", ErrListing, solana.Base58(l.Pool), l.Base.Decimals, l.Quote.Decimals)
	}
	if l.Program == (solana.Address{}) {
		return newPool(l, l.BaseVault, l.QuoteVault)
	}
	base, quote, _, err := l.cpmm(account)
	if err != nil {
		return nil, err
	}
	l.BaseVault, l.QuoteVault = base.address, quote.address
	return newPool(l, l.BaseVault, l.QuoteVault, l.Pool)
}

func newPool(l PoolListing, accounts ...solana.Address) (*Pool, error) {
	p := &Pool{l, accounts}
	vaults := p.Vaults()
	if err := vaults.Validate(); err != nil {
		return nil, fmt.Errorf("%w: pool %s: %w", ErrListing, solana.Base58(l.Pool), err)
	}
	return p, nil
}

// Accounts returns the accounts that Decode needs, in its order. The caller must not
// change the slice.
func (p *Pool) Accounts() []solana.Address { return p.accounts }

// Vaults returns the vaults by which the pool's swaps are decoded.
func (p *Pool) Vaults() VaultPair {
	l := &p.listing
	return VaultPair{Base: Vault{l.BaseVault, l.Base.Mint}, Quote: Vault{l.QuoteVault, l.Quote.Mint}}
}

// Decode decodes the pool as of at. The accounts are of one slot; nil means that one does
// not exist. Errors: [ErrListing], [ErrAccount], [ErrMalformed].
func (p *Pool) Decode(at Clock, accounts []*rpc.Account) (PoolState, error) {
	if err := count(accounts, p.accounts); err != nil {
		return PoolState{}, err
	}
	l := &p.listing
	s := PoolState{Pool: l.Pool, Base: l.Base, Quote: l.Quote, BaseVault: l.BaseVault, QuoteVault: l.QuoteVault, At: at}
	base, quote := reserve{address: l.BaseVault, coin: l.Base}, reserve{address: l.QuoteVault, coin: l.Quote}
	if l.Program != (solana.Address{}) {
		var err error
		if base, quote, s.Stopped, err = l.cpmm(accounts[2]); err != nil {
			return PoolState{}, err
		}
		if base.address != l.BaseVault || quote.address != l.QuoteVault {
			return PoolState{}, malformed(l.Pool, "its vaults have changed")
		}
	}
	b, err := base.read(accounts[0])
	if err != nil {
		return PoolState{}, err
	}
	q, err := quote.read(accounts[1])
	if err != nil {
		return PoolState{}, err
	}
	if b.Owner != q.Owner {
		return PoolState{}, fmt.Errorf("%w: pool %s: its vaults have two owners, %s and %s", ErrListing, solana.Base58(l.Pool), solana.Base58(b.Owner), solana.Base58(q.Owner))
	}
	s.BaseBalance, s.QuoteBalance = b.Amount, q.Amount
	s.BaseFees, s.QuoteFees = market.Amount(base.fees), market.Amount(quote.fees)
	return s, nil
}

// read parses the side's vault.
func (v *reserve) read(a *rpc.Account) (token.Account, error) {
	if a == nil || a.Address != v.address {
		return token.Account{}, fmt.Errorf("%w: vault %s is missing", ErrAccount, solana.Base58(v.address))
	}
	t, err := token.ParseAccount(a.Owner, a.Data)
	switch {
	case err != nil:
		return t, fmt.Errorf("%w: vault %s: %w", ErrAccount, solana.Base58(v.address), err)
	case t.Mint != v.coin.Mint:
		return t, fmt.Errorf("%w: vault %s holds the mint %s", ErrListing, solana.Base58(v.address), solana.Base58(t.Mint))
	case v.program != solana.Address{} && v.program != t.Program:
		return t, malformed(v.address, "it is owned by token program %s, its mint by another", solana.Base58(t.Program))
	case v.fees > uint64(t.Amount):
		return t, malformed(v.address, "it holds %d, less than its fees of %d", t.Amount, v.fees)
	}
	return t, nil
}

// cpmm parses a CPMM pool's account: both sides in the listing's order, and whether swaps
// are stopped.
func (l *PoolListing) cpmm(a *rpc.Account) (base, quote reserve, stopped bool, err error) {
	if err = check(a, l.Pool, l.Program); err != nil {
		return base, quote, false, err
	}
	if err = anchorKind(a, cpmmKind, cpmmSize, "CPMM pool"); err != nil {
		return base, quote, false, err
	}
	if base, err = cpmmReserve(a, 0); err == nil {
		quote, err = cpmmReserve(a, 1)
	}
	if err != nil {
		return base, quote, false, err
	}
	if base.coin.Mint == l.Quote.Mint {
		base, quote = quote, base
	}
	if base.coin != l.Base || quote.coin != l.Quote {
		return base, quote, false, fmt.Errorf("%w: pool %s has %s (%d decimals) and %s (%d)", ErrListing, solana.Base58(l.Pool),
			solana.Base58(base.coin.Mint), base.coin.Decimals, solana.Base58(quote.coin.Mint), quote.coin.Decimals)
	}
	return base, quote, a.Data[329]&cpmmNoSwaps != 0, nil
}

// cpmmReserve parses side 0 or 1 of a CPMM pool.
func cpmmReserve(a *rpc.Account, side int) (reserve, error) {
	d, i := a.Data, 32*side
	v := reserve{solana.Address(d[72+i:]), solana.Address(d[232+i:]), Coin{solana.Address(d[168+i:]), d[331+side]}, 0}
	for _, at := range [...]int{341, 357, 397} {
		sum, carry := bits.Add64(v.fees, binary.LittleEndian.Uint64(d[at+8*side:]), 0)
		if carry != 0 {
			return v, malformed(a.Address, "its fees do not fit 64 bits")
		}
		v.fees = sum
	}
	return v, nil
}

// Reserves returns the balances without fees, which determine the price.
func (s *PoolState) Reserves() (base, quote market.Amount) {
	return s.BaseBalance - s.BaseFees, s.QuoteBalance - s.QuoteFees
}

// Spot returns the marginal price, quote units a base unit, as an integer with that many
// fractional digits (at most [market.MaxDecimals]), rounded down. ok is false if a side
// has no reserves or the price overflows.
func (s *PoolState) Spot(decimals int) (price uint64, ok bool) {
	base, quote := s.Reserves()
	if base == 0 || quote == 0 || decimals > market.MaxDecimals {
		return 0, false
	}
	r, err := market.NewRatio(nil, []uint64{uint64(base)}, int(s.Base.Decimals)-int(s.Quote.Decimals)+decimals)
	if err != nil {
		return 0, false
	}
	price, err = r.Floor(market.Uint128{Lo: uint64(quote)})
	return price, err == nil
}

// poolProof is the first line of a proof's text.
const poolProof = "svc_onchain_pool_state_v1"

// Proof returns the SHA-256 of the state's source data, so that a reader with a node can
// recompute it (our choice): these lines, each ended by "\n": svc_onchain_pool_state_v1,
// the pool, the base mint, the quote mint, the base vault, the quote vault, the two
// balances in atoms, and the slot.
func (s *PoolState) Proof() [sha256.Size]byte {
	text := append([]byte(poolProof), '\n')
	for _, a := range [...]solana.Address{s.Pool, s.Base.Mint, s.Quote.Mint, s.BaseVault, s.QuoteVault} {
		text = append(append(text, solana.Base58(a)...), '\n')
	}
	for _, n := range [...]uint64{uint64(s.BaseBalance), uint64(s.QuoteBalance), s.At.Slot} {
		text = append(strconv.AppendUint(text, n, 10), '\n')
	}
	return sha256.Sum256(text)
}
