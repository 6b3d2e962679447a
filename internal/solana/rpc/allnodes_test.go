package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// answering answers by method; a missing method gets an error.
func answering(results map[string]string) func(http.ResponseWriter, asked) {
	return func(w http.ResponseWriter, c asked) {
		text, ok := results[c.Method]
		if !ok {
			text = `{"code":-32601,"message":"Method not found"}`
			failure(text)(w, c)
			return
		}
		result(text)(w, c)
	}
}

// position has the answers of a healthy node.
func position(slot, height int) map[string]string {
	return map[string]string{
		"getEpochInfo":           fmt.Sprintf(`{"absoluteSlot":%d,"blockHeight":%d,"epoch":1}`, slot, height),
		"getBlockHeight":         fmt.Sprint(height + 32),
		"getFirstAvailableBlock": "7",
		"getBlock":               `{"blockHeight":5,"blockTime":1700000000,"blockhash":"x","parentSlot":6}`,
		"getSignatureStatuses":   fmt.Sprintf(`{"context":{"slot":%d},"value":[null,{"slot":%d,"err":null,"confirmationStatus":"finalized"}]}`, slot+32, slot-1),
	}
}

func with(results map[string]string, method, text string) map[string]string {
	results[method] = text
	return results
}

func methodsOf(n *node) string {
	var list []string
	for _, c := range n.calls() {
		list = append(list, c.Method)
	}
	return strings.Join(list, " ")
}

func TestPosition(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   rpc.Position
		kind   rpc.Kind
	}{
		"well":              {`{"absoluteSlot":500,"blockHeight":300}`, rpc.Position{Slot: 500, Height: 300}, 0},
		"no slot":           {`{"blockHeight":300}`, rpc.Position{}, rpc.WrongAnswer},
		"no height":         {`{"absoluteSlot":500}`, rpc.Position{}, rpc.WrongAnswer},
		"null":              {`null`, rpc.Position{}, rpc.WrongAnswer},
		"more than slots":   {`{"absoluteSlot":500,"blockHeight":501}`, rpc.Position{}, rpc.WrongAnswer},
		"as many as slots":  {`{"absoluteSlot":500,"blockHeight":500}`, rpc.Position{Slot: 500, Height: 500}, 0},
		"a negative height": {`{"absoluteSlot":500,"blockHeight":-1}`, rpc.Position{}, rpc.WrongAnswer},
	} {
		n := newNode(t, result(c.answer))
		got, err := newClient(t, options(n)).Position(t.Context(), rpc.Finalized)
		if got != c.want || rpc.KindOf(err) != c.kind {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if params := string(n.calls()[0].Params[0]); params != `{"commitment":"finalized"}` {
			t.Errorf("%s: asked with %s", name, params)
		}
	}
}

