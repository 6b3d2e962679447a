package cosign

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/base58"
	"golang.org/x/sys/unix"

	"blockdesk/internal/solana"
)

func writeFile(t testing.TB, path string, content []byte, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func keyText(k ed25519.PrivateKey) []byte { return appendKey(nil, k) }

// TestNewKeyFile: a new key is a private file that we and Solana's tools read.
func TestNewKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "desk.json")
	address, err := NewKeyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	s, err := OpenKeyFile(path)
	if err != nil || s.Address() != address {
		t.Fatalf("opened %v, %v; want %s", s, err, solana.Base58(address))
	}
	theirs, err := sdk.PrivateKeyFromSolanaKeygenFile(path)
	if err != nil || solana.Address(theirs.PublicKey()) != address {
		t.Errorf("another tool reads %v, %v", theirs.PublicKey(), err)
	}
	delivery := deliveryOf(t, testClaim)
	delivery.Desk = address
	signedBy(t, authorized(t, &delivery), s)

	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewKeyFile(path); !errors.Is(err, ErrKeyExists) {
		t.Errorf("a second key in its place: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed: %v", err)
	}
	if other, err := NewKeyFile(filepath.Join(t.TempDir(), "desk.json")); err != nil || other == address {
		t.Errorf("another key: %s, %v", solana.Base58(other), err)
	}
}

