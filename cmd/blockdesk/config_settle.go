package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle"
	"blockdesk/settle/broadcast"
)

// ChainConfig says which Solana nodes settlement talks to. Without any there is
// no settlement: claims and DvP answer CHAIN_UNAVAILABLE, the rest works.
type ChainConfig struct {
	// RPCURLs are http or https URLs in the order of preference, separated by
	// commas. One may hold a key, so they are never shown: see upstreams.
	RPCURLs          string `yaml:"rpc_urls"`
	TimeoutMS        int    `yaml:"timeout_ms"`         // a call with all its tries
	AttemptTimeoutMS int    `yaml:"attempt_timeout_ms"` // one try
	// SandboxDir is the folder of the local chain's server that --demo and the
	// command sandbox start. Empty: found beside the program or the working
	// folder, or above one of them.
	SandboxDir string `yaml:"sandbox_dir"`
	// BlockhashSlots is how many blocks a blockhash lives. It is 150 on every public
	// cluster; a local chain may let them live longer.
	BlockhashSlots int `yaml:"blockhash_slots"`
}

// SettleConfig says how claims are settled. Units are in the keys' names.
type SettleConfig struct {
	KeyFile         string `yaml:"key_file"`          // the desk's key, in this process
	SignerSocket    string `yaml:"signer_socket"`     // or of a signer process that has it
	Desk            string `yaml:"desk"`              // the key's address; empty: whatever the key's is
	Treasury        string `yaml:"treasury"`          // further wallets of ours, separated by commas
	Units           int    `yaml:"units"`             // compute limit of our transactions
	MicroLamports   int    `yaml:"micro_lamports"`    // price of a compute unit, in 10^-6 lamports
	ResendMS        int    `yaml:"resend_ms"`         // between two sends of the same bytes
	PollMS          int    `yaml:"poll_ms"`           // between two looks at what was sent
	WatchMS         int    `yaml:"watch_ms"`          // between two looks for payments that nobody reports
	ClockToleranceS int    `yaml:"clock_tolerance_s"` // how far the chain's clock may be behind ours
	DustUSDC        string `yaml:"dust_usdc"`         // less is not booked and not kept, unless it is a whole payment
	DustSOL         string `yaml:"dust_sol"`
}

// maxDust is one dollar, and a hundredth of a SOL, in atoms: more is no dust.
func maxDust(rail market.Rail) uint64 {
	if rail == market.RailUSDC {
		return 1_000_000
	}
	return 10_000_000
}

func defaultChain() ChainConfig {
	o := rpc.DefaultOptions()
	return ChainConfig{
		TimeoutMS: int(o.Timeout.Milliseconds()), AttemptTimeoutMS: int(o.AttemptTimeout.Milliseconds()),
		BlockhashSlots: broadcast.BlockhashLife,
	}
}

func defaultSettle() SettleConfig {
	return SettleConfig{
		Units: 200_000, MicroLamports: 5_000, ResendMS: 2_000, PollMS: 400, WatchMS: 5_000, ClockToleranceS: 300,
		DustUSDC: "0.01", DustSOL: "0.0001",
	}
}

// settles reports whether there is a chain to settle on.
func (c *Config) settles() bool { return c.RFQ.Enabled && c.Chain.RPCURLs != "" }

// validateSettle checks the settings of the chain and of settlement, which hold
// whether they are used or not.
func (c *Config) validateSettle() error {
	if err := between("chain.attempt_timeout_ms", c.Chain.AttemptTimeoutMS, 100, c.Chain.TimeoutMS); err != nil {
		return err
	}
	if _, err := c.Settle.budget().PriorityLamports(); err != nil {
		return fmt.Errorf("settle.micro_lamports: %d for each of %d units: more than %d lamports for one transaction",
			c.Settle.MicroLamports, c.Settle.Units, build.MaxPriorityLamports)
	}
	if c.Settle.KeyFile != "" && c.Settle.SignerSocket != "" {
		return errors.New("settle.key_file, settle.signer_socket: the desk's key is in one of them, not in both")
	}
	if c.Settle.Desk != "" {
		if _, err := parseAddress(c.Settle.Desk); err != nil {
			return fmt.Errorf("settle.desk: %w", err)
		}
	}
	if _, err := c.Settle.treasury(); err != nil {
		return err
	}
	if _, err := c.Settle.dust(); err != nil {
		return err
	}
	_, err := c.Chain.upstreams()
	return err
}

