package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/internal/sandbox"
	"blockdesk/service/servicetest"
)

// The demo's addresses are the same for ever: data folders have them, and README
// and documents name some.
func TestAddressesAreFrozen(t *testing.T) {
	for name, want := range map[string]string{
		MintUSDC: "8LNcMh2TqrE6yUJWMZnR2mKcymu6XYU9mYxY1LVC15Zk", MintSLUSD: "DUw5U71V3NiRQgmTaZrxqQsn7qkvVR3wSN4iJ4PY8ESN",
		Mint92C: "A2qZvQ5dfYP6TFecjFkqJ1i9n5EnS3hFfSiZYWFHXzge", Desk: "Hk7BeHS9qR6KoaKb4FFoQmyzhZctE4TbyBBj3pD6fQn",
		Treasury: "DQgTgShQXs6eXkXDTFCsfq8cZ6UxLtUbXRywN8iNMrxL", Wallet(1): "3qL15Uq8Uux4QotxejMsLRu15eoA2L7vxfwQsj9d4uEG",
	} {
		if got := Address(name); got != want {
			t.Errorf("%s is %s, was %s", name, got, want)
		}
	}
}

// The sandbox's setup makes exactly the mints and parties that the demo sells by,
// whatever chain it starts on.
func TestSandboxMakesTheDemosAddresses(t *testing.T) {
	t.Parallel()
	dir := servicetest.LocalChain(t)
	folder := t.TempDir()
	for range 2 { // the second chain starts anew over the first one's folder
		node, err := StartSandbox(t.Context(), sandbox.Options{Dir: dir, SetupDir: folder, Wallets: Wallets, ManualSlots: true})
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
		if err := checkSetup(setup, folder); err != nil {
			t.Error(err)
		}
		if setup.MintAuthority.Address != Address(MintAuthority) {
			t.Errorf("the mint authority is %s", setup.MintAuthority.Address)
		}
		for i, w := range setup.Wallets {
			if want := Address(Wallet(i + 1)); w.Address != want {
				t.Errorf("wallet %d is %s, want %s", i+1, w.Address, want)
			}
		}
		if len(setup.Wallets) != Wallets {
			t.Errorf("%d wallets", len(setup.Wallets))
		}
	}
}

// Keys that are there are used and not replaced; those that are made only their
// owner reads. A folder of other keys is refused.
func TestKeyFiles(t *testing.T) {
	folder := t.TempDir()
	other := KeyFile(folder, Desk)
	if err := os.WriteFile(other, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteKeys(folder, 1); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "[]" {
		t.Errorf("%s, %v", text, err)
	}
	for _, name := range keyNames(1) {
		if name == Desk {
			continue
		}
		key, err := sandbox.ReadKey(KeyFile(folder, name))
		if err != nil || !key.Equal(Key(name)) {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(KeyFile(folder, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := checkSetup(&sandbox.Setup{}, folder); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("a folder of other keys is taken: %v", err)
	}
}

// A folder has one chain at a time, and a start that comes too early waits until the
// one before has saved its state.
func TestChainFolderHasOneChain(t *testing.T) {
	t.Parallel()
	dir := servicetest.LocalChain(t)
	folder := t.TempDir()
	o := sandbox.Options{Dir: dir, SetupDir: folder, StateFile: filepath.Join(folder, ChainStateFile), ManualSlots: true}
	first, err := StartSandbox(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := StartSandbox(t.Context(), o); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("a second chain over the first: %v, %v", second, err)
	}
	if err := first.Call(t.Context(), "sandbox_advance", map[string]int{"slots": 100}, nil); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- first.Stop() }() // its lock is there until its state is saved
	third, err := StartSandbox(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var slot uint64
	if err := errors.Join(third.Call(t.Context(), "getSlot", nil, &slot), third.Stop(), <-ended); err != nil {
		t.Error(err)
	}
	if slot < 600-31 { // the default commitment is finalized
		t.Errorf("it goes on from slot %d", slot)
	}
}

func TestReason(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: no Node here", sandbox.ErrUnavailable), "no Node here"},
		{errors.Join(errors.New("sandbox: not ready"), errors.New("sandbox: listen EADDRINUSE")), "listen EADDRINUSE"},
		{errors.New("disk full"), "disk full"},
	} {
		if got := reason(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
