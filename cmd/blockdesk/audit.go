package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"blockdesk/persist"
	"blockdesk/service"
	"blockdesk/service/audit"
)

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
