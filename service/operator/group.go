package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"blockdesk/httpgw/admin"
	"blockdesk/persist/quorum"
	"blockdesk/service/config"
)

const (
	// nodeTimeout bounds the request of one node.
	nodeTimeout = 2 * time.Second
	// maxNodeAnswer bounds the answer of a node, in bytes.
	maxNodeAnswer = 256 << 10
	// maxRequested bounds the nodes that ReadGroup requests.
	maxRequested = 4 * quorum.MaxPeers
)

// States of a group.
const (
	GroupWell      = "well"       // all voters are in sync
	GroupDegraded  = "degraded"   // not all are, and one more can be lost
	GroupAtRisk    = "at_risk"    // not all are, and none can be lost
	GroupNoService = "no_service" // a node leads and does not serve yet
	GroupNoLeader  = "no_leader"
)

// NotAsked is the problem of a node whose admin address nobody knows.
const NotAsked = "not asked: no entry of peers has its admin_url"

// codeGroup is the code of a group in any other state than well and degraded.
const codeGroup = "GROUP_UNWELL"

// AddressError means that an admin address is not a URL.
type AddressError struct{ error }

// Unwrap returns the wrapped error.
func (e AddressError) Unwrap() error { return e.error }

// Group is the state of a group of nodes, made of what its nodes report, as
// `cluster status` prints it.
type Group struct {
	OK    bool   `json:"ok"`
	Code  string `json:"code,omitempty"`
	Error string `json:"error,omitempty"`

	State  string `json:"state"`
	Text   string `json:"text"` // State as a sentence
	Leader string `json:"leader,omitempty"`
	Term   uint64 `json:"term"`
	Voters int    `json:"voters"`
	InSync int    `json:"voters_level"`
	// CanLose is how many more voters the group can lose and still acknowledge;
	// negative if it cannot acknowledge now.
	CanLose int `json:"can_lose"`
	// ConfigDiffers has the nodes that are configured differently from ConfigOf, which
	// is the leader if there is one, with the parts that differ.
	ConfigDiffers map[string][]string `json:"config_differs"`
	ConfigOf      string              `json:"config_of,omitempty"`
	Nodes         []Node              `json:"nodes"`
}

// Node is a member of a Group.
type Node struct {
	ID       string               `json:"id"`
	Address  string               `json:"address"`
	Voter    bool                 `json:"voter"`
	AdminURL string               `json:"admin_url"`
	InSync   bool                 `json:"level"` // it can lead at once, or leads
	Behind   uint64               `json:"behind_entries"`
	Problem  string               `json:"problem,omitempty"`
	Status   *admin.ClusterStatus `json:"status,omitempty"` // nil: it does not answer
}

// nodeAnswer is the answer of one admin address, or the error.
type nodeAnswer struct {
	url    string
	status *admin.ClusterStatus
	err    error
}

// ReadGroup requests the status of the nodes at these admin addresses, and of the nodes that
// they name. It fails if no node answers, with the errors of all.
func ReadGroup(ctx context.Context, seeds []string) (*Group, error) {
	var answers []nodeAnswer
	asked := map[string]bool{}
	for next := seeds; len(next) > 0; {
		var fresh []string
		for _, url := range next {
			if url != "" && !asked[url] && len(asked) < maxRequested {
				asked[url] = true
				fresh = append(fresh, url)
			}
		}
		got := requestStatuses(ctx, fresh)
		next = nil
		for _, a := range got {
			if a.status != nil {
				for _, m := range a.status.Members {
					next = append(next, m.AdminURL)
				}
			}
		}
		answers = append(answers, got...)
	}
	if !slices.ContainsFunc(answers, func(a nodeAnswer) bool { return a.status != nil }) {
		var errs []error
		for _, a := range answers {
			errs = append(errs, a.err)
		}
		return nil, errors.Join(errs...)
	}
	return combine(answers), nil
}

// requestStatuses requests the status of all nodes concurrently.
func requestStatuses(ctx context.Context, urls []string) []nodeAnswer {
	out := make([]nodeAnswer, len(urls))
	var all sync.WaitGroup
	for i, url := range urls {
		all.Go(func() {
			status, err := requestStatus(ctx, url)
			out[i] = nodeAnswer{url, status, err}
		})
	}
	all.Wait()
	return out
}

// requestStatus requests the status of one node.
func requestStatus(ctx context.Context, url string) (*admin.ClusterStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/cluster", nil)
	if err != nil {
		return nil, AddressError{err}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, Unreachable(url, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s/cluster answers %s: not a node of a group", url, resp.Status)
	}
	out := &admin.ClusterStatus{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxNodeAnswer)).Decode(out); err != nil || !out.OK || out.ID == "" {
		return nil, errors.Join(fmt.Errorf("%s/cluster is not a page of blockdesk", url), err)
	}
	return out, nil
}

