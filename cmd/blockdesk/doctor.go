package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/service"
	"blockdesk/service/config"
	"blockdesk/service/demo"
	"blockdesk/service/doctor"
)

// errUnfit is wrapped if a check of doctor found a problem.
var errUnfit = errors.New("the service cannot run well here")

// doctorCommand examines the machine, the configuration and the running service.
func doctorCommand(s *settings) *cobra.Command {
	var asDemo bool
	var within time.Duration
	cmd := &cobra.Command{
		Use: "doctor", Short: "Examine the machine, the configuration, the nodes and the service", Args: cobra.NoArgs,
		Long: "Examine what a service needs, and say what to do: configuration and keys, clock, free space and\n" +
			"sync time of the disk, open files, chain nodes and their clock, and, if the service of the data\n" +
			"folder runs, its readiness and the age of its prices. It changes nothing. It fails (1) if it finds\n" +
			"a problem; warnings do not fail.",
		Example: "  blockdesk doctor\n  blockdesk doctor --config blockdesk.yaml --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.load()
			if err != nil {
				return err
			}
			cfg.Demo = cfg.Demo || asDemo
			demo.Fill(&cfg)
			list := doctor.Examine(cmd.Context(), doctor.Options{Config: &cfg, Timeout: within, Check: func(c *config.Config) error {
				_, err := service.Check(c)
				return err
			}})
			if err := showFindings(cmd.OutOrStdout(), list, s.json); err != nil {
				return err
			}
			if doctor.Worst(list) == doctor.Problem {
				if s.json {
					return printedError{errUnfit}
				}
				return errUnfit
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asDemo, "demo", false, "examine what serve --demo needs")
	cmd.Flags().DurationVar(&within, "within", 5*time.Second, "longest wait for a node or the service")
	return cmd
}

func showFindings(w io.Writer, list []doctor.Finding, asJSON bool) error {
	if asJSON {
		return printJSON(w, map[string]any{"ok": doctor.Worst(list) != doctor.Problem, "checks": list})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.State, f.Check, f.Text)
		if f.Do != "" {
			fmt.Fprintf(t, "\t\t%s\n", f.Do)
		}
	}
	return t.Flush()
}
