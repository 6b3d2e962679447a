package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana/pyth"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle"
)

// format describes a text, and checks it. The error does not name the key.
type format struct {
	name  string
	check func(text string) error
}

var formats = map[string]format{
	"FIX address":     {"host:port", checkGroupFIX},
	"SHA-256":         {"64 hexadecimal digits", checkTokenHash},
	"URL":             {"URL", orEmpty(checkURL)},
	"USD":             {"decimal", checkUSDPrice},
	"USD amount":      {"decimal", parses(usdOf)},
	"address":         {"Solana address", parses(ParseAddress)},
	"address or none": {"Solana address", orEmpty(parses(ParseAddress))},
	"addresses":       {"Solana addresses, separated by commas", checkTreasury},
	"dust SOL":        {"decimal, at most 0.01", parses(dustOf(market.RailSOL))},
	"dust USDC":       {"decimal, at most 1", parses(dustOf(market.RailUSDC))},
	"feed id":         {"64 hexadecimal digits", orEmpty(parses(pyth.ParseFeed))},
	"group name":      {"1 to 32 lower case letters, digits, dashes", checkGroupName},
	"http":            {"URL", checkGroupURL("http", "https")},
	"label":           {"text", checkLabel},
	"listen":          {"host:port", orEmpty(checkListenAddress)},
	"nodes":           {"http or https URLs, separated by commas", parses(upstreams)},
	"operator name":   {"1 to 40 letters, digits, dots, dashes, underscores", checkOperatorName},
	"peer URL":        {"URL", orEmpty(checkPeerURL)},
	"proxy":           {"list of addresses or prefixes", parses(parseProxy)},
	"socket":          {"socket", checkSocket},
	"time of day":     {"HH:MM", orEmpty(parses(ParseTimeOfDay))},
	"token URI":       {"URI of at most 512 bytes", orEmpty(checkTokenURI)},
	"token name":      {"text of at most 60 bytes", checkTokenName},
	"ws":              {"URL", checkGroupURL("ws", "wss")},
}

// ParseTimeOfDay returns how long after 00:00 a time HH:MM is, 24 hours for 00:00 itself: 0 is no
// time.
func ParseTimeOfDay(text string) (time.Duration, error) {
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return 0, errors.New("must be HH:MM, 00:00 to 23:59")
	}
	return cmp.Or(time.Duration(t.Hour())*time.Hour+time.Duration(t.Minute())*time.Minute, 24*time.Hour), nil
}

// parses returns the check of a text that a function parses.
func parses[T any](parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		_, err := parse(text)
		return err
	}
}

// orEmpty returns a check that accepts an empty text as well.
func orEmpty(check func(string) error) func(string) error {
	return func(text string) error {
		if text == "" {
			return nil
		}
		return check(text)
	}
}

// Limits of texts, in bytes.
const (
	MaxTokenName  = 60 // of the public token-list schema
	MaxTokenURI   = 512
	maxLabel      = 60 // of an observed account
	maxGroupName  = 32
	maxSocketPath = 107 // of a Unix socket on Linux
)

var errAddress = errors.New("not a Solana address: 32 bytes in base58")

// ParseAddress parses the canonical base58 form of 32 bytes.
func ParseAddress(text string) (a market.Address, err error) {
	raw, err := base58.Decode(text)
	if err != nil || len(raw) != len(a) || base58.Encode(raw) != text {
		return a, fmt.Errorf("%q: %w", text, errAddress)
	}
	return market.Address(raw), nil
}

// addressOr returns a checked address, or another one for an empty text.
func addressOr(text string, otherwise market.Address) market.Address {
	if a, err := ParseAddress(text); err == nil {
		return a
	}
	return otherwise
}

// ParseUSDPrice parses a dollar price; ok is false for empty text.
func ParseUSDPrice(text string) (p market.USDPrice, ok bool, err error) {
	if text == "" {
		return 0, false, nil
	}
	v, err := market.ParseDecimal([]byte(text), market.USDPriceDecimals)
	switch {
	case err != nil:
	case v == 0:
		err = market.ErrZero
	case v > uint64(market.MaxUSDPrice):
		err = market.ErrOverflow
	}
	if err != nil {
		return 0, false, fmt.Errorf("%q: %w", text, err)
	}
	return market.USDPrice(v), true, nil
}

func checkUSDPrice(text string) error {
	_, _, err := ParseUSDPrice(text)
	return err
}

// checkListenAddress checks that a listener could take host:port. It looks no host up.
func checkListenAddress(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%q: want host:port with a port from 0 to 65535", text)
	}
	return nil
}

// parseProxy parses an address or a prefix.
func parseProxy(text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q: want an IP address, or a prefix such as 10.0.0.0/8", text)
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// checkURL accepts a public address: documents carry it unchanged, with paths behind it.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) ||
		strings.ContainsFunc(text, unprintable) {
		return fmt.Errorf("%q: want a URL such as https://desk.example", text)
	}
	return nil
}

func checkPeerURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q: want scheme://host:port", text)
	}
	return nil
}

// checkGroupURL accepts a scheme, a host and an optional port, and nothing else:
// gateways append paths to it, and responses carry it unchanged.
func checkGroupURL(schemes ...string) func(string) error {
	return func(text string) error {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || !slices.Contains(schemes, u.Scheme) || text != u.Scheme+"://"+u.Host ||
			strings.ContainsFunc(text, unprintable) {
			return fmt.Errorf("%q: want %s://host:port and nothing after it", text, strings.Join(schemes, " or "))
		}
		return nil
	}
}

