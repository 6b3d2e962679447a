//go:build !linux

package ladder

import "time"

// threadTime is not known here: cpu-ns/op is 0.
func threadTime() time.Duration { return 0 }
