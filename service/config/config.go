// Package config holds the configuration: its keys, defaults, ranges and sources, and
// the rules that a set of values must obey.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"blockdesk/engine"
	"blockdesk/internal/suggest"
	"blockdesk/market"
)

// Config is the whole configuration. Its keys are those of the YAML file; a
// leaf is also set by BLOCKDESK_<PATH> in the environment (dots become
// underscores) and by --set path=value. Flags win over the environment, the
// environment over the file, the file over the defaults.
type Config struct {
	DataDir        string       `yaml:"data_dir"`
	Role           string       `yaml:"role"`
	Demo           bool         `yaml:"demo"`
	Log            Log          `yaml:"log"`
	Listen         Listen       `yaml:"listen"`
	URLs           URLs         `yaml:"urls"`
	Durability     Durability   `yaml:"durability"`
	Engine         Engine       `yaml:"engine"`
	Journal        Journal      `yaml:"journal"`
	Cluster        Cluster      `yaml:"cluster"`
	Peers          []Peer       `yaml:"peers"` // the same list on every node and follower
	Fanout         string       `yaml:"fanout"`
	NATS           NATS         `yaml:"nats"`
	FIX            FIX          `yaml:"fix"`
	Feed           Feed         `yaml:"feed"`
	History        History      `yaml:"history"`
	HTTP           HTTP         `yaml:"http"`
	Operator       Operator     `yaml:"operator"`
	Tokens         []Token      `yaml:"tokens"` // what documents say of them, those that are named
	Risk           Risk         `yaml:"risk"`
	TrustedProxies []string     `yaml:"trusted_proxies"`
	Instruments    []Instrument `yaml:"instruments"`
	RFQ            RFQ          `yaml:"rfq"`
	Chain          Chain        `yaml:"chain"`
	Settle         Settle       `yaml:"settle"`
	Mirror         Mirror       `yaml:"mirror"`
	// Operators command the desk over the admin address. Where there are none,
	// serve makes one.
	Operators []OperatorToken `yaml:"operators"`
	// Groups split the instruments; none: this process has all of them.
	Groups  []Group `yaml:"groups"`
	Routing Routing `yaml:"routing"`
	// whole has the instruments of all groups, once Instruments has ours alone.
	whole []Instrument
}

// Listen holds the addresses. Port 0 takes a free one.
type Listen struct {
	Base  string `yaml:"base"`
	API   string `yaml:"api"`
	WS    string `yaml:"ws"`
	FIX   string `yaml:"fix"`
	Admin string `yaml:"admin"`
	Chain string `yaml:"chain"` // of the local chain that --demo starts
}

// URLs holds the public URLs that documents print; empty means the
// listener's own.
type URLs struct {
	Base   string `yaml:"base_url"`
	API    string `yaml:"api_url"`
	WS     string `yaml:"ws_url"`
	Mirror string `yaml:"mirror_url"`
	Native string `yaml:"native_url"`
}

// Durability says when a command counts as durable.
type Durability struct {
	Mode       string `yaml:"mode"`        // sync, interval or quorum
	IntervalMS int    `yaml:"interval_ms"` // interval mode: at most this much may be lost
}

// Engine sizes the engine.
type Engine struct {
	Book        string `yaml:"book"`       // ladder, or naive to check against
	MaxOrders   int    `yaml:"max_orders"` // live orders an instrument; may change from start to start
	IngressSize int    `yaml:"ingress_size"`
	EgressSize  int    `yaml:"egress_size"`
	MaxBatch    int    `yaml:"max_batch"`
	Wait        string `yaml:"wait"` // park or spin
}

// Journal selects the journal and the interval of its snapshots.
type Journal struct {
	Kind          string `yaml:"kind"`           // pebble or raft
	SnapshotEvery uint64 `yaml:"snapshot_every"` // commands
	KeepSnapshots int    `yaml:"keep_snapshots"`
}