// combine returns the group of its nodes' answers, of which at least one has a status.
func combine(answers []nodeAnswer) *Group {
	var leader, best *admin.ClusterStatus
	for _, a := range answers {
		s := a.status
		if s == nil {
			continue
		}
		// If two nodes claim to lead, the one of the later term does.
		if s.Role == quorum.Leader.String() && (leader == nil || s.Term > leader.Term) {
			leader = s
		}
		if best == nil || s.CommittedIndex > best.CommittedIndex {
			best = s
		}
	}
	if leader != nil {
		best = leader
	}
	v := &Group{Term: best.Term, ConfigOf: best.ID, ConfigDiffers: map[string][]string{}}
	if leader != nil {
		v.Leader = leader.ID
	}
	for _, m := range best.Members {
		row := nodeOf(m, leader, answers)
		v.Nodes = append(v.Nodes, row)
		if s := row.Status; s != nil && s.ConfigFingerprint != best.ConfigFingerprint && s.ConfigFingerprint != "" && best.ConfigFingerprint != "" {
			v.ConfigDiffers[m.ID] = config.DifferentParts(best.ConfigParts, s.ConfigParts) // else one of the programs has no fingerprints
		}
		if m.Voter {
			v.Voters++
			if row.InSync {
				v.InSync++
			}
		}
	}
	slices.SortFunc(v.Nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	v.conclude(leader)
	return v
}

// nodeOf returns the state of one member; leader may be nil.
func nodeOf(m admin.ClusterMember, leader *admin.ClusterStatus, answers []nodeAnswer) Node {
	row := Node{ID: m.ID, Address: m.Address, Voter: m.Voter, AdminURL: m.AdminURL}
	for _, a := range answers {
		switch {
		case a.status != nil && a.status.ID == m.ID:
			row.Status, row.AdminURL, row.Problem = a.status, a.url, ""
		case a.status == nil && a.url == m.AdminURL && row.Status == nil:
			row.Problem = "does not answer"
		case a.status != nil && a.url == m.AdminURL && row.Status == nil:
			row.Problem = "its admin address is that of " + a.status.ID
		}
	}
	s := row.Status
	if leader != nil && s != nil {
		row.Behind = leader.CommittedIndex - min(leader.CommittedIndex, s.AppliedIndex)
	}
	switch {
	case s == nil && row.Problem == "":
		row.Problem = NotAsked
	case s == nil:
	case !s.InSync:
		row.Problem = cmp.Or(s.Problem, "not in sync")
	case leader == nil:
		row.Problem = "knows no leader"
	case s.Leader.ID != leader.ID:
		row.Problem = "follows " + cmp.Or(s.Leader.ID, "no leader")
	case row.Behind > quorum.MaxReadyLag:
		row.Problem = fmt.Sprintf("%d entries behind", row.Behind)
	default:
		row.InSync = true
	}
	return row
}

// conclude sets the state, its text and the error from the nodes.
func (v *Group) conclude(leader *admin.ClusterStatus) {
	majority := v.Voters/2 + 1
	v.CanLose = v.InSync - majority
	var wrong []string
	answer := 0
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Voter && !n.InSync {
			wrong = append(wrong, n.ID+" "+n.Problem)
		}
		if n.Voter && n.Status != nil {
			answer++
		}
	}
	summary := fmt.Sprintf("%s leads, %d of %d voters are in sync", v.Leader, v.InSync, v.Voters)
	switch {
	case leader == nil:
		v.State = GroupNoLeader
		v.Text = fmt.Sprintf("no leader: %d of %d voters answer, %d are needed; nothing is acknowledged", answer, v.Voters, majority)
	case !leader.Serves:
		v.State, v.Text = GroupNoService, v.Leader+" leads and does not serve yet"
	case len(wrong) == 0:
		v.State, v.Text = GroupWell, fmt.Sprintf("well: %s, %d can be lost", summary, v.CanLose)
	case v.CanLose > 0:
		v.State, v.Text = GroupDegraded, fmt.Sprintf("degraded: %s, %d more can be lost: %s", summary, v.CanLose, strings.Join(wrong, "; "))
	case v.CanLose < 0: // the leader has not noticed yet, or reaches nodes that we do not
		v.State, v.Text = GroupAtRisk, fmt.Sprintf("at risk: %s, %d are needed: %s", summary, majority, strings.Join(wrong, "; "))
	default:
		v.State, v.Text = GroupAtRisk, fmt.Sprintf("at risk: %s, none can be lost: %s", summary, strings.Join(wrong, "; "))
	}
	if v.OK = v.State == GroupWell || v.State == GroupDegraded; !v.OK {
		v.Code, v.Error = codeGroup, v.Text
	}
}

// Node returns the member with this id; nil if there is none.
func (v *Group) Node(id string) *Node {
	for i := range v.Nodes {
		if v.Nodes[i].ID == id {
			return &v.Nodes[i]
		}
	}
	return nil
}

// RemovalProblem returns why the group could not acknowledge without a member; "" if it
// could.
func (v *Group) RemovalProblem(id string) string {
	n := v.Node(id)
	if n == nil || !n.Voter {
		return ""
	}
	voters, inSync := v.Voters-1, v.InSync
	if n.InSync {
		inSync--
	}
	if need := voters/2 + 1; inSync < need {
		return fmt.Sprintf("without %s there are %d voters, of which %d are in sync and %d are needed", id, voters, inSync, need)
	}
	return ""
}

// HandedOver reports whether another node than in v leads and serves in the later view now,
// and whether every node that was in sync in v is in sync again: nodes learn of a new leader
// a moment later, and the group would look at risk until then. It does not wait for a node
// that has stopped meanwhile.
func (v *Group) HandedOver(now *Group) bool {
	if now.Leader == "" || now.Leader == v.Leader || now.State == GroupNoService {
		return false
	}
	return !slices.ContainsFunc(v.Nodes, func(was Node) bool {
		is := now.Node(was.ID)
		return was.InSync && is != nil && is.Status != nil && !is.Status.Failed && !is.InSync
	})
}

// DifferencesText names nodes and the parts of the configuration in which they
// differ: "b (risk, rfq), c (urls)".
func DifferencesText(nodes map[string][]string) string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		out = append(out, fmt.Sprintf("%s (%s)", id, strings.Join(nodes[id], ", ")))
	}
	return strings.Join(out, ", ")
}
