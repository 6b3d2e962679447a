package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"blockdesk/engine"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/market"
	"blockdesk/mirror"
	"blockdesk/prices"
	"blockdesk/settle/broadcast"
)

// Validate checks every value against the rules of its key, and then the rules of several
// keys. The error begins with the key.
func (c *Config) Validate() error {
	if err := c.checkKeys(); err != nil {
		return err
	}
	for _, rule := range rules {
		if err := rule(c); err != nil {
			return err
		}
	}
	return nil
}

// rules are the rules of several keys, in the order in which they are checked.
var rules = []func(*Config) error{
	(*Config).checkListeners,
	(*Config).checkRings,
	(*Config).checkInstruments,
	(*Config).checkDesk,
	(*Config).checkTokens,
	(*Config).checkPrices,
	(*Config).checkChain,
	(*Config).checkMirror,
	(*Config).checkMirroredMints,
	(*Config).checkMirroredDesk,
	(*Config).checkPeers,
	(*Config).checkFanout,
	(*Config).checkRole,
	(*Config).checkCluster,
	(*Config).checkGroups,
	(*Config).checkPayTo,
}

// checkKeys checks every value by itself, lists for values that appear twice, and then
// the keys that go together.
func (c *Config) checkKeys() (err error) {
	set, seen := map[string]bool{}, map[string]bool{}
	c.Each(func(path, key string, v reflect.Value) {
		k := keysByPath[key]
		if err != nil {
			return
		}
		err = k.check(path, v)
		if twice := fmt.Sprint(key, v); err == nil && k.unique && strings.Contains(key, "[]") {
			if seen[twice] && v.Kind() != reflect.Slice {
				err = fmt.Errorf("%s: %v appears twice", path, v)
			}
			seen[twice] = true
		}
		set[path] = !v.IsZero() && (v.Kind() != reflect.Slice || v.Len() > 0)
	})
	for i := range Keys {
		if err == nil && set[Keys[i].Path] {
			err = c.checkTogether(&Keys[i], set)
		}
	}
	return err
}

// checkTogether checks what a key that is set needs and excludes.
func (c *Config) checkTogether(k *Key, set map[string]bool) error {
	section := k.Path[:strings.LastIndexByte(k.Path, '.')+1]
	if section == "nats." && c.Fanout == fanoutNone || section == "cluster." && !c.Clustered() {
		return nil
	}
	missing := slices.ContainsFunc(k.needs, func(name string) bool { return !set[section+name] })
	switch {
	case missing && len(k.needs) == 1:
		first, second := k.Path, section+k.needs[0]
		return fmt.Errorf("%s and %s: set both or none", min(first, second), max(first, second))
	case missing:
		return fmt.Errorf("%s: needs %s%s", k.Path, section, strings.Join(k.needs, " and "+section))
	case k.not != "" && set[section+k.not]:
		return fmt.Errorf("%s and %s: set one of them", k.Path, section+k.not)
	}
	return nil
}

// checkListeners checks that no two listeners of this process take one port of one
// host. Port 0 takes a free one.
func (c *Config) checkListeners() error {
	type listener struct{ key, address string }
	all := []listener{
		{"listen.base", c.Listen.Base},
		{"listen.api", c.Listen.API},
		{"listen.ws", c.Listen.WS},
		{"listen.fix", c.Listen.FIX},
		{"listen.admin", c.Listen.Admin},
	}
	if c.Fanout == FanoutNATS && c.NATS.Embedded {
		all = append(all, listener{"nats.listen", c.NATS.Listen})
	}
	for i, l := range all {
		host, port, err := net.SplitHostPort(l.address)
		if err != nil || port == "0" {
			continue
		}
		for _, other := range all[:i] {
			otherHost, otherPort, err := net.SplitHostPort(other.address)
			if err == nil && port == otherPort && (host == otherHost || isWildcardHost(host) || isWildcardHost(otherHost)) {
				return fmt.Errorf("%s: %q: %s has the same port at %q", l.key, l.address, other.key, other.address)
			}
		}
	}
	return nil
}

// isWildcardHost reports whether a listener on a host takes the port on all addresses of
// the machine.
func isWildcardHost(host string) bool { return host == "" || host == "::" }

