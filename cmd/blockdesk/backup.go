package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

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
func (s *service) backUp(ctx context.Context, target string) (err error) {
	if !s.backup.running.TryLock() {
		return errors.New("another backup is under way, or the service stops")
	}
	defer s.backup.running.Unlock()
	if s.backupJournal == nil {
		return errors.New("a node of a group is not backed up while it runs: stop one that does not lead, and copy its data folder")
	}
	s.backup.pin(max(1, s.floor()))
	defer s.backup.pin(0)
	if err := makeEmpty(target); err != nil {
		return err
	}
	for folder, kv := range map[string]durableMap{fixFolder: s.fixStore, deskFolder: s.deskStore, historyFolder: s.historyStore} {
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
	if err := s.backupJournal(filepath.Join(target, journalFolder), nil); err != nil {
		return err
	}
	if err := s.copyStore(ctx, s.settleStore, filepath.Join(target, settleFolder)); err != nil {
		return fmt.Errorf("%s store: %w", settleFolder, err)
	}
	// The mirror has each swap with its ordinal on disk before the engine is told, so
	// a later copy has all that the copied journal has, and tells the rest again.
	if err := s.copyStore(ctx, s.mirrorStore, filepath.Join(target, mirrorFolder)); err != nil {
		return fmt.Errorf("%s store: %w", mirrorFolder, err)
	}
	if err := s.setCursors(filepath.Join(target, settleFolder), cursors); err != nil {
		return fmt.Errorf("%s store: %w", settleFolder, err)
	}
	return nil
}

// cursors returns how far the treasury has been read: nil where nobody reads it.
func (s *service) cursors() (map[market.Address]solana.Signature, error) {
	if s.settlement.core == nil {
		return nil, nil
	}
	st, err := store.Open(s.settleStore)
	if err != nil {
		return nil, err
	}
	return st.Cursors()
}

// setCursors has the copied store of a folder begin to read where cursors say.
func (s *service) setCursors(dir string, cursors map[market.Address]solana.Signature) (err error) {
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
func (s *service) copyStore(ctx context.Context, from durableMap, dir string) (err error) {
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
			err = replaceFile(filepath.Join(to, name), text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func backupCommand(s *settings) *cobra.Command {
	var f operatorFlags
	cmd := &cobra.Command{
		Use: "backup FOLDER", Args: cobra.ExactArgs(1),
		Short: "Copy the data of the service, running or stopped, and prove the copy of its journal",
		Long: "Copy the data of the service into an empty or missing folder. A running service copies\n" +
			"them itself and goes on; this takes an operator's token, and FOLDER is on its machine. On\n" +
			"one disk parts of such a copy are links: carry it to another one. The operator's token is\n" +
			"not copied. A backup of a stopped service that is broken off leaves nothing behind; a\n" +
			"running service finishes one that it has begun.",
		Example: "  blockdesk backup backups/today",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := s.load()
			if err != nil {
				return err
			}
			if f.admin == "" && isWithin(cfg.DataDir, args[0]) {
				return usagef("%s is in the data folder %s: a backup there is lost with what it is of", args[0], cfg.DataDir)
			}
			if f.admin == "" && !isServed(cmd.Context(), cfg.DataDir) {
				return copyData(cmd, s, args[0], persist.BackupStopped, "backing up", "backed up to "+args[0])
			}
			target, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			client, err := f.dial(s)
			if err != nil {
				return err
			}
			client.http.Timeout = 0 // as long as it takes
			var answer []byte
			err = s.newBar(cmd.ErrOrStderr(), "the service backs up", inTime).run(func() error {
				answer, err = client.do(cmd.Context(), "/desk/backup", map[string]string{"to": target})
				return err
			})
			if err != nil {
				return err
			}
			return showAnswer(cmd.OutOrStdout(), s.json, answer, func(w io.Writer, _ *struct{}) error {
				_, err := fmt.Fprintln(w, "the running service is backed up to "+target)
				return err
			})
		},
	}
	f.add(cmd)
	return cmd
}

// isWithin reports whether a path is below dir, by their names.
func isWithin(dir, path string) bool {
	from, err := filepath.Abs(dir)
	to, err2 := filepath.Abs(path)
	if err != nil || err2 != nil {
		return false
	}
	below, err := filepath.Rel(from, to)
	return err == nil && below != "." && filepath.IsLocal(below)
}

// isServed reports whether a service answers at the admin address that the data
// folder names.
func isServed(ctx context.Context, dataDir string) bool {
	at, err := readAddresses(dataDir)
	if err != nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.Admin+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := (&http.Client{Timeout: operatorTimeout}).Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return true
}

func restoreCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "restore FOLDER", Args: cobra.ExactArgs(1), Short: "Make a data folder (--data) from a backup",
		Long: "Make a data folder from the backup in FOLDER, and prove its journal. The data folder\n" +
			"(--data) must have no data yet; the backup stays as it is. One that is broken off leaves\n" +
			"nothing behind. The service started on it goes on where the backup ends.",
		Example: "  blockdesk restore backups/today --data data-restored",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := s.load()
			if err != nil {
				return err
			}
			target := cfg.DataDir
			from := *s
			from.data = args[0]
			return copyData(cmd, &from, target, persist.Restore, "restoring", "restored into "+target)
		},
	}
}
