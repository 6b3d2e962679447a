//go:build !linux

package ladder

import "time"

// threadTime is unknown on this system: cpu-ns/op is 0.
func threadTime() time.Duration { return 0 }
