package admin

import (
	"encoding/json"
	"errors"
	"net/http"

	"blockdesk/httpgw/wire"
)

// Codes of /desk/cluster are our choice: the contract has no words for them.
const (
	codeUnknownNode  = "UNKNOWN_NODE"
	codeClusterState = "CLUSTER_STATE"
)

// Cluster is this node's part in its group: what is behind /cluster and
// /desk/cluster on the admin address. Any goroutine may call it. The changes wait
// until the group's log has them, some seconds at most.
type Cluster interface {
	// Status waits for no disk and no other node.
	Status() ClusterStatus
	// Add makes a node a member that gets the log, or with voter one that votes.
	// ErrClusterLeader, ErrClusterAddress, ErrClusterTaken.
	Add(id, address string, voter bool) error
	// Remove takes a node out of the group, for good. ErrClusterLeader,
	// ErrClusterUnknown, ErrClusterSelf.
	Remove(id string) error
	// Transfer hands the lead to another voter. ErrClusterLeader.
	Transfer() error
}

// What Cluster refuses.
var (
	ErrClusterLeader  = errors.New("httpgw: this node does not lead its group")
	ErrClusterAddress = errors.New("httpgw: no id or address of a node")
	ErrClusterTaken   = errors.New("httpgw: the id or the address is another node's")
	ErrClusterUnknown = errors.New("httpgw: no such node in the group")
	ErrClusterSelf    = errors.New("httpgw: a node that leads does not remove itself")
)

// ClusterStatus is what a node says of itself, and of its group as its own log has
// it.
type ClusterStatus struct {
	OK      bool   `json:"ok"` // true: it is an answer
	ID      string `json:"id"`
	Version string `json:"version"` // of the program
	UptimeS int64  `json:"uptime_s"`
	// Role is leader, standby, candidate or stopped. Serves: the service stands on
	// this node, which it does a moment after it has come to lead.
	Role   string `json:"role"`
	Serves bool   `json:"serves"`
	// Level: it takes part, hears a leader and has judged nearly all that is
	// committed. Problem says why it is not.
	InSync  bool   `json:"level"`
	Failed  bool   `json:"failed"` // it has left the group until a restart
	Problem string `json:"problem,omitempty"`

	Term   uint64        `json:"term"`
	Leader ClusterMember `json:"leader"` // as this node knows it; without an id: none
	// Entries: in this node's log, known to be on a majority, judged here.
	LogIndex       uint64 `json:"log_index"`
	CommittedIndex uint64 `json:"committed_index"`
	AppliedIndex   uint64 `json:"applied_index"`
	// ContactMS is how long ago it heard from the leader: 0 on the leader, -1 never.
	ContactMS       int64 `json:"leader_contact_ms"`
	DiskFreePercent int   `json:"disk_free_percent"`
	DiskLow         bool  `json:"disk_low"`

	// ConfigFingerprint stands for what of the configuration has to be alike on all
	// nodes, ConfigParts for the parts of it. ConfigDiffers are the nodes whose own
	// differ, as this node has heard last, with the parts.
	ConfigFingerprint string              `json:"config_fingerprint"`
	ConfigParts       map[string]string   `json:"config_parts"`
	ConfigDiffers     map[string][]string `json:"config_differs"`

	Members []ClusterMember `json:"members"`
}

// ClusterMember is a node as the group's log has it, with what the configuration
// of who tells it says of its admin address; empty: nothing.
type ClusterMember struct {
	ID       string `json:"id"`
	Address  string `json:"address"`
	Voter    bool   `json:"voter"`
	AdminURL string `json:"admin_url"`
}

// clusterStatus answers /cluster, which asks for no token: the nodes and their
// operators read each other's.
func (a *Server) clusterStatus(w http.ResponseWriter, _ *http.Request) {
	id := a.ids.Next()
	adminHeaders(w.Header(), &id)
	if err := json.NewEncoder(w).Encode(a.opts.Operate.Cluster.Status()); err != nil {
		a.opts.Logger.Debug("admin answer not delivered", "error", err)
	}
}

