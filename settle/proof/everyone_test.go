package proof

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"blockdesk/engine/rfq"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// nodeAnswer changes a node's answer to getTransaction; nil changes nothing.
type nodeAnswer = func(w http.ResponseWriter, result object) any

// hides is a node that does not have the transaction: of an invented payment all
// that are honest, and of a real one those that lag.
func hides(http.ResponseWriter, object) any { return nil }

// TestEveryNode: several nodes' answers about one payment. Nothing is booked unless a
// majority of the configured nodes has it alike; once all are well it is verified.
func TestEveryNode(t *testing.T) {
	c := startChain(t)
	more, failed := amount("999000000"), set("err", object{"InstructionError": []any{0, "Custom"}})
	timeless := top(func(r object) { r["blockTime"] = nil })
	earlier := top(func(r object) { r["blockTime"] = 1 })
	limited, down := raw(429, ""), raw(503, "")
	for _, x := range []struct {
		name    string
		nodes   []nodeAnswer
		err     error
		verdict verdictWord
	}{
		{name: "one node", nodes: []nodeAnswer{nil}, verdict: verified},
		{name: "one node, unknown", nodes: []nodeAnswer{hides}, verdict: pending},
		{name: "invented by one of two", nodes: []nodeAnswer{nil, hides}, verdict: pending},
		{name: "invented by one of three", nodes: []nodeAnswer{nil, hides, hides}, verdict: pending},
		{name: "invented, and one is down", nodes: []nodeAnswer{nil, down, hides}, verdict: pending},
		{name: "invented, the others limited", nodes: []nodeAnswer{nil, limited, limited}, verdict: pending},
		{name: "invented, the others down", nodes: []nodeAnswer{nil, down, down}, verdict: pending},
		{name: "invented, one limited, one down", nodes: []nodeAnswer{limited, down, nil}, verdict: pending},
		{name: "invented by one of two, the other limited", nodes: []nodeAnswer{nil, limited}, verdict: pending},
		{name: "invented by one of two, the other down", nodes: []nodeAnswer{down, nil}, verdict: pending},
		{name: "invented by two of five, the others fail", nodes: []nodeAnswer{nil, limited, nil, down, fault(-32005)}, verdict: pending},
		{name: "unknown to the last of three", nodes: []nodeAnswer{nil, nil, hides}, verdict: verified},
		{name: "unknown before all differences", nodes: []nodeAnswer{nil, more, hides}, verdict: pending},
		{name: "one is down", nodes: []nodeAnswer{down, nil, nil}, verdict: verified},
		{name: "one is limited", nodes: []nodeAnswer{nil, limited, nil}, verdict: verified},
		{name: "all but one fail", nodes: []nodeAnswer{down, nil, fault(-32005)}, verdict: pending},
		{name: "one of two makes no sense", nodes: []nodeAnswer{nil, raw(200, "<html>")}, verdict: pending},
		{name: "one of three makes no sense", nodes: []nodeAnswer{nil, raw(200, "<html>"), nil}, verdict: verified},
		{name: "all are down", nodes: []nodeAnswer{down, down}, err: errAny},
		{name: "more, by the first of two", nodes: []nodeAnswer{more, nil}, err: ErrAnswer},
		{name: "more, by the last of three", nodes: []nodeAnswer{nil, nil, more}, verdict: verified},
		{name: "more, and one is down", nodes: []nodeAnswer{down, nil, more}, err: ErrAnswer},
		{name: "failed, by one", nodes: []nodeAnswer{failed, nil, nil}, verdict: verified},
		{name: "another slot", nodes: []nodeAnswer{nil, top(func(r object) { r["slot"] = 1 })}, err: ErrAnswer},
		{name: "another fee", nodes: []nodeAnswer{nil, set("fee", 1)}, err: ErrAnswer},
		{name: "another time", nodes: []nodeAnswer{nil, earlier}, err: ErrAnswer},
		{name: "another time, by one of three", nodes: []nodeAnswer{earlier, nil, nil}, verdict: verified},
		{name: "another time, and one has none", nodes: []nodeAnswer{timeless, earlier, nil}, err: ErrAnswer},
		{name: "no time by the first", nodes: []nodeAnswer{timeless, nil, nil}, verdict: verified},
		{name: "no time by the last", nodes: []nodeAnswer{nil, nil, timeless}, verdict: verified},
		{name: "a time by a minority", nodes: []nodeAnswer{timeless, timeless, nil}, err: ErrAnswer},
		{name: "no time by any", nodes: []nodeAnswer{timeless, timeless}, err: ErrAnswer},
		{name: "no logs", nodes: []nodeAnswer{nil, set("logMessages", nil)}, verdict: verified},
	} {
		t.Run(x.name, func(t *testing.T) {
			liars := make([]*liar, len(x.nodes))
			o := rpc.Options{HedgeAfter: -1, Attempts: 1, Timeout: runtest.HangTimeout, AttemptTimeout: runtest.HangTimeout}
			for i := range liars {
				liars[i] = newLiar(t, c.local.URL())
				o.Upstreams = append(o.Upstreams, rpc.Upstream{Name: fmt.Sprint("node ", i), URL: liars[i].URL})
			}
			client, err := rpc.New(o)
			c.must(err)
			t.Cleanup(client.Close)
			s := c.stage(client, c.options(c.checked))
			s.in(t)
			claim := s.take(market.RailUSDC)
			sig := s.as(claim, draft{})
			for i := range liars {
				liars[i].answerWith(x.nodes[i])
			}
			v, err := s.verify(sig, claim)
			for range len(x.nodes) { // a node that hides it may be asked first, and then another one is
				if err == nil && wordOf(&v) == pending {
					v, err = s.verify(sig, claim)
				}
			}
			switch {
			case x.err != nil && (err == nil || !errors.Is(x.err, errAny) && !errors.Is(err, x.err)):
				t.Errorf("%+v, %v; want %v", v, err, x.err)
			case x.err == nil && (err != nil || wordOf(&v) != x.verdict):
				t.Errorf("%+v, %v", v, err)
			}
			now, _, err := s.machine.Claim(claim.ID)
			s.must(err)
			if _, unmatched := s.unmatched(sig); unmatched || x.verdict != verified && (now.Claim.State != rfq.ClaimReserved || len(now.Payments) != 0) {
				t.Errorf("claim in state %d, payments %+v, unmatched %t", now.Claim.State, now.Payments, unmatched)
			}
			for _, l := range liars {
				l.answerWith(nil)
			}
			if v, err := s.verify(sig, claim); err != nil || wordOf(&v) != verified {
				t.Errorf("the truth: %+v, %v", v, err)
			}
			s.machine.check(t)
		})
	}
}
