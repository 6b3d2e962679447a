// Package doctor examines a machine and a configuration before and while a service runs:
// configuration and keys, clock, disk, limits of the operating system, chain nodes, and
// the running service with its prices. It changes nothing but a scratch file in the data
// folder, which it removes.
//
// A finding names the check, what was measured, and what to do. Checks that cannot run
// here are skipped and say why.
package doctor

import (
	"context"
	"time"

	"blockdesk/service/config"
)

// State says how a check has ended.
type State string

// The states of a finding, best first.
const (
	OK      State = "ok"
	Skipped State = "skipped"
	Warning State = "warning"
	Problem State = "problem" // the service does not start, or loses money or time
)

// Finding is the result of a check.
type Finding struct {
	Check string `json:"check"`
	State State  `json:"state"`
	Text  string `json:"text"`
	// Do says what to do; empty if nothing.
	Do string `json:"do,omitempty"`
}

// Options are the options of Examine.
type Options struct {
	// Config is examined.
	Config *config.Config
	// Check validates what a service reads at its start, as serve --check does; nil: it
	// is not checked.
	Check func(*config.Config) error
	// Timeout bounds each request to a node or the service; default 5 s.
	Timeout time.Duration
}

// Examine runs all checks, one after the other, and returns their findings in a fixed
// order. It takes some seconds if nodes do not answer.
func Examine(ctx context.Context, o Options) []Finding {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	service := running(ctx, o)
	list := asGiven([]Finding{configuration(o), placeholders(o.Config)}, service[0].State)
	list = append(list, clock(readClock()))
	list = append(list, disk(o.Config)...)
	list = append(list, files(o.Config))
	list = append(list, nodes(ctx, o)...)
	return append(list, service...)
}

// asGiven makes problems of the configuration warnings if a service runs: it was started
// with another configuration than the one that is given here.
func asGiven(list []Finding, service State) []Finding {
	for i := range list {
		if list[i].State == Problem && (service == OK || service == Warning) {
			list[i].State = Warning
			list[i].Do = "give the flags and the configuration of the service that runs"
		}
	}
	return list
}

// Worst returns the worst state of findings.
func Worst(list []Finding) State {
	rank := map[State]int{OK: 0, Skipped: 0, Warning: 1, Problem: 2}
	worst := OK
	for _, f := range list {
		if rank[f.State] > rank[worst] {
			worst = f.State
		}
	}
	return worst
}
