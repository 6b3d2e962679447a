package session

import (
	"errors"
	"testing"
	"time"
)

func TestGapFollow(t *testing.T) {
	t.Parallel()
	const most = time.Second
	began := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		expected, seq uint64
		msgType       string
		after         time.Duration
		ends          bool
	}{
		"in time":         {5, 8, "0", most - 1, false},
		"late":            {5, 8, "0", most, true},
		"got on":          {6, 8, "0", most, false},
		"in turn":         {5, 5, "0", most, false},
		"below":           {5, 4, "0", most, false},
		"ResendRequest":   {5, 8, "2", most, false},
		"SequenceReset":   {5, 8, "4", most, false},
		"Logout":          {5, 8, "5", most, false},
		"Logon":           {5, 8, "A", most, false},
		"begun anew by 1": {1, 2, "0", most, false},
	} {
		g := gap{}
		for _, seq := range []uint64{5, 6, 7} { // 5 is missed when 6 has come
			if err := g.follow(5, seq, "0", began, most); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.follow(c.expected, c.seq, c.msgType, began.Add(c.after), most); errors.Is(err, errMissing) != c.ends {
			t.Errorf("%s: %v", name, err)
		}
	}
}
