package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"blockdesk/engine"
	"blockdesk/persist/fanout"
	"blockdesk/persist/quorum"
)

// Words of the configuration.
const (
	RoleAll      = "all"
	RoleNode     = "node"
	RoleFollower = "follower"

	journalPebble = "pebble"
	journalRaft   = "raft"

	fanoutNone = "none"
	FanoutNATS = "nats"
)

// Cluster identifies this process in its raft group and configures the transport
// between the nodes.
type Cluster struct {
	ID          string `yaml:"id"`         // one of peers
	Bind        string `yaml:"bind"`       // where the other nodes reach this one; empty: its address in peers
	Join        bool   `yaml:"join"`       // wait to be added to a group that exists
	TimeoutMS   int    `yaml:"timeout_ms"` // how long a leader may be silent
	TLSCertFile string `yaml:"tls_cert_file"`
	TLSKeyFile  string `yaml:"tls_key_file"`
	TLSCAFile   string `yaml:"tls_ca_file"`
}

// Peer is one node of the group, with the addresses that its clients use.
type Peer struct {
	ID      string `yaml:"id"`
	Address string `yaml:"address"` // host:port, for the other nodes
	Base    string `yaml:"base_url"`
	API     string `yaml:"api_url"`
	WS      string `yaml:"ws_url"`
	FIX     string `yaml:"fix"` // host:port
	Admin   string `yaml:"admin_url"`
}

// NATS configures the transport of durable frames to followers.
type NATS struct {
	URLs            []string `yaml:"urls"`
	Embedded        bool     `yaml:"embedded"` // a server in this process
	Listen          string   `yaml:"listen"`   // where that listens
	Prefix          string   `yaml:"prefix"`
	User            string   `yaml:"user"`
	PasswordFile    string   `yaml:"password_file"`
	CredentialsFile string   `yaml:"credentials_file"`
	TLSCAFile       string   `yaml:"tls_ca_file"`
	TLSCertFile     string   `yaml:"tls_cert_file"`
	TLSKeyFile      string   `yaml:"tls_key_file"`
	StreamMiB       int      `yaml:"stream_mib"`
	StreamReplicas  int      `yaml:"stream_replicas"`
	MaxStaleMS      int      `yaml:"max_stale_ms"`
}

func defaultCluster() Cluster { return Cluster{TimeoutMS: 100} }

func defaultNATS() NATS {
	return NATS{URLs: []string{}, Listen: "127.0.0.1:4222", Prefix: "blockdesk", StreamMiB: 1024, StreamReplicas: 1, MaxStaleMS: 2000}
}

// UnmarshalYAML accepts `journal: raft` for `journal: {kind: raft}`.
func (c *Journal) UnmarshalYAML(decode func(any) error) error {
	if kind := ""; decode(&kind) == nil {
		c.Kind = kind
		return nil
	}
	type keys Journal
	return decode((*keys)(c))
}

// Clustered reports whether this process is a node of a raft group.
func (c *Config) Clustered() bool { return c.Journal.Kind == journalRaft && c.Role != RoleFollower }

// completeCluster derives values that follow from other keys.
func (c *Config) completeCluster() {
	if c.Clustered() && c.Durability.Mode == "sync" {
		c.Durability.Mode = "quorum" // which is more
	}
}

