package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/service/operator"
)

// maxHealthAnswer bounds the answer of /readyz, in bytes.
const maxHealthAnswer = 64 << 10

// errNotReady is wrapped if a service is not ready or not alive.
var errNotReady = errors.New("the service is not ready")

// healthCommand checks a running service, for containers and scripts without another HTTP
// client.
func healthCommand(s *settings) *cobra.Command {
	var admin string
	var live bool
	var within time.Duration
	cmd := &cobra.Command{
		Use: "health", Short: "Check whether a running service is ready", Args: cobra.NoArgs,
		Long: "Check whether a running service is ready, and list its conditions and their problems. It can be\n" +
			"ready without some of them, such as the chain. With --json it prints the service's answer. It\n" +
			"fails (1) if the service is not ready, and (3) if none answers in time.",
		Example: "  blockdesk health\n  blockdesk health --live    # does it run, ready or not",
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := s.adminURL(admin)
			if err != nil {
				return err
			}
			page := "/readyz"
			if live {
				page = "/healthz"
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), within)
			defer cancel()
			return printHealth(ctx, url+page, cmd.OutOrStdout(), s.json)
		},
	}
	cmd.Flags().StringVar(&admin, "admin", "", "the service's admin `address` (default: from addresses.json in the data folder)")
	cmd.Flags().BoolVar(&live, "live", false, "check only whether it is alive: a restart would not help against other problems")
	cmd.Flags().DurationVar(&within, "within", 3*time.Second, "longest wait for the answer")
	return cmd
}

// healthAnswer is the answer of /healthz and /readyz.
type healthAnswer struct {
	OK     bool   `json:"ok"`
	Error  string `json:"error"`
	Checks []struct {
		Name  string `json:"name"`
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	} `json:"checks"`
}

// printHealth prints the page as JSON or as text. It returns an error if the status is not
// 200, which the printed JSON has already.
func printHealth(ctx context.Context, page string, out io.Writer, asJSON bool) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return usageError{err}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("%w: %w", operator.ErrNoService, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxHealthAnswer))
	if err != nil {
		return fmt.Errorf("%w: %w", operator.ErrNoService, err)
	}
	var answer healthAnswer
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%s is not a page of blockdesk: %s, %w", page, resp.Status, err)
	}
	ready := resp.StatusCode == http.StatusOK
	if asJSON {
		_, err = out.Write(text)
	} else {
		err = answer.show(out)
	}
	switch {
	case err != nil:
		return err
	case ready:
		return nil
	case asJSON && !answer.OK:
		return printedError{errNotReady}
	}
	return fmt.Errorf("%w: %s says %s", errNotReady, page, resp.Status)
}

// show prints the conditions as text.
func (h *healthAnswer) show(w io.Writer) error {
	state := "ready"
	if !h.OK {
		state = strings.TrimSuffix("not ready: "+h.Error, ": ")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, state)
	for _, c := range h.Checks {
		condition := "ok"
		if !c.OK {
			condition = c.Error
		}
		fmt.Fprintf(t, "  %s\t%s\n", c.Name, condition)
	}
	return t.Flush()
}
