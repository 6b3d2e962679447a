package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"blockdesk/persist"
	"blockdesk/persist/quorum"
	"blockdesk/service"
	"blockdesk/service/config"
	"blockdesk/service/operator"
)

func backupCommand(s *settings) *cobra.Command {
	var f operatorFlags
	cmd := &cobra.Command{
		Use: "backup FOLDER", Args: cobra.ExactArgs(1),
		Short: "Copy a service's data, running or stopped, and verify the copy",
		Long: "Copy the data of the service into an empty or missing folder. A running service makes the copy\n" +
			"itself and continues; this needs an operator's token, and FOLDER is on its machine. On the same\n" +
			"disk parts of such a copy are hard links: move it to another disk. The operator's token is not\n" +
			"copied. An interrupted backup of a stopped service leaves nothing behind; a running service\n" +
			"finishes its backup. Of a group, any node that runs makes the backup.",
		Example: "  blockdesk backup backups/today",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := s.load()
			if err != nil {
				return err
			}
			if f.admin == "" && isWithin(cfg.DataDir, args[0]) {
				return usagef("%s is in the data folder %s: a backup there would be lost with the data", args[0], cfg.DataDir)
			}
			if f.admin == "" && !isServed(cmd.Context(), cfg.DataDir) {
				if exists(filepath.Join(cfg.DataDir, config.QuorumFolder)) {
					return usagef("%s is the folder of a node that is stopped: back up on a node of its group that runs", cfg.DataDir)
				}
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
			client.HTTP.Timeout = 0 // a backup may take long
			var answer []byte
			err = s.newBar(cmd.ErrOrStderr(), "the service backs up", inTime).run(func() error {
				answer, err = client.Do(cmd.Context(), "/desk/backup", map[string]string{"to": target})
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

// isWithin reports whether a path is below dir, by name.
func isWithin(dir, path string) bool {
	from, err := filepath.Abs(dir)
	to, err2 := filepath.Abs(path)
	if err != nil || err2 != nil {
		return false
	}
	below, err := filepath.Rel(from, to)
	return err == nil && below != "." && filepath.IsLocal(below)
}

// isServed reports whether a service answers at the admin address in the data folder.
func isServed(ctx context.Context, dataDir string) bool {
	at, err := operator.ReadAddresses(dataDir)
	if err != nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.Admin+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := (&http.Client{Timeout: operator.Timeout}).Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return true
}

func restoreCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "restore FOLDER", Args: cobra.ExactArgs(1), Short: "Create a data folder (--data) from a backup",
		Long: "Create a data folder from the backup in FOLDER, and verify its journal. The data folder (--data)\n" +
			"must not have data yet; the backup is not changed. An interrupted restore leaves nothing behind.\n" +
			"A service on the folder continues where the backup ends. The backup of a group is restored with\n" +
			"the configuration of a node (journal: raft), on every node of its peers before one starts: they\n" +
			"are the voters, whatever the nodes were that made the backup.",
		Example: "  blockdesk restore backups/today --data data-restored",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := s.load()
			if err != nil {
				return err
			}
			target := cfg.DataDir
			if of := filepath.Join(args[0], config.QuorumFolder); cfg.Clustered() || exists(of) {
				return restoreNode(cmd, s, &cfg, of)
			}
			from := *s
			from.data = args[0]
			return copyData(cmd, &from, target, persist.Restore, "restoring", "restored into "+target)
		},
	}
}

// restoreNode makes the folder of a group's node from the backup of a group.
func restoreNode(cmd *cobra.Command, s *settings, cfg *config.Config, from string) error {
	switch {
	case !cfg.Clustered():
		return usagef("%s is of a group: restore it with the configuration of a node (journal: raft, peers)", from)
	case !exists(from):
		return usagef("there is no %s: the configuration is that of a group's node, whose backup has it", from)
	}
	o, err := cfg.QuorumOptions(newLogger(cfg.Log, cmd.ErrOrStderr()))
	if err != nil {
		return err
	}
	b := s.newBar(cmd.ErrOrStderr(), "restoring", inTime)
	err = b.run(func() error {
		return quorum.Restore(quorum.RestoreOptions{From: from, To: o.Dir, Peers: o.Peers, State: o.State, Logger: o.Logger})
	})
	if err != nil {
		return err
	}
	return s.print(cmd, map[string]any{"target": cfg.DataDir}, "restored into "+cfg.DataDir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// copyData copies the data folder of s into target, with a bar for each step.
func copyData(cmd *cobra.Command, s *settings, target string, copyJournal func(persist.ToolOptions, string) error, label, done string) error {
	o, err := toolOptions(cmd, s)
	if err != nil {
		return err
	}
	err = service.CopyData(cmd.Context(), o, target, copyJournal, func(name string, work func(func(done, total uint64) error) error) error {
		b := s.newBar(cmd.ErrOrStderr(), label+" "+name, inBytes)
		return b.run(func() error { return work(b.progress(cmd.Context())) })
	})
	if err != nil {
		return err
	}
	return s.print(cmd, map[string]any{"target": target}, done)
}