// checkSettlement holds a configuration that settles to what that needs. It
// comes after fillDemo.
func (c *Config) checkSettlement() error {
	if c.Demo {
		// Whoever knows the demo's keys could take what is paid to them.
		for _, address := range c.chainHosts() {
			if !isLoopback(address) {
				return fmt.Errorf("chain.rpc_urls: --demo settles on a chain of this machine only, %s is none: its keys are known", address)
			}
		}
	}
	if !c.settles() {
		return nil
	}
	if keys := c.placeholders(); len(keys) > 0 {
		return fmt.Errorf("%s: a placeholder: chain.rpc_urls is set, and no chain has this address", keys[0])
	}
	if c.Settle.KeyFile == "" && c.Settle.SignerSocket == "" {
		return errors.New("settle.key_file: chain.rpc_urls is set, so the desk needs its key, or settle.signer_socket")
	}
	return nil
}

func (s *SettleConfig) budget() build.Budget {
	return build.Budget{Units: uint32(s.Units), MicroLamports: uint64(s.MicroLamports)}
}

// treasury returns the further wallets of ours. Errors name the key.
func (s *SettleConfig) treasury() ([]market.Address, error) {
	var out []market.Address
	for _, text := range splitList(s.Treasury) {
		a, err := parseAddress(text)
		if err != nil {
			return nil, fmt.Errorf("settle.treasury: %w", err)
		}
		if slices.Contains(out, a) {
			return nil, fmt.Errorf("settle.treasury: %s appears twice", text)
		}
		out = append(out, a)
	}
	return out, between("settle.treasury", len(out), 0, settle.MaxTreasury)
}

// dust returns what is too little to be looked at, in atoms by rail. Errors name
// the key.
func (s *SettleConfig) dust() (out [market.RailCount]market.Amount, err error) {
	for _, x := range []struct {
		rail      market.Rail
		key, text string
	}{
		{market.RailUSDC, "settle.dust_usdc", s.DustUSDC},
		{market.RailSOL, "settle.dust_sol", s.DustSOL},
	} {
		most, places := maxDust(x.rail), x.rail.Decimals()
		atoms, err := market.ParseDecimal([]byte(x.text), places)
		if err == nil && atoms > most {
			err = market.ErrOverflow
		}
		if err != nil {
			return out, fmt.Errorf("%s: %q: a decimal from 0 to %s, of %d places at most: %w",
				x.key, x.text, market.AppendDecimal(nil, most, places), places, err)
		}
		out[x.rail] = market.Amount(atoms)
	}
	return out, nil
}

// upstreams returns the nodes, each named by its host: a URL may hold a key in
// its path, its query or its user, so no error and no log shows one.
func (c *ChainConfig) upstreams() ([]rpc.Upstream, error) {
	return upstreams("chain.rpc_urls", c.RPCURLs)
}

func upstreams(key, urls string) ([]rpc.Upstream, error) {
	list := splitList(urls)
	if err := between(key, len(list), 0, rpc.MaxUpstreams); err != nil {
		return nil, err
	}
	var out []rpc.Upstream
	named := map[string]int{}
	for i, text := range list {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("%s: number %d is not an http or https URL", key, i+1)
		}
		name := u.Host
		if named[u.Host]++; named[u.Host] > 1 {
			name = fmt.Sprintf("%s#%d", u.Host, named[u.Host])
		}
		out = append(out, rpc.Upstream{Name: name, URL: text})
	}
	return out, nil
}

// chainHosts returns the nodes' host and port.
func (c *Config) chainHosts() (out []string) {
	for _, text := range splitList(c.Chain.RPCURLs) {
		if u, err := url.Parse(text); err == nil {
			out = append(out, u.Host)
		}
	}
	return out
}

func (c *ChainConfig) options() (rpc.Options, error) {
	list, err := c.upstreams()
	return rpc.Options{
		Upstreams: list, Timeout: millis(c.TimeoutMS), AttemptTimeout: millis(c.AttemptTimeoutMS),
	}, err
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// splitList returns the parts of a comma-separated text, without spaces around
// them and without empty ones.
func splitList(text string) (out []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// isLoopback reports whether a host, with or without a port, is this machine by
// its loopback address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
