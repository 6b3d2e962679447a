package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"blockdesk/market"
)

const (
	maxGroupNodes = 9  // processes of one group
	maxGroupName  = 32 // bytes
)

// Group is a set of processes with an engine and a journal of their own, and the
// instruments that they serve. All processes of all groups have the same list.
type Group struct {
	Name string `yaml:"name"`
	// Number is in the ids of tickets, quotes and claims that the group makes, so
	// it never changes.
	Number      int      `yaml:"number"`
	Instruments []string `yaml:"instruments"` // symbols; more may be added at the end
	// PayTo takes the place of rfq.pay_to: one payment must not pay in two groups.
	PayTo PayTo       `yaml:"pay_to"`
	Nodes []GroupNode `yaml:"nodes"`
}

// GroupNode holds the addresses of one process of a group, for other groups and for
// clients.
type GroupNode struct {
	Base string `yaml:"base_url"`
	API  string `yaml:"api_url"`
	WS   string `yaml:"ws_url"`
	FIX  string `yaml:"fix"` // host:port
}

// Routing names the group of this process and limits its requests to other groups.
type Routing struct {
	Group      string `yaml:"group"`       // empty: the instruments are not split
	SecretFile string `yaml:"secret_file"` // what the gateways of all groups sign with
	TimeoutMS  int    `yaml:"timeout_ms"`
	MaxOpen    int    `yaml:"max_open"` // requests under way to one group
}

func defaultRouting() Routing { return Routing{TimeoutMS: 8000, MaxOpen: 256} }

// validateGroups checks that every instrument is in one group, that names, numbers and
// addresses are unique, and that no payment counts in two groups.
func (c *Config) validateGroups() error {
	if len(c.Groups) == 0 {
		if c.Routing.Group != "" {
			return fmt.Errorf("routing.group: %q: there are no groups", c.Routing.Group)
		}
		return nil
	}
	if c.ownGroup() == nil {
		return fmt.Errorf("routing.group: %q is not one of the groups", c.Routing.Group)
	}
	if len(c.Groups) > 1 && c.Routing.SecretFile == "" {
		return errors.New("routing.secret_file: the gateways of several groups need one")
	}
	names, numbers, groupOf, urls := map[string]bool{}, map[int]bool{}, map[string]string{}, map[string]bool{}
	for i := range c.Groups {
		g := &c.Groups[i]
		if err := g.check(c, groupOf, urls); err != nil {
			return fmt.Errorf("groups[%d].%w", i, err)
		}
		if names[g.Name] {
			return fmt.Errorf("groups[%d].name: %s appears twice", i, g.Name)
		}
		if numbers[g.Number] {
			return fmt.Errorf("groups[%d].number: %d appears twice", i, g.Number)
		}
		names[g.Name], numbers[g.Number] = true, true
	}
	for i := range c.Instruments {
		if symbol := c.Instruments[i].Symbol; groupOf[symbol] == "" {
			return fmt.Errorf("groups: %s is in none", symbol)
		}
	}
	for i := range c.RFQ.Pairs {
		if p := &c.RFQ.Pairs[i]; p.Via != "" && groupOf[p.Via] != groupOf[p.Symbol] {
			return fmt.Errorf("rfq.pairs[%d].via: %s is in group %s, and %s in %s: price_source: operator", i, p.Via, groupOf[p.Via], p.Symbol, groupOf[p.Symbol])
		}
	}
	return c.checkPayTo(groupOf)
}

// check validates one group; groupOf and urls hold the instruments and URLs of the
// groups before it.
func (g *Group) check(c *Config, groupOf map[string]string, urls map[string]bool) error {
	if !isGroupName(g.Name) {
		return fmt.Errorf("name: %q: 1 to %d lower case letters, digits and dashes", g.Name, maxGroupName)
	}
	if len(g.Instruments) == 0 {
		return errors.New("instruments: at least one")
	}
	for j, symbol := range g.Instruments {
		switch {
		case !c.hasInstrument(symbol):
			return fmt.Errorf("instruments[%d]: %q is not among the instruments", j, symbol)
		case groupOf[symbol] != "":
			return fmt.Errorf("instruments[%d]: %s is in group %s too", j, symbol, groupOf[symbol])
		}
		groupOf[symbol] = g.Name
	}
	for j := range g.Nodes {
		if err := g.Nodes[j].check(urls); err != nil {
			return fmt.Errorf("nodes[%d].%w", j, err)
		}
	}
	return nil
}

func isGroupName(name string) bool {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	return name != "" && len(name) <= maxGroupName && strings.IndexFunc(name, other) < 0
}

func (n *GroupNode) check(urls map[string]bool) error {
	for _, u := range []struct {
		key, text string
		schemes   []string
	}{
		{"base_url", n.Base, []string{"http", "https"}}, {"api_url", n.API, []string{"http", "https"}}, {"ws_url", n.WS, []string{"ws", "wss"}},
	} {
		if err := checkGroupURL(u.text, u.schemes); err != nil {
			return fmt.Errorf("%s: %w", u.key, err)
		}
		if urls[u.text] {
			return fmt.Errorf("%s: %s appears twice", u.key, u.text)
		}
		urls[u.text] = true
	}
	if host, port, err := net.SplitHostPort(n.FIX); err != nil || host == "" || port == "" || strings.ContainsFunc(n.FIX, unprintable) {
		return fmt.Errorf("fix: %q: want host:port", n.FIX)
	}
	return nil
}

