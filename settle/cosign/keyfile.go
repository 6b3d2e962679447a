package cosign

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"blockdesk/internal/solana"
)

// MaxKeyFile bounds a key file in bytes: 64 numbers of three digits, with room for
// one of them a line.
const MaxKeyFile = 1024

// Errors of key files, wrapped with the path. Nothing of a file's content is in an
// error.
var (
	// ErrKeyFile: a file without a key, or one that others can access.
	ErrKeyFile = errors.New("cosign: not a usable key file")
	// ErrKeyExists: a new key would replace a file.
	ErrKeyExists = errors.New("cosign: the key file exists already and is not replaced: name another path")
)

// FileSigner is a key from a file, in this process. Printed, encoded or logged it is
// its address. Its copies are the same signer.
type FileSigner struct {
	address solana.Address
	// sign is a function that captures the key. If the key were a field, fmt would
	// print it in a struct that has an unexported field of type FileSigner: there fmt
	// calls no methods, and follows pointers for a verb that does not fit.
	sign func(message []byte) solana.Signature
}

// OpenKeyHardened hardens the process and opens a key file.
func OpenKeyHardened(path string) (*FileSigner, error) {
	if err := HardenProcess(); err != nil {
		return nil, err
	}
	return OpenKeyFile(path)
}

// OpenKeyFile reads a key in the format of Solana's tools: a JSON array of 64 numbers,
// the seed and the public key. The file must be a regular one, not a symbolic link,
// ours, and closed to all other users (mode 0600 or less). solana-go's reader checks
// none of that, and its keys can be printed. Errors: [ErrKeyFile], errors of the file
// system.
func OpenKeyFile(path string) (*FileSigner, error) {
	text, err := readPrivate(path, MaxKeyFile)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	key, ok := parseKey(text)
	if !ok {
		return nil, fmt.Errorf("%w: %s: want a JSON array of 64 numbers whose last 32 are the public key of the first 32", ErrKeyFile, path)
	}
	return newFileSigner(key), nil
}

func newFileSigner(key *[ed25519.PrivateKeySize]byte) *FileSigner {
	sign := func(message []byte) solana.Signature { return solana.Signature(ed25519.Sign(key[:], message)) }
	return &FileSigner{solana.Address(key[ed25519.SeedSize:]), sign}
}

// readPrivate reads a small file that no other user can read or write.
func readPrivate(path string, most int) ([]byte, error) {
	f, err := openPrivate(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	switch {
	case err != nil:
		clear(text)
		return nil, fmt.Errorf("reading the key file: %w", err)
	case len(text) > most:
		clear(text)
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrKeyFile, path, most)
	}
	return text, nil
}

// parseKey parses the array. It drops errors of package json, which quote their input.
func parseKey(text []byte) (*[ed25519.PrivateKeySize]byte, bool) {
	var numbers []uint16 // not of bytes, which would be read from a string too
	defer func() { clear(numbers) }()
	if err := json.Unmarshal(text, &numbers); err != nil || len(numbers) != ed25519.PrivateKeySize {
		return nil, false
	}
	var key [ed25519.PrivateKeySize]byte
	for i, n := range numbers {
		if n > 0xff {
			return nil, false
		}
		key[i] = byte(n)
	}
	whole := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])
	defer clear(whole)
	return &key, subtle.ConstantTimeCompare(whole, key[:]) == 1
}

// NewKeyFile makes a key, writes it to a new file of mode 0600 and syncs it. It
// replaces no file. Errors: [ErrKeyExists], errors of the file system.
func NewKeyFile(path string) (solana.Address, error) {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return solana.Address{}, fmt.Errorf("making a new key: %w", err)
	}
	defer clear(key)
	text := appendKey(make([]byte, 0, MaxKeyFile), key)
	defer clear(text)
	if err := createPrivate(path, text); err != nil {
		return solana.Address{}, err
	}
	return solana.Address(public), nil
}

func appendKey(dst []byte, key ed25519.PrivateKey) []byte {
	for i, b := range key {
		dst = append(dst, "[,"[min(i, 1)])
		dst = strconv.AppendUint(dst, uint64(b), 10)
	}
	return append(dst, ']')
}

// createPrivate creates a file with this content and syncs it; after an error there
// is no file.
func createPrivate(path string, content []byte) error {
	f, err := openPrivate(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: %s", ErrKeyExists, path)
	} else if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(content))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = syncFolder(path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), os.Remove(path))
	}
	return nil
}

func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// Address returns the public key.
func (s FileSigner) Address() solana.Address { return s.address }

// Sign signs a job's message. It does not block. Errors: [ErrZero]; [ErrSigner] if the
// job needs the signature of another key.
func (s FileSigner) Sign(_ context.Context, j Job) (solana.Signature, error) {
	switch {
	case j.job == nil:
		return solana.Signature{}, fmt.Errorf("%w of Job was used", ErrZero)
	case j.job.Desk != s.address:
		return solana.Signature{}, fmt.Errorf("%w: the transaction needs the signature of %s, the signer's key is %s: check the signer's key file", ErrSigner, solana.Base58(j.job.Desk), solana.Base58(s.address))
	}
	return s.sign(j.Message()), nil
}

// String returns the address with a label.
func (s FileSigner) String() string { return "key of " + solana.Base58(s.address) }

// Format prints String for every verb, because %d would print the fields.
func (s FileSigner) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText returns String, for encoders.
func (s FileSigner) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns String.
func (s FileSigner) LogValue() slog.Value { return slog.StringValue(s.String()) }
