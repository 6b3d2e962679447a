package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// part is one part of a benchmark, which can be asked for by its name.
type part struct {
	name string
	run  func(context.Context) error
}

// runParts runs the parts that are asked for, in their order; all where none is.
// A name that is none of these is another benchmark's.
func runParts(ctx context.Context, asked []string, parts []part) error {
	for _, p := range parts {
		if len(asked) > 0 && !slices.Contains(asked, p.name) {
			continue
		}
		if err := errors.Join(ctx.Err(), p.run(ctx)); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}