func (c *Config) checkRings() error {
	return engine.Options{IngressSize: c.Engine.IngressSize, EgressSize: c.Engine.EgressSize, MaxBatch: c.Engine.MaxBatch, MaxOrders: c.Engine.MaxOrders}.Validate()
}

func (c *Config) checkInstruments() error {
	instruments, err := c.MarketInstruments()
	if err != nil {
		return err
	}
	_, err = c.AuctionRules(instruments)
	return err
}

// checkDesk checks the desk's settings, which hold whether it is enabled or not.
func (c *Config) checkDesk() error {
	if _, err := c.RFQ.Policy(); err != nil {
		return err
	}
	if _, err := c.DeskPairs(); err != nil {
		return err
	}
	for i, o := range c.Operators {
		same := func(other OperatorToken) bool { return strings.EqualFold(other.TokenSHA256, o.TokenSHA256) }
		if j := slices.IndexFunc(c.Operators, same); j < i {
			return fmt.Errorf("operators[%d].token_sha256: %s has the same token", i, c.Operators[j].Name)
		}
	}
	return nil
}

// checkTokens checks that an instrument has each token.
func (c *Config) checkTokens() error {
	known := map[string]bool{SettlementToken: true}
	for i := range c.Instruments {
		base, quote, _ := strings.Cut(c.Instruments[i].Symbol, "/")
		known[base], known[quote] = true, true
	}
	for i := range c.Tokens {
		if !known[c.Tokens[i].Symbol] {
			return fmt.Errorf("tokens[%d].symbol: no instrument has %q", i, c.Tokens[i].Symbol)
		}
	}
	return nil
}

