package demo

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/internal/atomicfile"
	"blockdesk/service/config"
)

// The demo's keys are derived from their names, so that its mints and its desk have the same
// addresses on every machine, before the chain exists and after its folder was lost: a pair
// that has sold keeps its mint.
// They are not secret: anyone could take a payment to them, so --demo settles on a chain
// of this machine only.
const keyDomain = "blockdesk demo key, no secret: "

// Names of the demo's keys, as the sandbox's setup names mints and parties.
const (
	MintAuthority = "mint-authority"
	MintUSDC      = "mint-usdc"
	MintSLUSD     = "mint-slusd"
	Mint92C       = "mint-92c"
	Desk          = "desk"
	Treasury      = "treasury"

	// TreasurySOL receives SOL. It is not in the setup, which gives the treasury SOL that
	// the desk could not book.
	TreasurySOL = "treasury-sol"
)

// Wallet returns the name of the n-th wallet's key, from 1.
func Wallet(n int) string { return fmt.Sprintf("wallet-%d", n) }

// Key returns the key of a name.
func Key(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(keyDomain + name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// Address returns the public half of a key, in base58.
func Address(name string) string { return base58.Encode(Key(name)[ed25519.SeedSize:]) }

// pairMints has the keys of the demo's mints by their placeholder in a configuration.
var pairMints = map[string]string{config.PlaceholderSLUSD: MintSLUSD, config.Placeholder92C: Mint92C}

// keyNames returns the names of all keys, with so many wallets.
func keyNames(wallets int) []string {
	names := []string{MintAuthority, MintUSDC, MintSLUSD, Mint92C, Desk, Treasury, TreasurySOL}
	for i := range wallets {
		names = append(names, Wallet(i+1))
	}
	return names
}

// WriteKeys writes the keypairs that a folder lacks, in Solana's format, readable by their
// owner only. The sandbox's setup uses existing keys.
func WriteKeys(dir string, wallets int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range keyNames(wallets) {
		path := KeyFile(dir, name)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return err
			}
			continue
		}
		var numbers []int // of a []byte, JSON would be base64
		for _, b := range Key(name) {
			numbers = append(numbers, int(b))
		}
		text, err := json.Marshal(numbers)
		if err != nil {
			return err
		}
		if err := atomicfile.Write(path, append(text, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// KeyFile returns where WriteKeys puts the key of a name.
func KeyFile(dir, name string) string { return filepath.Join(dir, name+".json") }
