package service

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"time"

	"blockdesk/catalog"
	"blockdesk/feed/archive"
	"blockdesk/fixgw/messagelog"
	"blockdesk/httpgw"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
	"blockdesk/service/config"
)

// This file makes the options of other packages from the configuration.

// A secret is read from a file of its hexadecimal digits.
const (
	minSecretBytes = 32
	maxSecretBytes = 64
)

func archiveOptions(c config.History) archive.Options {
	const day = 24 * time.Hour
	return archive.Options{KeepTrades: time.Duration(c.TradesDays) * day, KeepMinutes: time.Duration(c.MinutesDays) * day}
}

// rate is a limit of so many a minute; 0 is the largest that there is, which
// nobody reaches.
func rate(perMinute, burst int) wire.Rate {
	if perMinute == 0 {
		return wire.Rate{PerMinute: config.MaxPerMinute, Burst: config.MaxBurst}
	}
	return wire.Rate{PerMinute: perMinute, Burst: burst}
}

// window is a limit of so many in any minute; 0 is the largest that there is.
func window(perMinute int) wire.Window {
	if perMinute == 0 {
		return wire.Window{PerMinute: wire.MaxWindow}
	}
	return wire.Window{PerMinute: perMinute}
}

// gatewayGroups is what the REST gateway routes by; nil where there is nobody to route
// to. Errors name the key.
func gatewayGroups(c *config.Config) (*httpgw.Shards, error) {
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

// accountRole returns what the account is for; 0 where the word is none.
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

// openMessageLog opens the message log, nil if none is configured.
func openMessageLog(c *config.FIX, logger *slog.Logger) (*messagelog.Log, error) {
	if c.MessageLogDir == "" {
		return nil, nil
	}
	return messagelog.Open(messagelog.Options{
		Dir: c.MessageLogDir, FileBytes: int64(c.MessageLogFileMiB) << 20, KeepFiles: c.MessageLogFiles, Logger: logger,
	})
}