// checkPrices checks the rules of prices with the desk and the mirror that they belong to.
func (c *Config) checkPrices() error {
	if _, err := c.PriceAssets(); err != nil {
		return err
	}
	for _, asset := range slices.Sorted(maps.Keys(c.Prices)) {
		r := c.Prices[asset]
		if err := c.checkPriceRule(asset, &r); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkPriceRule(asset string, r *PriceRule) error {
	sold := func(p Pair) bool { return BaseOf(p.Symbol) == asset }
	if asset != SolAsset && !slices.ContainsFunc(c.RFQ.Pairs, sold) {
		return fmt.Errorf("prices.%s: not a priced asset: SOL, or the base of one of rfq.pairs", asset)
	}
	if r.Has(prices.Pyth) && !c.Demo && c.Chain.RPCURLs == "" {
		return fmt.Errorf("prices.%s.sources: pyth is read from the chain: set chain.rpc_urls", asset)
	}
	if err := c.checkPricePool(asset, r); err != nil {
		return err
	}
	if r.Has(prices.Operator) || c.Demo {
		return nil
	}
	const refusal = "set, but prices.%s.sources has no operator"
	if asset == SolAsset && c.RFQ.SOLPriceUSD != "" {
		return fmt.Errorf("rfq.sol_price_usd: "+refusal, asset)
	}
	for i := range c.RFQ.Pairs {
		if p := &c.RFQ.Pairs[i]; sold(*p) && p.ReferencePriceUSD != "" {
			return fmt.Errorf("rfq.pairs[%d].reference_price_usd: "+refusal, i, asset)
		}
	}
	return nil
}

// checkPricePool checks the pool of a rule: its quote must be USDC, which counts as a
// dollar.
func (c *Config) checkPricePool(asset string, r *PriceRule) error {
	if !r.Has(prices.Pool) {
		if r.Pool != "" {
			return fmt.Errorf("prices.%s.pool: set, but prices.%s.sources has no pool", asset, asset)
		}
		return nil
	}
	i := slices.IndexFunc(c.Mirror.Pairs, func(p MirrorPair) bool { return p.Symbol == r.Pool })
	base, quote, _ := strings.Cut(r.Pool, "/")
	switch {
	case i < 0 || c.Mirror.Pairs[i].Pool.Layout == "":
		return fmt.Errorf("prices.%s.pool: %q is not one of mirror.pairs with a pool", asset, r.Pool)
	case base != asset || quote != SettlementToken:
		return fmt.Errorf("prices.%s.pool: %q must be %s/%s, because the price is in dollars", asset, r.Pool, asset, SettlementToken)
	case 2*c.Mirror.EveryMS > r.MaxAgeS*1000:
		return fmt.Errorf("prices.%s.max_age_s: %d is less than two readings of the pool: mirror.every_ms is %d", asset, r.MaxAgeS, c.Mirror.EveryMS)
	}
	return nil
}

// checkChain checks the sections chain and settle, used or not.
func (c *Config) checkChain() error {
	if _, err := c.Settle.Budget().PriorityLamports(); err != nil {
		return fmt.Errorf("settle.micro_lamports: %d for each of %d units: more than %d lamports for one transaction",
			c.Settle.MicroLamports, c.Settle.Units, build.MaxPriorityLamports)
	}
	public := solana.Network(c.Chain.Network).Public()
	if nodes := SplitList(c.Chain.RPCURLs); c.Settles() && len(nodes) == 1 && public && !c.Chain.TrustSingleNode {
		return fmt.Errorf("chain.rpc_urls: one node of a public network (%s) could invent payments: "+
			"configure three of independent operators, or set chain.trust_single_node", c.Chain.Network)
	}
	if public && c.Chain.BlockhashSlots != broadcast.BlockhashLife {
		return fmt.Errorf("chain.blockhash_slots: %d, but on a public network (%s) it is %d", c.Chain.BlockhashSlots, c.Chain.Network, broadcast.BlockhashLife)
	}
	return CheckRange("chain.attempt_timeout_ms", c.Chain.AttemptTimeoutMS, 100, c.Chain.TimeoutMS)
}

// checkMirror checks the section mirror, with pairs or without.
func (c *Config) checkMirror() error {
	m := &c.Mirror
	if err := CheckRange("mirror.stale_after_ms", m.StaleAfterMS, m.EveryMS, 24*3_600_000); err != nil {
		return err
	}
	if least := int((mirror.Week + mirror.Day) / mirror.Day); m.ReachDays > 0 && m.ReachDays < least {
		return fmt.Errorf("mirror.reach_days: %d is less than %d, which the statistics of seven days need; 0 means all", m.ReachDays, least)
	}
	if c.Mirrors() && m.RPCURLs == "" && c.Chain.RPCURLs == "" {
		return errors.New("mirror.rpc_urls: empty, and so is chain.rpc_urls: mirrored instruments need a node")
	}
	instruments, err := c.MarketInstruments()
	if err != nil {
		return err
	}
	o, err := c.MirrorOptions(instruments)
	if err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return fmt.Errorf("mirror.pairs: %w", err)
	}
	return nil
}

// checkMirroredMints checks that a token has one mint and one number of decimals, here
// and at the desk, because documents show one. Placeholders do not count.
func (c *Config) checkMirroredMints() error {
	type mint struct {
		text     string
		decimals int
	}
	known := map[string]mint{}
	if text := RealMint(c.RFQ.USDCMint); text != "" {
		known[SettlementToken] = mint{text, market.RailUSDC.Decimals()}
	}
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		base, _, _ := strings.Cut(p.Symbol, "/")
		if text := RealMint(p.BaseMint); text != "" {
			known[base] = mint{text, p.BaseDecimals}
		}
	}
	for i := range c.Mirror.Pairs {
		p := &c.Mirror.Pairs[i]
		base, quote, _ := strings.Cut(p.Symbol, "/")
		for _, side := range []struct {
			key, token string
			mint       mint
		}{
			{"base_mint", base, mint{p.BaseMint, p.BaseDecimals}}, {"quote_mint", quote, mint{p.QuoteMint, p.QuoteDecimals}},
		} {
			if other, ok := known[side.token]; ok && other != side.mint {
				return fmt.Errorf("mirror.pairs[%d].%s: %s differs from %s with %d decimals, which another key has for it (rfq.usdc_mint, rfq.pairs, mirror.pairs)", i, side.key, side.token, other.text, other.decimals)
			}
			known[side.token] = side.mint
		}
	}
	return nil
}

