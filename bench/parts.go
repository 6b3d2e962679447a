package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// Benchmark is one benchmark with its options.
type Benchmark interface {
	// Run measures until it has a report, or ctx ends.
	Run(ctx context.Context) (*Report, error)
}

// Part is one part of a benchmark, which can be asked for by its name.
type Part struct {
	Name string
	Run  func(context.Context) error
}

// RunParts runs the parts that are asked for, in their order; all where none is.
// A name that is none of these is another benchmark's.
func RunParts(ctx context.Context, asked []string, parts []Part) error {
	for _, p := range parts {
		if len(asked) > 0 && !slices.Contains(asked, p.Name) {
			continue
		}
		if err := errors.Join(ctx.Err(), p.Run(ctx)); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

// Quiet returns a logger that drops everything.
func Quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Running starts run and returns a function that ends it, waits for it, and returns its error.
func Running(ctx context.Context, run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

// Closers end what was opened, the last one first.
type Closers []func() error

// Add adds the end of something that was opened.
func (c *Closers) Add(end func() error) { *c = append(*c, end) }

// Close ends everything that was added, the last one first.
func (c *Closers) Close() (err error) {
	for i := len(*c) - 1; i >= 0; i-- {
		err = errors.Join(err, (*c)[i]())
	}
	return err
}

// FindProgram finds a program in PATH or where Debian keeps servers.
func FindProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if path, err := exec.LookPath(filepath.Join("/usr/sbin", name)); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%s is missing: apt-get install nginx wrk util-linux (%w)", name, err)
}