// FIX configures the FIX gateway.
type FIX struct {
	CompID            string `yaml:"comp_id"`
	ParticipantsFile  string `yaml:"participants_file"`
	MaxSessions       int    `yaml:"max_sessions"`
	MessagesPerSecond int    `yaml:"messages_per_second"` // a session
	TLSCertFile       string `yaml:"tls_cert_file"`       // PEM, with the chain; empty = plain TCP
	TLSKeyFile        string `yaml:"tls_key_file"`        // PEM
	TLSClientCAFile   string `yaml:"tls_client_ca_file"`  // PEM; empty = clients need no certificate
	// MessageLogDir is where messages are kept, without secrets; empty = nowhere.
	MessageLogDir     string `yaml:"message_log_dir"`
	MessageLogFileMiB int    `yaml:"message_log_file_mib"` // where a file ends
	MessageLogFiles   int    `yaml:"message_log_files"`    // how many stay
}

// Feed configures the WebSocket feed.
type Feed struct {
	ConnectionsPerIP int `yaml:"connections_per_ip"`
	MaxConnections   int `yaml:"max_connections"`
}

// History says how long trades and candles are kept.
type History struct {
	TradesDays  int `yaml:"trades_days"`  // trades
	MinutesDays int `yaml:"minutes_days"` // candles below an hour; longer ones are kept for ever
}

// HTTP configures the REST gateway. A rate of 0 means no limit.
type HTTP struct {
	MarketDataPerMinute int `yaml:"market_data_per_minute"` // a client IP
	MarketDataBurst     int `yaml:"market_data_burst"`
	PartnerPerMinute    int `yaml:"partner_per_minute"` // what aggregators poll; a client IP
	PartnerBurst        int `yaml:"partner_burst"`
	RFQWritesPerMinute  int `yaml:"rfq_writes_per_minute"` // a client IP
	RFQWritesBurst      int `yaml:"rfq_writes_burst"`
	DvPPerMinute        int `yaml:"dvp_per_minute"`       // build and submit, in any 60 s; a client IP
	HandshakePerMinute  int `yaml:"handshake_per_minute"` // nonces; a client IP
}

// Operator describes the operator of the service, as GET / shows it.
type Operator struct {
	Name     string            `yaml:"name"`
	Contacts map[string]string `yaml:"contacts"`
	GitHub   string            `yaml:"github"`
	Website  string            `yaml:"website"`
	Market   string            `yaml:"market_name"` // what listings call the market
}

// Risk holds the default limits, for each participant and instrument. Empty text
// means no limit.
type Risk struct {
	MaxQty        string `yaml:"max_qty"`      // base units
	MaxNotional   string `yaml:"max_notional"` // quote units
	MaxOpenOrders int    `yaml:"max_open_orders"`
	BandBps       int    `yaml:"band_bps"` // 0 = no band
}

// Instrument describes one instrument in decimal units.
type Instrument struct {
	Symbol        string `yaml:"symbol"`
	PriceDecimals int    `yaml:"price_decimals"`
	QtyDecimals   int    `yaml:"qty_decimals"`
	Tick          string `yaml:"tick"`
	Lot           string `yaml:"lot"`
	MinQty        string `yaml:"min_qty"`
	MaxQty        string `yaml:"max_qty"`
	MaxPrice      string `yaml:"max_price"`
	BookSource    string `yaml:"book_source"` // matched or mirrored
}

