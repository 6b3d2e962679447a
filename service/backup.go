package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"blockdesk/internal/atomicfile"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/settle/store"
)

// copiedFiles are what a backup has beside the journal and the stores. The
// operator's token is no part of it: a restored service makes a new one.
var copiedFiles = []string{appliedFile, tokenListFile}

// backupState is the one backup that may be under way.
type backupState struct {
	running sync.Mutex // held for as long as it takes
	mu      sync.Mutex
	pinned  uint64 // the stores are copied as of this Seq or later; 0 = no backup
}

// floor keeps the journal from dropping what the copied stores have not seen.
func (b *backupState) floor() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pinned == 0 {
		return persist.NewestSnapshot
	}
	return b.pinned
}

func (b *backupState) pin(seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pinned = seq
}

// wait returns when no backup is under way, and lets no other begin.
func (b *backupState) wait() { b.running.Lock() }

// backUp copies the running service's data into an empty or missing folder. The
// stores that follow the journal are copied before it, so that it has all that
// they have seen; what it has more, a restored service gives them again.
//
// Settlement's store comes after the journal. The journal has the promise of
// every signature, the store the signed bytes: so a promise in the copy finds its
// bytes there, and is not taken for one that was broken off, which costs waiting
// and a search of the chain. Bytes whose promise the copied journal has not are
// harmless: whoever has to settle that claim finds them. How far the treasury has
// been read is that of before: what was paid meanwhile is in no copied journal.
func (s *Service) backUp(ctx context.Context, target string) (err error) {
	if !s.backup.running.TryLock() {
		return errors.New("another backup is under way, or the service stops")
	}
	defer s.backup.running.Unlock()
	if s.storage.backupJournal == nil {
		return errors.New("a node of a group is not backed up while it runs: stop one that does not lead, and copy its data folder")
	}
	s.backup.pin(max(1, s.floor()))
	defer s.backup.pin(0)
	if err := makeEmpty(target); err != nil {
		return err
	}
	for folder, kv := range map[string]Store{FIXFolder: s.storage.FIX, deskFolder: s.storage.Desk, historyFolder: s.storage.History} {
		if err := s.copyStore(ctx, kv, filepath.Join(target, folder)); err != nil {
			return fmt.Errorf("%s store: %w", folder, err)
		}
	}
	if err := copyFiles(s.cfg.DataDir, target); err != nil {
		return err
	}
	cursors, err := s.cursors()
	if err != nil {
		return fmt.Errorf("%s store: %w", settleFolder, err)
	}
	if err := s.storage.backupJournal(filepath.Join(target, JournalFolder), nil); err != nil {
		return err
	}
	if err := s.copyStore(ctx, s.storage.Settlement, filepath.Join(target, settleFolder)); err != nil {
		return fmt.Errorf("%s store: %w", settleFolder, err)
	}
	// The mirror has each swap with its ordinal on disk before the engine is told, so
	// a later copy has all that the copied journal has, and tells the rest again.
	if err := s.copyStore(ctx, s.storage.Mirror, filepath.Join(target, mirrorFolder)); err != nil {
		return fmt.Errorf("%s store: %w", mirrorFolder, err)
	}
	if err := s.setCursors(filepath.Join(target, settleFolder), cursors); err != nil {
		return fmt.Errorf("%s store: %w", settleFolder, err)
	}
	return nil
}

// cursors returns how far the treasury has been read: nil where nobody reads it.
func (s *Service) cursors() (map[market.Address]solana.Signature, error) {
	if s.settlement.core == nil {
		return nil, nil
	}
	st, err := store.Open(s.storage.Settlement)
	if err != nil {
		return nil, err
	}
	return st.Cursors()
}

// setCursors has the copied store of a folder begin to read where cursors say.
func (s *Service) setCursors(dir string, cursors map[market.Address]solana.Signature) (err error) {
	if len(cursors) == 0 {
		return nil
	}
	kv, err := persist.OpenKV(dir, nil, s.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()
	st, err := store.Open(kv)
	if err != nil {
		return err
	}
	for account, sig := range cursors {
		if err := st.SetCursor(account, sig); err != nil {
			return err
		}
	}
	return kv.Sync()
}

// copyStore copies a store as of one moment.
func (s *Service) copyStore(ctx context.Context, from Store, dir string) (err error) {
	to, err := persist.OpenKV(dir, nil, s.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	type entry struct{ key, value []byte }
	var batch []entry
	size := 0
	flush := func() error {
		err := to.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
			for _, e := range batch {
				set(e.key, e.value)
			}
		}, false)
		batch, size = batch[:0], 0
		return errors.Join(err, ctx.Err())
	}
	var failed error
	scanned := from.Scan(nil, nil, func(key, value []byte) bool {
		batch = append(batch, entry{append([]byte{}, key...), append([]byte{}, value...)})
		if size += len(key) + len(value); size >= persist.MaxCommitBytes/4 {
			failed = flush()
		}
		return failed == nil
	})
	if err := errors.Join(scanned, failed); err != nil {
		return err
	}
	return errors.Join(flush(), to.Sync())
}

// makeEmpty makes a folder, or refuses one that has something in it.
func makeEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	list, err := os.ReadDir(dir)
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("%s: %w", dir, persist.ErrNotEmpty)
	}
	return err
}

// copyFiles copies what there is of copiedFiles.
func copyFiles(from, to string) error {
	for _, name := range copiedFiles {
		text, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = atomicfile.Write(filepath.Join(to, name), text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
