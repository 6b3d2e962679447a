package admin

import (
	"encoding/json"
	"errors"
	"net/http"

	"blockdesk/httpgw/wire"
)

// Codes of /desk/cluster (our choice).
const (
	codeUnknownNode  = "UNKNOWN_NODE"
	codeClusterState = "CLUSTER_STATE"
)

// Cluster serves /cluster and /desk/cluster: this node's membership in its raft group.
// Implementations are safe for concurrent use. Changes wait, some seconds at most, until
// they are committed to the group's log.
type Cluster interface {
	// Status does not wait for a disk or another node.
	Status() ClusterStatus
	// Add adds a node as a non-voting member, or makes it a voter. Errors:
	// ErrClusterLeader, ErrClusterAddress, ErrClusterTaken.
	Add(id, address string, voter bool) error
	// Remove removes a node from the group for good. Errors: ErrClusterLeader,
	// ErrClusterUnknown, ErrClusterSelf.
	Remove(id string) error
	// Transfer transfers leadership to another voter. Error: ErrClusterLeader.
	Transfer() error
	// Finalize ends an upgrade of the group's programs: the log gets the newest format, and
	// another node leads. Without an upgrade it does nothing. Errors: ErrClusterLeader,
	// ErrClusterOld.
	Finalize() error
}

// Errors of Cluster.
var (
	ErrClusterLeader  = errors.New("httpgw: this node does not lead its group")
	ErrClusterAddress = errors.New("httpgw: invalid id or address of a node")
	ErrClusterTaken   = errors.New("httpgw: the id or address belongs to another node")
	ErrClusterUnknown = errors.New("httpgw: unknown node")
	ErrClusterOld     = errors.New("httpgw: a node of the group has an older program, or does not answer")
	ErrClusterSelf    = errors.New("httpgw: the leader cannot remove itself")
)

// ClusterStatus is the status of a node, and of its group as recorded in the node's log.
type ClusterStatus struct {
	OK      bool   `json:"ok"` // always true
	ID      string `json:"id"`
	Version string `json:"version"` // of the program
	UptimeS int64  `json:"uptime_s"`
	Role    string `json:"role"`   // leader, standby, candidate or stopped
	Serves  bool   `json:"serves"` // the service runs here, which begins a moment after the election
	// InSync: a member, in contact with the leader, that has applied nearly all committed
	// entries. Problem says why a node is not in sync.
	InSync  bool   `json:"level"`
	Failed  bool   `json:"failed"` // the node has left the group until a restart
	Problem string `json:"problem,omitempty"`
	// NoMemory: the data folder was empty though the group has a log. The node takes no part
	// and must be replaced.
	NoMemory bool `json:"no_memory"`
	// LogFormat is the format of the group's log, NewestFormat the newest that this program
	// reads: until `cluster finalize` a group whose programs were upgraded keeps the old one.
	LogFormat    int `json:"log_format"`
	NewestFormat int `json:"newest_format"`

	Term   uint64        `json:"term"`
	Leader ClusterMember `json:"leader"` // as this node knows it; no id = none
	// The last entry in this node's log, known to be committed, and applied here.
	LogIndex       uint64 `json:"log_index"`
	CommittedIndex uint64 `json:"committed_index"`
	AppliedIndex   uint64 `json:"applied_index"`
	// ContactMS is the time since the last contact with the leader: 0 on the leader, -1
	// if there was none.
	ContactMS       int64 `json:"leader_contact_ms"`
	DiskFreePercent int   `json:"disk_free_percent"`
	DiskLow         bool  `json:"disk_low"`

	// ConfigFingerprint is the hash of the configuration that must be the same on all
	// nodes, ConfigParts the hashes of its parts. ConfigDiffers has the nodes whose last
	// reported configuration differs, with the parts that differ.
	ConfigFingerprint string              `json:"config_fingerprint"`
	ConfigParts       map[string]string   `json:"config_parts"`
	ConfigDiffers     map[string][]string `json:"config_differs"`

	Members []ClusterMember `json:"members"`
}

// ClusterMember is a node as recorded in the group's log. AdminURL comes from the
// configuration of the node that answers; empty = unknown.
type ClusterMember struct {
	ID       string `json:"id"`
	Address  string `json:"address"`
	Voter    bool   `json:"voter"`
	AdminURL string `json:"admin_url"`
}

