package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/persist/quorum"
	"blockdesk/service/config"
	"blockdesk/service/operator"
)

// settings are the flags of every command, and the state of the command line.
type settings struct {
	config string
	data   string
	sets   []string
	json   bool
	// started: the command line was valid, and its command runs.
	started bool
	// helpErr is the error of writing a help, which cobra does not return.
	helpErr error
	machine machine
	// opened is called with the board's URL when the service listens; nil: not wanted.
	opened func(ctx context.Context, url string, log *slog.Logger)
}

// machine is the disk and the clock of the program. Tests use one whose disk fails or whose
// clock jumps; the zero value is the real machine.
type machine struct {
	// disk changes the options of a node's log and stores, such as the file system.
	disk func(*quorum.Options)
	// clock is the engine's, in Unix nanoseconds.
	clock func() int64
}

// load returns the configuration, with the instruments of this process's group only.
func (s *settings) load() (config.Config, error) {
	cfg, _, err := s.loadAll()
	if err == nil {
		cfg = cfg.SelectGroup()
	}
	return cfg, err
}

// loadAll returns the configuration of all groups, and the source of each value.
func (s *settings) loadAll() (config.Config, config.Sources, error) {
	cfg, sources, err := config.Load(s.config, os.Environ(), s.sets)
	if err == nil && s.data != "" {
		cfg.DataDir = s.data
		sources["data_dir"] = "--data"
	}
	if err != nil && !isUsage(err) {
		err = configError{err}
	}
	return cfg, sources, err
}

// adminURL returns the URL of an admin address: the one that --admin gives, or else
// that of the service on the data folder.
func (s *settings) adminURL(given string) (string, error) {
	if given == "" {
		cfg, err := s.load()
		if err != nil {
			return "", err
		}
		at, err := operator.ReadAddresses(cfg.DataDir)
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%w: no service has run on %s, there is no %s", operator.ErrNoService, cfg.DataDir, operator.AddressesFile)
		} else if err != nil {
			return "", err
		}
		given = at.Admin
	}
	if !strings.Contains(given, "://") {
		given = "http://" + given
	}
	return strings.TrimRight(given, "/"), nil
}

// print prints an answer: text and a line end, or with --json object and "ok": true.
func (s *settings) print(cmd *cobra.Command, object map[string]any, text string) error {
	if s.json {
		object["ok"] = true
		return printJSON(cmd.OutOrStdout(), object)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
	return err
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// completionTimeout bounds a completion's request to a running service, because the user is
// waiting. Without an answer nothing is offered.
const completionTimeout = time.Second

// completer returns the possible values of an argument or a flag; a description follows a
// tab.
type completer func(cmd *cobra.Command, typed string) []string
