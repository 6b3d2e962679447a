package broadcast

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"blockdesk/internal/solana/rpc"
)

// Views of one transaction whose last valid height is 1000, each by a character.
const lastValid = 1000

func viewOf(letter rune) rpc.NodeStatuses {
	v := rpc.NodeStatuses{Finalized: rpc.Position{Slot: 5000, Height: lastValid + 1}, Tip: lastValid + 33, First: 1, Slot: 5033, Statuses: make([]rpc.Status, 1)}
	switch letter {
	case 'D': // down
		return rpc.NodeStatuses{Err: errors.New("down")}
	case 'A': // absent
	case 'a': // absent, but its last block may still come
		v.Finalized.Height = lastValid
	case 'b': // absent, and behind
		v.Finalized = rpc.Position{Slot: 4899, Height: lastValid - 1}
	case 's': // absent, as of a slot before the one it reported
		v.Slot = v.Finalized.Slot - 1
	case 'e': // absent, as of just that slot
		v.Slot = v.Finalized.Slot
	case 'o': // absent, with a history that begins where it could have been
		v.First = lastValid - BlockhashLife
	case 'O': // absent, with all of its history
		v.First = lastValid - BlockhashLife - 1
	case 'n': // no status at all
		v.Statuses = nil
	case 'P', 'C', 'F', 'f', 'X', 'x': // known
		v.Statuses[0] = rpc.Status{Known: true, Slot: 4900, Level: rpc.Finalized, Failed: letter == 'X' || letter == 'x'}
		switch letter {
		case 'P':
			v.Statuses[0].Level = rpc.Processed
		case 'C', 'x':
			v.Statuses[0].Level = rpc.Confirmed
		case 'f': // in another block
			v.Statuses[0].Slot = 4800
		}
	}
	return v
}

func TestJudge(t *testing.T) {
	words := map[verdictKind]string{verdictFinalized: "finalized", verdictFailed: "failed", verdictAbsent: "absent"}
	for _, c := range []struct {
		views  string
		quorum int
		old    bool
		want   string
	}{
		// All that answer, and enough of them.
		{"A", 1, false, "absent"},
		{"AA", 2, false, "absent"},
		{"AAA", 2, false, "absent"},
		{"AAD", 2, false, "absent"},
		{"AD", 2, false, ProblemNodesDown},
		{"ADD", 2, false, ProblemNodesDown},
		{"DDD", 2, false, ProblemNodesDown},
		{"", 1, false, ProblemNodesDown},
		{"nA", 2, false, ProblemNodesDown},
		{"AAa", 2, false, ProblemNodesBehind},
		{"a", 1, false, ProblemNodesBehind},
		{"As", 1, false, ProblemNodesBehind},
		{"Ae", 2, false, "absent"},
		// A node that has it outweighs all nodes that do not.
		{"AAP", 2, false, ProblemLanding},
		{"AAC", 2, false, ProblemLanding},
		{"AAx", 2, false, ProblemLanding},
		// A majority, and all that answer, must have it as final, in one block.
		{"F", 1, false, "finalized"},
		{"FFF", 2, false, "finalized"},
		{"FDD", 2, false, ProblemNodesDown},
		{"FnD", 2, false, ProblemNodesDown},
		{"FFD", 2, false, "finalized"},
		{"FD", 2, false, ProblemNodesDown},
		{"nFF", 2, false, "finalized"},
		{"AF", 1, false, ProblemNodesDisagree},
		{"AAF", 2, false, ProblemNodesDisagree},
		{"FFa", 2, false, ProblemNodesDisagree},
		{"FPs", 2, false, ProblemNodesDisagree},
		{"Ff", 1, false, ProblemNodesDisagree},
		{"FDf", 1, false, ProblemNodesDisagree},
		{"FFP", 2, false, ProblemLanding},
		{"FFC", 2, false, ProblemLanding},
		{"FPb", 2, false, ProblemLanding},
		{"FFb", 2, false, ProblemNodesBehind},
		{"FX", 1, false, ProblemNodesDisagree},
		{"XXF", 1, false, ProblemNodesDisagree},
		// A failure takes as many as an absence.
		{"X", 1, false, "failed"},
		{"XX", 2, false, "failed"},
		{"XXD", 2, false, "failed"},
		{"XD", 2, false, ProblemNodesDown},
		{"XA", 1, false, ProblemNodesBehind},
		{"XXA", 2, false, ProblemNodesBehind},
		{"XXP", 2, false, ProblemLanding},
		// A node that may have pruned it proves nothing by not knowing it.
		{"O", 1, true, "absent"},
		{"o", 1, true, ProblemTooOld},
		{"o", 1, false, "absent"},
		{"Oo", 1, true, ProblemTooOld},
		{"oF", 2, true, ProblemTooOld},
		{"oFF", 2, true, "finalized"},
		{"OF", 1, true, ProblemNodesDisagree},
		{"oF", 1, false, ProblemNodesDisagree},
	} {
		var views []rpc.NodeStatuses
		for _, letter := range c.views {
			views = append(views, viewOf(letter))
		}
		x := examination{entry: &entry{}, life: BlockhashLife, lastValid: lastValid, at: 0, mayBePruned: c.old}
		v := x.judge(views, c.quorum)
		got := v.problem
		if v.is != verdictWait {
			got += words[v.is]
		}
		if got != c.want {
			t.Errorf("%q, quorum %d, old %v: %s, want %s", c.views, c.quorum, c.old, got, c.want)
		}
		if (v.is == verdictFinalized || v.is == verdictFailed) && v.status.Slot != 4900 {
			t.Errorf("%q: status %+v", c.views, v.status)
		}
		// The order of the nodes does not matter.
		slices.Reverse(views)
		if back := x.judge(views, c.quorum); back != v {
			t.Errorf("%q: %+v, and backwards %+v", c.views, v, back)
		}
	}
}

