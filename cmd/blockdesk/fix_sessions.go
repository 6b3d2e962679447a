package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

type (
	// fixSessionItem is a session in an answer of the admin address.
	fixSessionItem struct {
		CompID             string `json:"comp_id"`
		Participant        string `json:"participant"`
		State              string `json:"state"`
		Since              string `json:"logged_on_since"`
		Remote             string `json:"remote"`
		NextIn             uint64 `json:"next_in"`
		NextOut            uint64 `json:"next_out"`
		LiveOrders         int    `json:"live_orders"`
		WaitingBytes       int    `json:"bytes_waiting"`
		RateRefusals       uint64 `json:"rate_refusals"`
		CancelOnDisconnect bool   `json:"cancel_on_disconnect"`
		DropCopy           bool   `json:"drop_copy"`
		CustomFields       bool   `json:"custom_fields"`
		LastLogon          string `json:"last_logon"`
		LastRefusal        string `json:"last_refusal"`
		Refusal            string `json:"refusal"`
	}
	fixSessionsAnswer struct {
		Participants struct {
			File     string `json:"file"`
			LoadedAt string `json:"loaded_at"`
			Refused  string `json:"refused"`
		} `json:"participants"`
		Sessions []fixSessionItem `json:"sessions"`
	}
	fixDoneAnswer struct {
		CompID string `json:"comp_id"`
		Sent   int    `json:"sessions"`
	}
)

// fixSessionCommands returns the operators' commands for the FIX sessions of a running
// service.
func fixSessionCommands(s *settings) []*cobra.Command {
	commands := []struct {
		cmd cobra.Command
		add func(*cobra.Command, *operatorFlags)
	}{
		{cobra.Command{
			Use: "sessions", Short: "List sessions: logons, sequence numbers, orders, refused logons", Args: cobra.NoArgs,
			Long: "List every session: whether it is logged on, since when and from where, the next sequence numbers,\n" +
				"live orders, bytes that wait for its client, its logon options, and the last refused logon with\nthe reason. A last line says why the participants file was refused, if it was.",
			Example: "  blockdesk fix sessions",
		}, func(c *cobra.Command, f *operatorFlags) {
			c.RunE = operatorCommand(s, f, func([]string) (string, any, error) { return "/desk/fix/sessions", nil, nil }, showFIXSessions)
		}},
		{cobra.Command{
			Use: "reset-seq COMPID", Short: "Start both sequence numbers of a session at 1", Args: cobra.ExactArgs(1),
			Long: "Start both sequence numbers of a session at 1. Its sent messages are deleted: its client must\n" +
				"request the state of its orders. The command refuses a session that is logged on; with --force it\n" +
				"logs it out first. Inform the client: it must start at 1 too.",
			Example: "  blockdesk fix reset-seq GUEST --force",
		}, addFIXReset(s)},
		{cobra.Command{
			Use: "kick COMPID", Short: "Log a session out; its client may come back", Args: cobra.ExactArgs(1),
			Long: "Log a session out, with a text for its client. The client may log on again at once: to prevent it,\n" +
				"remove its CompID from the participants file.",
			Example: "  blockdesk fix kick GUEST --text 'please call us'",
		}, addFIXKick(s)},
		{cobra.Command{
			Use: "announce TEXT", Short: "Send maintenance news (35=B) to open sessions", Args: cobra.ExactArgs(1),
			Long: "Send maintenance news (35=B) to all sessions that are logged on, or --to one. It is stored for a\n" +
				"resend like a report. TEXT is 1 to 256 printable ASCII characters.",
			Example: "  blockdesk fix announce 'restart at 18:00 UTC, two minutes'",
		}, addFIXAnnounce(s)},
	}
	var out []*cobra.Command
	for i := range commands {
		cmd := &commands[i].cmd
		f := &operatorFlags{}
		f.add(cmd)
		commands[i].add(cmd, f)
		out = append(out, cmd)
	}
	return out
}

func addFIXReset(s *settings) func(*cobra.Command, *operatorFlags) {
	return func(c *cobra.Command, f *operatorFlags) {
		var force bool
		c.Flags().BoolVar(&force, "force", false, "log the session out first")
		c.RunE = operatorCommand(s, f, func(args []string) (string, any, error) {
			body := struct {
				Force bool `json:"force"`
			}{force}
			return "/desk/fix/sessions/" + args[0] + "/reset", body, checkCompID(args[0])
		}, func(w io.Writer, a *fixDoneAnswer) error {
			_, err := fmt.Fprintf(w, "%s starts at 1\n", a.CompID)
			return err
		})
	}
}

func addFIXKick(s *settings) func(*cobra.Command, *operatorFlags) {
	return func(c *cobra.Command, f *operatorFlags) {
		var text string
		c.Flags().StringVar(&text, "text", "by the operator", "text of the Logout")
		c.RunE = operatorCommand(s, f, func(args []string) (string, any, error) {
			body := struct {
				Text string `json:"text"`
			}{text}
			return "/desk/fix/sessions/" + args[0] + "/kick", body, checkCompID(args[0])
		}, func(w io.Writer, a *fixDoneAnswer) error {
			_, err := fmt.Fprintf(w, "%s is logged out\n", a.CompID)
			return err
		})
	}
}

func addFIXAnnounce(s *settings) func(*cobra.Command, *operatorFlags) {
	return func(c *cobra.Command, f *operatorFlags) {
		var compID string
		c.Flags().StringVar(&compID, "to", "", "one session's CompID (default: all that are logged on)")
		c.RunE = operatorCommand(s, f, func(args []string) (string, any, error) {
			body := struct {
				Text   string `json:"text"`
				CompID string `json:"comp_id,omitempty"`
			}{args[0], compID}
			return "/desk/fix/announce", body, nil
		}, func(w io.Writer, a *fixDoneAnswer) error {
			_, err := fmt.Fprintf(w, "sent to %d sessions\n", a.Sent)
			return err
		})
	}
}

// checkCompID refuses a text that cannot be a CompID, before it gets into a URL.
func checkCompID(text string) error {
	for _, c := range text {
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return usagef("not a CompID: want letters, digits, '.', '_' and '-', see blockdesk fix sessions")
		}
	}
	return nil
}

// showFIXSessions prints a line for each session.
func showFIXSessions(w io.Writer, a *fixSessionsAnswer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "COMP ID\tPARTICIPANT\tSTATE\tSINCE\tREMOTE\tIN\tOUT\tORDERS\tWAITING\tOVER RATE\tOPTIONS\tLAST LOGON\tLAST REFUSAL")
	for i := range a.Sessions {
		s := &a.Sessions[i]
		var options []string
		for _, o := range []struct {
			on   bool
			word string
		}{{s.CancelOnDisconnect, "cancel"}, {s.DropCopy, "copy"}, {s.CustomFields, "custom"}} {
			if o.on {
				options = append(options, o.word)
			}
		}
		refusal := dash(shortTime(s.LastRefusal))
		if s.Refusal != "" {
			refusal += " " + s.Refusal
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n",
			s.CompID, s.Participant, s.State, dash(shortTime(s.Since)), dash(s.Remote), s.NextIn, s.NextOut,
			s.LiveOrders, s.WaitingBytes, s.RateRefusals, dash(strings.Join(options, ",")), dash(shortTime(s.LastLogon)), refusal)
	}
	if err := t.Flush(); err != nil || a.Participants.Refused == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s is refused, the file loaded %s stays in force: %s\n",
		a.Participants.File, shortTime(a.Participants.LoadedAt), a.Participants.Refused)
	return err
}