// checkMirroredDesk checks that the desk prices nothing by a mirrored book.
func (c *Config) checkMirroredDesk() error {
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		if p.PriceSource == "book" && c.Instruments[c.index(p.Symbol)].BookSource == market.Mirrored.String() {
			return fmt.Errorf("rfq.pairs[%d].price_source: %s is mirrored, and the desk never prices by a mirrored book: want operator", i, p.Symbol)
		}
	}
	return nil
}

func (c *Config) checkPeers() error {
	for i := range c.Peers {
		if c.Peer(c.Peers[i].ID) != &c.Peers[i] {
			return fmt.Errorf("peers[%d]: id %s appears twice", i, c.Peers[i].ID)
		}
	}
	return nil
}

// checkFanout checks the section nats, where it is used.
func (c *Config) checkFanout() error {
	n := &c.NATS
	switch {
	case c.Fanout == fanoutNone:
		return nil
	case n.Embedded && c.Role == RoleFollower:
		return errors.New("nats.embedded: the server is in the leader's process; a follower needs nats.urls")
	case !n.Embedded && len(n.URLs) == 0:
		return errors.New("nats.urls: empty, but fanout: nats needs nats.urls or nats.embedded")
	}
	o, err := c.FanoutOptions(nil)
	if err != nil {
		return err
	}
	if n.Embedded {
		if err := n.checkServer(); err != nil {
			return err
		}
		o.URLs = []string{"nats://" + n.Listen} // known once it runs
	}
	return o.Validate()
}

// checkServer checks the keys of the embedded server. A client that reaches it may
// publish, and followers would accept that as the leader's frames.
func (n *NATS) checkServer() error {
	host, port, err := net.SplitHostPort(n.Listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err != nil:
		return fmt.Errorf("nats.listen: %q: want host:port", n.Listen)
	case n.User == "" && !IsLoopback(host):
		return fmt.Errorf("nats.listen: %q: on an address that others reach the embedded server needs nats.user and nats.password_file", n.Listen)
	case n.StreamReplicas > 1:
		return fmt.Errorf("nats.stream_replicas: %d: the embedded server is a single server: want 1", n.StreamReplicas)
	}
	return nil
}

func (c *Config) checkRole() error {
	switch {
	case c.NATS.MaxBehindMS < c.NATS.MaxStaleMS:
		return fmt.Errorf("nats.max_behind_ms: %d: want at least nats.max_stale_ms, %d", c.NATS.MaxBehindMS, c.NATS.MaxStaleMS)
	case c.Role == RoleFollower && c.Fanout != FanoutNATS:
		return errors.New("role: a follower needs fanout: nats")
	case c.Role == RoleFollower && c.Demo:
		return errors.New("role: a follower cannot run --demo: want role: all")
	case c.Clustered() != (c.Durability.Mode == "quorum") && c.Role != RoleFollower:
		return fmt.Errorf("durability.mode: %q with journal.kind %q: quorum goes with raft, sync and interval with pebble", c.Durability.Mode, c.Journal.Kind)
	}
	return nil
}

// checkCluster checks the settings of a node of a group.
func (c *Config) checkCluster() error {
	switch {
	case !c.Clustered():
		return nil
	case c.Demo:
		return errors.New("journal.kind: raft: --demo runs on one node: want pebble")
	case c.Fanout == FanoutNATS && c.NATS.Embedded:
		return errors.New("nats.embedded: a group's followers need servers that outlive its nodes: set nats.urls")
	case c.Peer(c.Cluster.ID) == nil:
		return fmt.Errorf("cluster.id: %q is not one of peers", c.Cluster.ID)
	}
	o, err := c.QuorumOptions(nil)
	if err == nil {
		err = o.Validate()
	}
	return err
}

