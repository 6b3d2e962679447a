package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/persist"
	"blockdesk/persist/quorum"
	"blockdesk/service"
	"blockdesk/service/audit"
	"blockdesk/service/config"
)

func journalCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "journal", Short: "Verify, replay and print the journal of a stopped service",
		Long: "Verify, replay and print the journal of a stopped service. These commands change no file. They\n" +
			"fail (IN_USE) while a service has the folder open: copy it with blockdesk backup and use the\n" +
			"copy.",
	})
	verify := &cobra.Command{
		Use: "verify", Args: cobra.NoArgs,
		Short: "Verify checksums, sequence, events, and the state at every snapshot",
		Long: "Verify the journal: every checksum, the chain of frames, the events of every command, and the\n" +
			"state at each snapshot, by replaying all of it. If the journal is damaged the exit code is 1 and\n" +
			"the error has the position. For a node of a group (journal: raft) it verifies the node's log and\n" +
			"snapshots: nodes that stopped at the same command have the same state hash. Possibly the last\n" +
			"commands are not committed by the group.",
		Example: "  blockdesk journal verify --data data",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return journalReport(cmd, s, persist.Verify, quorum.Verify)
		},
	}
	var to uint64
	var book string
	replay := &cobra.Command{
		Use: "replay", Args: cobra.NoArgs,
		Short: "Replay the journal and print the hashes at its end",
		Long: "Replay the journal from its oldest snapshot up to --to, and print the hashes of the state and of\n" +
			"the books there. With --book naive the slow, obvious book is used: the hashes are the same.",
		Example: "  blockdesk journal replay --book naive\n  blockdesk journal replay --to 1000",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if book != "" {
				s.sets = append(s.sets, "engine.book="+book)
			}
			return journalReport(cmd, s, func(o persist.ToolOptions) (persist.Report, error) { return persist.Replay(o, to) },
				func(o quorum.VerifyOptions) (persist.Report, error) {
					o.To = to
					return quorum.Verify(o)
				})
		},
	}
	replay.Flags().Uint64Var(&to, "to", persist.NewestSnapshot, "stop after the frame with this command")
	replay.Flags().StringVar(&book, "book", "", "ladder or naive")
	var from, until uint64
	dump := &cobra.Command{
		Use: "dump", Args: cobra.NoArgs, Short: "Print the commands, one JSON object a line",
		Long: "Print the commands of the journal as JSON lines, with or without --json: number, time, kind\n" +
			"and all fields that are not zero.",
		Example: "  blockdesk journal dump --from 1 --to 20",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := toolOptions(cmd, s)
			if err != nil {
				return err
			}
			b := s.newBar(cmd.ErrOrStderr(), "journal dump", inCommands)
			o.Progress = b.quietOn(cmd.OutOrStdout()).progress(cmd.Context())
			return b.run(func() error { return persist.Dump(o, from, until, cmd.OutOrStdout()) })
		},
	}
	dump.Flags().Uint64Var(&from, "from", 1, "first command")
	dump.Flags().Uint64Var(&until, "to", persist.NewestSnapshot, "last command")
	cmd.AddCommand(verify, replay, dump, auditCommand(s))
	return cmd
}

func auditCommand(s *settings) *cobra.Command {
	var from, to uint64
	cmd := &cobra.Command{
		Use: "audit", Args: cobra.NoArgs, Short: "List the operators' requests to the desk",
		Long: "List the requests of operators to the desk in the journal of a stopped service, and those that\n" +
			"the configuration made. A request that the desk refused is listed too. With --json it prints one\n" +
			"object a line.",
		Example: "  blockdesk journal audit\n  blockdesk journal audit --from 1000 --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.load()
			if err != nil {
				return err
			}
			o, err := toolOptions(cmd, s)
			if err != nil {
				return err
			}
			operators, err := service.OperatorNumbers(cfg.DataDir)
			if err != nil {
				return err
			}
			symbols := make([]string, len(cfg.Instruments))
			for i := range symbols {
				symbols[i] = cfg.Instruments[i].Symbol
			}
			b := s.newBar(cmd.ErrOrStderr(), "journal audit", inCommands)
			o.Progress = b.quietOn(cmd.OutOrStdout()).progress(cmd.Context())
			read := func(each func(*audit.Entry) error) error {
				return b.run(func() error { return audit.Read(o, from, to, operators, symbols, each) })
			}
			if s.json {
				encode := json.NewEncoder(cmd.OutOrStdout())
				return read(func(e *audit.Entry) error { return encode.Encode(e) })
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "SEQ\tTIME\tOPERATOR\tCOMMAND\tREQUEST")
			return errors.Join(read(func(e *audit.Entry) error {
				_, err := fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", e.Seq, shortTime(e.Time), e.Operator, e.Command, e.Text)
				return err
			}), table.Flush())
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 1, "first command")
	cmd.Flags().Uint64Var(&to, "to", persist.NewestSnapshot, "last command")
	return cmd
}

func toolOptions(cmd *cobra.Command, s *settings) (persist.ToolOptions, error) {
	cfg, err := s.load()
	if err != nil {
		return persist.ToolOptions{}, err
	}
	return persist.ToolOptions{
		Dir: filepath.Join(cfg.DataDir, service.JournalFolder), State: cfg.StateOptions(), Logger: newLogger(cfg.Log, cmd.ErrOrStderr()),
	}, nil
}

// journalReport prints the report of a tool: alone reads a single node's journal, member
// that of a node of a group.
func journalReport(cmd *cobra.Command, s *settings, alone func(persist.ToolOptions) (persist.Report, error),
	member func(quorum.VerifyOptions) (persist.Report, error),
) error {
	o, err := toolOptions(cmd, s)
	if err != nil {
		return err
	}
	cfg, err := s.load()
	if err != nil {
		return err
	}
	run := alone
	if node := filepath.Join(cfg.DataDir, config.QuorumFolder); cfg.Clustered() || exists(node) && !exists(o.Dir) {
		o.Dir = node
		run = func(o persist.ToolOptions) (persist.Report, error) {
			return member(quorum.VerifyOptions{ToolOptions: o})
		}
	}
	start := time.Now()
	b := s.newBar(cmd.ErrOrStderr(), "journal "+cmd.Name(), inCommands)
	o.Progress = b.progress(cmd.Context())
	var r persist.Report
	err = b.run(func() error {
		r, err = run(o)
		return err
	})
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
		"journal is intact: commands %d to %d, epoch %d\nreplayed %d commands in %d frames from %d, %.0f a second\nsnapshots verified: %v\nstate hash %x\nbook hash  %x\n",
		r.First, r.Last, r.Epoch, r.Commands, r.Frames, r.Base, rate, r.Snapshots, r.StateHash, r.BookHash)
	return err
}