func TestStatusesFromEach(t *testing.T) {
	well, behind := newNode(t, answering(position(1000, 600))), newNode(t, answering(position(900, 500)))
	down := newNode(t, status(http.StatusServiceUnavailable, "no"))
	liar := newNode(t, answering(with(position(1000, 600), "getEpochInfo", `{"absoluteSlot":1000,"blockHeight":900000}`)))
	short := newNode(t, answering(with(position(1000, 600), "getSignatureStatuses", `{"context":{"slot":1000},"value":[null]}`)))
	pruned := newNode(t, answering(with(position(1000, 600), "getFirstAvailableBlock", "null")))
	c := newClient(t, options(well, behind, down, liar, short, pruned))
	views, err := c.StatusesFromEach(t.Context(), []solana.Signature{{1}, {2}})
	if err != nil || len(views) != 6 {
		t.Fatalf("%d views, %v", len(views), err)
	}
	first := rpc.FirstBlock{Slot: 7, Height: 5, Time: 1700000000}
	for i, want := range []rpc.NodeStatuses{
		{
			Upstream: "a", Finalized: rpc.Position{Slot: 1000, Height: 600}, Tip: 632, First: first, Slot: 1032,
			Statuses: []rpc.Status{{}, {Known: true, Slot: 999, Level: rpc.Finalized}},
		},
		{
			Upstream: "b", Finalized: rpc.Position{Slot: 900, Height: 500}, Tip: 532, First: first, Slot: 932,
			Statuses: []rpc.Status{{}, {Known: true, Slot: 899, Level: rpc.Finalized}},
		},
	} {
		got := views[i]
		if got.Err != nil || got.Upstream != want.Upstream || got.Finalized != want.Finalized || got.Tip != want.Tip || got.First != want.First ||
			got.Slot != want.Slot || !slices.Equal(got.Statuses, want.Statuses) {
			t.Errorf("view %d: %+v", i, got)
		}
	}
	for i, kind := range []rpc.Kind{2: rpc.Down, 3: rpc.WrongAnswer, 4: rpc.WrongAnswer, 5: rpc.WrongAnswer} {
		if v := views[i]; kind != 0 && (rpc.KindOf(v.Err) != kind || v.Statuses != nil || v.Slot != 0 || v.Finalized.Slot != 0) {
			t.Errorf("view %d: %+v", i, v)
		}
		noSecret(t, views[i].Err)
	}
	// How far it is comes before what it knows: the statuses are as of then or
	// later. Its first block comes after them, so the node still had that when it searched.
	if got := methodsOf(well); got != "getEpochInfo getBlockHeight getSignatureStatuses getFirstAvailableBlock getBlock" {
		t.Errorf("asked: %s", got)
	}
	calls := well.calls()
	for i, want := range []string{
		`[{"commitment":"finalized"}]`, `[{"commitment":"processed"}]`,
		fmt.Sprintf(`[["%s","%s"],{"searchTransactionHistory":true}]`, solana.Signature{1}, solana.Signature{2}),
		`[]`, `[7,{"commitment":"finalized","maxSupportedTransactionVersion":1,"rewards":false,"transactionDetails":"none"}]`,
	} {
		if got, _ := json.Marshal(calls[i].Params); string(got) != want {
			t.Errorf("%s: %s", calls[i].Method, got)
		}
	}
	if got := methodsOf(down); got != "getEpochInfo" {
		t.Errorf("one that is down was asked on: %s", got)
	}
}

func TestStatusesFromAllLimits(t *testing.T) {
	n := newNode(t, answering(position(1000, 600)))
	c := newClient(t, options(n))
	if _, err := c.StatusesFromEach(t.Context(), make([]solana.Signature, rpc.MaxStatusesPerCall+1)); !errors.Is(err, rpc.ErrTooMany) {
		t.Errorf("one too many: %v", err)
	}
	views, err := c.StatusesFromEach(t.Context(), nil)
	if err != nil || views[0].Err != nil || views[0].Finalized.Height != 600 || strings.Contains(methodsOf(n), "Statuses") {
		t.Errorf("none asked for: %+v, %v, %s", views, err, methodsOf(n))
	}
}

// TestAllNodesHanging: a silent node delays a call no longer than its timeout,
// and the others count.
func TestAllNodesHanging(t *testing.T) {
	release := make(chan struct{})
	hanging := newNode(t, func(http.ResponseWriter, asked) { <-release })
	defer close(release)
	o := options(newNode(t, answering(position(1000, 600))), hanging)
	var views []rpc.NodeStatuses
	for o.Timeout = 50 * time.Millisecond; o.Timeout < runtest.HangTimeout; o.Timeout *= 2 { // until the other one answers as quickly
		o.AttemptTimeout = o.Timeout / 2
		var err error
		views, err = newClient(t, o).StatusesFromEach(t.Context(), []solana.Signature{{1}, {2}})
		if err != nil || rpc.KindOf(views[1].Err) != rpc.Down {
			t.Fatalf("%+v, %v", views, err)
		}
		if views[0].Err == nil {
			return
		}
	}
	t.Errorf("%+v", views)
}

// paged answers an account's history of n, as of some slot.
func paged(n, slot int) func(http.ResponseWriter, asked) {
	name := func(i int) string { return solana.Signature{1, byte(i >> 8), byte(i)}.String() }
	index := map[string]int{}
	for i := range n {
		index[name(i)] = i
	}
	return func(w http.ResponseWriter, c asked) {
		if c.Method == "getFirstAvailableBlock" {
			result("0")(w, c)
			return
		}
		var o struct {
			Commitment string
			Limit      int
			Before     string
			Least      int `json:"minContextSlot"`
		}
		if err := json.Unmarshal(c.Params[1], &o); err != nil || o.Commitment != "finalized" {
			failure(`{"code":-32602,"message":"Invalid params"}`)(w, c)
			return
		}
		if o.Least > slot {
			failure(`{"code":-32016,"message":"Minimum context slot has not been reached"}`)(w, c)
			return
		}
		from := 0
		if at, ok := index[o.Before]; ok {
			from = at + 1
		}
		list := []string{}
		for i := from; i < min(n, from+o.Limit); i++ {
			list = append(list, fmt.Sprintf(`{"signature":"%s","slot":%d,"err":null,"memo":null}`, name(i), slot-i))
		}
		result("["+strings.Join(list, ",")+"]")(w, c)
	}
}

