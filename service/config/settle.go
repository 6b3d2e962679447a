package config

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

// Chain names the Solana nodes of settlement. Without any there is no settlement:
// claims and DvP answer CHAIN_UNAVAILABLE, the rest works.
type Chain struct {
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

// Settle configures the settlement of claims. Units are in the keys' names.
type Settle struct {
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

// maxDust returns the largest dust limit in atoms: one dollar, or 0.01 SOL.
func maxDust(rail market.Rail) uint64 {
	if rail == market.RailUSDC {
		return 1_000_000
	}
	return 10_000_000
}

func defaultChain() Chain {
	o := rpc.DefaultOptions()
	return Chain{
		TimeoutMS: int(o.Timeout.Milliseconds()), AttemptTimeoutMS: int(o.AttemptTimeout.Milliseconds()),
		BlockhashSlots: broadcast.BlockhashLife,
	}
}

func defaultSettle() Settle {
	return Settle{
		Units: 200_000, MicroLamports: 5_000, ResendMS: 2_000, PollMS: 400, WatchMS: 5_000, ClockToleranceS: 300,
		DustUSDC: "0.01", DustSOL: "0.0001",
	}
}

// Settles reports whether the desk settles claims on a chain.
func (c *Config) Settles() bool { return c.RFQ.Enabled && c.Chain.RPCURLs != "" }

// validateSettle checks the sections chain and settle, used or not.
func (c *Config) validateSettle() error {
	if err := Between("chain.attempt_timeout_ms", c.Chain.AttemptTimeoutMS, 100, c.Chain.TimeoutMS); err != nil {
		return err
	}
	if _, err := c.Settle.Budget().PriorityLamports(); err != nil {
		return fmt.Errorf("settle.micro_lamports: %d for each of %d units: more than %d lamports for one transaction",
			c.Settle.MicroLamports, c.Settle.Units, build.MaxPriorityLamports)
	}
	if c.Settle.KeyFile != "" && c.Settle.SignerSocket != "" {
		return errors.New("settle.key_file, settle.signer_socket: the desk's key is in one of them, not in both")
	}
	if c.Settle.Desk != "" {
		if _, err := ParseAddress(c.Settle.Desk); err != nil {
			return fmt.Errorf("settle.desk: %w", err)
		}
	}
	if _, err := c.Settle.TreasuryWallets(); err != nil {
		return err
	}
	if _, err := c.Settle.DustByRail(); err != nil {
		return err
	}
	_, err := c.Chain.upstreams()
	return err
}

// CheckSettlement checks that a configuration that settles has real addresses and a
// key. Call it after the demo's values are filled in.
func (c *Config) CheckSettlement() error {
	if c.Demo {
		// Whoever knows the demo's keys could take what is paid to them.
		for _, address := range c.ChainHosts() {
			if !IsLoopback(address) {
				return fmt.Errorf("chain.rpc_urls: --demo settles on a chain of this machine only, %s is none: its keys are known", address)
			}
		}
	}
	if !c.Settles() {
		return nil
	}
	if keys := c.Placeholders(); len(keys) > 0 {
		return fmt.Errorf("%s: a placeholder: chain.rpc_urls is set, and no chain has this address", keys[0])
	}
	if c.Settle.KeyFile == "" && c.Settle.SignerSocket == "" {
		return errors.New("settle.key_file: chain.rpc_urls is set, so the desk needs its key, or settle.signer_socket")
	}
	return nil
}

// Budget returns the compute limit and price of our transactions.
func (s *Settle) Budget() build.Budget {
	return build.Budget{Units: uint32(s.Units), MicroLamports: uint64(s.MicroLamports)}
}

// TreasuryWallets parses settle.treasury. Errors name the key.
func (s *Settle) TreasuryWallets() ([]market.Address, error) {
	var out []market.Address
	for _, text := range SplitList(s.Treasury) {
		a, err := ParseAddress(text)
		if err != nil {
			return nil, fmt.Errorf("settle.treasury: %w", err)
		}
		if slices.Contains(out, a) {
			return nil, fmt.Errorf("settle.treasury: %s appears twice", text)
		}
		out = append(out, a)
	}
	return out, Between("settle.treasury", len(out), 0, settle.MaxTreasury)
}

// DustByRail returns the dust limits in atoms. Errors name the key.
func (s *Settle) DustByRail() (out [market.RailCount]market.Amount, err error) {
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

// upstreams returns the nodes, each named by its host, because a URL may hold a secret
// in its path, query or user, and no error and no log may show it.
func (c *Chain) upstreams() ([]rpc.Upstream, error) {
	return upstreams("chain.rpc_urls", c.RPCURLs)
}

func upstreams(key, urls string) ([]rpc.Upstream, error) {
	list := SplitList(urls)
	if err := Between(key, len(list), 0, rpc.MaxUpstreams); err != nil {
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

// ChainHosts returns the nodes' host and port.
func (c *Config) ChainHosts() (out []string) {
	for _, text := range SplitList(c.Chain.RPCURLs) {
		if u, err := url.Parse(text); err == nil {
			out = append(out, u.Host)
		}
	}
	return out
}

// RPCOptions returns the options of the client of these nodes.
func (c *Chain) RPCOptions() (rpc.Options, error) {
	list, err := c.upstreams()
	return rpc.Options{
		Upstreams: list, Timeout: Millis(c.TimeoutMS), AttemptTimeout: Millis(c.AttemptTimeoutMS),
	}, err
}

// Seconds converts a number of seconds.
func Seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// Millis converts a number of milliseconds.
func Millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// SplitList returns the non-empty parts of comma-separated text, without spaces around
// them.
func SplitList(text string) (out []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// IsLoopback reports whether a host, with or without a port, is a loopback address.
func IsLoopback(address string) bool {
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
