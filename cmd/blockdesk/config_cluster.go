package main

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

	"blockdesk/httpgw"
	"blockdesk/persist/fanout"
	"blockdesk/persist/quorum"
)

// Words of the configuration.
const (
	roleAll      = "all"
	roleNode     = "node"
	roleFollower = "follower"

	journalPebble = "pebble"
	journalRaft   = "raft"

	fanoutNone = "none"
	fanoutNATS = "nats"
)

// ClusterConfig says which node of its group a process is, and how the nodes
// speak to each other.
type ClusterConfig struct {
	ID          string `yaml:"id"`         // one of peers
	Bind        string `yaml:"bind"`       // where the other nodes reach this one; empty: its address in peers
	Join        bool   `yaml:"join"`       // wait to be added to a group that exists
	TimeoutMS   int    `yaml:"timeout_ms"` // how long a leader may be silent
	TLSCertFile string `yaml:"tls_cert_file"`
	TLSKeyFile  string `yaml:"tls_key_file"`
	TLSCAFile   string `yaml:"tls_ca_file"`
}

// PeerConfig is one node of the group, and where its clients find it.
type PeerConfig struct {
	ID      string `yaml:"id"`
	Address string `yaml:"address"` // host:port, for the other nodes
	Base    string `yaml:"base_url"`
	API     string `yaml:"api_url"`
	WS      string `yaml:"ws_url"`
	FIX     string `yaml:"fix"` // host:port
	Admin   string `yaml:"admin_url"`
}

// NATSConfig is how durable frames get to followers.
type NATSConfig struct {
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

func defaultCluster() ClusterConfig { return ClusterConfig{TimeoutMS: 100} }

func defaultNATS() NATSConfig {
	return NATSConfig{URLs: []string{}, Listen: "127.0.0.1:4222", Prefix: "blockdesk", StreamMiB: 1024, StreamReplicas: 1, MaxStaleMS: 2000}
}

// UnmarshalYAML takes `journal: raft` for `journal: {kind: raft}`.
func (c *JournalConfig) UnmarshalYAML(decode func(any) error) error {
	if kind := ""; decode(&kind) == nil {
		c.Kind = kind
		return nil
	}
	type keys JournalConfig
	return decode((*keys)(c))
}

// clustered reports whether this process is a node of a group.
func (c *Config) clustered() bool { return c.Journal.Kind == journalRaft && c.Role != roleFollower }

// completeCluster fills in what follows from other keys.
func (c *Config) completeCluster() {
	if c.clustered() && c.Durability.Mode == "sync" {
		c.Durability.Mode = "quorum" // which is more
	}
}

// validateCluster holds what belongs together.
func (c *Config) validateCluster() error {
	for i := range c.Peers {
		if err := c.Peers[i].validate(); err != nil {
			return fmt.Errorf("peers[%d]: %w", i, err)
		}
		if slices.ContainsFunc(c.Peers[:i], func(p PeerConfig) bool { return p.ID == c.Peers[i].ID }) {
			return fmt.Errorf("peers[%d]: id %s appears twice", i, c.Peers[i].ID)
		}
	}
	if err := c.validateNATS(); err != nil {
		return err
	}
	switch {
	case c.Role == roleFollower && c.Fanout != fanoutNATS:
		return errors.New("role: a follower needs fanout: nats")
	case c.Role == roleFollower && c.Demo:
		return errors.New("role: a follower has no demo of its own: start the demo without it")
	case c.clustered() != (c.Durability.Mode == "quorum") && c.Role != roleFollower:
		return fmt.Errorf("durability.mode: %q with journal.kind %q: quorum goes with raft, sync and interval with pebble", c.Durability.Mode, c.Journal.Kind)
	case !c.clustered():
		return nil
	case c.Demo:
		return errors.New("journal.kind: --demo runs on one node: take pebble")
	case c.Fanout == fanoutNATS && c.NATS.Embedded:
		return errors.New("nats.embedded: a group's followers need servers that outlive its nodes: set nats.urls")
	case c.self() == nil:
		return fmt.Errorf("cluster.id: %q is not one of peers", c.Cluster.ID)
	}
	o, err := c.quorumOptions(nil)
	if err == nil {
		err = o.Validate()
	}
	return err
}

func (p *PeerConfig) validate() error {
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

// self is this node among the peers.
func (c *Config) self() *PeerConfig { return c.peer(c.Cluster.ID) }

// peer returns the peer of an id; nil: there is none.
func (c *Config) peer(id string) *PeerConfig {
	for i := range c.Peers {
		if c.Peers[i].ID == id {
			return &c.Peers[i]
		}
	}
	return nil
}

// leader is where the clients of a peer find it; zero where it is not known.
func (c *Config) leader(id string) httpgw.Leader {
	p := c.peer(id)
	if p == nil {
		return httpgw.Leader{ID: id}
	}
	return httpgw.Leader{ID: p.ID, Base: p.Base, API: p.API, WS: p.WS, FIX: p.FIX}
}

// nodeURLs are where clients are sent that ask a node which does not lead.
func (c *Config) nodeURLs() (all []string) {
	for i := range c.Peers {
		all = append(all, c.Peers[i].Base, c.Peers[i].API)
	}
	return all
}

// quorumFolder is the node's part of the data folder.
const quorumFolder = "quorum"

// quorumOptions are those of this process's node.
func (c *Config) quorumOptions(log *slog.Logger) (quorum.Options, error) {
	o := quorum.Options{
		ID: c.Cluster.ID, Dir: filepath.Join(c.DataDir, quorumFolder), Bind: c.Cluster.Bind, Join: c.Cluster.Join,
		Timeout: millis(c.Cluster.TimeoutMS), KeepSnapshots: c.Journal.KeepSnapshots, State: c.stateOptions(), Logger: log,
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

// mutualTLS has both ends of a connection show a certificate of one authority.
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
	case n.Embedded && c.Role == roleFollower:
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
	o, err := c.fanoutOptions(nil)
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

// validateServer holds what the embedded server cannot do. Whoever reaches it may
// publish: followers would take that for the leader's word.
func (n *NATSConfig) validateServer() error {
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

// fanoutOptions are those of publisher and followers.
func (c *Config) fanoutOptions(log *slog.Logger) (fanout.Options, error) {
	n := &c.NATS
	o := fanout.Options{
		URLs: n.URLs, Prefix: n.Prefix, StreamBytes: int64(n.StreamMiB) << 20, StreamReplicas: n.StreamReplicas,
		MaxStale: millis(n.MaxStaleMS), State: c.stateOptions(), Logger: log, Auth: fanout.Auth{User: n.User},
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