func TestSignaturesFromEach(t *testing.T) {
	nodes := []*node{
		newNode(t, paged(3, 5000)), newNode(t, paged(2345, 5000)), newNode(t, paged(2346, 5000)), newNode(t, paged(3, 4999)),
		newNode(t, paged(1000, 5000)), newNode(t, paged(0, 5000)), newNode(t, paged(3, 5000)),
	}
	o := options(nodes...)
	o.MaxAnswer = 1 << 20
	c := newClient(t, o)
	views := make([]rpc.NodeStatuses, len(nodes))
	for i := range views {
		views[i] = rpc.NodeStatuses{Upstream: string(rune('a' + i)), Finalized: rpc.Position{Slot: 5000}}
	}
	broken := errors.New("broken")
	views[6].Err = broken
	list := c.SignaturesFromEach(t.Context(), solana.Address{9}, views, 2345)
	for i, want := range []struct {
		n   int
		err error
	}{{3, nil}, {2345, nil}, {0, rpc.ErrTooMany}, {0, nil}, {1000, nil}, {0, nil}, {0, broken}} {
		h := list[i]
		if len(h.List) != want.n || want.err != nil && !errors.Is(h.Err, want.err) || h.Upstream != views[i].Upstream {
			t.Errorf("history %d: %d, %v", i, len(h.List), h.Err)
		}
		for j := 1; j < len(h.List); j++ {
			if h.List[j].Slot >= h.List[j-1].Slot {
				t.Fatalf("history %d: entry %d is not older", i, j)
			}
		}
	}
	if kind := rpc.KindOf(list[3].Err); kind != rpc.Behind {
		t.Errorf("one that is behind its own view: %v", list[3].Err)
	}
	if n := len(nodes[6].calls()); n != 0 {
		t.Errorf("a node without a result was called %d times", n)
	}

	for _, h := range c.SignaturesFromEach(t.Context(), solana.Address{9}, views[1:2], 10) {
		if h.Err == nil {
			t.Errorf("%s answered for the result of another node", h.Upstream)
		}
	}
}

// landed is an answer about signed(t) in this slot, at this time of its block.
func landed(t *testing.T, slot int, blockTime string) func(http.ResponseWriter, asked) {
	return result(fmt.Sprintf(`{"slot":%d,"blockTime":%s,"transaction":["%s","base64"],"meta":{"err":null,"fee":5000,"preBalances":[9,1],`+
		`"postBalances":[4,1],"preTokenBalances":[],"postTokenBalances":[],"innerInstructions":[]}}`, slot, blockTime, base64Of(signed(t))))
}

type replies = []func(http.ResponseWriter, asked)

// transactionCase has the answers of some nodes about one transaction, and the result.
type transactionCase struct {
	nodes replies
	found bool
	err   error
	kind  rpc.Kind
	time  int64
}

// check calls one of a client's methods and returns the nodes.
func (c *transactionCase) check(
	t *testing.T, name string, by func(*rpc.Client, context.Context, solana.Signature, rpc.Commitment) (*ledger.Confirmed, bool, error),
) (nodes []*node) {
	t.Helper()
	for _, reply := range c.nodes {
		nodes = append(nodes, newNode(t, reply))
	}
	got, found, err := by(newClient(t, options(nodes...)), t.Context(), signature, rpc.Finalized)
	if found != c.found || found != (got != nil) || rpc.KindOf(err) != c.kind || c.err != nil && !errors.Is(err, c.err) || (err != nil) != (c.err != nil || c.kind != 0) {
		t.Errorf("%s: %+v, %t, %v", name, got, found, err)
	}
	if found && (got.Slot != 4 || got.BlockTime != c.time) {
		t.Errorf("%s: %+v", name, got)
	}
	noSecret(t, err)
	return nodes
}