// checkGroups checks that every instrument is in one group, and that no two processes
// have one URL.
func (c *Config) checkGroups() error {
	switch {
	case len(c.Groups) == 0 && c.Routing.Group != "":
		return fmt.Errorf("routing.group: %q: there are no groups", c.Routing.Group)
	case len(c.Groups) == 0:
		return nil
	case c.ownGroup() == nil:
		return fmt.Errorf("routing.group: %q is not one of the groups", c.Routing.Group)
	case len(c.Groups) > 1 && c.Routing.SecretFile == "":
		return errors.New("routing.secret_file: the gateways of several groups need one")
	}
	urls, groupOf := map[string]bool{}, map[string]string{}
	for i := range c.Groups {
		g := &c.Groups[i]
		if len(g.Instruments) == 0 {
			return fmt.Errorf("groups[%d].instruments: at least one", i)
		}
		for j, symbol := range g.Instruments {
			switch {
			case c.index(symbol) < 0:
				return fmt.Errorf("groups[%d].instruments[%d]: %q is not among the instruments", i, j, symbol)
			case groupOf[symbol] != "":
				return fmt.Errorf("groups[%d].instruments[%d]: %s is in group %s too", i, j, symbol, groupOf[symbol])
			}
			groupOf[symbol] = g.Name
		}
		for j, n := range g.Nodes {
			for _, u := range []struct{ key, url string }{{"base_url", n.Base}, {"api_url", n.API}, {"ws_url", n.WS}} {
				if urls[u.url] {
					return fmt.Errorf("groups[%d].nodes[%d].%s: %s appears twice", i, j, u.key, u.url)
				}
				urls[u.url] = true
			}
		}
	}
	for i := range c.Instruments {
		if symbol := c.Instruments[i].Symbol; groupOf[symbol] == "" {
			return fmt.Errorf("groups: instrument %s is in no group", symbol)
		}
	}
	for i := range c.RFQ.Pairs {
		if p := &c.RFQ.Pairs[i]; p.Via != "" && groupOf[p.Via] != groupOf[p.Symbol] {
			return fmt.Errorf("rfq.pairs[%d].via: %s is in group %s, and %s in %s: want the same group, or price_source: operator", i, p.Via, groupOf[p.Via], p.Symbol, groupOf[p.Symbol])
		}
	}
	return nil
}

// checkPayTo checks that no two groups share a wallet, because a payment is found by
// the wallet that it goes to: both groups could count it, each for its own claim.
func (c *Config) checkPayTo() error {
	if !c.Settles() || len(c.Groups) < 2 {
		return nil
	}
	taken := map[string]string{}
	for i := range c.Groups {
		g := &c.Groups[i]
		for rail, text := range g.PayTo.byRail() {
			key := fmt.Sprintf("groups[%d].pay_to.%s", i, rail)
			sells := func(p Pair) bool {
				return slices.Contains(g.Instruments, p.Symbol) && slices.Contains(p.Rails, rail.String())
			}
			if text == "" && slices.ContainsFunc(c.RFQ.Pairs, sells) {
				return fmt.Errorf("%s: empty: group %s sells for %s and needs its own wallet", key, g.Name, rail)
			}
			if other := taken[text]; text != "" && other != "" && other != g.Name {
				return fmt.Errorf("%s: group %s has the same wallet, so a payment could count in both", key, other)
			}
			taken[text] = g.Name
		}
	}
	return nil
}

// CheckSettlement checks that a configuration that settles has real addresses and a
// key. Call it after the demo's values are filled in. A follower settles nothing.
func (c *Config) CheckSettlement() error {
	if c.Role == RoleFollower {
		return nil
	}
	if c.Demo {
		// The demo's keys are public: anyone could take payments to them.
		for _, address := range c.ChainHosts() {
			if !IsLoopback(address) {
				return fmt.Errorf("chain.rpc_urls: --demo settles on a chain of this machine only, because its keys are public: %s is not one", address)
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

// CheckFolders checks that this process can write to its folders, or make them.
func (c *Config) CheckFolders() error {
	if err := checkFolder(c.DataDir); err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	if c.FIX.MessageLogDir == "" {
		return nil
	}
	if err := checkFolder(c.FIX.MessageLogDir); err != nil {
		return fmt.Errorf("fix.message_log_dir: %w", err)
	}
	return nil
}

func checkFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case path == "":
		return errors.New("missing")
	case errors.Is(err, fs.ErrNotExist) && filepath.Dir(path) != path:
		return checkFolder(filepath.Dir(path))
	case err != nil:
		return err
	case !info.IsDir():
		return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	const writeAndEnter = 2 | 1
	if err := syscall.Access(path, writeAndEnter); err != nil {
		return &fs.PathError{Op: "write to", Path: path, Err: err}
	}
	return nil
}
