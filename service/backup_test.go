package service

import (
	"log/slog"
	"path/filepath"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/settle/store"
)

// TestBackupCursors: what the treasury was paid while the backup was made is read
// again after a restore: the copied journal may not have it.
func TestBackupCursors(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "settle")
	open := func() (*persist.KV, *store.Store) {
		kv, err := persist.OpenKV(dir, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		st, err := store.Open(kv)
		if err != nil {
			t.Fatal(err)
		}
		return kv, st
	}
	kv, st := open()
	before, meanwhile := solana.Signature{1}, solana.Signature{2}
	for account, sig := range map[market.Address]solana.Signature{{1}: meanwhile, {2}: before} {
		if err := st.SetCursor(account, sig); err != nil {
			t.Fatal(err)
		}
	}
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
	b := &backups{log: slog.New(slog.DiscardHandler)}
	if cursors, err := b.cursors(); cursors != nil || err != nil {
		t.Fatalf("without settlement: %v, %v", cursors, err)
	}
	if err := b.setCursors(dir, map[market.Address]solana.Signature{{1}: before, {2}: before}); err != nil {
		t.Fatal(err)
	}
	kv, st = open()
	cursors, err := st.Cursors()
	if err != nil || len(cursors) != 2 || cursors[market.Address{1}] != before || cursors[market.Address{2}] != before {
		t.Errorf("%v, %v", cursors, err)
	}
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
}
