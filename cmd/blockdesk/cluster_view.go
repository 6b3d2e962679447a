package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"blockdesk/httpgw/admin"
	"blockdesk/persist/quorum"
	"blockdesk/service/config"
)

const (
	// nodeTimeout bounds how long one node is waited for.
	nodeTimeout = 2 * time.Second
	// maxNodeAnswer bounds what is read of a node's status.
	maxNodeAnswer = 256 << 10
	// maxAsked bounds the nodes that are asked in one look.
	maxAsked = 4 * quorum.MaxPeers
)

// How a group is.
const (
	groupWell      = "well"       // all voters are level
	groupDegraded  = "degraded"   // not all are, and one more can be lost
	groupAtRisk    = "at_risk"    // not all are, and none can be lost
	groupNoService = "no_service" // one leads and does not serve yet
	groupNoLeader  = "no_leader"
)

// codeGroup is of a group that is not as it should be.
const codeGroup = "GROUP_UNWELL"

// errUnwellGroup is wrapped where a group has no leader or can lose no more node.
var errUnwellGroup = errors.New("the group is not well")

// groupView is a group as `cluster status` tells it. It is made of what the nodes
// say of themselves.
type groupView struct {
	OK    bool   `json:"ok"`
	Code  string `json:"code,omitempty"`
	Error string `json:"error,omitempty"`

	State  string `json:"state"`
	Text   string `json:"text"` // State as a sentence
	Leader string `json:"leader,omitempty"`
	Term   uint64 `json:"term"`
	Voters int    `json:"voters"`
	Level  int    `json:"voters_level"`
	// CanLose is how many voters more the group can be without and still
	// acknowledge; negative where it cannot now.
	CanLose int `json:"can_lose"`
	// ConfigDiffers are the nodes that are configured differently from ConfigOf, which
	// leads where one does, with the parts in which they are.
	ConfigDiffers map[string][]string `json:"config_differs"`
	ConfigOf      string              `json:"config_of,omitempty"`
	Nodes         []nodeRow           `json:"nodes"`
}

// nodeRow is one node of it.
type nodeRow struct {
	ID       string               `json:"id"`
	Address  string               `json:"address"`
	Voter    bool                 `json:"voter"`
	AdminURL string               `json:"admin_url"`
	Level    bool                 `json:"level"` // it could lead in a moment, or does
	Behind   uint64               `json:"behind_entries"`
	Problem  string               `json:"problem,omitempty"`
	Status   *admin.ClusterStatus `json:"status,omitempty"` // nil: it does not answer
}

// nodeAnswer is what asking one admin address gave.
type nodeAnswer struct {
	url    string
	status *admin.ClusterStatus
	err    error
}