// Default returns the configuration without a file, environment or flags.
func Default() Config {
	pair := func(symbol string) Instrument {
		return Instrument{
			Symbol: symbol, PriceDecimals: 6, QtyDecimals: 6,
			Tick: "0.000001", Lot: "0.000001", MinQty: "0.01",
			MaxQty: "100000000", MaxPrice: "1000000", BookSource: "matched",
		}
	}
	return Config{
		DataDir: "data", Role: RoleAll,
		Log: Log{Level: "info", Format: "text"},
		Listen: Listen{
			Base: "127.0.0.1:8080", API: "127.0.0.1:8000", WS: "127.0.0.1:8081",
			FIX: "127.0.0.1:9878", Admin: "127.0.0.1:8090", Chain: "127.0.0.1:8899",
		},
		Durability:  Durability{Mode: "sync", IntervalMS: 5},
		Engine:      Engine{Book: "ladder", MaxOrders: 1 << 20, IngressSize: 1 << 14, EgressSize: 1 << 17, MaxBatch: 1024, Wait: "park"},
		Journal:     Journal{Kind: journalPebble, SnapshotEvery: 1_000_000, KeepSnapshots: 3},
		Cluster:     defaultCluster(),
		Peers:       []Peer{},
		Fanout:      fanoutNone,
		NATS:        defaultNATS(),
		FIX:         FIX{CompID: "BLOCKDESK", MaxSessions: 256, MessagesPerSecond: 500, MessageLogFileMiB: 64, MessageLogFiles: 16},
		Feed:        Feed{ConnectionsPerIP: 10, MaxConnections: 10_000},
		History:     History{TradesDays: 90, MinutesDays: 90},
		HTTP:        HTTP{MarketDataPerMinute: 60, MarketDataBurst: 20, PartnerPerMinute: 300, PartnerBurst: 60, RFQWritesPerMinute: 30, RFQWritesBurst: 10, DvPPerMinute: 3, HandshakePerMinute: 10},
		Operator:    Operator{Name: "blockdesk", Contacts: map[string]string{}, Market: "blockdesk"},
		Tokens:      []Token{},
		Risk:        Risk{MaxQty: "10000000", MaxNotional: "10000000", MaxOpenOrders: 10_000, BandBps: 5000},
		Instruments: []Instrument{pair("SLUSD/USDC"), pair("92C/SLUSD")},
		RFQ:         defaultRFQ(),
		Chain:       defaultChain(),
		Settle:      defaultSettle(),
		Mirror:      defaultMirror(),
		Operators:   []OperatorToken{},
		Groups:      []Group{},
		Routing:     defaultRouting(),
	}
}

// Variables of the environment that hold a secret for the command line.
const (
	OperatorTokenEnv = "BLOCKDESK_OPERATOR_TOKEN" // an operator's token; a flag wins over it
	FIXPasswordEnv   = "BLOCKDESK_FIX_PASSWORD"   // the password of `fix client`
)

// envReserved are the BLOCKDESK_ variables that are not configuration keys.
var envReserved = []string{
	"BLOCKDESK_TESTDATA", "BLOCKDESK_CRASH_POINTS", "BLOCKDESK_BENCH_DIR", "BLOCKDESK_KILL_ROUNDS", "BLOCKDESK_SEED",
	"BLOCKDESK_CLAIMS", "BLOCKDESK_SETTLE_ROUNDS", "BLOCKDESK_FIX_SOAK", "BLOCKDESK_FEED_SECONDS", "BLOCKDESK_MIRROR_SECONDS",
	"BLOCKDESK_NEWCOMER", "BLOCKDESK_TEST_ALL", "BLOCKDESK_RACE_ALL", "BLOCKDESK_CLUSTER_ROUNDS", "BLOCKDESK_CLUSTER_SEED", "BLOCKDESK_CLUSTER_FAULT",
	OperatorTokenEnv, FIXPasswordEnv,
}

// Load reads the file (an empty path means blockdesk.yaml where it
// exists), then the environment, then sets ("path=value"), and returns the source
// of each value. Errors name the file and line, the variable, or the flag.
func Load(path string, environ, sets []string) (Config, Sources, error) {
	sources := Sources{}
	cfg, err := readConfig(path, environ, sets, sources)
	return cfg, sources, err
}

