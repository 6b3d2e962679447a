package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/internal/sandbox"
)

// localChain returns the folder of the local chain's server, and skips the test
// where it cannot run.
func localChain(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "internal", "sandbox"))
	if err != nil {
		t.Fatal(err)
	}
	if err := (sandbox.Options{Dir: dir}).Check(t.Context()); err != nil {
		t.Skip(err)
	}
	return dir
}

// The demo's addresses are the same for ever: data folders have them, and README
// and documents name some.
func TestDemoAddressesAreFrozen(t *testing.T) {
	for name, want := range map[string]string{
		demoMintUSDC: "8LNcMh2TqrE6yUJWMZnR2mKcymu6XYU9mYxY1LVC15Zk", demoMintSLUSD: "DUw5U71V3NiRQgmTaZrxqQsn7qkvVR3wSN4iJ4PY8ESN",
		demoMint92C: "A2qZvQ5dfYP6TFecjFkqJ1i9n5EnS3hFfSiZYWFHXzge", demoDesk: "Hk7BeHS9qR6KoaKb4FFoQmyzhZctE4TbyBBj3pD6fQn",
		demoTreasury: "DQgTgShQXs6eXkXDTFCsfq8cZ6UxLtUbXRywN8iNMrxL", fmt.Sprintf(demoWallet, 1): "3qL15Uq8Uux4QotxejMsLRu15eoA2L7vxfwQsj9d4uEG",
	} {
		if got := demoAddress(name); got != want {
			t.Errorf("%s is %s, was %s", name, got, want)
		}
	}
}

// The sandbox's setup makes exactly the mints and parties that the demo sells by,
// whatever chain it starts on.
func TestSandboxMakesTheDemosAddresses(t *testing.T) {
	t.Parallel()
	dir := localChain(t)
	folder := t.TempDir()
	for range 2 { // the second chain starts anew over the first one's folder
		node, err := startSandbox(t.Context(), sandbox.Options{Dir: dir, SetupDir: folder, Wallets: demoWallets, ManualSlots: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := node.Stop(); err != nil {
			t.Fatal(err)
		}
		setup, err := sandbox.ReadSetup(folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkDemoSetup(setup, folder); err != nil {
			t.Error(err)
		}
		if setup.MintAuthority.Address != demoAddress(demoAuthority) {
			t.Errorf("the mint authority is %s", setup.MintAuthority.Address)
		}
		for i, w := range setup.Wallets {
			if want := demoAddress(fmt.Sprintf(demoWallet, i+1)); w.Address != want {
				t.Errorf("wallet %d is %s, want %s", i+1, w.Address, want)
			}
		}
		if len(setup.Wallets) != demoWallets {
			t.Errorf("%d wallets", len(setup.Wallets))
		}
	}
}

// Keys that are there are used and not replaced; those that are made only their
// owner reads. A folder of other keys is refused.
func TestDemoKeyFiles(t *testing.T) {
	folder := t.TempDir()
	other := demoKeyFile(folder, demoDesk)
	if err := os.WriteFile(other, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeDemoKeys(folder, 1); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "[]" {
		t.Errorf("%s, %v", text, err)
	}
	for _, name := range demoKeyNames(1) {
		if name == demoDesk {
			continue
		}
		key, err := sandbox.ReadKey(demoKeyFile(folder, name))
		if err != nil || !key.Equal(demoKey(name)) {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(demoKeyFile(folder, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := checkDemoSetup(&sandbox.Setup{}, folder); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("a folder of other keys is taken: %v", err)
	}
}

func TestPlainReason(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: no Node here", sandbox.ErrUnavailable), "no Node here"},
		{errors.Join(errors.New("sandbox: not ready"), errors.New("sandbox: listen EADDRINUSE")), "listen EADDRINUSE"},
		{errors.New("disk full"), "disk full"},
	} {
		if got := plainReason(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
