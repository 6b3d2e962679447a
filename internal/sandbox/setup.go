package sandbox

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Setup is the content of sandbox.json in Options.SetupDir. Addresses are base58.
type Setup struct {
	RPCURL        string          `json:"rpc_url"`
	GenesisHash   string          `json:"genesis_hash"`
	Mints         map[string]Mint `json:"mints"` // by symbol: USDC, SLUSD, 92C
	Desk          Party           `json:"desk"`
	Treasury      Party           `json:"treasury"` // its address takes SOL, its account USDC
	Wallets       []Party         `json:"wallets"`
	MintAuthority Party           `json:"mint_authority"` // of all three mints

	dir string
}

// Mint is a token of the setup.
type Mint struct {
	Address  string `json:"address"`
	Decimals uint8  `json:"decimals"`
	Program  string `json:"program"` // of the Token or the Token-2022 program
}

// Party is a key holder.
type Party struct {
	Address  string            `json:"address"`
	Keypair  string            `json:"keypair"`  // file name in the setup's folder
	Accounts map[string]string `json:"accounts"` // associated token account by symbol
}

// ReadSetup reads DIR/sandbox.json.
func ReadSetup(dir string) (*Setup, error) {
	file := filepath.Join(dir, "sandbox.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	s := &Setup{dir: dir}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("sandbox: %s: %w", file, err)
	}
	return s, nil
}

// Key reads a party's keypair.
func (s *Setup) Key(p Party) (ed25519.PrivateKey, error) {
	return ReadKey(filepath.Join(s.dir, p.Keypair))
}

// ReadKey reads a keypair file in Solana's form, a JSON array of 64 numbers:
// the seed, then the public key that belongs to it.
func ReadKey(file string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	var numbers []int
	if err := json.Unmarshal(text, &numbers); err != nil {
		return nil, fmt.Errorf("sandbox: %s is not a keypair: must be a JSON array of numbers", file) // the cause would quote the key
	}
	if len(numbers) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("sandbox: %s has %d numbers, a keypair has %d", file, len(numbers), ed25519.PrivateKeySize)
	}
	key := make(ed25519.PrivateKey, len(numbers))
	for i, n := range numbers {
		if n < 0 || n > 255 {
			return nil, fmt.Errorf("sandbox: %s: number %d is not a byte", file, i)
		}
		key[i] = byte(n)
	}
	if !bytes.Equal(ed25519.NewKeyFromSeed(key.Seed()), key) {
		return nil, fmt.Errorf("sandbox: %s: its public key is not that of its seed", file)
	}
	return key, nil
}
