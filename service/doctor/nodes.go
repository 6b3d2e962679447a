package doctor

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/url"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/service/config"
)

// Limits of the checks of nodes, our choice.
const (
	behindSlots  = 150 // a minute
	slowNode     = time.Second
	clockApart   = 30 * time.Second
	clockTooFar  = 5 * time.Minute
	clockTimeAt  = 32 // of the Unix time in the clock account
	clockAccount = clockTimeAt + 8
)

// nodeState is what a node has answered.
type nodeState struct {
	name string
	slot uint64
	took time.Duration
	time time.Time // of the chain; zero: not read
	err  error
}

// nodes asks each configured node for its position and the chain's clock.
func nodes(ctx context.Context, o Options) (list []Finding) {
	urls := append(config.SplitList(o.Config.Chain.RPCURLs), config.SplitList(o.Config.Mirror.RPCURLs)...)
	if len(urls) == 0 {
		text := "chain.rpc_urls is empty: nothing is settled"
		if o.Config.Demo {
			text = "the demo starts its own chain"
		}
		return []Finding{{Check: "chain nodes", State: Skipped, Text: text}}
	}
	states := make([]nodeState, len(urls))
	for i, text := range urls {
		states[i] = queryNode(ctx, text, o.Timeout)
	}
	return append(judgeNodes(states), chainClock(states, time.Now()))
}

// nodeName returns a URL without what may be secret: user, path and query.
func nodeName(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "node with an unreadable URL"
	}
	return u.Host
}

func queryNode(ctx context.Context, text string, timeout time.Duration) (n nodeState) {
	n.name = nodeName(text)
	client, err := rpc.New(rpc.Options{Upstreams: []rpc.Upstream{{URL: text}}, Timeout: timeout, AttemptTimeout: timeout})
	if err != nil {
		n.err = err
		return n
	}
	defer client.Close()
	began := time.Now()
	n.slot, n.err = client.Slot(ctx, rpc.Finalized)
	n.took = time.Since(began)
	if n.err != nil {
		return n
	}
	accounts, _, err := client.Accounts(ctx, []solana.Address{solana.ClockSysvar}, rpc.Confirmed, 0)
	if err == nil && accounts[0] != nil && accounts[0].Owner == solana.SysvarOwner && len(accounts[0].Data) >= clockAccount {
		n.time = time.Unix(int64(binary.LittleEndian.Uint64(accounts[0].Data[clockTimeAt:])), 0)
	}
	return n
}

func judgeNodes(states []nodeState) (list []Finding) {
	var best uint64
	for i := range states {
		best = max(best, states[i].slot)
	}
	for i := range states {
		n := &states[i]
		f := Finding{Check: "node " + n.name, State: OK, Text: fmt.Sprintf("slot %d in %v", n.slot, n.took.Round(time.Millisecond))}
		switch {
		case n.err != nil:
			f.State, f.Text, f.Do = Warning, n.err.Error(), "check its URL, its key and its quota"
			if best == 0 {
				f.State = Problem
			}
		case n.slot+behindSlots < best:
			f.State, f.Do = Warning, "take another node, or wait until it has caught up"
			f.Text += fmt.Sprintf(", %d behind the best", best-n.slot)
		case n.took > slowNode:
			f.State, f.Do = Warning, "take a node that is nearer"
		}
		list = append(list, f)
	}
	return list
}

// chainClock compares this machine's clock with the chain's, which the first node has.
func chainClock(states []nodeState, now time.Time) Finding {
	for i := range states {
		if states[i].time.IsZero() {
			continue
		}
		apart := now.Sub(states[i].time).Abs().Round(time.Second)
		f := Finding{Check: "chain clock", State: OK, Text: fmt.Sprintf("%v from this machine's", apart)}
		const do = "compare this machine's clock with another source"
		switch {
		case apart > clockTooFar:
			f.State, f.Do = Problem, do
		case apart > clockApart:
			f.State, f.Do = Warning, do
		}
		return f
	}
	return Finding{Check: "chain clock", State: Skipped, Text: "no node has answered"}
}
