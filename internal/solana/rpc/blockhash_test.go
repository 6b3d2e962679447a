package rpc_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// hashNode answers about blockhashes: its newest, with a last valid height, and which ones it
// has in a block.
func hashNode(t *testing.T, newest byte, height int, has ...byte) *node {
	return newNode(t, func(w http.ResponseWriter, c asked) {
		switch c.Method {
		case "getLatestBlockhash":
			result(fmt.Sprintf(`{"context":{"slot":5},"value":{"blockhash":%q,"lastValidBlockHeight":%d}}`, solana.Hash{newest}, height))(w, c)
		case "isBlockhashValid":
			asked := strings.Trim(string(c.Params[0]), `"`)
			valid := slices.ContainsFunc(has, func(x byte) bool { return solana.Hash{x}.String() == asked })
			result(fmt.Sprintf(`{"context":{"slot":5},"value":%t}`, valid))(w, c)
		default:
			t.Errorf("asked %s", c.Method)
		}
	})
}

// TestBlockhashByMajority: a blockhash and its height are those of a majority of the nodes.
// A height that is too low would end a transaction that can still land; one that is too high
// would keep it from ending.
func TestBlockhashByMajority(t *testing.T) {
	const honest = 1000
	down := func() *node { return newNode(t, status(http.StatusServiceUnavailable, "no")) }
	limited := func() *node { return newNode(t, status(http.StatusTooManyRequests, "no")) }
	one, two := func() *node { return hashNode(t, 1, honest, 1, 2, 9) }, func() *node { return hashNode(t, 2, honest+1, 1, 2, 9) }
	for name, c := range map[string]struct {
		nodes       []*node
		least, most uint64 // 0: there is none
	}{
		"all honest":                 {[]*node{one(), two(), one()}, honest, honest + 1},
		"one is down":                {[]*node{down(), one(), two()}, honest, honest + 1},
		"one answers 429":            {[]*node{limited(), one(), two()}, honest, honest + 1},
		"one lowers its height":      {[]*node{hashNode(t, 9, 800, 1, 2, 9), one(), two()}, honest, honest + 1},
		"one lowers it a little":     {[]*node{hashNode(t, 9, honest-30, 1, 2, 9), one(), two()}, honest, honest + 1},
		"one raises its height":      {[]*node{hashNode(t, 9, 900_000, 1, 2, 9), one(), two()}, honest, honest + 1},
		"one has what nobody has":    {[]*node{hashNode(t, 7, honest-1, 7), one(), two()}, honest, honest + 1},
		"one denies the others'":     {[]*node{hashNode(t, 7, honest-1), one(), two()}, honest, honest + 1},
		"one raises it, one is down": {[]*node{hashNode(t, 9, 900_000, 1, 2, 9), one(), down()}, 0, 0},
		"two are down":               {[]*node{one(), down(), limited()}, 0, 0},
		"of two, one is down":        {[]*node{one(), down()}, 0, 0},
		"of two, one has another":    {[]*node{hashNode(t, 7, honest, 7), one()}, 0, 0},
		"of two, both have it":       {[]*node{two(), one()}, honest, honest + 1},
	} {
		client := newClient(t, options(c.nodes...))
		b, err := client.Blockhash(t.Context())
		switch {
		case c.least == 0:
			if !errors.Is(err, rpc.ErrNoMajority) {
				t.Errorf("%s: %+v, %v", name, b, err)
			}
		case err != nil || b.LastValidBlockHeight < c.least || b.LastValidBlockHeight > c.most || b.Hash == (solana.Hash{7}) || b.FetchedAt.IsZero():
			t.Errorf("%s: %+v, %v", name, b, err)
		}
		noSecret(t, err)
	}
}
