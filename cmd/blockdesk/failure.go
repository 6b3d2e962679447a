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
	"blockdesk/persist/quorum"
	"blockdesk/service/config"
	"blockdesk/service/operator"
	"blockdesk/settle/cosign"
)

// Exit codes: our choice, documented by `blockdesk help exit-codes`. A command that runs
// until a signal, such as serve, exits with exitDone.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2   // the command line is wrong: nothing was tried
	exitNoService   = 3   // the command needs a running service, and none answers
	exitInterrupted = 130 // by Ctrl-C or SIGTERM, before it was done
)

// Codes of failures in --json. A refusal of the service has the service's own code.
const (
	codeFailed        = "FAILED"
	codeUsage         = "USAGE"
	codeConfiguration = "CONFIGURATION"
	codeNoService     = "NO_SERVICE"
	codeInterrupted   = "INTERRUPTED"
)

// failure is a command's error for its caller. With --json it is the last line of standard
// output.
type failure struct {
	OK        bool   `json:"ok"` // false
	Code      string `json:"code"`
	Reason    string `json:"reason,omitempty"` // of a service's refusal
	Text      string `json:"error"`
	Next      string `json:"next,omitempty"` // a next step
	RequestID string `json:"request_id,omitempty"`
	exit      int
}

// usageError is an invalid command line that cobra accepts.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func isUsage(err error) bool {
	return errors.As(err, new(usageError)) || errors.As(err, new(config.FlagError)) || errors.As(err, new(operator.AddressError))
}

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// printedError is a failure that is already printed as JSON.
type printedError struct{ error }

func (e printedError) Unwrap() error { return e.error }

// configError is an invalid configuration.
type configError struct{ error }

func (e configError) Unwrap() error { return e.error }

// knownFailures are the errors with a code of their own and a next step; the first match
// counts.
func knownFailures() []struct {
	is         error
	code, next string
} {
	return []struct {
		is         error
		code, next string
	}{
		{persist.ErrNoStore, "NO_JOURNAL", "name the data folder of a service by --data"},
		{persist.ErrNotEmpty, "NOT_EMPTY", "name an empty or missing folder"},
		{syscall.EADDRINUSE, "ADDRESS_IN_USE", "stop the program that uses the address, or choose another, e.g. --set listen.base=127.0.0.1:0"},
		{syscall.EAGAIN, "IN_USE", "a service has this data folder open: stop it first"},
		{syscall.ENOSPC, "DISK_FULL", "make room on the disk"},
		{fs.ErrPermission, "NOT_PERMITTED", "run it as the owner of the file or folder"},
		{fs.ErrNotExist, "NOT_FOUND", ""},
		{fs.ErrExist, "EXISTS", "name another"},
		{cosign.ErrKeyExists, "EXISTS", "name another file: a key is never replaced"},
	}
}

// explain returns the failure of an error. started: the command has run, so its command line
// was valid.
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
		f.Code, f.Next = codeConfiguration, "see blockdesk config keys, and blockdesk config for the source of each value"
	case errors.Is(err, operator.ErrNoService):
		f.Code, f.exit = codeNoService, exitNoService
		f.Next = "start one with blockdesk serve, or name a running one by --data or --admin"
	case errors.As(err, &refused):
		f.Code, f.Reason, f.RequestID = refused.Code, refused.Reason, refused.ID
	case errors.As(err, &damage):
		f.Code, f.Next = "DAMAGED", "keep the folder unchanged, and restore a backup into another one"
		if damage.Advice == quorum.DamageAdvice {
			f.Next = "keep the folder unchanged, and see Replace a node in docs/cluster.md"
		}
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

// print prints a failure as JSON on out, or as text on errOut. If it cannot be printed the
// exit code remains.
func (f *failure) print(asJSON bool, out, errOut io.Writer) {
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

// isClosedPipe reports whether the reader of standard output has closed the pipe, as in
// `blockdesk journal dump | head -1`.
func isClosedPipe(err error) bool {
	var path *fs.PathError
	return errors.Is(err, syscall.EPIPE) && errors.As(err, &path) && path.Path == os.Stdout.Name()
}
