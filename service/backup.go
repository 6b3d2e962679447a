package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"blockdesk/httpgw/admin"
	"blockdesk/internal/atomicfile"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/settle/store"
)

// copiedFiles are the files of a backup besides the journal and the stores. The
// operator's token is not copied: a restored service makes a new one.
var copiedFiles = []string{appliedFile, tokenListFile}

// backups copies the data of a running service, one copy at a time.
type backups struct {
	storage *Storage
	dataDir string
	settles bool
	cursor  func() uint64 // Seq from which on the stores need the journal
	log     *slog.Logger

	running sync.Mutex // held during a backup
	mu      sync.Mutex
	refused bool   // the disk is nearly full
	pinned  uint64 // the stores are copied as of this Seq or later; 0 = no backup
}

func newBackups(s *Storage, dataDir string, settles bool, cursor func() uint64, log *slog.Logger) *backups {
	return &backups{storage: s, dataDir: dataDir, settles: settles, cursor: cursor, log: log}
}

// floor returns the Seq from which on the copied stores need the journal.
func (b *backups) floor() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pinned == 0 {
		return persist.NewestSnapshot
	}
	return b.pinned
}

func (b *backups) pin(seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pinned = seq
}

// refuse, with true, refuses further backups, which might fill the disk of the data.
func (b *backups) refuse(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = on
}

func (b *backups) isRefused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

// wait returns when no backup is under way. No further backup begins.
func (b *backups) wait() { b.running.Lock() }

// run copies the running service's data into an empty or missing folder. The stores
// that follow the journal are copied first, so that the copied journal has every command
// that they have seen. A restored service replays the rest to them.
//
// Settlement's store is copied after the journal. The journal has the permission for every
// signature and the store has the signed bytes, so each permission in the copy finds its
// bytes; otherwise it would look interrupted, which costs a search of the chain. Bytes
// without their permission are harmless. The treasury's cursors are those from before the
// journal was copied: payments that arrived meanwhile are in no copied journal.
func (b *backups) run(ctx context.Context, target string) (err error) {
	if !b.running.TryLock() {
		return errors.New("another backup is in progress, or the service is stopping: try again later")
	}
	defer b.running.Unlock()
	if b.isRefused() {
		return admin.ErrBackupDisk
	}
	if b.storage.BackupNode != nil {
		return b.storage.BackupNode(target)
	}
	b.pin(max(1, min(b.cursor(), b.floor())))
	defer b.pin(0)
	if err := MakeBackupFolder(target); err != nil {
		return err
	}
	for folder, kv := range map[string]Store{FIXFolder: b.storage.FIX, deskFolder: b.storage.Desk, historyFolder: b.storage.History} {
		if err := copyStore(ctx, b.log, kv, filepath.Join(target, folder)); err != nil {
			return fmt.Errorf("%s store: %w", folder, err)
		}
	}
	if err := copyFiles(b.dataDir, target); err != nil {
		return err
	}
	cursors, err := b.cursors()
	if err != nil {
		return fmt.Errorf("%s store: %w", settleFolder, err)
	}
	if err := b.storage.backupJournal(filepath.Join(target, JournalFolder), nil); err != nil {
		return err
	}
	if err := copyStore(ctx, b.log, b.storage.Settlement, filepath.Join(target, settleFolder)); err != nil {
		return fmt.Errorf("%s store: %w", settleFolder, err)
	}
	// The mirror stores each swap with its ordinal before it submits it, so a later copy
	// has every swap of the copied journal, and submits the rest again.
	if err := copyStore(ctx, b.log, b.storage.Mirror, filepath.Join(target, mirrorFolder)); err != nil {
		return fmt.Errorf("%s store: %w", mirrorFolder, err)
	}
	if err := b.setCursors(filepath.Join(target, settleFolder), cursors); err != nil {
		return fmt.Errorf("%s store: %w", settleFolder, err)
	}
	return nil
}

// cursors returns how far each treasury account is read; nil without settlement.
func (b *backups) cursors() (map[market.Address]solana.Signature, error) {
	if !b.settles {
		return nil, nil
	}
	st, err := store.Open(b.storage.Settlement)
	if err != nil {
		return nil, err
	}
	return st.Cursors()
}

// setCursors sets how far the treasury accounts are read in the copied store of a folder.
func (b *backups) setCursors(dir string, cursors map[market.Address]solana.Signature) (err error) {
	if len(cursors) == 0 {
		return nil
	}
	kv, err := persist.OpenKV(dir, nil, b.log)
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

// copyStore copies one snapshot of a store.
func copyStore(ctx context.Context, log *slog.Logger, from Store, dir string) (err error) {
	to, err := persist.OpenKV(dir, nil, log)
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

// MakeBackupFolder makes the folder of a backup, and fails if it is not empty. Errors:
// admin.ErrBackupFolder, those of the disk.
func MakeBackupFolder(dir string) error {
	if err := persist.MakeDir(nil, dir, 0o700); err != nil {
		return err
	}
	list, err := os.ReadDir(dir)
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("%w: %s: %w", admin.ErrBackupFolder, dir, persist.ErrNotEmpty)
	}
	return err
}

// copyFiles copies those of copiedFiles that exist.
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