// TestJudgeMissing: without a signature the heights alone count.
func TestJudgeMissing(t *testing.T) {
	for views, want := range map[string]verdictKind{"AA": verdictAbsent, "nn": verdictAbsent, "ss": verdictAbsent, "Aa": verdictWait, "AD": verdictWait} {
		var list []rpc.NodeStatuses
		for _, letter := range views {
			list = append(list, viewOf(letter))
		}
		x := examination{entry: &entry{}, life: BlockhashLife, lastValid: lastValid, at: -1}
		if v := x.judge(list, 2); v.is != want {
			t.Errorf("%q: %+v", views, v)
		}
		x.lastValid = 0 // not known
		if v := x.judge(list, 2); v.is != verdictWait {
			t.Errorf("%q, of no height: %+v", views, v)
		}
	}
	// A transaction whose height is a guess may have been made at any time: only
	// nodes with all blocks prove that it is absent.
	x := examination{entry: &entry{}, life: BlockhashLife, lastValid: lastValid, at: -1, lastValidEstimated: true, mayBePruned: true}
	all, most := viewOf('A'), viewOf('A')
	most.First = 2
	if v := x.judge([]rpc.NodeStatuses{all}, 1); v.is != verdictAbsent {
		t.Errorf("all blocks: %+v", v)
	}
	if v := x.judge([]rpc.NodeStatuses{all, most}, 1); v.problem != ProblemTooOld {
		t.Errorf("all but the first: %+v", v)
	}
}

func TestGuess(t *testing.T) {
	x := examination{entry: &entry{}, life: BlockhashLife, at: -1, lastValidEstimated: true}
	step := func(want uint64, views string, tips ...uint64) {
		t.Helper()
		var list []rpc.NodeStatuses
		for i, letter := range views {
			list = append(list, viewOf(letter))
			list[i].Tip = tips[i]
		}
		if x.estimateLastValid(list, 2); x.lastValid != want {
			t.Errorf("%q %v: %d, want %d", views, tips, x.lastValid, want)
		}
	}
	step(0, "AD", 100, 0)                                   // too few
	step(0, "AA", 100, 1<<64-1)                             // no height is past this
	step(90_000+BlockhashLife+tipMargin, "AA", 100, 90_000) // a lie
	step(90_000+BlockhashLife+tipMargin, "AD", 101, 0)
	step(102+BlockhashLife+tipMargin, "AA", 102, 101) // made good
	step(102+BlockhashLife+tipMargin, "AA", 103, 103) // the first true one counts
}

// TestQueues: an entry is in several queues at once, each with its own order.
func TestQueues(t *testing.T) {
	all := newQueues()
	list := make([]*entry, 50)
	for i := range list {
		list[i] = &entry{}
		for which := range all {
			all[which].Set(list[i], int64(i*(which+1)%len(list)), uint64(i))
		}
	}
	for range 25 {
		e, _ := all[byPoll].Pop(1000)
		all[bySend].Remove(e)
	}
	for which, left := range [queues]int{25, 25, 50, 50} {
		last := int64(-1)
		for n := 0; ; n++ {
			_, due, ok := all[which].First()
			if !ok && n == left {
				break
			}
			if !ok || due < last {
				t.Fatalf("queue %d: entry %d of %d is due at %d after %d", which, n, left, due, last)
			}
			last = due
			all[which].Pop(due)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"resend":           {ResendEvery: -1},
		"poll":             {PollEvery: -1},
		"sending":          {MaxSending: maxWorkers + 1},
		"sending, below 0": {MaxSending: -1},
		"telling":          {MaxReporting: maxWorkers + 1},
		"telling, below 0": {MaxReporting: -1},
		"quorum":           {Quorum: -1},
	} {
		if _, err := New(o, nil, nil); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Options{MaxSending: maxWorkers, MaxReporting: maxWorkers, Quorum: 99}, nil, nil); err != nil {
		t.Errorf("at the limits: %v", err)
	}
	o := Options{}.withDefaults()
	var quorums []string
	for n := range 6 {
		quorums = append(quorums, string(rune('0'+o.quorum(n))))
	}
	if got := strings.Join(quorums, " "); got != "1 1 2 2 3 3" {
		t.Errorf("quorums of 0 to 5 nodes: %s", got)
	}
}