// unprintable reports a rune that FIX or JSON would have to escape.
func unprintable(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }

// checkGroupURL accepts a scheme, a host and an optional port, and nothing else:
// gateways append paths to it, and responses carry it unchanged.
func checkGroupURL(text string, schemes []string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Hostname() == "" || !slices.Contains(schemes, u.Scheme) || text != u.Scheme+"://"+u.Host ||
		strings.ContainsFunc(text, unprintable) {
		return fmt.Errorf("%q: want %s://host:port and nothing behind it", text, strings.Join(schemes, " or "))
	}
	return nil
}

// checkPayTo checks that no two groups share a wallet, because a payment is found by
// the wallet that it goes to: both groups could count it, each for its own claim.
func (c *Config) checkPayTo(groupOf map[string]string) error {
	if !c.Settles() || len(c.Groups) == 1 {
		return nil
	}
	taken := map[string]string{}
	for i := range c.Groups {
		g := &c.Groups[i]
		for rail, text := range map[string]string{market.RailUSDC.String(): g.PayTo.USDC, market.RailSOL.String(): g.PayTo.SOL} {
			key := fmt.Sprintf("groups[%d].pay_to.%s", i, rail)
			sells := func(p Pair) bool { return groupOf[p.Symbol] == g.Name && slices.Contains(p.Rails, rail) }
			if text == "" {
				if slices.ContainsFunc(c.RFQ.Pairs, sells) {
					return fmt.Errorf("%s: %s is sold for %s, and each group needs a wallet of its own", key, g.Name, rail)
				}
				continue
			}
			if _, err := ParseAddress(text); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			if other := taken[text]; other != "" && other != g.Name {
				return fmt.Errorf("%s: group %s has the same wallet, so a payment could count in both", key, other)
			}
			taken[text] = g.Name
		}
	}
	return nil
}

// ownGroup returns the group of this process; nil if the instruments are not split.
func (c *Config) ownGroup() *Group {
	i := slices.IndexFunc(c.Groups, func(g Group) bool { return g.Name == c.Routing.Group })
	if i < 0 {
		return nil
	}
	return &c.Groups[i]
}

// together reports whether two symbols are in the same group.
func (c *Config) together(a, b string) bool {
	return !slices.ContainsFunc(c.Groups, func(g Group) bool {
		return slices.Contains(g.Instruments, a) != slices.Contains(g.Instruments, b)
	})
}

// GroupNumber returns the number of our group, 0 if the instruments are not split.
func (c *Config) GroupNumber() market.GroupID {
	if g := c.ownGroup(); g != nil {
		return market.GroupID(g.Number)
	}
	return 0
}

// SelectGroup reduces the configuration to our group: its instruments in the order
// that the group lists them, their pairs and tokens, and its wallets. The configuration
// must be valid.
func (c *Config) SelectGroup() {
	g := c.ownGroup()
	if g == nil {
		return
	}
	all := c.Instruments
	c.whole = all
	c.Instruments = make([]Instrument, 0, len(g.Instruments))
	tokens := map[string]bool{SettlementToken: true}
	for _, symbol := range g.Instruments {
		i := slices.IndexFunc(all, func(in Instrument) bool { return in.Symbol == symbol })
		c.Instruments = append(c.Instruments, all[i])
		base, quote, _ := strings.Cut(symbol, "/")
		tokens[base], tokens[quote] = true, true
	}
	c.RFQ.Pairs = keep(c.RFQ.Pairs, func(p *Pair) bool { return c.hasInstrument(p.Symbol) })
	c.Mirror.Pairs = keep(c.Mirror.Pairs, func(p *MirrorPair) bool { return c.hasInstrument(p.Symbol) })
	c.Tokens = keep(c.Tokens, func(t *Token) bool { return tokens[t.Symbol] })
	if g.PayTo != (PayTo{}) {
		c.RFQ.PayTo = g.PayTo
	}
}

// InstrumentOf returns an instrument of any group, without an id.
func (c *Config) InstrumentOf(symbol string) (market.Instrument, error) {
	for i := range c.whole {
		if c.whole[i].Symbol == symbol {
			return c.whole[i].ToMarket(0)
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

// OtherPlaces returns, by symbol, the addresses of the groups that serve the other
// instruments: those of their first node, which redirects to the leader.
func (c *Config) OtherPlaces() map[string]*market.Place {
	places := map[string]*market.Place{}
	for i := range c.Groups {
		g := &c.Groups[i]
		if g.Name == c.Routing.Group {
			continue
		}
		n := &g.Nodes[0]
		at := &market.Place{Group: g.Name, Base: n.Base, API: n.API, WS: n.WS, FIX: n.FIX}
		for _, symbol := range g.Instruments {
			places[symbol] = at
		}
	}
	return places
}
