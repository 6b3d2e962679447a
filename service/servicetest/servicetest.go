// Package servicetest has configurations and helpers that the tests of services and the
// end-to-end tests share: a participants file with two firms, a configuration from a text,
// a secret file, and the folder of the local chain.
//
// Passwords and keys here are public and protect nothing. PasswordHash is computed once a
// process, because the hash is slow by design. Functions that take a testing.TB write into
// its temporary folder and fail or skip the test themselves.
package servicetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"blockdesk/fixgw/participants"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/service/config"
)

// Load reads a configuration file of this text.
func Load(t testing.TB, text string) (config.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(path, nil, nil)
	return cfg, err
}

// The firms of Participants. AA-2 is a second session of AA.
const (
	FirmA, FirmA2, FirmB = "AA", "AA-2", "BB"
	Password             = "correct horse"
)

// PasswordHash returns the hash of Password. It is computed once, because the hash is slow by
// design.
var PasswordHash = sync.OnceValues(func() (string, error) { return participants.HashPassword(Password) })

// Participants writes a participants file with the two firms, and returns its path.
func Participants(t testing.TB) string {
	t.Helper()
	hash, err := PasswordHash()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "participants.yaml")
	text := fmt.Sprintf(`participants:
  - {name: %[1]s, number: 1, comp_ids: [%[1]s, %[2]s], password_hash: %[4]q, stp: cancel_newest}
  - {name: %[3]s, number: 2, comp_ids: [%[3]s], password_hash: %[4]q, stp: cancel_newest}
`, FirmA, FirmA2, FirmB, hash)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The only node of each group of TwoGroups. Nothing listens there.
const (
	EUNode = `{base_url: "http://127.0.0.1:8080", api_url: "http://127.0.0.1:8000", ws_url: "ws://127.0.0.1:8081", fix: "127.0.0.1:9878"}`
	USNode = `{base_url: "http://127.0.0.2:8080", api_url: "http://127.0.0.2:8000", ws_url: "ws://127.0.0.2:8081", fix: "127.0.0.2:9878"}`
)

// TwoGroups returns a configuration of two groups with these nodes, for the group eu.
func TwoGroups(secretFile, eu, us string) string {
	return `
rfq:
  pairs:
    - {symbol: SLUSD/USDC, base_mint: ` + config.PlaceholderSLUSD + `, base_decimals: 6, rails: [USDC], price_source: operator, corridor_bps: 1000, max_age_s: 3600}
    - {symbol: 92C/SLUSD, base_mint: ` + config.Placeholder92C + `, base_decimals: 6, rails: [USDC], price_source: operator, corridor_bps: 1000, max_age_s: 3600}
routing: {group: eu, secret_file: ` + secretFile + `}
groups:
  - {name: eu, number: 1, instruments: [SLUSD/USDC], nodes: [` + eu + `]}
  - {name: us, number: 2, instruments: [92C/SLUSD], nodes: [` + us + `]}
`
}

// SecretFile writes a secret of that many bytes for the gateways of groups, and returns its
// path.
func SecretFile(t testing.TB, bytes int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(strings.Repeat("0a", bytes)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// LocalChain returns the folder of the local chain's server, and skips the test if
// the chain cannot run.
func LocalChain(t testing.TB) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := sandbox.Find(here)
	if err := (sandbox.Options{Dir: dir}).Check(t.Context()); err != nil {
		runtest.SkipMissing(t, "local chain ("+err.Error()+")", "make sandbox")
	}
	return dir
}

// NobodysAddress is an address without a known key.
const NobodysAddress = "PLaceho1derPaytoSoLxxxxxxxxxxxxxxxxxxxxxxxx"
