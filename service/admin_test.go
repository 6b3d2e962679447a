package service

import (
	"testing"
	"time"

	"blockdesk/engine"
)

// A feed is behind while events wait for it, and not because the last one was old.
func TestFeedBehind(t *testing.T) {
	others := []engine.Lag{{Name: "desk", Events: 9}, {Name: feedConsumer}}
	waits := []engine.Lag{{Name: feedConsumer, Events: 1}}
	for name, c := range map[string]struct {
		lag       time.Duration
		consumers []engine.Lag
		behind    bool
	}{
		"in time":                        {maxFeedLag, waits, false},
		"late":                           {maxFeedLag + 1, waits, true},
		"the last of a quiet market":     {time.Hour, others, false},
		"an engine that has none so far": {time.Hour, nil, false},
	} {
		if err := feedBehind(c.lag, c.consumers); (err != nil) != c.behind {
			t.Errorf("%s: %v", name, err)
		}
	}
}