// lookAtGroup asks the nodes at these admin addresses, and those that they name.
// It fails where no node answers.
func lookAtGroup(ctx context.Context, seeds []string) (*groupView, error) {
	var answers []nodeAnswer
	asked := map[string]bool{}
	for next := seeds; len(next) > 0; {
		var fresh []string
		for _, url := range next {
			if url != "" && !asked[url] && len(asked) < maxAsked {
				asked[url] = true
				fresh = append(fresh, url)
			}
		}
		got := askNodes(ctx, fresh)
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
	return judge(answers), nil
}

// askNodes asks all at once.
func askNodes(ctx context.Context, urls []string) []nodeAnswer {
	out := make([]nodeAnswer, len(urls))
	var all sync.WaitGroup
	for i, url := range urls {
		all.Go(func() {
			status, err := askNode(ctx, url)
			out[i] = nodeAnswer{url, status, err}
		})
	}
	all.Wait()
	return out
}

// askNode asks one node for its status.
func askNode(ctx context.Context, url string) (*admin.ClusterStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/cluster", nil)
	if err != nil {
		return nil, usageError{err}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, unreachable(url, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s/cluster answers %s: it is no node of a group", url, resp.Status)
	}
	out := &admin.ClusterStatus{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxNodeAnswer)).Decode(out); err != nil || !out.OK || out.ID == "" {
		return nil, errors.Join(fmt.Errorf("%s/cluster is no page of blockdesk's", url), err)
	}
	return out, nil
}

// judge says how a group is from what its nodes say, one at least.
func judge(answers []nodeAnswer) *groupView {
	var leader, best *admin.ClusterStatus
	for _, a := range answers {
		s := a.status
		if s == nil {
			continue
		}
		// Of two that say that they lead the one of the later term does.
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
	v := &groupView{Term: best.Term, ConfigOf: best.ID, ConfigDiffers: map[string][]string{}}
	if leader != nil {
		v.Leader = leader.ID
	}
	for _, m := range best.Members {
		row := judgeNode(m, leader, answers)
		v.Nodes = append(v.Nodes, row)
		if s := row.Status; s != nil && s.ConfigFingerprint != best.ConfigFingerprint && s.ConfigFingerprint != "" && best.ConfigFingerprint != "" {
			v.ConfigDiffers[m.ID] = config.PartsApart(best.ConfigParts, s.ConfigParts) // else a program is older than fingerprints
		}
		if m.Voter {
			v.Voters++
			if row.Level {
				v.Level++
			}
		}
	}
	slices.SortFunc(v.Nodes, func(a, b nodeRow) int { return cmp.Compare(a.ID, b.ID) })
	v.conclude(leader)
	return v
}

// judgeNode says how one member is. leader is nil where nobody leads.
func judgeNode(m admin.ClusterMember, leader *admin.ClusterStatus, answers []nodeAnswer) nodeRow {
	row := nodeRow{ID: m.ID, Address: m.Address, Voter: m.Voter, AdminURL: m.AdminURL}
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
		row.Problem = "not asked: no peers entry has its admin_url"
	case s == nil:
	case !s.Level:
		row.Problem = cmp.Or(s.Problem, "not level")
	case leader == nil:
		row.Problem = "knows no leader"
	case s.Leader.ID != leader.ID:
		row.Problem = "follows " + cmp.Or(s.Leader.ID, "nobody")
	case row.Behind > quorum.ReadyBehind:
		row.Problem = fmt.Sprintf("%d entries behind", row.Behind)
	default:
		row.Level = true
	}
	return row
}

// conclude fills in what the rows come to.
func (v *groupView) conclude(leader *admin.ClusterStatus) {
	majority := v.Voters/2 + 1
	v.CanLose = v.Level - majority
	var wrong []string
	answer := 0
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Voter && !n.Level {
			wrong = append(wrong, n.ID+" "+n.Problem)
		}
		if n.Voter && n.Status != nil {
			answer++
		}
	}
	level := fmt.Sprintf("%s leads, %d of %d voters are level", v.Leader, v.Level, v.Voters)
	switch {
	case leader == nil:
		v.State = groupNoLeader
		v.Text = fmt.Sprintf("no leader: %d of %d voters answer, %d are needed; nothing is acknowledged", answer, v.Voters, majority)
	case !leader.Serves:
		v.State, v.Text = groupNoService, v.Leader+" leads and does not serve yet"
	case len(wrong) == 0:
		v.State, v.Text = groupWell, fmt.Sprintf("well: %s, %d can be lost", level, v.CanLose)
	case v.CanLose > 0:
		v.State, v.Text = groupDegraded, fmt.Sprintf("degraded: %s, %d more can be lost: %s", level, v.CanLose, strings.Join(wrong, "; "))
	case v.CanLose < 0: // it has not noticed yet, or the others are reached by it and not from here
		v.State, v.Text = groupAtRisk, fmt.Sprintf("at risk: %s, %d are needed: %s", level, majority, strings.Join(wrong, "; "))
	default:
		v.State, v.Text = groupAtRisk, fmt.Sprintf("at risk: %s, none can be lost: %s", level, strings.Join(wrong, "; "))
	}
	if v.OK = v.State == groupWell || v.State == groupDegraded; !v.OK {
		v.Code, v.Error = codeGroup, v.Text
	}
}

// node returns the row of an id; nil: it is no member.
func (v *groupView) node(id string) *nodeRow {
	for i := range v.Nodes {
		if v.Nodes[i].ID == id {
			return &v.Nodes[i]
		}
	}
	return nil
}

// show prints the sentence, another one where nodes are configured differently, and
// a line a node.
func (v *groupView) show(w io.Writer) error {
	text := v.Text + "\n"
	if len(v.ConfigDiffers) > 0 {
		text += fmt.Sprintf("configured differently from %s: %s\n", v.ConfigOf, apartText(v.ConfigDiffers))
	}
	if _, err := fmt.Fprintln(w, text); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tROLE\tVOTE\tLEVEL\tTERM\tLOG\tCOMMITTED\tAPPLIED\tBEHIND\tHEARD\tDISK FREE\tUP\tVERSION\tADDRESS\tADMIN\tWHAT IS WRONG")
	for i := range v.Nodes {
		n := &v.Nodes[i]
		yes := map[bool]string{true: "yes", false: "no"}
		if n.Status == nil {
			fmt.Fprintf(t, "%s\t-\t%s\t%s\t-\t-\t-\t-\t-\t-\t-\t-\t-\t%s\t%s\t%s\n", n.ID, yes[n.Voter], yes[n.Level], n.Address, dash(n.AdminURL), n.Problem)
			continue
		}
		s := n.Status
		heard := "never"
		if s.ContactMS >= 0 {
			heard = (time.Duration(s.ContactMS) * time.Millisecond).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%d %%\t%s\t%s\t%s\t%s\t%s\n",
			n.ID, s.Role, yes[n.Voter], yes[n.Level], s.Term, s.LogIndex, s.CommittedIndex, s.AppliedIndex, n.Behind, heard,
			s.DiskFreePercent, time.Duration(s.UptimeS)*time.Second, s.Version, n.Address, n.AdminURL, dash(n.Problem))
	}
	return t.Flush()
}