// majorityCases: more than half of the configured nodes must have the transaction and
// agree, and a node that fails is no vote.
func majorityCases(t *testing.T) map[string]transactionCase {
	has, timeless, other, hides := landed(t, 4, "50"), landed(t, 4, "null"), landed(t, 5, "50"), result("null")
	down, behind, wrong := status(http.StatusServiceUnavailable, "no"), failure(`{"code":-32004,"message":"no"}`), result(`{}`)
	limited := status(http.StatusTooManyRequests, "")
	return map[string]transactionCase{
		"one":                          {nodes: replies{has}, found: true, time: 50},
		"one, unknown":                 {nodes: replies{hides}},
		"one, down":                    {nodes: replies{down}, kind: rpc.Down},
		"all":                          {nodes: replies{has, has, has}, found: true, time: 50},
		"both of two":                  {nodes: replies{has, has}, found: true, time: 50},
		"two of three, one hides":      {nodes: replies{has, has, hides}, found: true, time: 50},
		"two of three, one down":       {nodes: replies{down, has, has}, found: true, time: 50},
		"two of three, one differs":    {nodes: replies{has, other, has}, found: true, time: 50},
		"three of five":                {nodes: replies{has, limited, has, down, has}, found: true, time: 50},
		"invented, the others limited": {nodes: replies{has, limited, limited}, err: rpc.ErrNoMajority, kind: rpc.RateLimited},
		"invented, the others down":    {nodes: replies{has, down, down}, err: rpc.ErrNoMajority, kind: rpc.Down},
		"invented, one down, one not":  {nodes: replies{has, down, hides}, err: rpc.ErrNoMajority, kind: rpc.Down},
		"invented, of two, limited":    {nodes: replies{has, limited}, err: rpc.ErrNoMajority, kind: rpc.RateLimited},
		"invented, of two, behind":     {nodes: replies{has, behind}, err: rpc.ErrNoMajority, kind: rpc.Behind},
		"two liars of five":            {nodes: replies{has, has, down, wrong, limited}, err: rpc.ErrNoMajority, kind: rpc.Down},
		"unknown to one of two":        {nodes: replies{has, hides}, err: rpc.ErrNoMajority},
		"unknown to two of four":       {nodes: replies{has, has, hides, hides}, err: rpc.ErrNoMajority},
		"no time by the first":         {nodes: replies{timeless, has, has}, found: true, time: 50},
		"no time by the last":          {nodes: replies{has, has, timeless}, found: true, time: 50},
		"a time by one of two":         {nodes: replies{has, timeless}, found: true},
		"a time by one of three":       {nodes: replies{timeless, has, timeless}, found: true},
		"no time":                      {nodes: replies{timeless, timeless}, found: true},
		"two times":                    {nodes: replies{has, landed(t, 4, "51")}, err: rpc.ErrDisagree},
		"two times, one silent":        {nodes: replies{timeless, has, landed(t, 4, "51")}, found: true},
		"unknown to all":               {nodes: replies{hides, hides}},
		"each answers differently":     {nodes: replies{has, other, hides}, err: rpc.ErrNoMajority},
		"differs, one down":            {nodes: replies{down, has, other}, err: rpc.ErrDisagree},
		"unknown, one down":            {nodes: replies{down, hides}},
		"none answers":                 {nodes: replies{behind, down, wrong}, kind: rpc.Behind},
	}
}

func TestTransactionByQuorum(t *testing.T) {
	for name, c := range majorityCases(t) {
		nodes := c.check(t, name, (*rpc.Client).TransactionByQuorum)
		for i, n := range nodes {
			calls := n.calls()
			if len(nodes) > 1 && len(calls) > 1 { // once each at most
				t.Errorf("%s: node %d was asked %d times", name, i, len(calls))
			}
			if len(calls) == 0 { // the others had agreed before the call was made
				continue
			}
			want := fmt.Sprintf(`["%s",{"commitment":"finalized","encoding":"base64","maxSupportedTransactionVersion":1}]`, signature)
			if params, _ := json.Marshal(calls[0].Params); calls[0].Method != "getTransaction" || string(params) != want {
				t.Errorf("%s: node %d was asked %s %s", name, i, calls[0].Method, params)
			}
		}
	}
}

