package settle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"blockdesk/desk"
	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/engine/rfq"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
)

// keyNumbers returns the seed of a key file as it is written in it.
func keyNumbers(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	numbers := strings.Split(strings.Trim(string(text), "[]\n"), ",")
	return strings.Join(numbers[:8], ",")
}

func TestKeyCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "desk.json")
	made, err := programtest.Run(t, "", nil, "key", "new", file)
	if err != nil {
		t.Fatalf("%v: %s", err, made)
	}
	address, err := solana.ParseAddress(strings.TrimSpace(made))
	if err != nil {
		t.Fatalf("%v: %s", err, made)
	}
	shown, err := programtest.Run(t, "", nil, "key", "show", file)
	if err != nil || shown != made {
		t.Errorf("%v: %s", err, shown)
	}
	shown, err = programtest.Run(t, "", nil, "key", "show", file, "--json")
	var answer struct {
		OK            bool
		Address, File string
	}
	if err != nil || json.Unmarshal([]byte(shown), &answer) != nil || !answer.OK || answer.Address != solana.Base58(address) || answer.File != file {
		t.Errorf("%v: %s", err, shown)
	}
	link := file + ".link"
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	secret := keyNumbers(t, file)
	for _, args := range [][]string{
		{"key"},
		{"key", "new"},
		{"key", "new", file},
		{"key", "new", file, file},
		{"key", "show"},
		{"key", "show", file + "x"},
		{"key", "show", link},
		{"key", "new", filepath.Join(file, "x")},
		{"signer"},
		{"signer", "--key", file},
		{"signer", "--key", link, "--socket", "s"},
		{"signer", "--key", file, "--socket", "s", "--allow-uid", "4294967296"},
		{"signer", "--key", file, "--socket", "s", "--record", file},
	} {
		out, err := programtest.Run(t, "", nil, args...)
		if (err == nil) != (len(args) == 1 && args[0] == "key") || strings.Contains(out, secret) {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
	if again := keyNumbers(t, file); again != secret {
		t.Error("the key has changed")
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := programtest.Run(t, "", nil, "key", "show", file); err == nil || !strings.Contains(out, "lets other users read it") {
		t.Errorf("open to others: %v: %s", err, out)
	}
}

// yes is a desk that agrees.
type yes struct{}

func (yes) Do(r rfq.Request) (*desk.Result, error) {
	return &desk.Result{Outcome: rfq.Outcome{Kind: r.Kind()}}, nil
}

// deliveryBy returns a delivery that the desk may sign; n makes it another message.
func deliveryBy(t *testing.T, desk solana.Address, claim market.ClaimID, n byte) cosign.Authorized {
	t.Helper()
	mint := token.Mint{Address: solana.Address{7, 7}, Program: solana.TokenProgram, Decimals: 9}
	base, err := mint.Check(0)
	if err != nil {
		t.Fatal(err)
	}
	d := build.Delivery{
		Common: build.Common{
			Blockhash: solana.Hash{n}, Budget: build.Budget{Units: 100_000}, Memo: binding.Memo(claim), Reference: binding.Reference(claim),
		},
		Desk: desk, Wallet: solana.Address{9, 9}, Base: base, Amount: 1,
	}
	u, err := d.Build(&solana.AccountCache{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := cosign.AuthorizeDelivery(yes{}, claim, u)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestSignerProcess: the key in another process signs the same as here, is found
// again after it was killed, and remembers then what it has signed.
func TestSignerProcess(t *testing.T) {
	dir, err := os.MkdirTemp("", "signer") // short: a socket's path has to be
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file, socket := filepath.Join(dir, "desk.json"), filepath.Join(dir, "socket")
	address, err := cosign.NewKeyFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, signer := chaintest.StartSigner(t, file, socket)
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	here, err := cosign.OpenKeyFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := deliveryBy(t, address, 1, 1).Sign(ctx, here)
	if err != nil {
		t.Fatal(err)
	}
	for n := range byte(cosign.MaxDeliveries) {
		x, err := deliveryBy(t, address, 1, n+1).Sign(ctx, signer)
		if err != nil || n == 0 && !bytes.Equal(x.Bytes(), want.Bytes()) {
			t.Fatalf("message %d: %v", n, err)
		}
	}
	if err := p.End(t, syscall.SIGKILL); err == nil {
		t.Error("it was not killed")
	}
	if _, err := deliveryBy(t, address, 1, 1).Sign(ctx, signer); !errors.Is(err, cosign.ErrUnavailable) {
		t.Errorf("while it is down: %v", err)
	}
	again, _ := chaintest.StartSigner(t, file, socket)
	if x, err := deliveryBy(t, address, 1, 1).Sign(ctx, signer); err != nil || !bytes.Equal(x.Bytes(), want.Bytes()) {
		t.Errorf("after the kill: %v", err)
	}
	if _, err := deliveryBy(t, address, 1, cosign.MaxDeliveries+1).Sign(ctx, signer); !errors.Is(err, cosign.RefusalDeliveries) {
		t.Errorf("one more after the kill: %v", err)
	}
	if out, err := programtest.Run(t, "", nil, "signer", "--key", file, "--socket", socket+"2"); err == nil || !strings.Contains(out, "another signer") {
		t.Errorf("a second signer: %v: %s", err, out)
	}
	if err := again.End(t, syscall.SIGTERM); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	var reported struct {
		Address, Socket, Record string
		Remembered              int
	}
	if err := json.NewDecoder(bytes.NewReader(again.Out.Bytes())).Decode(&reported); err != nil || reported.Address != solana.Base58(address) ||
		reported.Socket != socket || reported.Record != file+".signed" || reported.Remembered != cosign.MaxDeliveries {
		t.Errorf("answer %+v, %v", reported, err)
	}
	secret := keyNumbers(t, file)
	for _, signer := range []*chaintest.SignerProcess{p, again} {
		out, log := signer.Out.String(), signer.Log.String()
		if strings.Contains(out+log, secret) || !strings.Contains(log, "transaction signed") || !strings.Contains(log, "signer has no limits") {
			t.Errorf("printed %s\nlogged %s", out, log)
		}
	}
}
