// Package part runs the parts of a process side by side and says which of them
// failed.
package part

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"
)

// Part is something that runs until its context ends.
type Part struct {
	Name string // of errors
	Run  func(context.Context) error
}

// Go starts parts in a group, whose context ctx is. The first part that fails ends
// the group with an error that names it.
func Go(ctx context.Context, group *errgroup.Group, parts ...Part) {
	for _, p := range parts {
		group.Go(func() error { return Named(p.Name, p.Run(ctx)) })
	}
}

// Named puts a part's name in front of its error. It returns nil for nil and for
// context.Canceled, which is how parts end when their context does.
func Named(part string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("%s: %w", part, err)
}

// IgnoreClosed returns nil if err means that a listener was closed already.
func IgnoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
