package service

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"blockdesk/engine"
	"blockdesk/market"
	"blockdesk/service/config"
)

// defined are instruments in the order of their ids.
func defined(t *testing.T, symbols ...string) (list []market.Instrument) {
	t.Helper()
	for i, symbol := range symbols {
		in, err := (&config.Instrument{
			Symbol: symbol, PriceDecimals: 2, Tick: "0.01", Lot: "1", MinQty: "1", MaxQty: "100", MaxPrice: "10", BookSource: "matched",
		}).ToMarket(market.InstrumentID(i))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, in)
	}
	return list
}

// TestCheckInstruments: a leader may have fewer instruments and other limits than its follower;
// more are reported by their names, others are refused.
func TestCheckInstruments(t *testing.T) {
	t.Parallel()
	limited := defined(t, "A/X", "B/X")
	limited[1].MaxQty = 50
	for _, c := range []struct {
		leader, own []market.Instrument
		text        string
		lacks       bool
	}{
		{nil, defined(t, "A/X"), "", false},
		{defined(t, "A/X"), defined(t, "A/X", "B/X"), "", false},
		{limited, defined(t, "A/X", "B/X"), "", false},
		{defined(t, "A/X", "B/X", "C/X"), defined(t, "A/X"), "B/X, C/X: defined by the leader, missing in instruments", true},
		{defined(t, "A/X", "B/X"), defined(t, "A/X", "C/X"), "instrument C/X differs from the leader's", false},
		{defined(t, "B/X", "C/X"), defined(t, "A/X"), "instrument A/X differs from the leader's", false},
	} {
		err := checkInstruments(c.leader, c.own)
		if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) || errors.Is(err, errLacksInstruments) != c.lacks {
			t.Errorf("%v at %v: %v", c.leader, c.own, err)
		}
	}
}

// TestFollowedEngine: a follower goes on without an instrument that its leader has
// come to have, says so once, and is not ready; at one that is another here it ends.
// A definition that the leader's engine has refused changes nothing.
func TestFollowedEngine(t *testing.T) {
	t.Parallel()
	eng, err := engine.Follow(engine.Options{}, engine.NewReplica(engine.StateOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }()
	var log bytes.Buffer
	f := &replicaEngine{eng: eng, own: defined(t, "A/X"), log: slog.New(slog.NewTextHandler(&log, nil))}
	apply := func(in *market.Instrument) error {
		t.Helper()
		c, err := engine.DefineInstrumentCommand(in)
		if err != nil {
			t.Fatal(err)
		}
		digest, seq := eng.Digest()
		c.Seq, c.At = seq+1, 1
		return f.Apply(digest, []engine.Command{c})
	}
	leader := defined(t, "A/X", "B/X", "C/X")
	for i, step := range []struct {
		define *market.Instrument
		lacks  string
		lines  int // said so far
	}{
		{&leader[0], "", 0},
		{&leader[2], "", 0}, // refused: B/X is not defined yet
		{&leader[1], "B/X: defined by the leader, missing", 1},
		{&leader[1], "B/X: defined by the leader, missing", 1}, // as at a change of its limits
		{&leader[2], "B/X, C/X: defined by the leader, missing", 2},
	} {
		if err := apply(step.define); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		err := f.complete()
		if (err == nil) != (step.lacks == "") || err != nil && !strings.Contains(err.Error(), step.lacks) || strings.Count(log.String(), "\n") != step.lines {
			t.Errorf("step %d: %v; said:\n%s", i, err, &log)
		}
	}
	f.own = defined(t, "A/X", "OTHER/X")
	if err := apply(&leader[0]); err == nil || errors.Is(err, errLacksInstruments) || !strings.Contains(err.Error(), "OTHER/X") {
		t.Errorf("another instrument: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
