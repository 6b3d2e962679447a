package quorum

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/persist"
)

// Limits of Options.
const (
	MaxPeers      = 9 // more would slow each commit down and gain nothing
	MaxNameBytes  = 64
	MinTimeout    = 20 * time.Millisecond
	MaxTimeout    = 30 * time.Second
	MinTailEvents = 1 << 10
	MaxTailEvents = maxTailEvents / 2
)

// Subfolders of Options.Dir.
const (
	logFolder    = "raft" // the log, its high-water mark, and raft's snapshots
	storesFolder = "stores"
)

// Peer is a node of the configuration.
type Peer struct {
	// ID is the node's name for good: a node that has lost its disk comes back under
	// another one, because it has forgotten its votes.
	ID string
	// Address is the host:port of its raft transport.
	Address string
	// REST, WebSocket and FIX are its client addresses, which other nodes publish while
	// it leads.
	REST, WebSocket, FIX string
}

// Options are the options of a Node. The zero value of each field but ID, Dir, Bind and
// Peers means its default.
type Options struct {
	// ID is this node's, one of Peers unless Join is set.
	ID string
	// Dir is the node's own folder; Open creates it.
	Dir string
	// FS is the file system of the log and the stores; nil is the disk. Raft's
	// snapshots are always on the disk.
	FS vfs.FS
	// Bind is the host:port to listen on; Advertise is what peers dial, Bind by
	// default. Port 0 takes a free one, for tests.
	Bind, Advertise string
	// Peers are the voters of a new group, the same on every one of them, with the
	// client addresses of each node.
	Peers []Peer
	// Join makes a node without a log wait to be added instead of bootstrapping a
	// group.
	Join bool
	// TLS authenticates both ends of the transport; Certificates, RootCAs and ClientCAs
	// must be set. Without TLS only loopback addresses are allowed.
	TLS *tls.Config
	// Timeout is how long a leader may be silent before an election: 100 ms by default.
	// Each node waits a random time of up to twice that.
	Timeout time.Duration
	// SnapshotEvery is the number of log entries between snapshots, 50,000 by default.
	// KeepSnapshots is the number of snapshots to keep, 2 by default.
	SnapshotEvery uint64
	KeepSnapshots int
	// TrailingEntries is how many entries stay in the log for followers that are
	// slightly behind: 10,240 by default.
	TrailingEntries uint64
	// TailEvents is how many of the last events a new leader can replay to a gateway
	// whose store is behind: 2^18 by default. It must exceed the engine's egress ring,
	// which is how far gateways may be behind.
	TailEvents int
	// MemTableBytes and SpareLogs are persist.Options'.
	MemTableBytes, SpareLogs int
	// DiskEvery, the limits of free space and DiskChanged are persist.Options'.
	// DiskChanged is called in any role, so a caller that starts an engine on a Term also
	// checks Node.Health.
	DiskEvery                                            time.Duration
	DiskShedPercent, DiskLowPercent, DiskCriticalPercent int
	DiskChanged                                          func(persist.DiskLevel)
	// ReserveBytes is persist.Options'.
	ReserveBytes uint64
	// State configures replicas.
	State engine.StateOptions
	// Logger is slog's default by default.
	Logger *slog.Logger

	// Tests set dial to connect to a peer, or transport to replace the whole transport.
	dial      func(to string, timeout time.Duration) (net.Conn, error)
	transport transport
}

func (o *Options) path(folder string) string {
	if o.FS != nil {
		return o.FS.PathJoin(o.Dir, folder)
	}
	return filepath.Join(o.Dir, folder)
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 100*time.Millisecond)
	o.SnapshotEvery = cmp.Or(o.SnapshotEvery, 50_000)
	o.KeepSnapshots = cmp.Or(o.KeepSnapshots, 2)
	o.TrailingEntries = cmp.Or(o.TrailingEntries, 10_240)
	o.TailEvents = cmp.Or(o.TailEvents, 1<<18)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// Validate returns an error for the first option that is out of range. Zero values are
// in range if they mean a default.
func (o *Options) Validate() error {
	d := o.withDefaults()
	switch {
	case d.ID == "" || len(d.ID) > MaxNameBytes:
		return fmt.Errorf("the node's id has %d bytes: must be 1 to %d", len(d.ID), MaxNameBytes)
	case d.Dir == "":
		return errors.New("the node's directory is missing")
	case d.Timeout < MinTimeout || d.Timeout > MaxTimeout:
		return fmt.Errorf("timeout %v: must be %v to %v", d.Timeout, MinTimeout, MaxTimeout)
	case d.KeepSnapshots < 1:
		return fmt.Errorf("keep_snapshots %d: must be at least 1", d.KeepSnapshots)
	case d.TailEvents < MinTailEvents || d.TailEvents > MaxTailEvents:
		return fmt.Errorf("tail_events %d: must be %d to %d", d.TailEvents, MinTailEvents, MaxTailEvents)
	case len(d.Peers) == 0 && !d.Join || len(d.Peers) > MaxPeers:
		return fmt.Errorf("%d peers: must be 1 to %d", len(d.Peers), MaxPeers)
	case d.TLS != nil && (len(d.TLS.Certificates) == 0 || d.TLS.RootCAs == nil || d.TLS.ClientCAs == nil):
		return errors.New("transport: TLS needs all of Certificates, RootCAs and ClientCAs")
	}
	watch := d.diskWatch()
	if err := errors.Join(watch.Validate(), o.validatePeers()); err != nil {
		return err
	}
	return o.validateAddress("bind", o.Bind)
}

// diskWatch returns the options of the disk watch.
func (o *Options) diskWatch() persist.Options {
	return persist.Options{
		Dir: o.Dir, FS: o.FS, DiskEvery: o.DiskEvery, DiskShedPercent: o.DiskShedPercent, DiskLowPercent: o.DiskLowPercent,
		DiskCriticalPercent: o.DiskCriticalPercent, DiskChanged: o.DiskChanged, ReserveBytes: o.ReserveBytes, Logger: o.Logger,
	}
}

func (o *Options) validatePeers() error {
	ids, addresses := map[string]bool{}, map[string]bool{}
	for _, p := range o.Peers {
		switch {
		case p.ID == "" || len(p.ID) > MaxNameBytes:
			return fmt.Errorf("a peer's id has %d bytes: must be 1 to %d", len(p.ID), MaxNameBytes)
		case ids[p.ID] || addresses[p.Address]:
			return fmt.Errorf("peer %s at %s: named twice", p.ID, p.Address)
		}
		ids[p.ID], addresses[p.Address] = true, true
		if err := o.validateAddress("peer "+p.ID, p.Address); err != nil {
			return err
		}
	}
	if !o.Join && !ids[o.ID] {
		return fmt.Errorf("node %s is not among the peers", o.ID)
	}
	return nil
}

// validateAddress checks that address is host:port, and a loopback host if there is no
// TLS.
func (o *Options) validateAddress(what, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return fmt.Errorf("%s address %q: must be host:port", what, address)
	}
	ip := net.ParseIP(host)
	if o.TLS == nil && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s address %q: TLS is required unless the address is loopback", what, address)
	}
	return nil
}

// peer returns a node with its client addresses if the configuration has it.
func (o *Options) peer(id, address string) Peer {
	for _, p := range o.Peers {
		if p.ID == id {
			return p
		}
	}
	return Peer{ID: id, Address: address}
}