// clusterEndpoints are the operators' endpoints of a node's group.
type clusterEndpoints struct {
	cluster Cluster
	log     commandLog
}

func (e *clusterEndpoints) routes() operatorRoutes {
	return operatorRoutes{
		"/desk/cluster/members":             {"POST": bodied(e.addMember)},
		"/desk/cluster/members/{id}/remove": {"POST": bodied(e.removeMember)},
		"/desk/cluster/transfer":            {"POST": bodied(e.transferLead)},
	}
}

type addMemberBody struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Voter   bool   `json:"voter"`
}

// addMember adds a node, or makes one that is there a voter.
func (e *clusterEndpoints) addMember(c *call, in *addMemberBody) (any, *wire.Problem) {
	return e.changed(c, in.ID, e.cluster.Add(in.ID, in.Address, in.Voter))
}

func (e *clusterEndpoints) removeMember(c *call, _ *noBody) (any, *wire.Problem) {
	id := c.PathValue("id")
	return e.changed(c, id, e.cluster.Remove(id))
}

func (e *clusterEndpoints) transferLead(c *call, _ *noBody) (any, *wire.Problem) {
	return e.changed(c, "", e.cluster.Transfer())
}

// changed logs what came of a change, and answers with the node's status. A change
// that is asked for twice is made once: the second finds it made.
func (e *clusterEndpoints) changed(c *call, id string, err error) (any, *wire.Problem) {
	if err == nil {
		e.log.Info("group changed", "request_id", string(c.id[:]), "operator", c.operator.Name, "path", c.Pattern, "node", id)
		return e.cluster.Status(), nil
	}
	switch {
	case errors.Is(err, ErrClusterLeader):
		return nil, e.notLeader()
	case errors.Is(err, ErrClusterAddress):
		return nil, invalidOperatorField("address", "must be host:port, of the loopback alone where the group has no TLS, and id 1 to 64 bytes")
	case errors.Is(err, ErrClusterTaken):
		return nil, &wire.Problem{
			Status: http.StatusConflict, Code: codeClusterState, Reason: "taken",
			Text: "The id has another address in the group, or the address is another node's.",
		}
	case errors.Is(err, ErrClusterUnknown):
		return nil, &wire.Problem{Status: http.StatusNotFound, Code: codeUnknownNode, Text: "The group has no such node."}
	case errors.Is(err, ErrClusterSelf):
		return nil, &wire.Problem{
			Status: http.StatusConflict, Code: codeClusterState, Reason: "leads",
			Text: "This node leads: hand the lead over before it is removed.",
		}
	}
	e.log.Error("group not changed", "request_id", string(c.id[:]), "path", c.Pattern, "node", id, "error", err)
	return nil, &wire.Problem{
		Status: http.StatusServiceUnavailable, Code: codeClusterState, Reason: "not_done", RetryS: wire.RetryLeaderS,
		Text: "The group did not take it up; the log says why under the request_id. Look at the status before the next try.",
	}
}

// notLeader says on which node's admin address an operator's request is answered.
func (e *clusterEndpoints) notLeader() *wire.Problem {
	p := &wire.Problem{
		Status: http.StatusServiceUnavailable, Code: wire.CodeLeaderChanged, RetryS: wire.RetryLeaderS,
		Text: "This node does not lead, and no leader is known. Try again in a moment.",
	}
	leader := e.cluster.Status().Leader
	if leader.ID == "" {
		return p
	}
	p.Text = "Another node leads: ask it, at its admin address."
	p.Leader = wire.LeaderMember(leader.ID, leader.AdminURL)
	return p
}

// elsewhere answers the operator's routes of a node that stands by.
func (e *clusterEndpoints) refuseOnStandby(*call) (any, *wire.Problem) { return nil, e.notLeader() }
