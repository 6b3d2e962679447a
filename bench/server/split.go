package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// splitSecret is how long the secret is that the gateways of a split service share,
// in bytes.
const splitSecret = 32

// StartSplit runs one process of exe for each list of symbols, each in a folder of
// its own in dir: groups g1, g2 and so on, with an engine and a journal each, whose
// gateways know each other. config (YAML), of all instruments, is the same for all.
// All are bound to one core; negative = any. It returns when all are ready.
func StartSplit(ctx context.Context, core int, exe, dir, config string, symbols [][]string) (all []*Server, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, Group(all).Kill())
			all = nil
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	secret := make([]byte, splitSecret)
	_, _ = rand.Read(secret) // never fails
	file := filepath.Join(dir, "routing.hex")
	if err := os.WriteFile(file, []byte(hex.EncodeToString(secret)), 0o600); err != nil {
		return nil, err
	}
	var groups strings.Builder
	groups.WriteString("groups:\n")
	for i, list := range symbols {
		s, err := prepared(exe, filepath.Join(dir, fmt.Sprintf("g%d", i+1)))
		if err != nil {
			return all, err
		}
		s.core = core
		all = append(all, s)
		a := &s.Addresses
		fmt.Fprintf(&groups, "  - {name: g%d, number: %[1]d, instruments: [%s], nodes: [{base_url: %q, api_url: %q, ws_url: %q, fix: %q}]}\n",
			i+1, strings.Join(list, ", "), a.Base, a.API, a.WS, a.FIX)
	}
	for i, s := range all {
		own := fmt.Sprintf("%s\nrouting: {group: g%d, secret_file: %q}\n%s", config, i+1, file, &groups)
		if err := os.WriteFile(s.config, []byte(own), 0o600); err != nil {
			return all, err
		}
		if err := s.run(ctx); err != nil {
			return all, fmt.Errorf("group g%d: %w", i+1, err)
		}
	}
	return all, nil
}