// TestFindTransaction: the same result, whichever node is asked first; but where that
// node does not know the transaction, the result is "unknown", and the others are not
// asked.
func TestFindTransaction(t *testing.T) {
	for name, c := range majorityCases(t) {
		var nodes []*node
		for _, reply := range c.nodes {
			nodes = append(nodes, newNode(t, reply))
		}
		client := newClient(t, options(nodes...))
		for range 2 * len(nodes) { // each is the first of some calls
			got, found, err := client.FindTransaction(t.Context(), signature, rpc.Finalized)
			switch {
			case got == nil && !found && err == nil: // the first that answered does not know it
			case found != c.found || (err != nil) != (c.err != nil || c.kind != 0) || c.err != nil && !errors.Is(err, c.err):
				t.Errorf("%s: %+v, %t, %v", name, got, found, err)
			case found && got.BlockTime != c.time:
				t.Errorf("%s: block time %d", name, got.BlockTime)
			}
		}
		for i, n := range nodes {
			if asked := len(n.calls()); asked > 2*len(nodes) && len(nodes) > 1 {
				t.Errorf("%s: node %d was asked %d times in %d calls", name, i, asked, 2*len(nodes))
			}
		}
	}
}

// TestFindUnknown: an invented signature costs one call of one node, a different one
// each time; a node that fails is replaced.
func TestFindUnknown(t *testing.T) {
	hides := result("null")
	nodes := []*node{newNode(t, hides), newNode(t, hides), newNode(t, status(http.StatusServiceUnavailable, "no"))}
	c := newClient(t, options(nodes...))
	const calls = 30
	for range calls {
		if _, found, err := c.FindTransaction(t.Context(), signature, rpc.Finalized); found || err != nil {
			t.Fatal(found, err)
		}
	}
	first, second := len(nodes[0].calls()), len(nodes[1].calls())
	if first+second != calls || first < calls/3 || second < calls/3 {
		t.Errorf("%d and %d calls", first, second)
	}
}

// TestTransactionOfOneNode: one node is tried again, as by any call.
func TestTransactionOfOneNode(t *testing.T) {
	n := newNode(t, nil)
	n.respond(func(w http.ResponseWriter, c asked) {
		n.respond(landed(t, 4, "50"))
		status(http.StatusServiceUnavailable, "no")(w, c)
	})
	c := newClient(t, options(n))
	if got, found, err := c.TransactionByQuorum(t.Context(), signature, rpc.Finalized); err != nil || !found || got.Slot != 4 || c.Upstreams() != 1 {
		t.Errorf("%+v, %t, %v", got, found, err)
	}
}

// TestAllNodesOnChain calls a real runtime under two names.
func TestAllNodesOnChain(t *testing.T) {
	c := startChain(t)
	two := c.local.Client(rpc.Options{}, "one", "two")
	common := c.common()
	p := build.Payment{Common: common, Wallet: c.taker, Leg: c.leg(market.RailSOL, 5)}
	u, err := p.Build(&c.accounts)
	c.must(err)
	landed := c.land(c.sign(u.Bytes(), c.takerKey), rpc.SendOptions{})
	position, err := two.Position(t.Context(), rpc.Finalized)
	c.must(err)
	views, err := two.StatusesFromEach(t.Context(), []solana.Signature{landed.Signature(), {1}})
	c.must(err)
	for _, v := range views {
		if v.Err != nil || v.Finalized != position || v.Slot < v.Finalized.Slot || v.Tip < v.Finalized.Height || !v.First.All() {
			t.Errorf("%+v; the chain is at %+v", v, position)
		}
		if s := v.Statuses; len(s) != 2 || !s[0].Known || s[0].Level != rpc.Finalized || s[0].Slot != landed.Slot || s[1].Known {
			t.Errorf("%s: %+v", v.Upstream, s)
		}
	}
	for _, h := range two.SignaturesFromEach(t.Context(), common.Reference, views, 10) {
		if h.Err != nil || len(h.List) != 1 || h.List[0].Signature != landed.Signature() {
			t.Errorf("%+v", h)
		}
	}
	views[1].Finalized.Slot += 100
	if h := two.SignaturesFromEach(t.Context(), common.Reference, views, 10)[1]; rpc.KindOf(h.Err) != rpc.Behind {
		t.Errorf("as of a slot to come: %+v", h)
	}
}
