package main

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

	"blockdesk/service/config"
)

// The demo's keys are made of their names, so that its mints and its desk have
// the same addresses on every machine, before there is a chain and after its
// folder was lost: a pair keeps its mint for as long as it has sold anything.
// They are no secrets. What is paid to them is anybody's, so --demo settles on a
// chain of this machine alone.
const demoKeyDomain = "blockdesk demo key, no secret: "

// Names of the demo's keys: those of the sandbox's setup, which names the mints
// and parties that it makes by them.
const (
	demoAuthority = "mint-authority"
	demoMintUSDC  = "mint-usdc"
	demoMintSLUSD = "mint-slusd"
	demoMint92C   = "mint-92c"
	demoDesk      = "desk"
	demoTreasury  = "treasury"
	demoWallet    = "wallet-%d" // from 1

	// demoTill is ours alone: SOL is paid to it. The setup gives the treasury SOL,
	// which would be money that the desk cannot book.
	demoTill = "treasury-sol"
)

func demoKey(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(demoKeyDomain + name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// demoAddress is the base58 of a demo key's public half.
func demoAddress(name string) string { return base58.Encode(demoKey(name)[ed25519.SeedSize:]) }

// demoPairMints are the mints of what the demo sells, by the placeholder that a
// configuration has in their place.
var demoPairMints = map[string]string{config.PlaceholderSLUSD: demoMintSLUSD, config.Placeholder92C: demoMint92C}

// demoKeyNames are all of them, with so many wallets.
func demoKeyNames(wallets int) []string {
	names := []string{demoAuthority, demoMintUSDC, demoMintSLUSD, demoMint92C, demoDesk, demoTreasury, demoTill}
	for i := range wallets {
		names = append(names, fmt.Sprintf(demoWallet, i+1))
	}
	return names
}

// writeDemoKeys puts the keypairs that are missing into a folder, in Solana's
// form: the sandbox's setup uses what it finds.
func writeDemoKeys(dir string, wallets int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range demoKeyNames(wallets) {
		path := demoKeyFile(dir, name)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return err
			}
			continue
		}
		var numbers []int // of a []byte, JSON would be base64
		for _, b := range demoKey(name) {
			numbers = append(numbers, int(b))
		}
		text, err := json.Marshal(numbers)
		if err != nil {
			return err
		}
		if err := replaceFile(path, append(text, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func demoKeyFile(dir, name string) string { return filepath.Join(dir, name+".json") }