// TestNoNewKey: what stands in a key's place stays, and nothing is left behind.
func TestNoNewKey(t *testing.T) {
	dir := t.TempDir()
	nowhere := filepath.Join(dir, "nowhere")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(nowhere, link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		want error
	}{
		"a link to nowhere": {link, ErrKeyExists},
		"a folder":          {dir, ErrKeyExists},
		"no folder":         {filepath.Join(nowhere, "desk.json"), fs.ErrNotExist},
	} {
		if a, err := NewKeyFile(c.path); !errors.Is(err, c.want) || a != (solana.Address{}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Lstat(nowhere); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was made behind the link: %v", err)
	}
}

// TestKeyFileModes: a file that others can read or write is refused.
func TestKeyFileModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "desk.json")
	for mode := fs.FileMode(0); mode <= 0o777; mode++ {
		writeFile(t, path, keyText(deskKey), 0o600)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := OpenKeyFile(path)
		switch {
		case mode&0o077 != 0 && mode&0o400 != 0 && !errors.Is(err, ErrKeyFile):
			t.Errorf("mode %#o: %v", mode, err)
		case mode&0o077 != 0 && err == nil:
			t.Errorf("mode %#o is accepted", mode)
		case mode&0o077 == 0 && mode&0o400 != 0 && err != nil:
			t.Errorf("mode %#o: %v", mode, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeyFileKinds: only a regular file of ours, not one that a link leads to.
func TestKeyFileKinds(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, at("key"), keyText(deskKey), 0o600)
	if err := errors.Join(os.Symlink(at("key"), at("link")), unix.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, want := range map[string]error{
		"key": nil, "link": ErrKeyFile, "pipe": ErrKeyFile, "folder": ErrKeyFile, "socket": unix.ENXIO, "nothing": fs.ErrNotExist,
	} {
		if s, err := OpenKeyFile(at(name)); !errors.Is(err, want) || (s == nil) != (err != nil) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if _, err := OpenKeyFile("/dev/zero"); !errors.Is(err, ErrKeyFile) {
		t.Errorf("a device: %v", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: a file of another user is made by root only")
	}
	if err := os.Chown(at("key"), 54321, -1); err != nil {
		t.Skipf("skipped: root may not give a file away here: %v", err)
	}
	if _, err := OpenKeyFile(at("key")); !errors.Is(err, ErrKeyFile) {
		t.Errorf("another user's: %v", err)
	}
}

// TestKeyFileContent: one array of 64 bytes, the seed and its own public key; no error
// has any of them.
func TestKeyFileContent(t *testing.T) {
	good := keyText(deskKey)
	numbers := strings.Split(strings.Trim(string(good), "[]"), ",")
	array := func(n []string) string { return "[" + strings.Join(n, ",") + "]" }
	with := func(i int, number string) string {
		n := slices.Clone(numbers)
		n[i] = number
		return array(n)
	}
	spaced := "[\n  " + strings.Join(numbers, ",\n  ") + "\n]\n"
	for name, text := range map[string]string{"plain": string(good), "spaced": spaced, "at the limit": string(good) + strings.Repeat(" ", MaxKeyFile-len(good))} {
		if s, err := OpenKeyFile(keyFile(t, text)); err != nil || s.Address() != deskAddress {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	whole, err := json.Marshal([]byte(deskKey)) // base64 in a string
	if err != nil {
		t.Fatal(err)
	}
	other := keyText(otherKey)
	otherNumbers := strings.Split(strings.Trim(string(other), "[]"), ",")
	for name, text := range map[string]string{
		"over the limit":   string(good) + strings.Repeat(" ", MaxKeyFile+1-len(good)),
		"empty":            "",
		"not JSON":         "key",
		"null":             "null",
		"no numbers":       "[]",
		"63 numbers":       array(numbers[:63]),
		"65 numbers":       array(append(slices.Clone(numbers), "0")),
		"the seed alone":   array(numbers[:32]),
		"two keys":         array(append(slices.Clone(numbers), otherNumbers...)),
		"base64":           string(whole),
		"an object":        `{"key":` + string(good) + `}`,
		"a nested array":   "[" + string(good) + "]",
		"more behind":      string(good) + string(good),
		"cut":              string(good[:len(good)-1]),
		"number over 255":  with(0, "257"), // the key's own, and 256
		"number over 2^16": with(0, "65537"),
		"negative number":  with(0, "-1"),
		"a fraction":       with(0, "1.5"),
		"an exponent":      with(0, "1e2"),
		"a text":           with(0, `"1"`),
		"a null":           with(40, "null"),
		"another seed":     with(31, "77"),
		"another public":   array(append(slices.Clone(numbers[:32]), otherNumbers[32:]...)),
		"another's parity": with(63, fmt.Sprint(int(deskKey[63])^0x80)),
	} {
		path := keyFile(t, text)
		s, err := OpenKeyFile(path)
		if !errors.Is(err, ErrKeyFile) || s != nil {
			t.Errorf("%s: %v, %v", name, s, err)
			continue
		}
		message := strings.ReplaceAll(err.Error(), path, "PATH")
		if message != ErrKeyFile.Error()+": PATH: want a JSON array of 64 numbers whose last 32 are the public key of the first 32" &&
			message != fmt.Sprintf("%v: PATH has more than %d bytes", ErrKeyFile, MaxKeyFile) {
			t.Errorf("%s: the error has the content: %v", name, err)
		}
	}
}

func keyFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "desk.json")
	writeFile(t, path, []byte(text), 0o600)
	return path
}

// FuzzKey: what is read as a key is written as the same numbers.
func FuzzKey(f *testing.F) {
	f.Add(keyText(deskKey))
	f.Add([]byte("[1,2,3]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, ok := parseKey(text)
		if !ok {
			return
		}
		var want []int
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		var got []int
		if err := json.Unmarshal(appendKey(nil, key[:]), &got); err != nil || !slices.Equal(got, want) {
			t.Fatalf("read %v as %v", want, got)
		}
	})
}

// tellings are the ways in which a secret could be seen.
func tellings(secret []byte) map[string]string {
	decimal, commas := fmt.Sprintf("%d", secret[:6]), make([]string, 6)
	for i := range commas {
		commas[i] = fmt.Sprint(secret[i])
	}
	return map[string]string{
		"decimal": strings.Trim(decimal, "[]"), "commas": strings.Join(commas, ","), "Go": fmt.Sprintf("%#v", secret[:3])[8:],
		"hex": hex.EncodeToString(secret[:6]), "HEX": strings.ToUpper(hex.EncodeToString(secret[:6])), "raw": string(secret[:6]),
		"spaced hex": fmt.Sprintf("% x", secret[:6]), "base64": base64.StdEncoding.EncodeToString(secret[:30])[:12],
		"base58": base58.Encode(secret)[:10], "quoted": strings.Trim(fmt.Sprintf("%q", secret[:6]), `"`),
	}
}

// TestRedaction: a key is not shown, however it is printed, encoded or logged, by
// itself or inside another value.
func TestRedaction(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newFileSigner((*[64]byte)(private))
	type holder struct {
		Key    *FileSigner
		Value  FileSigner
		hidden *FileSigner
		inside FileSigner
		any    any
	}
	h := holder{s, *s, s, *s, *s}
	var all strings.Builder
	for _, v := range []any{s, *s, &s, h, &h, []FileSigner{*s}, []*FileSigner{s}, map[string]FileSigner{"k": *s}, [1]any{s}, fmt.Errorf("x: %v", s)} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%o", "%b", "%c", "%U", "%t", "%e", "%p", "%T", "%08.3d", "%+q", "%#x", "%w"} {
			fmt.Fprintf(&all, verb+"\n", v)
		}
		fmt.Fprintln(&all, v)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&all, nil), slog.NewJSONHandler(&all, nil)} {
		l := slog.New(handler)
		l.Info("x", "pointer", s, "value", *s, "holder", h, "list", []*FileSigner{s}, slog.Group("g", "key", s))
		l.With("key", s).Info("y")
	}
	for _, v := range []any{s, *s, h, []FileSigner{*s}, map[string]*FileSigner{"k": s}} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	text := all.String()
	if n := strings.Count(text, solana.Base58(s.Address())); n < 50 {
		t.Errorf("the address is printed %d times only: the test proves little", n)
	}
	for what, secret := range tellings(private.Seed()) {
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("shown as %s: %s", what, text[max(0, at-60):at])
		}
	}
	// The output of fmt without the methods.
	bare := fmt.Sprintf("%d %x %v", struct{ k []byte }{private}, []byte(private), private)
	for _, what := range []string{"decimal", "hex"} {
		if !strings.Contains(bare, tellings(private.Seed())[what]) {
			t.Errorf("%s would not be found if it were shown", what)
		}
	}
}