// validateCluster checks the keys of the group against each other.
func (c *Config) validateCluster() error {
	for i := range c.Peers {
		if err := c.Peers[i].check(); err != nil {
			return fmt.Errorf("peers[%d]: %w", i, err)
		}
		if slices.ContainsFunc(c.Peers[:i], func(p Peer) bool { return p.ID == c.Peers[i].ID }) {
			return fmt.Errorf("peers[%d]: id %s appears twice", i, c.Peers[i].ID)
		}
	}
	if err := c.validateNATS(); err != nil {
		return err
	}
	switch {
	case c.Role == RoleFollower && c.Fanout != FanoutNATS:
		return errors.New("role: a follower needs fanout: nats")
	case c.Role == RoleFollower && c.Demo:
		return errors.New("role: a follower has no demo of its own: start the demo without it")
	case c.Clustered() != (c.Durability.Mode == "quorum") && c.Role != RoleFollower:
		return fmt.Errorf("durability.mode: %q with journal.kind %q: quorum goes with raft, sync and interval with pebble", c.Durability.Mode, c.Journal.Kind)
	case !c.Clustered():
		return nil
	case c.Demo:
		return errors.New("journal.kind: --demo runs on one node: take pebble")
	case c.Fanout == FanoutNATS && c.NATS.Embedded:
		return errors.New("nats.embedded: a group's followers need servers that outlive its nodes: set nats.urls")
	case c.self() == nil:
		return fmt.Errorf("cluster.id: %q is not one of peers", c.Cluster.ID)
	}
	o, err := c.QuorumOptions(nil)
	if err == nil {
		err = o.Validate()
	}
	return err
}

