package main

import (
	"context"
	"errors"
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
	var asDemo, check, reconcile, open bool
	var role string
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the service", Args: cobra.NoArgs,
		Long: "Run the service until Ctrl-C or SIGTERM: REST, WebSocket, FIX and admin addresses over one\n" +
			"engine with its journal in the data folder, which it creates if needed. It replays the journal\n" +
			"first, and prints its addresses once it listens; addresses.json in the data folder has them\n" +
			"too. Exit code 0 after a clean stop. It needs a participants file (fix.participants_file),\n" +
			"unless all instruments are mirrored.\n\n" +
			"With --demo it has three participants with public passwords, a market maker and a taker that\n" +
			"trade through the FIX gateway, and a local chain with a pool if Node 20 is installed.",
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
			in, err := service.Check(&cfg)
			if err != nil {
				return configError{err}
			}
			if open {
				s.opened = openInBrowser
			}
			return serve(cmd, s, &cfg, in, reconcile)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "role of this process: all, node or follower (default: as configured)")
	cmd.Flags().BoolVar(&asDemo, "demo", false, "demo participants and traders; loopback addresses only")
	cmd.Flags().BoolVar(&reconcile, "reconcile", false,
		"start although the journal and the FIX store or the desk's store have diverged, because one was lost\n"+
			"or restored alone. The journal counts: orders on which it and the FIX store disagree are cancelled,\n"+
			"reports that only one of them has are not sent, and answers to old idempotency keys may be lost")
	cmd.Flags().BoolVar(&open, "open", false, "open the board in a browser once the service listens")
	cmd.Flags().BoolVar(&reconcile, "rebase", false, "old name of --reconcile")
	if err := cmd.Flags().MarkDeprecated("rebase", "use --reconcile"); err != nil {
		panic("serve: " + err.Error()) // unreachable: the flag exists
	}
	cmd.Flags().BoolVar(&check, "check", false, "validate the configuration and exit")
	return cmd
}

// serve runs the process of the configured role until the command's context ends.
func serve(cmd *cobra.Command, s *settings, cfg *config.Config, in *service.Inputs, reconcile bool) (err error) {
	log := newLogger(cfg.Log, cmd.ErrOrStderr())
	// An operator signals all nodes to read the participants file again. Processes that
	// do not, such as a standby, must survive the signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	switch {
	case cfg.Role == config.RoleFollower:
		err = serveFollower(cmd, s, cfg, log)
	case cfg.Clustered():
		err = serveNode(cmd, s, cfg, in, log)
	default:
		err = serveAlone(cmd, s, cfg, in, reconcile, log)
	}
	log.Info("stopped", "clean", err == nil)
	return err
}

// serveAlone runs a service on a journal of its own.
func serveAlone(cmd *cobra.Command, s *settings, cfg *config.Config, in *service.Inputs, reconcile bool, log *slog.Logger) error {
	own, err := program.Read(log)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	b := s.newBar(cmd.ErrOrStderr(), "replaying the journal", inCommands)
	running, err := service.Open(ctx, service.Options{
		Config: cfg, Log: log, Program: own, Inputs: in, Reconcile: reconcile, Replaying: b.progress(ctx),
	})
	b.end()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // stopped before it served
	}
	if err != nil {
		return err
	}
	if err = announce(s, cmd.OutOrStdout(), cfg, running); err == nil {
		if s.opened != nil {
			s.opened(ctx, running.Addresses().Base+"/board", log)
		}
		err = running.Run(ctx)
	}
	return errors.Join(err, running.Close())
}

// serveNode runs a node of a group.
func serveNode(cmd *cobra.Command, s *settings, cfg *config.Config, in *service.Inputs, log *slog.Logger) error {
	n, err := cluster.Open(cluster.Options{Config: cfg, Log: log, Inputs: in, Clock: s.machine.clock, Disk: s.machine.disk})
	if err != nil {
		return err
	}
	what := "node " + cfg.Cluster.ID + " of a group, for the others at " + n.Addr()
	if err = announceBound(s, cmd.OutOrStdout(), cfg, what, "while it leads"); err == nil {
		err = n.Run(cmd.Context())
	}
	return errors.Join(err, n.Close())
}

// serveFollower runs a read-only process.
func serveFollower(cmd *cobra.Command, s *settings, cfg *config.Config, log *slog.Logger) error {
	f, err := follower.Open(cfg, log)
	if err != nil {
		return err
	}
	if err = announceBound(s, cmd.OutOrStdout(), cfg, "a follower", "reads only, once it has joined"); err == nil {
		err = f.Run(cmd.Context())
	}
	return errors.Join(err, f.Close())
}
