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

// maxHealthAnswer bounds what is read of /readyz.
const maxHealthAnswer = 64 << 10

// errUnwell is wrapped where a service answers that it is not well.
var errUnwell = errors.New("the service is not well")

// healthCommand asks a running service how it is, for containers and scripts that
// have no other client of HTTP.
func healthCommand(s *settings) *cobra.Command {
	var admin string
	var live bool
	var within time.Duration
	cmd := &cobra.Command{
		Use: "health", Short: "Ask a running service whether it is ready", Args: cobra.NoArgs,
		Long: "Ask a running service whether it is ready, and list its conditions with what is wrong. It can be\n" +
			"ready without some of them, such as the chain. With --json it prints what the service answers.\n" +
			"It fails (1) where the service is not ready, and (3) where none answers in time.",
		Example: "  blockdesk health\n  blockdesk health --live    # ready or not: does it run",
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
			return askHealth(ctx, url+page, cmd.OutOrStdout(), s.json)
		},
	}
	cmd.Flags().StringVar(&admin, "admin", "", "the service's admin `address` (default: what addresses.json in the data folder says)")
	cmd.Flags().BoolVar(&live, "live", false, "ask only whether it lives: it may be out of some service, and a restart would not help")
	cmd.Flags().DurationVar(&within, "within", 3*time.Second, "how long the answer may take")
	return cmd
}

// healthAnswer is what /healthz and /readyz say.
type healthAnswer struct {
	OK     bool   `json:"ok"`
	Error  string `json:"error"`
	Checks []struct {
		Name  string `json:"name"`
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	} `json:"checks"`
}

// askHealth prints what the page says: as it is, or for people. An answer that is
// not 200 is an error, which as JSON the answer itself has told.
func askHealth(ctx context.Context, page string, out io.Writer, asJSON bool) error {
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
		return fmt.Errorf("%s is no page of blockdesk's: %s, %w", page, resp.Status, err)
	}
	well := resp.StatusCode == http.StatusOK
	if asJSON {
		_, err = out.Write(text)
	} else {
		err = answer.show(out)
	}
	switch {
	case err != nil:
		return err
	case well:
		return nil
	case asJSON && !answer.OK:
		return toldError{errUnwell}
	}
	return fmt.Errorf("%w: %s says %s", errUnwell, page, resp.Status)
}

// show lists the conditions for a person.
func (h *healthAnswer) show(w io.Writer) error {
	state := "well"
	if !h.OK {
		state = strings.TrimSuffix("not well: "+h.Error, ": ")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(t, state); err != nil {
		return err
	}
	for _, c := range h.Checks {
		condition := "ok"
		if !c.OK {
			condition = c.Error
		}
		if _, err := fmt.Fprintf(t, "  %s\t%s\n", c.Name, condition); err != nil {
			return err
		}
	}
	return t.Flush()
}