func checkGroupFIX(text string) error {
	if host, port, err := net.SplitHostPort(text); err != nil || host == "" || port == "" || strings.ContainsFunc(text, unprintable) {
		return fmt.Errorf("%q: want host:port", text)
	}
	return nil
}

// unprintable reports a rune that FIX or JSON would have to escape.
func unprintable(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }

func checkGroupName(text string) error {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if text == "" || len(text) > maxGroupName || strings.ContainsFunc(text, other) {
		return fmt.Errorf("%q: must be 1 to %d lower case letters, digits and dashes", text, maxGroupName)
	}
	return nil
}

func checkTokenURI(text string) error {
	u, err := url.Parse(text)
	if err != nil || !u.IsAbs() || len(text) > MaxTokenURI {
		return fmt.Errorf("%q: must be an absolute URI of at most %d bytes", text, MaxTokenURI)
	}
	return nil
}

func checkTokenName(text string) error {
	if len(text) > MaxTokenName {
		return fmt.Errorf("%q is longer than %d bytes", text, MaxTokenName)
	}
	return nil
}

func checkLabel(text string) error {
	if len(text) > maxLabel || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("must be at most %d printable bytes", maxLabel)
	}
	return nil
}

// Operators that serve makes by itself.
const (
	LocalOperator = "local" // if none is configured; its token is in the data folder
	DemoOperator  = "demo"  // of --demo; only the demo has its token
)

var reservedOperators = []string{LocalOperator, DemoOperator}

func checkOperatorName(text string) error {
	other := func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}
	if text == "" || len(text) > rfq.MaxText || strings.ContainsFunc(text, other) || slices.Contains(reservedOperators, text) {
		return fmt.Errorf("%q must be 1 to %d letters, digits, dots, dashes or underscores, and not one of %v", text, rfq.MaxText, reservedOperators)
	}
	return nil
}

// TokenHash decodes TokenSHA256.
func (o OperatorToken) TokenHash() (hash [sha256.Size]byte, err error) {
	raw, err := hex.DecodeString(o.TokenSHA256)
	if err != nil || len(raw) != len(hash) {
		return hash, fmt.Errorf("must be %d hexadecimal digits", 2*len(hash))
	}
	return [sha256.Size]byte(raw), nil
}

func checkTokenHash(text string) error {
	_, err := OperatorToken{TokenSHA256: text}.TokenHash()
	return err
}

// upstreams returns the nodes of comma-separated URLs, each named by its host: a URL
// may hold a secret in its path, query or user, and no error and no log may show it.
func upstreams(urls string) (out []rpc.Upstream, err error) {
	list := SplitList(urls)
	if len(list) > rpc.MaxUpstreams {
		return nil, fmt.Errorf("%d URLs: at most %d", len(list), rpc.MaxUpstreams)
	}
	named := map[string]int{}
	for i, text := range list {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("URL %d of the list is not an http or https URL", i+1)
		}
		name := u.Host
		if named[u.Host]++; named[u.Host] > 1 {
			name = fmt.Sprintf("%s#%d", u.Host, named[u.Host])
		}
		out = append(out, rpc.Upstream{Name: name, URL: text})
	}
	return out, nil
}

func checkTreasury(text string) error {
	wallets := SplitList(text)
	for i, wallet := range wallets {
		if _, err := ParseAddress(wallet); err != nil {
			return err
		}
		if slices.Contains(wallets[:i], wallet) {
			return fmt.Errorf("%s appears twice", wallet)
		}
	}
	if len(wallets) > settle.MaxTreasury {
		return fmt.Errorf("%d wallets: at most %d", len(wallets), settle.MaxTreasury)
	}
	return nil
}

func checkSocket(text string) error {
	if len(text) > maxSocketPath || strings.ContainsRune(text, 0) {
		return fmt.Errorf("%q: the path of a socket has at most %d bytes", text, maxSocketPath)
	}
	return nil
}

// usdOf parses an amount of dollars, at most rfq.MaxCapacity.
func usdOf(text string) (market.USD, error) {
	n, err := market.ParseDecimal([]byte(text), market.USDDecimals)
	if err == nil && market.USD(n) > rfq.MaxCapacity {
		err = market.ErrOverflow
	}
	if err != nil {
		return 0, fmt.Errorf("%q: a decimal from 0 to %s, of %d places at most: %w",
			text, market.AppendDecimal(nil, uint64(rfq.MaxCapacity), market.USDDecimals), market.USDDecimals, err)
	}
	return market.USD(n), nil
}

// maxDust returns the largest dust limit in atoms: one dollar, or 0.01 SOL.
func maxDust(rail market.Rail) uint64 {
	if rail == market.RailUSDC {
		return 1_000_000
	}
	return 10_000_000
}

// dustOf parses the dust limit of a rail.
func dustOf(rail market.Rail) func(string) (market.Amount, error) {
	most, places := maxDust(rail), rail.Decimals()
	return func(text string) (market.Amount, error) {
		atoms, err := market.ParseDecimal([]byte(text), places)
		if err == nil && atoms > most {
			err = market.ErrOverflow
		}
		if err != nil {
			return 0, fmt.Errorf("%q: want a decimal from 0 to %s with at most %d decimals: %w", text, market.AppendDecimal(nil, most, places), places, err)
		}
		return market.Amount(atoms), nil
	}
}
