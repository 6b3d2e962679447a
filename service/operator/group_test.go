package operator

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"blockdesk/httpgw/admin"
)

// playedNode is what a node of a played group says.
type playedNode struct {
	id, role, leader string
	applied          uint64
	term             uint64 // 0: 7
	failed, silent   bool
	unready          bool
}

// simulateGroup is what asking these nodes gives; those after voters have no vote.
func simulateGroup(voters int, nodes ...playedNode) (answers []nodeAnswer) {
	var members []admin.ClusterMember
	for i, n := range nodes {
		members = append(members, admin.ClusterMember{ID: n.id, Address: n.id + ":1", Voter: i < voters, AdminURL: "http://" + n.id})
	}
	for _, n := range nodes {
		if n.silent {
			answers = append(answers, nodeAnswer{url: "http://" + n.id, err: errors.New("refused")})
			continue
		}
		term := n.term
		if term == 0 {
			term = 7
		}
		answers = append(answers, nodeAnswer{url: "http://" + n.id, status: &admin.ClusterStatus{
			OK: true, ID: n.id, Role: n.role, Serves: n.role == "leader" && !n.unready, InSync: !n.failed, Failed: n.failed,
			Term: term, Leader: admin.ClusterMember{ID: n.leader}, LogIndex: n.applied, CommittedIndex: n.applied, AppliedIndex: n.applied,
			Members: members,
		}})
	}
	return answers
}

// TestGroupSentence: what is said of a group, and when that is a failure.
func TestGroupSentence(t *testing.T) {
	t.Parallel()
	leads := playedNode{id: "a", role: "leader", leader: "a", applied: 5000}
	follows := func(id string) playedNode { return playedNode{id: id, role: "standby", leader: "a", applied: 5000} }
	silent := func(id string) playedNode { return playedNode{id: id, silent: true} }
	votes := func(id string) playedNode { return playedNode{id: id, role: "candidate", applied: 5000} }
	behind := func(id string, by uint64) playedNode {
		return playedNode{id: id, role: "standby", leader: "a", applied: 5000 - by}
	}
	for _, c := range []struct {
		voters int
		nodes  []playedNode
		state  string
		text   string
	}{
		{3, []playedNode{leads, follows("b"), follows("c")}, GroupWell, "well: a leads, 3 of 3 voters are in sync, 1 can be lost"},
		{5, []playedNode{leads, follows("b"), follows("c"), follows("d"), follows("e")}, GroupWell, "2 can be lost"},
		{1, []playedNode{leads}, GroupWell, "well: a leads, 1 of 1 voters are in sync, 0 can be lost"},
		{2, []playedNode{leads, follows("b")}, GroupWell, "0 can be lost"},
		{3, []playedNode{leads, follows("b"), silent("c")}, GroupAtRisk, "at risk: a leads, 2 of 3 voters are in sync, none can be lost: c does not answer"},
		{5, []playedNode{leads, follows("b"), follows("c"), follows("d"), silent("e")}, GroupDegraded, "degraded: a leads, 4 of 5 voters are in sync, 1 more can be lost: e does not answer"},
		{3, []playedNode{leads, behind("b", 1000), follows("c")}, GroupWell, ""},
		{3, []playedNode{leads, behind("b", 1001), follows("c")}, GroupAtRisk, "b 1001 entries behind"},
		{3, []playedNode{leads, follows("b"), {id: "c", role: "stopped", failed: true}}, GroupAtRisk, "c not in sync"},
		{3, []playedNode{leads, follows("b"), votes("c")}, GroupAtRisk, "c follows no leader"},
		{3, []playedNode{leads, silent("b"), silent("c")}, GroupAtRisk, "at risk: a leads, 1 of 3 voters are in sync, 2 are needed: b does not answer; c does not answer"},
		{3, []playedNode{votes("a"), silent("b"), silent("c")}, GroupNoLeader, "no leader: 1 of 3 voters answer, 2 are needed; nothing is acknowledged"},
		{3, []playedNode{votes("a"), votes("b"), votes("c")}, GroupNoLeader, "no leader: 3 of 3 voters answer"},
		{3, []playedNode{{id: "a", role: "leader", leader: "a", applied: 5000, unready: true}, follows("b"), follows("c")}, GroupNoService, "a leads and does not serve yet"},
		// A leader of the past, which has not heard of it, does not count.
		{3, []playedNode{leads, follows("b"), {id: "c", role: "leader", leader: "c", term: 6, applied: 9000}}, GroupAtRisk, "a leads, 2 of 3 voters are in sync, none can be lost: c follows c"},
		// A node without a vote does not count, whatever its state.
		{3, []playedNode{leads, follows("b"), follows("c"), silent("d")}, GroupWell, "3 of 3"},
		{3, []playedNode{leads, follows("b"), silent("c"), follows("d")}, GroupAtRisk, "2 of 3"},
	} {
		v := combine(simulateGroup(c.voters, c.nodes...))
		if v.State != c.state || !strings.Contains(v.Text, c.text) || v.OK != (c.state == GroupWell || c.state == GroupDegraded) || v.OK == (v.Code != "") {
			t.Errorf("%v: %q, want %q: %+v", c.nodes, v.Text, c.text, v)
		}
	}
}

