package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/service/config"
)

const (
	// operatorTokenFile, in the data folder, is where serve puts the token of the
	// operator that it makes where none is configured.
	operatorTokenFile = "operator.token"
	addressesFile     = "addresses.json"

	operatorTimeout = 30 * time.Second
	// operatorTries is how often a request is sent whose outcome is not known.
	operatorTries = 3
	// maxOperatorAnswer bounds what is read of an answer: 4096 tickets of 32
	// tranches are about 25 MB.
	maxOperatorAnswer = 64 << 20
)

// operatorFlags say how a command reaches the service.
type operatorFlags struct {
	admin string
	token string
}

func (f *operatorFlags) add(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&f.admin, "admin", "", "the service's admin address (default: what addresses.json in the data folder says)")
	cmd.PersistentFlags().StringVar(&f.token, "operator-token", "",
		"operator's token (default: $"+config.OperatorTokenEnv+", then "+operatorTokenFile+" in the data folder)")
}

// operatorClient commands a running service over its admin address.
type operatorClient struct {
	admin string // URL
	token string
	from  string // where the token comes from, for errors
	http  *http.Client
}

// dial finds the service and the token. It sends nothing yet.
func (f *operatorFlags) dial(s *settings) (*operatorClient, error) {
	cfg, err := s.load()
	if err != nil {
		return nil, err
	}
	c := &operatorClient{http: &http.Client{Timeout: operatorTimeout}}
	if c.admin, err = s.adminOf(f.admin); err != nil {
		return nil, err
	}
	return c, f.findToken(c, cfg.DataDir)
}

// findToken gives c the token: from the flag, the environment, or the data folder.
func (f *operatorFlags) findToken(c *operatorClient, dataDir string) error {
	if c.token, c.from = f.token, "--operator-token"; c.token == "" {
		c.token, c.from = os.Getenv(config.OperatorTokenEnv), "$"+config.OperatorTokenEnv
	}
	if c.token != "" {
		return nil
	}
	c.from = filepath.Join(dataDir, operatorTokenFile)
	text, err := os.ReadFile(c.from)
	if err != nil {
		return fmt.Errorf("no operator's token: give --operator-token or $%s (%w)", config.OperatorTokenEnv, err)
	}
	c.token = strings.TrimSpace(string(text))
	return nil
}

// readAddresses returns where the service on a data folder listens, or did.
func readAddresses(dataDir string) (a addresses, err error) {
	path := filepath.Join(dataDir, addressesFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// refusedError is what the service says to a command that it does not take.
type refusedError struct {
	Code   string `json:"code"`
	Text   string `json:"error"`
	Reason string `json:"reason"`
	ID     string `json:"request_id"`
	// Leader is of a node that stands by: who serves operators.
	Leader struct {
		ID  string `json:"id"`
		URL string `json:"url"`
	} `json:"leader"`
}

// Error tells a person what is wrong, and what the service's log calls it.
func (e *refusedError) Error() string {
	text := e.Code
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text + ": " + e.Text + " [request " + e.ID + "]"
}

// codeLeaderChanged is what a node that does not lead answers.
const codeLeaderChanged = "LEADER_CHANGED"

// do sends one request and returns the answer's body. in nil is a GET. A request
// whose outcome is not known is sent again under the same key, so that it happens
// once. Where another node leads, that one is asked from now on.
func (c *operatorClient) do(ctx context.Context, path string, in any) ([]byte, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	key := newToken()
	for try := 1; ; try++ {
		answer, err := c.once(ctx, path, body, key)
		var refused *refusedError
		if !errors.As(err, &refused) || refused.Reason != "outcome_unknown" && refused.Code != codeLeaderChanged || try == operatorTries {
			return answer, err
		}
		if refused.Leader.URL != "" && refused.Leader.URL != c.admin {
			c.admin = refused.Leader.URL
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// once sends one request: a POST where there is a body.
func (c *operatorClient) once(ctx context.Context, path string, body []byte, key string) ([]byte, error) {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, c.admin+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("admin address %s: %w", c.admin, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(c.admin, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxOperatorAnswer))
	if err != nil {
		return nil, unreachable(c.admin, fmt.Errorf("reading the answer: %w", err))
	}
	if resp.StatusCode == http.StatusOK {
		return answer, nil
	}
	refused := &refusedError{}
	if err := json.Unmarshal(answer, refused); err != nil || refused.Code == "" || refused.Code == "ROUTE_INCONNUE" {
		return nil, fmt.Errorf("%s%s answers %s: is it the admin address of a service with its desk enabled?", c.admin, path, resp.Status)
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return nil, fmt.Errorf("the token from %s: %w", c.from, refused)
	}
	return nil, refused
}

// get reads a GET's answer into v.
func (c *operatorClient) get(ctx context.Context, path string, v any) error {
	answer, err := c.do(ctx, path, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, v)
}

// operatorCommand is a command that sends one request and shows the answer: as
// JSON, or as show has it.
func operatorCommand[T any](s *settings, f *operatorFlags, request func(args []string) (path string, in any, err error), show func(io.Writer, *T) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		path, in, err := request(args)
		if err != nil {
			return err
		}
		client, err := f.dial(s)
		if err != nil {
			return err
		}
		answer, err := client.do(cmd.Context(), path, in)
		if err != nil {
			return err
		}
		return showAnswer(cmd.OutOrStdout(), s.json, answer, show)
	}
}

func showAnswer[T any](w io.Writer, asJSON bool, answer []byte, show func(io.Writer, *T) error) error {
	if asJSON {
		var out bytes.Buffer
		if err := json.Indent(&out, answer, "", "  "); err != nil {
			return err
		}
		_, err := w.Write(out.Bytes())
		return err
	}
	var v T
	if err := json.Unmarshal(answer, &v); err != nil {
		return fmt.Errorf("the service's answer: %w", err)
	}
	return show(w, &v)
}

// shortDecimal drops zeros that say nothing, for people.
func shortDecimal(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// shortTime drops the fraction of a second, for people.
func shortTime(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return at.UTC().Format("2006-01-02 15:04:05Z")
}
