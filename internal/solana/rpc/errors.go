package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Kind classifies an error by what the caller can do about it.
type Kind uint8

const (
	// Down: no answer, or the node cannot serve requests. Another node may.
	Down Kind = 1
	// Behind: the node lags, or lacks the requested data. Another node may have it.
	Behind Kind = 2
	// RateLimited: the node wants us to wait for Error.RetryAfter.
	RateLimited Kind = 3
	// Preflight: the simulated transaction fails, see Error.Logs. This node has not
	// broadcast it.
	Preflight Kind = 4
	// WrongAnswer: the answer cannot be right.
	WrongAnswer Kind = 5
	// Rejected: the node refuses the request itself, as any node would.
	Rejected Kind = 6
)

// String returns the name in logs and metrics.
func (k Kind) String() string {
	if k < Down || k > Rejected {
		return "kind?"
	}
	return [...]string{
		Down: "down", Behind: "behind", RateLimited: "rate_limited", Preflight: "preflight",
		WrongAnswer: "wrong_answer", Rejected: "rejected",
	}[k]
}

// retryable reports whether another node may do better.
func (k Kind) retryable() bool { return k != Preflight && k != Rejected }

// Error is the error of a call to one node.
type Error struct {
	Kind Kind
	// Upstream is the node's name, Method the call.
	Upstream, Method string
	// Code and Message are the node's, if it has answered with an error.
	Code    int
	Message string
	// Logs are the program logs of a Preflight failure, TxError the runtime's error as
	// JSON.
	Logs    []string
	TxError string
	// RetryAfter is how long a RateLimited node wants us to wait.
	RetryAfter time.Duration
	// Err is the cause, if any.
	Err error
}

// Error names the node and the method, never a URL.
func (e *Error) Error() string {
	text := fmt.Sprintf("rpc: %s of %s: %v", e.Method, e.Upstream, e.Kind)
	if e.Code != 0 || e.Message != "" {
		text += fmt.Sprintf(": %d %q", e.Code, e.Message)
	}
	if e.TxError != "" {
		text += ": " + e.TxError
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of a call's error, 0 for any other error.
func KindOf(err error) Kind {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Kind
	}
	return 0
}

// Codes of Agave's errors.
const (
	codeBlockCleanedUp     = -32001
	codePreflight          = -32002
	codeBlockNotAvailable  = -32004
	codeUnhealthy          = -32005
	codeNoHistory          = -32011
	codeStatusNotAvailable = -32014
	codeMinContextSlot     = -32016
	codeInternal           = -32603
	codeTooManyRequests    = 429
	codeRateLimited        = -32429
)

// wireError is the error member of an answer.
type wireError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// Limits of the texts that are kept from a node's error.
const (
	maxMessage = 500
	maxLogs    = 256
	maxLogLine = 1000
)

func truncate(text string, most int) string { return text[:min(len(text), most)] }

// classify returns the Error for a node's error answer.
func classify(w *wireError) *Error {
	e := &Error{Kind: Rejected, Code: w.Code, Message: truncate(w.Message, maxMessage)}
	switch w.Code {
	case codePreflight:
		e.Kind = Preflight
		e.readPreflight(w.Data)
	case codeUnhealthy, codeMinContextSlot, codeBlockCleanedUp, codeBlockNotAvailable, codeNoHistory, codeStatusNotAvailable:
		e.Kind = Behind
	case codeTooManyRequests, codeRateLimited:
		e.Kind, e.RetryAfter = RateLimited, defaultRetryAfter
	case codeInternal:
		e.Kind = Down
	}
	return e
}

func (e *Error) readPreflight(data json.RawMessage) {
	var d struct {
		Err  json.RawMessage `json:"err"`
		Logs []string        `json:"logs"`
	}
	// Data of another form are ignored: the logs stay empty.
	if json.Unmarshal(data, &d) != nil {
		return
	}
	e.TxError, e.Logs = truncate(string(d.Err), maxMessage), trimLogs(d.Logs)
}

func trimLogs(logs []string) []string {
	logs = logs[:min(len(logs), maxLogs)]
	for i := range logs {
		logs[i] = truncate(logs[i], maxLogLine)
	}
	return logs
}
