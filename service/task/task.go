// Package task runs the tasks of a process concurrently and names the one that failed. It
// is errgroup with names: without them the error of a process with ten tasks does not show
// which part it is from.
//
// The first failure cancels the group's context; the others must then return.
// context.Canceled is no failure, because it is the error of a task that was asked to end.
// It has no state, and bounds nothing: a process starts a fixed number of tasks.
package task

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"
)

// Task runs until its context ends.
type Task struct {
	Name string // in errors
	Run  func(context.Context) error
}

// Go starts tasks in a group whose context is ctx. The first task that fails ends the
// group with an error that names it.
func Go(ctx context.Context, group *errgroup.Group, tasks ...Task) {
	for _, t := range tasks {
		group.Go(func() error { return Named(t.Name, t.Run(ctx)) })
	}
}

// Named prefixes an error with the name of its task. It returns nil for nil and for
// context.Canceled, the error of a task whose context has ended.
func Named(name string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// IgnoreClosed returns nil if err is that of a listener that is closed already.
func IgnoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
