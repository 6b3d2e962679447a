package solana

import (
	"errors"
	"fmt"
	"sync"

	sdk "github.com/gagliardetto/solana-go"
)

// Limits of the runtime.
const (
	MaxSeeds      = sdk.MaxSeeds
	MaxSeedLength = sdk.MaxSeedLength
)

// Errors of derivation.
var (
	ErrSeeds  = errors.New("solana: an address has at most 16 seeds of at most 32 bytes each")
	ErrNoBump = errors.New("solana: no bump gives an address off the curve")
)

// FindProgramAddress returns a program-derived address and its bump: the first one from
// 255 downwards that is off the curve. Errors: [ErrSeeds], [ErrNoBump].
func FindProgramAddress(program Address, seeds ...[]byte) (Address, uint8, error) {
	// The bump is a seed too.
	if len(seeds) >= MaxSeeds {
		return Address{}, 0, fmt.Errorf("%w: got %d seeds", ErrSeeds, len(seeds))
	}
	for _, s := range seeds {
		if len(s) > MaxSeedLength {
			return Address{}, 0, fmt.Errorf("%w: got one of %d bytes", ErrSeeds, len(s))
		}
	}
	a, bump, err := sdk.FindProgramAddress(seeds, sdk.PublicKey(program))
	if err != nil {
		return Address{}, 0, ErrNoBump
	}
	return Address(a), bump, nil
}

// TokenAccount returns the associated token account of a wallet for a mint under its
// token program. It takes about ten microseconds: see [AccountCache].
func TokenAccount(wallet, mint, program Address) (Address, error) {
	a, _, err := FindProgramAddress(AssociatedTokenProgram, wallet[:], program[:], mint[:])
	if err != nil {
		return Address{}, fmt.Errorf("token account of %s: %w", Base58(wallet), err)
	}
	return a, nil
}

// MaxCachedAccounts bounds each half of the cache of derived accounts.
const MaxCachedAccounts = 1 << 13

// accountKey has what an associated token account is derived from.
type accountKey struct{ wallet, mint, program Address }

// AccountCache caches token accounts: at most twice [MaxCachedAccounts]. It evicts those
// that were not used lately. A derivation never changes, so no entry is stale. The zero
// value is ready. Safe for concurrent use.
type AccountCache struct {
	mu       sync.Mutex
	new, old map[accountKey]Address
}

// TokenAccount is [TokenAccount], cached.
func (c *AccountCache) TokenAccount(wallet, mint, program Address) (Address, error) {
	key := accountKey{wallet, mint, program}
	if a, ok := c.lookup(key); ok {
		return a, nil
	}
	a, err := TokenAccount(wallet, mint, program)
	if err != nil {
		return Address{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(key, a)
	return a, nil
}

func (c *AccountCache) lookup(key accountKey) (Address, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.new[key]; ok {
		return a, true
	}
	a, ok := c.old[key]
	if ok {
		c.add(key, a)
	}
	return a, ok
}

// add adds an entry. When the new half is full it becomes the old one.
func (c *AccountCache) add(key accountKey, a Address) {
	if c.new == nil || len(c.new) >= MaxCachedAccounts {
		c.new, c.old = make(map[accountKey]Address), c.new
	}
	c.new[key] = a
}