// TestWithoutNode: a node is not removed where the rest would be no majority.
func TestWithoutNode(t *testing.T) {
	t.Parallel()
	node := func(id string, down bool) playedNode {
		if down {
			return playedNode{id: id, silent: true}
		}
		return playedNode{id: id, role: "standby", leader: "a", applied: 1}
	}
	leads := playedNode{id: "a", role: "leader", leader: "a", applied: 1}
	for _, c := range []struct {
		nodes  []playedNode
		voters int
		remove string
		may    bool
	}{
		{[]playedNode{leads, node("b", false), node("c", false)}, 3, "c", true},
		{[]playedNode{leads, node("b", false), node("c", true)}, 3, "c", true},
		{[]playedNode{leads, node("b", false), node("c", true)}, 3, "b", false},
		{[]playedNode{leads, node("b", true)}, 2, "b", true},
		{[]playedNode{leads}, 1, "a", false},
		{[]playedNode{leads, node("b", false), node("c", true), node("d", true)}, 3, "d", true}, // it has no vote
		{[]playedNode{leads, node("b", false)}, 2, "nobody", true},
	} {
		if bad := combine(simulateGroup(c.voters, c.nodes...)).RemovalProblem(c.remove); (bad == "") != c.may {
			t.Errorf("%v without %s: %q", c.nodes, c.remove, bad)
		}
	}
}

// TestHandedOver: a transfer is over when the next leader serves, and each node that was in sync
// follows it, unless it has stopped.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	view := func(leader string, change func(id string, n *playedNode)) *Group {
		var nodes []playedNode
		for _, id := range []string{"a", "b", "c"} {
			n := playedNode{id: id, role: "standby", leader: leader}
			if id == leader {
				n.role = "leader"
			}
			if change != nil {
				change(id, &n)
			}
			nodes = append(nodes, n)
		}
		return combine(simulateGroup(3, nodes...))
	}
	of := func(which string, change func(n *playedNode)) func(string, *playedNode) {
		return func(id string, n *playedNode) {
			if id == which {
				change(n)
			}
		}
	}
	silentC := of("c", func(n *playedNode) { n.silent = true })
	for i, c := range []struct {
		was, now *Group
		over     bool
	}{
		{view("a", nil), view("a", nil), false},
		{view("a", nil), view("", nil), false},
		{view("a", nil), view("b", of("b", func(n *playedNode) { n.unready = true })), false},
		{view("a", nil), view("b", of("a", func(n *playedNode) { n.leader = "" })), false},
		{view("a", nil), view("b", of("c", func(n *playedNode) { n.leader = "a" })), false},
		{view("a", nil), view("b", nil), true},
		{view("a", nil), view("b", silentC), true},
		{view("a", nil), view("b", of("a", func(n *playedNode) { n.failed = true })), true},
		{view("a", silentC), view("b", of("c", func(n *playedNode) { n.leader = "" })), true}, // it was not in sync before
	} {
		if over := c.was.HandedOver(c.now); over != c.over {
			t.Errorf("%d: %t, from %q to %q", i, over, c.was.Text, c.now.Text)
		}
	}
}

// TestLookAtGroup: the nodes that one names are asked too, each once; what is no
// node of a group, or never ends, is no answer.
func TestLookAtGroup(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 16)
	serve := func(answer func(w http.ResponseWriter)) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Host
			answer(w)
		}))
		t.Cleanup(s.Close)
		return s
	}
	other := serve(func(w http.ResponseWriter) {
		fmt.Fprint(w, `{"ok":true,"id":"b","role":"standby","level":true,"leader":{"id":"a"},"members":[]}`)
	})
	single := serve(func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) })
	endless := serve(func(w http.ResponseWriter) {
		fmt.Fprint(w, `{"ok":true,"id":"`, strings.Repeat("x", maxNodeAnswer), `"}`)
	})
	first := serve(func(w http.ResponseWriter) {
		fmt.Fprintf(w, `{"ok":true,"id":"a","role":"leader","serves":true,"level":true,"leader":{"id":"a"},"members":[
			{"id":"a","voter":true},{"id":"b","voter":true,"admin_url":%q},{"id":"c","voter":true},{"id":"d","voter":true,"admin_url":%q}]}`, other.URL, single.URL)
	})
	v, err := ReadGroup(t.Context(), []string{"", first.URL, first.URL})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"a": "", "b": "", "c": "not asked: no entry of peers has its admin_url", "d": "does not answer"} {
		if n := v.Node(id); n == nil || n.Problem != want || n.InSync != (want == "") {
			t.Errorf("%s: %+v", id, n)
		}
	}
	if n := len(asked); n != 3 {
		t.Errorf("%d requests to three addresses", n)
	}
	for _, s := range []*httptest.Server{single, endless} {
		if v, err := ReadGroup(t.Context(), []string{s.URL}); err == nil {
			t.Errorf("%+v", v)
		}
	}
}

// TestGroupDifferences: nodes that are configured differently are named, which makes
// the state of the group no worse.
func TestGroupDifferences(t *testing.T) {
	t.Parallel()
	answers := simulateGroup(3, playedNode{id: "a", role: "leader", leader: "a"}, playedNode{id: "b", role: "standby", leader: "a"}, playedNode{id: "c", silent: true})
	for i, parts := range []map[string]string{{"risk": "1", "urls": "1"}, {"risk": "2", "urls": "1", "new": "1"}} {
		answers[i].status.ConfigFingerprint, answers[i].status.ConfigParts = fmt.Sprint(i), parts
	}
	v := combine(answers)
	if text := DifferencesText(v.ConfigDiffers); text != "b (new, risk)" || v.ConfigOf != "a" || v.State != GroupAtRisk {
		t.Errorf("%q: %+v", text, v)
	}
	answers[0].status.ConfigFingerprint = "" // of an older program
	if v := combine(answers); len(v.ConfigDiffers) != 0 {
		t.Errorf("%+v", v)
	}
}
