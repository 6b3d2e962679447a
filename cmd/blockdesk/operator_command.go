package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/service/config"
	"blockdesk/service/operator"
)

// operatorFlags are the flags of commands for a running service.
type operatorFlags struct {
	admin string
	token string
}

func (f *operatorFlags) add(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&f.admin, "admin", "", "the service's admin address (default: from addresses.json in the data folder)")
	cmd.PersistentFlags().StringVar(&f.token, "operator-token", "",
		"operator's token (default: $"+config.OperatorTokenEnv+", then "+operator.TokenFile+" in the data folder)")
}

// dial finds the service and the token. It sends nothing.
func (f *operatorFlags) dial(s *settings) (*operator.Client, error) {
	cfg, err := s.load()
	if err != nil {
		return nil, err
	}
	c := &operator.Client{HTTP: &http.Client{Timeout: operator.Timeout}}
	if c.URL, err = s.adminURL(f.admin); err != nil {
		return nil, err
	}
	return c, f.findToken(c, cfg.DataDir)
}

// findToken sets the token of c: from the flag, the environment, or the data folder.
func (f *operatorFlags) findToken(c *operator.Client, dataDir string) error {
	if c.Token, c.TokenSource = f.token, "--operator-token"; c.Token == "" {
		c.Token, c.TokenSource = os.Getenv(config.OperatorTokenEnv), "$"+config.OperatorTokenEnv
	}
	if c.Token != "" {
		return nil
	}
	c.TokenSource = filepath.Join(dataDir, operator.TokenFile)
	text, err := os.ReadFile(c.TokenSource)
	if err != nil {
		return fmt.Errorf("no operator's token: give --operator-token or $%s (%w)", config.OperatorTokenEnv, err)
	}
	c.Token = strings.TrimSpace(string(text))
	return nil
}

// operatorCommand returns the function of a command that sends one request and prints the
// answer, as JSON or by show.
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
		answer, err := client.Do(cmd.Context(), path, in)
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

// shortDecimal drops trailing zeros.
func shortDecimal(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// shortTime drops the fraction of a second.
func shortTime(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return at.UTC().Format("2006-01-02 15:04:05Z")
}