func (p *Peer) check() error {
	for key, text := range map[string]string{"base_url": p.Base, "api_url": p.API, "ws_url": p.WS, "admin_url": p.Admin} {
		u, err := url.Parse(text)
		if err == nil && text != "" && (u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
			err = errors.New("want scheme://host:port")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// self returns this node's entry in peers; nil: there is none.
func (c *Config) self() *Peer { return c.Peer(c.Cluster.ID) }

// Peer returns the peer with this id; nil: there is none.
func (c *Config) Peer(id string) *Peer {
	for i := range c.Peers {
		if c.Peers[i].ID == id {
			return &c.Peers[i]
		}
	}
	return nil
}

// NodeURLs returns the REST URLs of all nodes, to which a standby redirects clients.
func (c *Config) NodeURLs() (all []string) {
	for i := range c.Peers {
		all = append(all, c.Peers[i].Base, c.Peers[i].API)
	}
	return all
}

// QuorumFolder is the folder of the raft node inside the data folder.
const QuorumFolder = "quorum"

// QuorumOptions returns the options of this process's raft node.
func (c *Config) QuorumOptions(log *slog.Logger) (quorum.Options, error) {
	o := quorum.Options{
		ID: c.Cluster.ID, Dir: filepath.Join(c.DataDir, QuorumFolder), Bind: c.Cluster.Bind, Join: c.Cluster.Join,
		Timeout: Millis(c.Cluster.TimeoutMS), KeepSnapshots: c.Journal.KeepSnapshots, State: c.StateOptions(), Logger: log,
		TailEvents: max(quorum.MinTailEvents, 2*c.Engine.EgressSize),
	}
	for i := range c.Peers {
		o.Peers = append(o.Peers, quorum.Peer{ID: c.Peers[i].ID, Address: c.Peers[i].Address})
	}
	if self := c.self(); self != nil {
		o.Advertise = self.Address
		if o.Bind == "" {
			o.Bind = self.Address
		}
	}
	var err error
	if c.Cluster.TLSCertFile != "" || c.Cluster.TLSKeyFile != "" || c.Cluster.TLSCAFile != "" {
		o.TLS, err = mutualTLS(c.Cluster.TLSCertFile, c.Cluster.TLSKeyFile, c.Cluster.TLSCAFile)
	}
	if err != nil {
		err = fmt.Errorf("cluster: %w", err)
	}
	return o, err
}

// mutualTLS returns a configuration in which both ends of a connection present a
// certificate of one authority.
func mutualTLS(certFile, keyFile, caFile string) (*tls.Config, error) {
	if certFile == "" || keyFile == "" || caFile == "" {
		return nil, errors.New("tls_cert_file, tls_key_file, tls_ca_file: set all or none")
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("tls_cert_file, tls_key_file: %w", err)
	}
	authorities, err := readAuthorities(caFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
		RootCAs: authorities, ClientCAs: authorities, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

// readAuthorities reads certificates in PEM.
func readAuthorities(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tls_ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("tls_ca_file: %s holds no certificate in PEM", path)
	}
	return pool, nil
}

func (c *Config) validateNATS() error {
	n := &c.NATS
	switch {
	case c.Fanout == fanoutNone:
		return nil
	case n.Embedded && len(n.URLs) > 0:
		return errors.New("nats.urls and nats.embedded: set one of them")
	case n.Embedded && c.Role == RoleFollower:
		return errors.New("nats.embedded: the server is in the leader's process; a follower needs nats.urls")
	case !n.Embedded && len(n.URLs) == 0:
		return errors.New("nats.urls: fanout: nats needs them, or nats.embedded")
	case n.User != "" && n.CredentialsFile != "":
		return errors.New("nats.user and nats.credentials_file: set one of them")
	case (n.User == "") != (n.PasswordFile == ""):
		return errors.New("nats.user and nats.password_file: set both or none")
	case (n.TLSCertFile == "") != (n.TLSKeyFile == "") || n.TLSCertFile != "" && n.TLSCAFile == "":
		return errors.New("nats: tls_cert_file needs tls_key_file and tls_ca_file")
	}
	o, err := c.FanoutOptions(nil)
	if err != nil {
		return err
	}
	if n.Embedded {
		if err := n.validateServer(); err != nil {
			return err
		}
		o.URLs = []string{"nats://" + n.Listen} // known once it runs
	}
	return o.Validate()
}

// validateServer checks the keys of the embedded server. A client that reaches it may
// publish, and followers would accept that as the leader's frames.
func (n *NATS) validateServer() error {
	host, port, err := net.SplitHostPort(n.Listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	ip := net.ParseIP(host)
	switch {
	case err != nil:
		return fmt.Errorf("nats.listen: %q: want host:port", n.Listen)
	case n.User == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()):
		return fmt.Errorf("nats.listen: %q: on an address that others reach the embedded server needs nats.user and nats.password_file", n.Listen)
	case n.StreamReplicas > 1:
		return errors.New("nats.stream_replicas: the embedded server is alone: 1")
	}
	return nil
}

// FanoutOptions returns the options of the publisher and of followers.
func (c *Config) FanoutOptions(log *slog.Logger) (fanout.Options, error) {
	n := &c.NATS
	o := fanout.Options{
		URLs: n.URLs, Prefix: n.Prefix, StreamBytes: int64(n.StreamMiB) << 20, StreamReplicas: n.StreamReplicas,
		MaxStale: Millis(n.MaxStaleMS), State: c.StateOptions(), Logger: log, Auth: fanout.Auth{User: n.User},
	}
	if n.PasswordFile != "" {
		text, err := os.ReadFile(n.PasswordFile)
		if err != nil {
			return o, fmt.Errorf("nats.password_file: %w", err)
		}
		o.Auth.Password = strings.TrimSpace(string(text))
	}
	if n.CredentialsFile != "" {
		text, err := os.ReadFile(n.CredentialsFile)
		if err != nil {
			return o, fmt.Errorf("nats.credentials_file: %w", err)
		}
		o.Auth.Credentials = text
	}
	var err error
	switch {
	case n.TLSCertFile != "":
		o.TLS, err = mutualTLS(n.TLSCertFile, n.TLSKeyFile, n.TLSCAFile)
	case n.TLSCAFile != "":
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
		o.TLS.RootCAs, err = readAuthorities(n.TLSCAFile)
	}
	if err != nil {
		err = fmt.Errorf("nats: %w", err)
	}
	return o, err
}

// StateOptions returns the options of the matching engine.
func (c *Config) StateOptions() engine.StateOptions {
	return engine.StateOptions{Naive: c.Engine.Book == "naive", MaxOrders: c.Engine.MaxOrders}
}
