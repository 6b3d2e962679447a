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
	v := rpc.NodeStatuses{Finalized: rpc.Position{Slot: 5000, Height: lastValid + 1}, Tip: lastValid + 33, Slot: 5033, Statuses: make([]rpc.Status, 1)}
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
		v.First = rpc.FirstBlock{Slot: 700, Height: lastValid - BlockhashLife + 1}
	case 'u': // absent, with a history that begins at an unknown height
		v.First = rpc.FirstBlock{Slot: 700}
	case 'O': // absent, with all of its history, as heights say, not slots
		v.First = rpc.FirstBlock{Slot: 4000, Height: lastValid - BlockhashLife}
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
		want   string
	}{
		// All that answer, and enough of them.
		{"A", 1, "absent"},
		{"AA", 2, "absent"},
		{"AAA", 2, "absent"},
		{"AAD", 2, "absent"},
		{"AD", 2, ProblemNodesDown},
		{"ADD", 2, ProblemNodesDown},
		{"DDD", 2, ProblemNodesDown},
		{"", 1, ProblemNodesDown},
		{"nA", 2, ProblemNodesDown},
		{"AAa", 2, ProblemNodesBehind},
		{"a", 1, ProblemNodesBehind},
		{"As", 1, ProblemNodesBehind},
		{"Ae", 2, "absent"},
		// A node that has it outweighs all nodes that do not.
		{"AAP", 2, ProblemLanding},
		{"AAC", 2, ProblemLanding},
		{"AAx", 2, ProblemLanding},
		// A majority must have it as final, in one block.
		{"F", 1, "finalized"},
		{"FFF", 2, "finalized"},
		{"FDD", 2, ProblemNodesDown},
		{"FnD", 2, ProblemNodesDown},
		{"FFD", 2, "finalized"},
		{"FD", 2, ProblemNodesDown},
		{"nFF", 2, "finalized"},
		{"AF", 2, ProblemNodesDisagree},
		{"AF", 1, "finalized"},
		{"AAF", 2, ProblemNodesDisagree},
		{"FFa", 2, "finalized"},
		{"FPs", 2, ProblemNodesDisagree},
		{"Ff", 1, ProblemNodesDisagree},
		{"FDf", 1, ProblemNodesDisagree},
		{"FFP", 2, "finalized"},
		{"FFC", 2, "finalized"},
		{"FPb", 2, ProblemLanding},
		{"FFb", 2, "finalized"},
		{"FFf", 2, "finalized"},
		{"FFX", 2, "finalized"},
		{"Fff", 3, ProblemNodesDisagree},
		{"FbD", 2, ProblemNodesBehind},
		{"FX", 1, ProblemNodesDisagree},
		{"XXF", 1, ProblemNodesDisagree},
		// A failure takes as many as an absence.
		{"X", 1, "failed"},
		{"XX", 2, "failed"},
		{"XXD", 2, "failed"},
		{"XD", 2, ProblemNodesDown},
		{"XA", 1, ProblemNodesBehind},
		{"XXA", 2, ProblemNodesBehind},
		{"XXP", 2, ProblemLanding},
		// A node that may have pruned it, or never had it, has no vote.
		{"O", 1, "absent"},
		{"o", 1, ProblemTooOld},
		{"u", 1, ProblemTooOld},
		{"Oo", 1, "absent"},
		{"Oo", 2, ProblemTooOld},
		{"OOo", 2, "absent"},
		{"OOu", 2, "absent"},
		{"Ooo", 2, ProblemTooOld},
		{"ooo", 2, ProblemTooOld},
		{"OoD", 2, ProblemTooOld},
		{"Oao", 2, ProblemNodesBehind},
		{"ooP", 2, ProblemLanding},
		{"oF", 2, ProblemTooOld},
		{"oFF", 2, "finalized"},
		{"OF", 2, ProblemNodesDisagree},
		{"oFD", 1, "finalized"},
		{"XXo", 2, "failed"},
		{"Xoo", 2, ProblemTooOld},
	} {
		var views []rpc.NodeStatuses
		for _, letter := range c.views {
			views = append(views, viewOf(letter))
		}
		x := examination{entry: &entry{}, life: BlockhashLife, lastValid: lastValid, at: 0}
		v := x.judge(views, c.quorum)
		got := v.problem
		if v.is != verdictWait {
			got += words[v.is]
		}
		if got != c.want {
			t.Errorf("%q, quorum %d: %s, want %s", c.views, c.quorum, got, c.want)
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
	// If its height is a guess, the time when it was allowed decides, less the margin for
	// the chain's clock; without it, only a node with all blocks has a vote.
	const allowed = 1_700_000_000
	for _, c := range []struct {
		madeAt int64
		first  rpc.FirstBlock
		want   string
	}{
		{allowed * 1e9, rpc.FirstBlock{}, ""},
		{allowed * 1e9, rpc.FirstBlock{Slot: 2, Height: 2, Time: allowed - 3600}, ""},
		{allowed * 1e9, rpc.FirstBlock{Slot: 2, Height: 2, Time: allowed - 3599}, ProblemTooOld},
		{allowed * 1e9, rpc.FirstBlock{Slot: 2, Height: 2}, ProblemTooOld},
		{0, rpc.FirstBlock{Slot: 2, Height: 2, Time: 1}, ProblemTooOld},
		{0, rpc.FirstBlock{Slot: 1}, ""},
	} {
		x := examination{entry: &entry{}, life: BlockhashLife, lastValid: lastValid, at: -1, lastValidEstimated: true, madeAt: c.madeAt}
		view := viewOf('A')
		view.First = c.first
		if v := x.judge([]rpc.NodeStatuses{view}, 1); v.problem != c.want || (v.is == verdictAbsent) != (c.want == "") {
			t.Errorf("allowed at %d, first %+v: %+v", c.madeAt, c.first, v)
		}
	}
}

// TestJudgePast: enough nodes must say that the last block is past before a person may
// decide.
func TestJudgePast(t *testing.T) {
	for views, want := range map[string]bool{"oo": true, "oA": true, "oa": false, "oD": false, "aa": false, "ooa": true, "aao": false} {
		var list []rpc.NodeStatuses
		for _, letter := range views {
			list = append(list, viewOf(letter))
		}
		x := examination{entry: &entry{}, life: BlockhashLife, lastValid: lastValid, at: 0}
		if v := x.judge(list, 2); v.past != want {
			t.Errorf("%q: past %t", views, v.past)
		}
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
