package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"blockdesk/market"
	"blockdesk/persist/fanout"
	"blockdesk/persist/quorum"
)

// Clustered reports whether this process is a node of a raft group.
func (c *Config) Clustered() bool { return c.Journal.Kind == journalRaft && c.Role != RoleFollower }

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
		DiskShedPercent: c.Journal.DiskShedPercent, DiskLowPercent: c.Journal.DiskLowPercent,
		DiskCriticalPercent: c.Journal.DiskCriticalPercent, ReserveBytes: uint64(c.Journal.DiskReserveMiB) << 20,
		TailEvents: max(quorum.MinTailEvents, 2*c.Engine.EgressSize),
	}
	for i := range c.Peers {
		o.Peers = append(o.Peers, quorum.Peer{ID: c.Peers[i].ID, Address: c.Peers[i].Address})
	}
	if self := c.Peer(c.Cluster.ID); self != nil {
		o.Advertise, o.Bind = self.Address, cmp.Or(o.Bind, self.Address)
	}
	var err error
	if c.Cluster.TLSCertFile != "" {
		o.TLS, err = mutualTLS("cluster.", c.Cluster.TLSCertFile, c.Cluster.TLSKeyFile, c.Cluster.TLSCAFile)
	}
	return o, err
}

// mutualTLS returns a configuration in which both ends of a connection present a
// certificate of one authority. Errors name the keys, which begin with prefix.
func mutualTLS(prefix, certFile, keyFile, caFile string) (*tls.Config, error) {
	config, err := serverTLS(prefix, certFile, keyFile, prefix+"tls_ca_file", caFile)
	if err == nil {
		config.MinVersion, config.RootCAs = tls.VersionTLS13, config.ClientCAs
	}
	return config, err
}

// ServerTLS returns the TLS configuration of the FIX address; nil means plain TCP. It
// reads the files once. With an authority for clients the handshake refuses a client
// without a certificate of it; the logon still needs a password or a signature.
func (c *FIX) ServerTLS() (*tls.Config, error) {
	if c.TLSCertFile == "" {
		return nil, nil
	}
	return serverTLS("fix.", c.TLSCertFile, c.TLSKeyFile, "fix.tls_client_ca_file", c.TLSClientCAFile)
}

func serverTLS(prefix, certFile, keyFile, authoritiesKey, authoritiesFile string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("%stls_cert_file, %stls_key_file: %w", prefix, prefix, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if authoritiesFile != "" {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.ClientCAs, err = readAuthorities(authoritiesKey, authoritiesFile)
	}
	return config, err
}

// readAuthorities reads certificates in PEM. Errors name the key.
func readAuthorities(key, path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %s holds no certificate in PEM", key, path)
	}
	return pool, nil
}

// FanoutOptions returns the options of the publisher and of followers.
func (c *Config) FanoutOptions(log *slog.Logger) (fanout.Options, error) {
	n := &c.NATS
	o := fanout.Options{
		URLs: n.URLs, Prefix: n.Prefix, StreamBytes: int64(n.StreamMiB) << 20, StreamReplicas: n.StreamReplicas,
		MaxStale: Millis(n.MaxStaleMS), MaxBehind: Millis(n.MaxBehindMS), State: c.StateOptions(), Logger: log, Auth: fanout.Auth{User: n.User},
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
		o.TLS, err = mutualTLS("nats.", n.TLSCertFile, n.TLSKeyFile, n.TLSCAFile)
	case n.TLSCAFile != "":
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
		o.TLS.RootCAs, err = readAuthorities("nats.tls_ca_file", n.TLSCAFile)
	}
	return o, err
}

// ownGroup returns the group of this process; nil if the instruments are not split.
func (c *Config) ownGroup() *Group {
	i := slices.IndexFunc(c.Groups, func(g Group) bool { return g.Name == c.Routing.Group })
	if i < 0 {
		return nil
	}
	return &c.Groups[i]
}

// GroupNumber returns the number of our group, 0 if the instruments are not split.
func (c *Config) GroupNumber() market.ShardID {
	if g := c.ownGroup(); g != nil {
		return market.ShardID(g.Number)
	}
	return 0
}

// SelectGroup returns the configuration of our group: its instruments in the order that
// the group lists them, their pairs and tokens, and its wallets. The configuration must
// be valid and stays as it is.
func (c *Config) SelectGroup() Config {
	own := *c
	g := c.ownGroup()
	if g == nil {
		return own
	}
	own.allInstruments, own.Instruments = c.Instruments, make([]Instrument, 0, len(g.Instruments))
	tokens := map[string]bool{SettlementToken: true}
	for _, symbol := range g.Instruments {
		own.Instruments = append(own.Instruments, c.Instruments[c.index(symbol)])
		base, quote, _ := strings.Cut(symbol, "/")
		tokens[base], tokens[quote] = true, true
	}
	own.RFQ.Pairs = keep(c.RFQ.Pairs, func(p *Pair) bool { return own.index(p.Symbol) >= 0 })
	own.Mirror.Pairs = keep(c.Mirror.Pairs, func(p *MirrorPair) bool { return own.index(p.Symbol) >= 0 })
	own.Tokens = keep(c.Tokens, func(t *Token) bool { return tokens[t.Symbol] })
	if g.PayTo != (PayTo{}) {
		own.RFQ.PayTo = g.PayTo
	}
	return own
}

// InstrumentOf returns an instrument of any group, without an id.
func (c *Config) InstrumentOf(symbol string) (market.Instrument, error) {
	for i := range c.allInstruments {
		if c.allInstruments[i].Symbol == symbol {
			return c.allInstruments[i].ToMarket(0)
		}
	}
	return market.Instrument{}, fmt.Errorf("groups: %s is not among the instruments", symbol)
}

// keep returns the wanted items in a new list.
func keep[T any](list []T, wanted func(*T) bool) []T {
	out := make([]T, 0, len(list))
	for i := range list {
		if wanted(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// OtherShards returns, by symbol, the addresses of the groups that serve the other
// instruments: those of their first node, which redirects to the leader.
func (c *Config) OtherShards() map[string]*market.Shard {
	shards := map[string]*market.Shard{}
	for i := range c.Groups {
		g := &c.Groups[i]
		if g.Name == c.Routing.Group {
			continue
		}
		n := &g.Nodes[0]
		at := &market.Shard{Name: g.Name, Base: n.Base, API: n.API, WS: n.WS, FIX: n.FIX}
		for _, symbol := range g.Instruments {
			shards[symbol] = at
		}
	}
	return shards
}