func readConfig(path string, environ, sets []string, sources Sources) (Config, error) {
	cfg := Default()
	cfg.RFQ.Pairs = nil // the default ones need their instruments: completePairs
	optional := path == ""
	if optional {
		path = "blockdesk.yaml"
	}
	text, err := os.ReadFile(path)
	switch {
	case optional && errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return cfg, fmt.Errorf("config: %w", err)
	default:
		if err := Decode(text, &cfg); err != nil {
			return cfg, fmt.Errorf("%s: %w", path, err)
		}
		sources.addFile(path, text)
	}
	cfg.completePairs()
	leaves := cfg.Leaves()
	leaves["journal"] = leaves["journal.kind"]
	if err := setByEnvironment(environ, leaves, sources); err != nil {
		return cfg, err
	}
	for _, kv := range sets {
		name, value, ok := strings.Cut(kv, "=")
		leaf, known := leaves[name]
		if !ok || !known {
			return cfg, flagf("--set %s: want path=value with a known path such as listen.fix%s",
				name, suggest.Suffix(name, slices.Collect(maps.Keys(leaves))))
		}
		if err := setLeaf(leaf, value); err != nil {
			return cfg, flagf("--set %s: %w", name, err)
		}
		sources[name] = "--set"
	}
	cfg.completeCluster()
	return cfg, cfg.Validate()
}

// FlagError is an error in a --set flag.
type FlagError struct{ error }

// Unwrap returns the wrapped error.
func (e FlagError) Unwrap() error { return e.error }

func flagf(format string, args ...any) error { return FlagError{fmt.Errorf(format, args...)} }

func setByEnvironment(environ []string, leaves map[string]reflect.Value, sources Sources) error {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(envReserved, name) {
			continue
		}
		path := envName(name, leaves)
		if path == "" {
			var names []string
			for leaf := range leaves {
				names = append(names, Variable(leaf))
			}
			return fmt.Errorf("environment: %s names no setting%s", name, suggest.Suffix(name, names))
		}
		if err := setLeaf(leaves[path], value); err != nil {
			return fmt.Errorf("environment: %s: %w", name, err)
		}
		sources[path] = "$" + name
	}
	return nil
}

// envPrefix is the prefix of variables that set a key.
const envPrefix = "BLOCKDESK_"

// Variable returns the environment variable that sets a key.
func Variable(path string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// Decode reads YAML and refuses unknown keys.
func Decode(text []byte, into any) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	err := yaml.UnmarshalWithOptions(text, into, yaml.Strict(), yaml.DisallowUnknownField())
	if err != nil {
		return errors.New(yaml.FormatError(err, false, false))
	}
	return nil
}

// Leaves returns the fields that the environment and flags can set, by path.
func (c *Config) Leaves() map[string]reflect.Value {
	leaves := map[string]reflect.Value{}
	collectLeaves(reflect.ValueOf(c).Elem(), "", leaves)
	return leaves
}

// collectLeaves maps "listen.fix" to the field it names, for scalar fields.
func collectLeaves(v reflect.Value, prefix string, into map[string]reflect.Value) {
	for i := range v.NumField() {
		name := prefix + v.Type().Field(i).Tag.Get("yaml")
		switch f := v.Field(i); f.Kind() {
		case reflect.Struct:
			collectLeaves(f, name+".", into)
		case reflect.String, reflect.Bool, reflect.Int, reflect.Uint64:
			into[name] = f
		}
	}
}

func envName(variable string, leaves map[string]reflect.Value) string {
	for path := range leaves {
		if Variable(path) == variable {
			return path
		}
	}
	return ""
}

func setLeaf(v reflect.Value, text string) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("want true or false")
		}
		v.SetBool(b)
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("want a whole number")
		}
		v.SetInt(int64(n))
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return errors.New("want a whole number, not negative")
		}
		v.SetUint(n)
	}
	return nil
}

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %s", key, value, strings.Join(allowed, ", "))
}

// Between checks low <= value <= high; the error names the key.
func Between(key string, value, low, high int) error {
	if value < low || value > high {
		return fmt.Errorf("%s: %d is outside %d to %d", key, value, low, high)
	}
	return nil
}

