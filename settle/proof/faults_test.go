package proof

import (
	"sync"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// TestFaults takes the node through what nodes suffer, while payments are final:
// each answer is an error, "pending" or the truth, and in the end every payment is
// booked once. Two nodes of which one works are as good as one.
func TestFaults(t *testing.T) {
	c := startChain(t)
	s := c.stage(c.local.Client(rpc.Options{Attempts: 1, Timeout: runtest.HangTimeout, AttemptTimeout: runtest.HangTimeout}), c.options(c.checked))
	retrying := s.prover
	hasty, err := New(c.options(c.checked), c.local.Client(rpc.Options{Attempts: 1, Timeout: 100 * time.Millisecond}), s.machine, s.store)
	c.must(err)
	steps := []struct {
		name, method string
		params       map[string]any
		pending      bool // in place of an error
		good         bool // the truth, in spite of it
		hasty        bool // by a client whose calls time out
	}{
		{name: "503", method: "setNode", params: map[string]any{"mode": "503"}},
		{name: "reset", method: "setNode", params: map[string]any{"mode": "reset"}},
		{name: "hang", method: "setNode", params: map[string]any{"mode": "hang"}, hasty: true},
		{name: "slow", method: "delayAnswers", params: map[string]any{"ms": 400}, hasty: true},
		{name: "a little slow", method: "delayAnswers", params: map[string]any{"ms": 20}, good: true},
		{name: "HTML", method: "answerGarbage", params: map[string]any{"count": 1, "kind": "text"}},
		{name: "empty", method: "answerGarbage", params: map[string]any{"count": 1, "kind": "empty"}},
		{name: "truncated", method: "answerGarbage", params: map[string]any{"count": 1, "kind": "truncated"}},
		{name: "wrong type", method: "answerGarbage", params: map[string]any{"count": 1, "kind": "wrong_type"}},
		{name: "lagging", method: "lag", params: map[string]any{"slots": 100}, pending: true},
		{name: "lagging far", method: "lag", params: map[string]any{"slots": 200}, pending: true},
		{name: "unhealthy", method: "setHealth", params: map[string]any{"healthy": false}, good: true},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			s.in(t)
			x := s.take(market.RailUSDC)
			sig := s.as(x, draft{})
			c.control(step.method, step.params)
			if step.hasty {
				s.prover = hasty
			}
			v, err := s.verify(sig, x)
			s.prover = retrying
			c.control("heal", nil)
			switch {
			case step.good && (err != nil || wordOf(&v) != verified), step.pending && (err != nil || wordOf(&v) != pending),
				!step.good && !step.pending && (rpc.KindOf(err) == 0 || v != (desk.Verdict{})):
				t.Errorf("%+v, %v", v, err)
			}
			if h, _, _ := s.machine.Claim(x.ID); step.good != (len(h.Payments) == 1) {
				t.Errorf("booked %+v", h.Payments)
			}
			if _, stored := s.unmatched(sig); stored {
				t.Error("kept as unmatched")
			}
			if v, err := s.verify(sig, x); err != nil || wordOf(&v) != verified {
				t.Errorf("healed: %+v, %v", v, err)
			}
		})
	}
	s.machine.check(t)
}

// TestAnswerLost: the payer's own send loses its answer, and is sent again; the
// payment is one.
func TestAnswerLost(t *testing.T) {
	c := startChain(t)
	s := c.stage(nil, c.options(c.checked))
	x := s.take(market.RailUSDC)
	raw := s.sealed(&draft{calls: s.bound(x, due(x))})
	c.control("loseAnswers", map[string]any{"count": 1})
	once := c.local.Client(rpc.Options{Attempts: 1})
	if _, err := once.Send(t.Context(), raw, rpc.SendOptions{SkipPreflight: true}); err == nil {
		t.Error("the answer came")
	}
	sig := s.sends(raw)
	if v, err := s.verify(sig, x); err != nil || wordOf(&v) != verified || v.Payment.Amount != due(x) {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestRaceOnChain: three surfaces are asked by many at once for the same real
// signatures, with every claim, while the node comes and goes.
func TestRaceOnChain(t *testing.T) {
	const claims, surfaces, times = 6, 3, 8
	c := startChain(t)
	s := c.stage(nil, c.options(c.checked))
	var list []*rfq.Claim
	var sigs []solana.Signature
	for i := range claims {
		x := s.take([]market.Rail{market.RailUSDC, market.RailSOL}[i%2])
		list, sigs = append(list, x), append(sigs, s.as(x, draft{}))
	}
	var wg sync.WaitGroup
	for range surfaces {
		for at := range claims {
			for with := range claims {
				wg.Go(func() {
					for range times {
						r := request(sigs[at], list[with])
						r.Claim = list[with].ID
						v, err := s.prover.Verify(t.Context(), r)
						want := used
						if at == with {
							want = verified
						}
						if err == nil && wordOf(&v) != want {
							t.Errorf("%d for %d: %+v", at, with, v)
						}
					}
				})
			}
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); wg.Wait() }()
	var status struct{ Faults struct{ Garbage int } }
	for range 5 {
		c.control("answerGarbage", map[string]any{"count": 1, "kind": "truncated"})
		await.True(t, "a request answered with garbage", func() bool {
			select {
			case <-done:
				return true
			default:
			}
			c.must(c.local.Call(t.Context(), "sandbox_status", nil, &status))
			return status.Faults.Garbage == 0
		})
	}
	<-done
	c.control("heal", nil)
	for i, x := range list {
		if v, err := s.verify(sigs[i], x); err != nil || wordOf(&v) != verified {
			t.Errorf("%+v, %v", v, err)
		}
		if h, _, _ := s.machine.Claim(x.ID); len(h.Payments) != 1 || h.Payments[0].Signature != sigs[i] {
			t.Errorf("%+v", h.Payments)
		}
	}
	if s.machine.proves != claims {
		t.Errorf("%d commands", s.machine.proves)
	}
	s.machine.check(t)
}
