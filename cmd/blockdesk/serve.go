package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"blockdesk/service"
	"blockdesk/service/cluster"
	"blockdesk/service/config"
	"blockdesk/service/demo"
	"blockdesk/service/follower"
	"blockdesk/service/program"
)

func serveCommand(s *settings) *cobra.Command {
	var asDemo, check, rebase bool
	var role string
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the service", Args: cobra.NoArgs,
		Long: "Run the service until Ctrl-C or SIGTERM: REST, WebSocket, FIX and admin addresses over one\n" +
			"engine and its journal in the data folder, which it makes where there is none. At its start\n" +
			"it replays the journal, and says where it listens once it does; addresses.json in the data\n" +
			"folder has that too. Exit code 0 where it has stopped cleanly. It needs a participants file\n" +
			"(fix.participants_file), unless it only mirrors.\n\n" +
			"With --demo it has three participants with known passwords, a market maker and a taker that\n" +
			"trade with each other through the FIX gateway, and a local chain where Node 20 is there.",
		Example: "  blockdesk serve --demo\n" +
			"  blockdesk serve --config blockdesk.yaml --data data",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if role != "" {
				s.sets = append(s.sets, "role="+role)
			}
			cfg, err := s.load()
			if err != nil {
				return err
			}
			cfg.Demo = cfg.Demo || asDemo
			demo.Fill(&cfg)
			if check {
				return checkConfig(s, cmd, &cfg)
			}
			if err := service.Check(&cfg); err != nil {
				return configError{err}
			}
			return serve(cmd.Context(), &cfg, rebase, s, cmd)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "all, node or follower: what this process is (default: as configured)")
	cmd.Flags().BoolVar(&asDemo, "demo", false, "demo participants and traders; loopback addresses only")
	cmd.Flags().BoolVar(&rebase, "rebase", false,
		"start although the journal and the FIX store or the desk's store do not fit, since one was lost or\n"+
			"restored alone. The journal counts: orders that it and the FIX store do not agree on are cancelled,\n"+
			"reports that only one has stay unsent, and answers to old idempotency keys may be gone")
	cmd.Flags().BoolVar(&check, "check", false, "validate the configuration and exit")
	return cmd
}

// serve runs the process that the configured role asks for, until ctx ends.
func serve(ctx context.Context, cfg *config.Config, rebase bool, from *settings, cmd *cobra.Command) (err error) {
	logger := newLogger(cfg.Log, cmd.ErrOrStderr())
	// An operator signals all nodes to read the participants anew. A process that does
	// not, such as a standby, must not end by the signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	switch {
	case cfg.Role == config.RoleFollower:
		err = serveFollower(ctx, cfg, from, logger, cmd.OutOrStdout())
	case cfg.Clustered():
		err = serveNode(ctx, cfg, from, logger, cmd.OutOrStdout())
	default:
		told := from.newBar(cmd.ErrOrStderr(), "replaying the journal", inCommands)
		err = serveAlone(ctx, cfg, rebase, from, told, logger, cmd.OutOrStdout())
	}
	logger.Info("stopped", "clean", err == nil)
	return err
}

// serveAlone runs a service on a journal of its own.
func serveAlone(ctx context.Context, cfg *config.Config, rebase bool, from *settings, told *bar, logger *slog.Logger, out io.Writer) error {
	own, err := program.Read(logger)
	if err != nil {
		return err
	}
	s, err := service.Open(ctx, service.Options{
		Config: cfg, Log: logger, Program: own, Reconcile: rebase, Replaying: told.progress(ctx),
	})
	told.end()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // the end came before it was up: nothing has happened yet
	}
	if err != nil {
		return err
	}
	if err = announce(from, out, cfg, s); err == nil {
		err = s.Run(ctx)
	}
	return errors.Join(err, s.Close())
}

// serveNode runs a node of a group.
func serveNode(ctx context.Context, cfg *config.Config, from *settings, logger *slog.Logger, out io.Writer) error {
	n, err := cluster.Open(cluster.Options{Config: cfg, Log: logger, Clock: from.machine.clock, Disk: from.machine.disk})
	if err != nil {
		return err
	}
	what := "node " + cfg.Cluster.ID + " of a group, for the others at " + n.Addr()
	if err = announceBound(from, out, cfg, what, "while it leads"); err == nil {
		err = n.Run(ctx)
	}
	return errors.Join(err, n.Close())
}

// serveFollower runs a process that only reads.
func serveFollower(ctx context.Context, cfg *config.Config, from *settings, logger *slog.Logger, out io.Writer) error {
	f, err := follower.Open(cfg, logger)
	if err != nil {
		return err
	}
	if err = announceBound(from, out, cfg, "a follower", "reads only, once it has joined"); err == nil {
		err = f.Run(ctx)
	}
	return errors.Join(err, f.Close())
}
