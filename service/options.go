package service

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"blockdesk/catalog"
	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/session"
	"blockdesk/httpgw"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/service/config"
	"blockdesk/service/program"
	"blockdesk/settle/cosign"
)

// Options of a service.
type Options struct {
	Config  *config.Config
	Log     *slog.Logger
	Program program.Program
	Inputs  *Inputs
	// Storage is that of a leader's term; nil: Open opens the data folder.
	Storage *Storage
	// FS is the file system of the data folder's stores and state files; nil: the disk.
	FS persist.FS
	// Listen binds the addresses; nil: net.Listen.
	Listen func(network, addr string) (net.Listener, error)
	// Clock is the engine's, in Unix nanoseconds; nil: the machine's, kept from jumping.
	Clock func() int64
	// Sessions are FIX sessions that were prepared; nil: the gateway prepares them.
	Sessions *session.Prepared
	// Reconcile starts a service whose stores and journal have diverged: the journal
	// counts.
	Reconcile bool
	// Replaying receives the progress of the replay at the start, in commands; an
	// error ends it. May be nil.
	Replaying func(done, total uint64) error
}

// Inputs are the files that a service reads at its start besides its configuration.
type Inputs struct {
	Participants []participants.Participant
	stamp        FileStamp      // of the participants file that Participants are from
	tls          *tls.Config    // of the FIX address; nil: plain TCP
	shards       *httpgw.Shards // nil: the instruments are not sharded
	signer       cosign.Signer  // of settlement; nil: Open opens it
}

// This file converts configuration to options of other packages.

// Length of the shared secret of gateways.
const (
	minSecretBytes = 32
	maxSecretBytes = 64
)

// rate returns a limit a minute; 0 is the largest possible, which no client
// reaches.
func rate(perMinute, burst int) wire.Rate {
	if perMinute == 0 {
		return wire.Rate{PerMinute: config.MaxPerMinute, Burst: config.MaxBurst}
	}
	return wire.Rate{PerMinute: perMinute, Burst: burst}
}

// window returns a limit in any minute; 0 is the largest possible.
func window(perMinute int) wire.Window {
	if perMinute == 0 {
		return wire.Window{PerMinute: wire.MaxWindow}
	}
	return wire.Window{PerMinute: perMinute}
}

// gatewayShards returns the shards that the REST gateway forwards to; nil if the
// instruments are not sharded. Errors name the key.
func gatewayShards(c *config.Config) (*httpgw.Shards, error) {
	if len(c.Groups) < 2 {
		return nil, nil
	}
	secret, err := readSecret(c.Routing.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("routing.secret_file: %w", err)
	}
	out := &httpgw.Shards{
		Own: c.GroupNumber(), Secret: secret, Timeout: time.Duration(c.Routing.TimeoutMS) * time.Millisecond, MaxOpen: c.Routing.MaxOpen,
	}
	for i := range c.Groups {
		g := &c.Groups[i]
		one := httpgw.Shard{Name: g.Name, Number: market.ShardID(g.Number)}
		for _, symbol := range g.Instruments {
			in, err := c.InstrumentOf(symbol)
			if err != nil {
				return nil, err
			}
			one.Instruments = append(one.Instruments, in)
		}
		for j := range g.Nodes {
			one.Nodes = append(one.Nodes, httpgw.ShardNode{Base: g.Nodes[j].Base, API: g.Nodes[j].API, WS: g.Nodes[j].WS})
		}
		out.All = append(out.All, one)
	}
	return out, nil
}

// readSecret reads a file of hexadecimal digits.
func readSecret(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimSpace(text)
	secret := make([]byte, hex.DecodedLen(len(text)))
	if _, err := hex.Decode(secret, text); err != nil || len(secret) < minSecretBytes || len(secret) > maxSecretBytes {
		return nil, fmt.Errorf("%s: want %d to %d hexadecimal digits", path, 2*minSecretBytes, 2*maxSecretBytes)
	}
	return secret, nil
}

// accountRole returns the role of an observed account; 0 if its word is unknown.
func accountRole(c *config.Observed) catalog.AccountRole {
	for _, r := range []catalog.AccountRole{
		catalog.GuaranteeReserve, catalog.FeeVaultBase, catalog.FeeVaultQuote, catalog.DeskInventory,
	} {
		if c.Role == r.String() {
			return r
		}
	}
	return 0
}