// Validate checks every value against the range of its key, and then the keys against
// each other.
func (c *Config) Validate() error {
	if err := c.checkRanges(); err != nil {
		return err
	}
	if err := c.FIX.CheckTLS(); err != nil {
		return err
	}
	sizes := engine.Options{IngressSize: c.Engine.IngressSize, EgressSize: c.Engine.EgressSize, MaxBatch: c.Engine.MaxBatch}
	if err := sizes.Validate(); err != nil {
		return err
	}
	if _, err := c.MarketInstruments(); err != nil {
		return err
	}
	if err := c.validateRFQ(); err != nil {
		return err
	}
	if err := c.validateTokens(); err != nil {
		return err
	}
	if err := c.validateSettle(); err != nil {
		return err
	}
	if err := c.validateMirror(); err != nil {
		return err
	}
	if err := c.validateCluster(); err != nil {
		return err
	}
	return c.validateGroups()
}

const (
	MaxPerMinute = 60_000_000
	MaxBurst     = 1_000_000
	// maxWindow bounds a limit that remembers the moment of each request.
	maxWindow = 1000
)

// Interval returns the flush interval of durability mode interval.
func (c *Config) Interval() time.Duration {
	return time.Duration(c.Durability.IntervalMS) * time.Millisecond
}

// MarketInstruments converts the configured instruments to ticks and lots.
func (c *Config) MarketInstruments() ([]market.Instrument, error) {
	out := make([]market.Instrument, 0, len(c.Instruments))
	for i, ic := range c.Instruments {
		in, err := ic.ToMarket(market.InstrumentID(i))
		if err != nil {
			return nil, fmt.Errorf("instruments[%d]: %w", i, err)
		}
		if slices.ContainsFunc(out, func(o market.Instrument) bool { return o.Symbol == in.Symbol }) {
			return nil, fmt.Errorf("instruments[%d]: symbol %s appears twice", i, in.Symbol)
		}
		out = append(out, in)
	}
	return out, nil
}

// ToMarket converts the instrument to ticks and lots.
func (ic *Instrument) ToMarket(id market.InstrumentID) (market.Instrument, error) {
	base, quote, _ := strings.Cut(ic.Symbol, "/")
	in := market.Instrument{
		ID: id, Symbol: ic.Symbol, Base: base, Quote: quote,
		PriceDecimals: uint8(ic.PriceDecimals), QtyDecimals: uint8(ic.QtyDecimals),
	}
	switch ic.BookSource {
	case "matched":
		in.Source = market.Matched
	case "mirrored":
		in.Source = market.Mirrored
	default:
		return in, fmt.Errorf("%s: book_source: %q is not one of matched, mirrored", ic.Symbol, ic.BookSource)
	}
	var err error
	if in.Tick, err = market.ParseDecimal([]byte(ic.Tick), ic.PriceDecimals); err != nil || in.Tick == 0 {
		return in, fmt.Errorf("%s: tick %q: %w", ic.Symbol, ic.Tick, orZero(err))
	}
	if in.Lot, err = market.ParseDecimal([]byte(ic.Lot), ic.QtyDecimals); err != nil || in.Lot == 0 {
		return in, fmt.Errorf("%s: lot %q: %w", ic.Symbol, ic.Lot, orZero(err))
	}
	if in.MinQty, err = in.ParseQty([]byte(ic.MinQty)); err != nil {
		return in, fmt.Errorf("%s: min_qty %q: %w", ic.Symbol, ic.MinQty, err)
	}
	if in.MaxQty, err = in.ParseQty([]byte(ic.MaxQty)); err != nil {
		return in, fmt.Errorf("%s: max_qty %q: %w", ic.Symbol, ic.MaxQty, err)
	}
	if in.MaxPrice, err = in.ParsePrice([]byte(ic.MaxPrice)); err != nil {
		return in, fmt.Errorf("%s: max_price %q: %w", ic.Symbol, ic.MaxPrice, err)
	}
	return in, in.Validate()
}

func orZero(err error) error {
	if err == nil {
		return market.ErrZero
	}
	return err
}

// Log configures the log on standard error.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // text: key=value; json: an object a line
}
