package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/persist"
)

func journalCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{Use: "journal", Short: "Look into the journal of a service that is stopped"})
	verify := &cobra.Command{
		Use: "verify", Args: cobra.NoArgs,
		Short: "Prove checksums, sequence, events, and the state at every snapshot",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return journalReport(cmd, s, persist.Verify)
		},
	}
	var to uint64
	var book string
	replay := &cobra.Command{
		Use: "replay", Args: cobra.NoArgs,
		Short: "Replay the journal and print the hashes that it leads to",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if book != "" {
				s.sets = append(s.sets, "engine.book="+book)
			}
			return journalReport(cmd, s, func(o persist.ToolOptions) (persist.Report, error) { return persist.Replay(o, to) })
		},
	}
	replay.Flags().Uint64Var(&to, "to", persist.NewestSnapshot, "stop after the frame that holds this command")
	replay.Flags().StringVar(&book, "book", "", "ladder or naive")
	var from, until uint64
	dump := &cobra.Command{
		Use: "dump", Args: cobra.NoArgs, Short: "Print the commands, one JSON object a line",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := toolOptions(cmd, s)
			if err != nil {
				return err
			}
			o.Progress = nil // the commands are the output
			return persist.Dump(o, from, until, cmd.OutOrStdout())
		},
	}
	dump.Flags().Uint64Var(&from, "from", 1, "first command")
	dump.Flags().Uint64Var(&until, "to", persist.NewestSnapshot, "last command")
	cmd.AddCommand(verify, replay, dump, auditCommand(s))
	return cmd
}

func toolOptions(cmd *cobra.Command, s *settings) (persist.ToolOptions, error) {
	cfg, err := s.load()
	if err != nil {
		return persist.ToolOptions{}, err
	}
	return persist.ToolOptions{
		Dir: filepath.Join(cfg.DataDir, journalFolder), State: cfg.stateOptions(), Logger: cfg.logger(cmd.ErrOrStderr()),
		Progress: progress(cmd.ErrOrStderr()),
	}, nil
}

func journalReport(cmd *cobra.Command, s *settings, run func(persist.ToolOptions) (persist.Report, error)) error {
	o, err := toolOptions(cmd, s)
	if err != nil {
		return err
	}
	start := time.Now()
	r, err := run(o)
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	if s.json {
		return printJSON(cmd.OutOrStdout(), map[string]any{
			"ok": true, "first": r.First, "last": r.Last, "base": r.Base, "seq": r.Seq, "epoch": r.Epoch, "frames": r.Frames,
			"commands": r.Commands, "snapshots": r.Snapshots, "digest": fmt.Sprintf("%016x", r.Digest),
			"state_hash": hex.EncodeToString(r.StateHash[:]), "book_hash": hex.EncodeToString(r.BookHash[:]),
			"elapsed_ms": elapsed.Milliseconds(),
		})
	}
	rate := float64(r.Commands) / max(elapsed.Seconds(), 1e-9)
	_, err = fmt.Fprintf(cmd.OutOrStdout(),
		"journal is whole: commands %d to %d, epoch %d\nreplayed %d commands in %d frames from %d, %.0f a second\nsnapshots proven: %v\nstate hash %x\nbook hash  %x\n",
		r.First, r.Last, r.Epoch, r.Commands, r.Frames, r.Base, rate, r.Snapshots, r.StateHash, r.BookHash)
	return err
}

// progress tells a person on a terminal how far long work has come.
func progress(w io.Writer) func(done, total uint64) {
	file, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	last := time.Now()
	return func(done, total uint64) {
		if now := time.Now(); done >= total || now.Sub(last) > 200*time.Millisecond {
			last = now
			fmt.Fprintf(w, "\r%3d %%", done*100/max(total, 1))
			if done >= total {
				fmt.Fprint(w, "\r     \r")
			}
		}
	}
}

// bookHash replays the journal below dataDir and returns where its books ended.
func bookHash(cmd *cobra.Command, dataDir string) (string, error) {
	r, err := persist.Replay(persist.ToolOptions{
		Dir: filepath.Join(dataDir, journalFolder), Logger: (&Config{LogLevel: "error"}).logger(cmd.ErrOrStderr()),
	}, persist.NewestSnapshot)
	return hex.EncodeToString(r.BookHash[:]), err
}