// clusterStatus serves /cluster. It requires no token, because nodes and operators read
// the status of other nodes.
func (a *Server) clusterStatus(w http.ResponseWriter, _ *http.Request) {
	id := a.ids.Next()
	adminHeaders(w.Header(), &id)
	if err := json.NewEncoder(w).Encode(a.opts.Operate.Cluster.Status()); err != nil {
		a.opts.Logger.Debug("admin answer not delivered", "error", err)
	}
}

// clusterEndpoints are the operators' endpoints of the raft group.
type clusterEndpoints struct {
	cluster Cluster
	log     commandLog
}

func (e *clusterEndpoints) routes() operatorRoutes {
	return operatorRoutes{
		"/desk/cluster/members":             {"POST": bodied(e.addMember)},
		"/desk/cluster/members/{id}/remove": {"POST": bodied(e.removeMember)},
		"/desk/cluster/transfer":            {"POST": bodied(e.transferLead)},
		"/desk/cluster/finalize":            {"POST": bodied(e.finalize)},
	}
}

type addMemberBody struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Voter   bool   `json:"voter"`
}

// addMember adds a node, or makes a member a voter.
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

func (e *clusterEndpoints) finalize(c *call, _ *noBody) (any, *wire.Problem) {
	return e.changed(c, "", e.cluster.Finalize())
}

// changed logs the outcome of a change and returns the node's status. Repeating a change
// has no effect.
func (e *clusterEndpoints) changed(c *call, id string, err error) (any, *wire.Problem) {
	if err == nil {
		e.log.Info("cluster membership changed", "request_id", string(c.id[:]), "operator", c.operator.Name, "path", c.Pattern, "node", id)
		return e.cluster.Status(), nil
	}
	switch {
	case errors.Is(err, ErrClusterLeader):
		return nil, e.notLeader()
	case errors.Is(err, ErrClusterAddress):
		return nil, invalidOperatorField("address", "must be host:port (a loopback address if the group has no TLS), and id must have 1 to 64 bytes")
	case errors.Is(err, ErrClusterTaken):
		return nil, &wire.Problem{
			Status: http.StatusConflict, Code: codeClusterState, Reason: "taken",
			Text: "The id belongs to another address in the group, or the address to another node.",
		}
	case errors.Is(err, ErrClusterUnknown):
		return nil, &wire.Problem{Status: http.StatusNotFound, Code: codeUnknownNode, Text: "The group has no such node."}
	case errors.Is(err, ErrClusterOld):
		return nil, &wire.Problem{
			Status: http.StatusConflict, Code: codeClusterState, Reason: "old_program",
			Text: "A node has an older program, or does not answer. Upgrade and start every node of the group first; /cluster lists them.",
		}
	case errors.Is(err, ErrClusterSelf):
		return nil, &wire.Problem{
			Status: http.StatusConflict, Code: codeClusterState, Reason: "leads",
			Text: "This node leads. Transfer leadership before you remove it.",
		}
	}
	e.log.Error("cluster change failed", "request_id", string(c.id[:]), "path", c.Pattern, "node", id, "error", err)
	return nil, &wire.Problem{
		Status: http.StatusServiceUnavailable, Code: codeClusterState, Reason: "not_done", RetryS: wire.RetryLeaderS,
		Text: "The cluster change failed. The log has details under the request_id. Check the status before you try again.",
	}
}

// notLeader returns LEADER_CHANGED with the admin address of the leader, if it is known.
func (e *clusterEndpoints) notLeader() *wire.Problem {
	p := &wire.Problem{
		Status: http.StatusServiceUnavailable, Code: wire.CodeLeaderChanged, RetryS: wire.RetryLeaderS,
		Text: "This node does not lead, and the leader is unknown. Try again in a moment.",
	}
	leader := e.cluster.Status().Leader
	if leader.ID == "" {
		return p
	}
	p.Text = "Another node leads. Send the request to its admin address."
	p.Leader = wire.LeaderMember(leader.ID, leader.AdminURL)
	return p
}

// refuseOnStandby answers the operators' endpoints of a standby.
func (e *clusterEndpoints) refuseOnStandby(*call) (any, *wire.Problem) { return nil, e.notLeader() }
