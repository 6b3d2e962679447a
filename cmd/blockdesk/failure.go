package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"blockdesk/persist"
	"blockdesk/service/config"
	"blockdesk/service/operator"
	"blockdesk/settle/cosign"
)

// How the program ends: our choice, told by `blockdesk help exit-codes`. A command
// that signals are to end, such as serve, ends by one as done.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2   // the command line is wrong: nothing was tried
	exitNoService   = 3   // the command needs a running service, and none answers
	exitInterrupted = 130 // by Ctrl-C or SIGTERM, before it was done
)

// Codes of failures, in what --json prints. A refusal of the service has the
// service's own code.
const (
	codeFailed        = "FAILED"
	codeUsage         = "USAGE"
	codeConfiguration = "CONFIGURATION"
	codeNoService     = "NO_SERVICE"
	codeInterrupted   = "INTERRUPTED"
)

// failure is what a command's error is to whoever has called it. With --json it
// is the last line of standard output.
type failure struct {
	OK        bool   `json:"ok"` // false
	Code      string `json:"code"`
	Reason    string `json:"reason,omitempty"` // of a service's refusal
	Text      string `json:"error"`
	Next      string `json:"next,omitempty"` // what may help
	RequestID string `json:"request_id,omitempty"`
	exit      int
}

// usageError is a command line that cannot be meant so, beyond what cobra sees.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func isUsage(err error) bool {
	return errors.As(err, new(usageError)) || errors.As(err, new(config.FlagError)) || errors.As(err, new(operator.AddressError))
}

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// toldError is a failure that standard output has told already, as JSON.
type toldError struct{ error }

func (e toldError) Unwrap() error { return e.error }

// configError is a configuration that cannot be used.
type configError struct{ error }

func (e configError) Unwrap() error { return e.error }

// knownFailures are the errors that have a code of their own and a next step; the
// first that fits counts.
func knownFailures() []struct {
	is         error
	code, next string
} {
	return []struct {
		is         error
		code, next string
	}{
		{persist.ErrNoStore, "NO_JOURNAL", "name the data folder of a service by --data"},
		{persist.ErrNotEmpty, "NOT_EMPTY", "name a folder that is empty or not there"},
		{syscall.EADDRINUSE, "ADDRESS_IN_USE", "stop what has the address, or name another, e.g. --set listen.base=127.0.0.1:0"},
		{syscall.EAGAIN, "IN_USE", "a service has this data folder open: stop it first"},
		{syscall.ENOSPC, "DISK_FULL", "make room on the disk"},
		{fs.ErrPermission, "NOT_PERMITTED", "run it as the user that the file or folder belongs to"},
		{fs.ErrNotExist, "NOT_FOUND", ""},
		{fs.ErrExist, "EXISTS", "name another"},
		{cosign.ErrKeyExists, "EXISTS", "name another file: a key is never replaced"},
	}
}

// explain says what an error means. started: the command itself has run, so that
// its command line was in order.
func explain(ctx context.Context, cmd *cobra.Command, started bool, err error) failure {
	f := failure{Code: codeFailed, Text: err.Error(), exit: exitFailed}
	var refused *operator.RefusedError
	var damage *persist.DamageError
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return failure{Code: codeInterrupted, Text: "interrupted before it was done", exit: exitInterrupted}
	case !started || isUsage(err):
		f.Code, f.exit = codeUsage, exitUsage
		f.Next = "see " + cmd.CommandPath() + " --help"
	case errors.As(err, new(configError)):
		f.Code, f.Next = codeConfiguration, "see blockdesk config keys, and blockdesk config for where each value is from"
	case errors.Is(err, operator.ErrNoService):
		f.Code, f.exit = codeNoService, exitNoService
		f.Next = "start one with blockdesk serve, or name a running one by --data or --admin"
	case errors.As(err, &refused):
		f.Code, f.Reason, f.RequestID = refused.Code, refused.Reason, refused.ID
	case errors.As(err, &damage):
		f.Code, f.Next = "DAMAGED", "keep the folder as it is, and restore a backup into another one"
	default:
		for _, k := range knownFailures() {
			if errors.Is(err, k.is) {
				f.Code, f.Next = k.code, k.next
				break
			}
		}
	}
	return f
}

// tell prints a failure: for programs on out, for people on errOut. What cannot be
// printed is told by the exit code alone.
func (f *failure) tell(asJSON bool, out, errOut io.Writer) {
	if asJSON {
		_ = json.NewEncoder(out).Encode(f)
		return
	}
	text := "blockdesk: " + f.Text
	if f.Next != "" {
		text += "\n" + f.Next
	}
	fmt.Fprintln(errOut, text)
}

// readerGone reports whether err says that nobody reads standard output any more,
// as of `blockdesk journal dump | head -1`.
func readerGone(err error) bool {
	var path *fs.PathError
	return errors.Is(err, syscall.EPIPE) && errors.As(err, &path) && path.Path == os.Stdout.Name()
}
