package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/service"
)

// byConfiguration stands where no operator has sent a request, but the service
// at its start.
const byConfiguration = "(configuration)"

// auditedKinds are the requests that run the desk; the others are clients' and
// the settlement's.
var auditedKinds = map[string]bool{
	"set_policy": true, "set_pair": true, "set_operator": true, "set_anchor": true, "set_rail_price": true,
	"set_inventory": true, "set_lock": true, "post_ticket": true, "amend_ticket": true, "set_tranche": true,
	"withdraw_ticket": true, "refund_payment": true,
}

func auditCommand(s *settings) *cobra.Command {
	var from, to uint64
	cmd := &cobra.Command{
		Use: "audit", Args: cobra.NoArgs, Short: "List who commanded the desk, when and what",
		Long: "List the operators' requests to the desk in the journal of a stopped service, and those that\n" +
			"the configuration made: when, by whom, what. A request that the desk refused is there too.\n" +
			"With --json it prints one object a line.",
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
			told := s.newBar(cmd.ErrOrStderr(), "journal audit", inCommands)
			o.Progress = told.quietOn(cmd.OutOrStdout()).progress(cmd.Context())
			known, err := service.OperatorNumbers(cfg.DataDir)
			if err != nil {
				return err
			}
			a := auditor{names: map[market.OperatorID]string{}}
			for name, id := range known {
				a.names[id] = name
			}
			for i := range cfg.Instruments {
				a.symbols = append(a.symbols, cfg.Instruments[i].Symbol)
			}
			if s.json {
				encode := json.NewEncoder(cmd.OutOrStdout())
				a.tell = func(e *auditEntry) error { return encode.Encode(e) }
				return told.run(func() error { return persist.Dump(o, from, to, &a) })
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "SEQ\tTIME\tWHO\tCOMMAND\tWHAT")
			a.tell = func(e *auditEntry) error {
				_, err := fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", e.Seq, shortTime(e.Time), e.Who, e.Command, e.What)
				return err
			}
			return errors.Join(told.run(func() error { return persist.Dump(o, from, to, &a) }), table.Flush())
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 1, "first command")
	cmd.Flags().Uint64Var(&to, "to", persist.NewestSnapshot, "last command")
	return cmd
}

// auditEntry is one request of an operator.
type auditEntry struct {
	Seq     uint64          `json:"seq"`
	Time    string          `json:"time"`
	Who     string          `json:"operator"`
	Command string          `json:"command"`
	What    string          `json:"-"`
	Request json.RawMessage `json:"request"`
}

// auditor takes the lines of persist.Dump and tells those that are of operators.
type auditor struct {
	names   map[market.OperatorID]string
	symbols []string // of the instruments, by ID
	tell    func(*auditEntry) error
	rest    []byte // of a line that is not whole
}

// Write takes a piece of the dump.
func (a *auditor) Write(p []byte) (int, error) {
	a.rest = append(a.rest, p...)
	for {
		line, rest, whole := bytes.Cut(a.rest, []byte{'\n'})
		if !whole {
			return len(p), nil
		}
		// Of a million commands a few are of operators.
		if bytes.Contains(line, []byte(`"request":{`)) {
			if err := a.line(line); err != nil {
				return 0, err
			}
		}
		a.rest = append(a.rest[:0], rest...)
	}
}

func (a *auditor) line(text []byte) error {
	var e auditEntry
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("journal dump: %w", err)
	}
	var head struct {
		Kind     string            `json:"kind"`
		Operator market.OperatorID `json:"operator"`
		ID       market.OperatorID `json:"id"`
		Name     string            `json:"name"`
	}
	if err := json.Unmarshal(e.Request, &head); err != nil {
		return fmt.Errorf("journal dump: seq %d: %w", e.Seq, err)
	}
	if !auditedKinds[head.Kind] {
		return nil
	}
	if head.Kind == "set_operator" {
		a.names[head.ID] = head.Name
	}
	e.Command = strings.ReplaceAll(head.Kind, "_", " ")
	switch name, known := a.names[head.Operator]; {
	case head.Operator == 0:
		e.Who = byConfiguration
	case known:
		e.Who = name
	default:
		e.Who = fmt.Sprint("operator ", head.Operator)
	}
	var err error
	if e.What, err = a.what(e.Request); err != nil {
		return fmt.Errorf("journal dump: seq %d: %w", e.Seq, err)
	}
	return a.tell(&e)
}

// what puts a request's own members on one line, in their order.
func (a *auditor) what(request []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(request))
	if _, err := d.Token(); err != nil {
		return "", err
	}
	var parts []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return "", err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return "", err
		}
		switch name {
		case "kind", "token", "operator", "key", "body":
		case "instrument", "via":
			parts = append(parts, fmt.Sprint(name, "=", a.symbol(value)))
		default:
			parts = append(parts, fmt.Sprint(name, "=", strings.ReplaceAll(string(value), `"`, "")))
		}
	}
	return strings.Join(parts, " "), nil
}

func (a *auditor) symbol(number []byte) string {
	var id int
	if err := json.Unmarshal(number, &id); err != nil || id < 0 || id >= len(a.symbols) {
		return string(number)
	}
	return a.symbols[id]
}

var _ io.Writer = (*auditor)(nil)
