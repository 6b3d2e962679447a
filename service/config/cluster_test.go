package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// groupFile is a configuration of one node of a group, with more keys.
func groupFile(id string, more ...string) string {
	text := "journal: raft\ncluster: {id: " + id + "}\npeers:\n"
	for i, peer := range []string{"a", "b", "c"} {
		text += fmt.Sprintf("  - {id: %s, address: '127.0.0.1:970%d', base_url: 'http://127.0.0.1:808%d'}\n", peer, i, i)
	}
	return text + strings.Join(more, "\n")
}

// Related keys of a group's configuration are checked together, and the error
// names the key.
func TestClusterConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		sets []string
		want string // "" = it is taken
	}{
		"a node":                     {file: groupFile("a")},
		"the long form":              {file: strings.Replace(groupFile("a"), "journal: raft", "journal: {kind: raft, keep_snapshots: 2}", 1)},
		"by a flag":                  {file: strings.Replace(groupFile("a"), "journal: raft", "", 1), sets: []string{"journal=raft"}},
		"unknown journal":            {file: "journal: paper", want: "journal.kind"},
		"unknown key of the journal": {file: "journal: {kin: raft}", want: "kin"},
		"of no peer":                 {file: groupFile("d"), want: "cluster.id"},
		"a peer twice":               {file: groupFile("a", "  - {id: a, address: '127.0.0.1:1'}"), want: "peers[3]: id a"},
		"no address":                 {file: groupFile("a", "  - {id: d}"), want: "d"},
		"a public address in the clear": {
			file: strings.ReplaceAll(groupFile("a"), "address: '127.0.0.1", "address: '192.0.2.1"), want: "TLS",
		},
		"half a TLS":                {file: groupFile("a"), sets: []string{"cluster.tls_cert_file=a.pem"}, want: "tls_ca_file"},
		"a URL with a query":        {file: strings.Replace(groupFile("a"), ":8080'", ":8080?x=1'", 1), want: "base_url"},
		"interval":                  {file: groupFile("a"), sets: []string{"durability.mode=interval"}, want: "durability.mode"},
		"quorum of one":             {sets: []string{"durability.mode=quorum"}, want: "durability.mode"},
		"a demo":                    {file: groupFile("a"), sets: []string{"demo=true"}, want: "--demo"},
		"followers, no servers":     {sets: []string{"fanout=nats"}, want: "nats.urls"},
		"an embedded server":        {sets: []string{"fanout=nats", "nats.embedded=true"}},
		"embedded, for others":      {sets: []string{"fanout=nats", "nats.embedded=true", "nats.listen=0.0.0.0:4222"}, want: "nats.user"},
		"embedded, no port":         {sets: []string{"fanout=nats", "nats.embedded=true", "nats.listen=127.0.0.1"}, want: "nats.listen"},
		"behind, not stale":         {sets: []string{"nats.max_behind_ms=1999"}, want: "nats.max_behind_ms"},
		"embedded, many":            {sets: []string{"fanout=nats", "nats.embedded=true", "nats.stream_replicas=3"}, want: "nats.stream_replicas"},
		"embedded, a tiny stream":   {sets: []string{"fanout=nats", "nats.embedded=true", "nats.stream_mib=1"}, want: "stream"},
		"embedded in a group":       {file: groupFile("a"), sets: []string{"fanout=nats", "nats.embedded=true"}, want: "nats.embedded"},
		"a follower of nothing":     {sets: []string{"role=follower"}, want: "fanout: nats"},
		"a follower with a server":  {sets: []string{"role=follower", "fanout=nats", "nats.embedded=true"}, want: "nats.embedded"},
		"a follower":                {file: "nats: {urls: ['nats://127.0.0.1:4222']}", sets: []string{"role=follower", "fanout=nats"}},
		"a follower of a group":     {file: groupFile("", "nats: {urls: ['nats://127.0.0.1:4222']}"), sets: []string{"role=follower", "fanout=nats"}},
		"a password without a user": {sets: []string{"fanout=nats", "nats.embedded=true", "nats.password_file=p"}, want: "nats.user"},
		"no password there":         {sets: []string{"fanout=nats", "nats.embedded=true", "nats.user=u", "nats.password_file=none"}, want: "nats.password_file"},
		"unknown role":              {sets: []string{"role=boss"}, want: "role"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "c.yaml")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, _, err := Load(path, nil, c.sets)
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Fatalf("the error does not name %q: %v", c.want, err)
			case err == nil && cfg.Clustered() != (cfg.Durability.Mode == "quorum"):
				t.Fatalf("a journal %q with durability %q", cfg.Journal.Kind, cfg.Durability.Mode)
			case err == nil && (cfg.Journal.SnapshotEvery == 0 || cfg.Journal.KeepSnapshots == 0):
				t.Fatalf("the short form has lost the defaults: %+v", cfg.Journal)
			}
		})
	}
}

// The environment has the short form as well.
func TestClusterFromTheEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(groupFile("b"), "journal: raft", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := Load(path, []string{"BLOCKDESK_JOURNAL=raft", "BLOCKDESK_CLUSTER_ID=c"}, nil)
	if err != nil || !cfg.Clustered() || cfg.Peer(cfg.Cluster.ID).ID != "c" {
		t.Fatalf("%+v, %v", cfg.Cluster, err)
	}
}
