package lint

import (
	"slices"
	"strings"
)

// row is one row of the table of packages. A directory belongs to the row with the
// longest matching path; a row covers its subdirectories.
type row struct {
	path string
	// may lists the rows whose packages this row may import, besides its own. A
	// row listed here does not include the rows below it: they are listed too.
	may []string
	// inner packages are the state machine: their tests may import only inner
	// packages of ours.
	inner bool
	// pure packages may not import the impurePackages of the standard library.
	pure bool
}

var (
	vocabulary = []string{"market", "engine/event", "engine/book", "engine/marketdata", "engine/orders", "engine/quotes", "engine/rfq"}
	outer      = append([]string{"engine"}, vocabulary...)
	everything = append([]string{
		"engine/book/ladder", "engine/book/naive", "persist", "persist/kv", "persist/projection", "persist/leadership", "persist/quorum", "persist/fanout", "desk", "feed", "fixgw", "fixgw/wire", "fixgw/participants", "fixgw/messagelog", "fixgw/session", "fixgw/marketdata", "fixgw/fixclient", "fixgw/fixterm",
		"httpgw", "httpgw/wire", "httpgw/terms", "httpgw/market", "httpgw/rfq", "httpgw/dvp", "httpgw/site", "httpgw/admin", "catalog", "mirror", "prices", "settle", "sdk", "internal", "internal/ratelimit", "internal/schedule", "internal/solana", "internal/solana/eddsa",
	}, outer...)
)

// roles are the packages that service/cluster and service/follower both use.
var roles = []string{"engine", "persist/leadership", "fixgw", "fixgw/participants", "fixgw/session", "httpgw", "httpgw/admin", "service", "service/config", "service/task", "service/program", "service/metrics", "service/standby", "service/systemd"}

// table has all packages. A package that is not here may not exist.
var table = []row{
	{path: "market", inner: true, pure: true},
	{path: "engine/event", may: []string{"market"}, inner: true, pure: true},
	{path: "engine/book", may: []string{"market", "engine/event"}, inner: true, pure: true},
	{path: "engine/book/ladder", may: []string{"market", "engine/event", "engine/book", "internal/addrspace"}, inner: true, pure: true},
	{path: "engine/book/naive", may: []string{"market", "engine/event", "engine/book"}, inner: true, pure: true},
	{path: "engine/codec", inner: true, pure: true},
	{path: "engine/marketdata", may: []string{"market", "engine/event", "engine/book", "engine/codec", "engine/orders"}, inner: true, pure: true},
	{path: "engine/orders", may: []string{"market", "engine/event", "engine/book"}, inner: true, pure: true},
	{path: "engine/quotes", may: []string{"market", "engine/event", "engine/book"}, inner: true, pure: true},
	{path: "engine/rfq", may: []string{"market", "engine/event"}, inner: true, pure: true},
	{path: "engine", may: append([]string{"engine/book/ladder", "engine/book/naive", "engine/codec"}, vocabulary...), inner: true},

	{path: "persist", may: append([]string{"persist/kv", "persist/projection"}, outer...)},
	{path: "persist/kv"},         // the contract of a durable map
	{path: "persist/leadership"}, // which node leads, for gateways
	{path: "persist/projection", may: append([]string{"persist/kv"}, outer...)},                              // stores that follow the journal
	{path: "persist/quorum", may: append([]string{"persist", "persist/kv", "persist/projection"}, outer...)}, // the journal of a group of nodes
	{path: "persist/fanout", may: append([]string{"persist", "persist/kv"}, outer...)},                       // durable frames to readers
	{path: "persist/journaltest", may: outer},
	{path: "desk", may: append([]string{"persist/kv", "persist/projection"}, outer...)}, // the business API of every gateway
	{path: "feed", may: append([]string{"persist/kv", "persist/projection", "internal/ratelimit"}, outer...)},
	{path: "fixgw/wire", may: outer},                                                                     // bytes of FIX to values and back
	{path: "fixgw/participants", may: append([]string{"fixgw/wire", "internal/solana/eddsa"}, outer...)}, // who may log on, and as what
	{path: "fixgw/messagelog", may: []string{"fixgw/wire"}},                                              // the messages of all sessions in files
	// Connections, logons and sequence numbers, on quickfix; logons by signature.
	{path: "fixgw/session", may: append([]string{"fixgw/wire", "fixgw/participants", "fixgw/messagelog", "internal/solana/eddsa", "persist/kv", "internal/ratelimit", "persist/leadership"}, outer...)},
	{path: "fixgw/history", may: []string{"market", "persist/kv"}},                             // fills and positions of sessions
	{path: "fixgw/marketdata", may: append([]string{"fixgw/wire", "fixgw/session"}, outer...)}, // books, statuses and terms of instruments to subscribers
	// The reports of durable events and the answers to requests, committed with their position.
	{path: "fixgw/reports", may: append([]string{"fixgw/wire", "fixgw/session", "persist/kv", "persist/projection"}, outer...)},
	{path: "fixgw/orders", may: append([]string{"fixgw/wire", "fixgw/session", "fixgw/history", "fixgw/reports", "persist/kv", "persist/leadership"}, outer...)},
	{path: "fixgw/rfq", may: append([]string{"fixgw/wire", "fixgw/session", "fixgw/reports", "desk", "persist/kv", "internal/schedule"}, outer...)},
	{path: "fixgw", may: append([]string{"fixgw/wire", "fixgw/session", "fixgw/history", "fixgw/marketdata", "fixgw/reports", "fixgw/orders", "fixgw/rfq", "persist/kv", "persist/projection", "internal/ratelimit"}, outer...)},
	{path: "fixgw/fixclient", may: []string{"market"}},
	{path: "fixgw/fixterm", may: []string{"fixgw/fixclient", "fixgw/wire"}},
	{path: "catalog", may: append([]string{"desk", "feed", "mirror", "internal/solana"}, outer...)}, // every published market document
	{path: "httpgw", may: append([]string{
		"catalog", "desk", "feed", "internal/ratelimit",
		"httpgw/wire", "httpgw/terms", "httpgw/market", "httpgw/rfq", "httpgw/dvp", "httpgw/site",
		"httpgw/shardwire", "persist/leadership",
	}, outer...)},
	{path: "httpgw/shardwire", may: append([]string{"catalog"}, outer...)},                               // what gateways of different groups send each other
	{path: "httpgw/wire", may: []string{"market", "internal/ratelimit"}},                                 // what every answer is made of
	{path: "httpgw/terms", may: append([]string{"desk", "internal/ratelimit", "httpgw/wire"}, outer...)}, // the desk's words in requests and answers
	// The surfaces, which do not import each other.
	{path: "httpgw/market", may: append([]string{"catalog", "feed", "httpgw/wire"}, outer...)},
	{path: "httpgw/rfq", may: append([]string{"catalog", "desk", "internal/ratelimit", "internal/solana", "internal/solana/eddsa", "httpgw/wire", "httpgw/terms"}, outer...)},
	{path: "httpgw/dvp", may: append([]string{"catalog", "desk", "internal/ratelimit", "httpgw/wire", "httpgw/terms"}, outer...)},
	{path: "httpgw/site", may: []string{"catalog", "httpgw/wire", "httpgw/board", "httpgw/reference"}},
	{path: "httpgw/admin", may: append([]string{"desk", "internal/ratelimit", "httpgw/wire", "httpgw/terms", "httpgw/board"}, outer...)},
	{path: "httpgw/board"}, // pages for people, built
	{path: "httpgw/reference", may: []string{"httpgw/board"}}, // the page of the API reference, built
	{path: "mirror", may: append([]string{"persist/kv", "internal", "internal/solana"}, outer...)},
	{path: "prices", may: []string{"market", "internal", "internal/solana"}}, // what an asset costs in dollars
	{path: "settle", may: append([]string{"desk", "persist/kv", "internal/schedule", "internal", "internal/solana", "internal/solana/eddsa"}, outer...)},
	{path: "sdk"},

	// Keys, defaults and validation; the options of what the configuration checks whole.
	{path: "service/config", may: append([]string{"persist/quorum", "persist/fanout", "mirror", "prices", "settle", "internal", "internal/solana"}, outer...)},

	// The application. A part that others import has a row of its own.
	{path: "service/task"},
	{path: "service/systemd", may: []string{"engine", "internal"}},
	{path: "service/program", may: []string{"fixgw/session", "httpgw/site", "sdk"}},
	{path: "service/metrics", may: append([]string{"service/program"}, everything...)},
	{path: "service/operator", may: []string{"httpgw/admin", "persist/quorum", "service/config", "internal"}}, // client of the admin address
	{path: "service/demo", may: []string{"market", "engine/book", "fixgw/participants", "fixgw/fixclient", "service/config", "service/operator", "internal", "internal/solana"}},
	{path: "service", may: append([]string{"service/config", "service/task", "service/systemd", "service/program", "service/metrics", "service/operator", "service/demo"}, everything...)},
	{path: "service/standby", may: []string{"persist/leadership", "fixgw/session", "httpgw", "httpgw/admin", "service", "service/config", "service/operator", "service/task"}},
	{path: "service/cluster", may: slices.Concat(roles, []string{"persist/quorum", "service/operator", "internal"})},
	{path: "service/follower", may: slices.Concat(roles, []string{"persist", "persist/fanout", "internal"})},
	{path: "service/doctor", may: []string{"persist", "service/config", "service/operator", "internal/solana", "internal"}},
	{path: "service/audit", may: []string{"market", "persist"}},                    // who commanded the desk
	{path: "service/wallet", may: []string{"service/operator", "internal/solana"}}, // a client's side of a settlement
	{path: "service/servicetest", may: []string{"fixgw/participants", "service/config", "internal"}},

	{path: "bench", may: append([]string{"service/operator"}, everything...)},
	{path: "cmd", may: slices.Concat([]string{"bench", "service", "service/config", "service/demo", "service/operator", "service/program", "service/standby", "service/cluster", "service/follower", "service/audit", "service/wallet", "service/doctor"}, everything)},
	// Tests that drive the built program, and what they share. All of it is tests.
	{path: "e2e"},
	{path: "internal", may: []string{"market"}},
	{path: "internal/addrspace"}, // memory that slices grow into
	{path: "internal/ratelimit"}, // grants to clients at a rate
	{path: "internal/schedule"},  // items in the order in which they are due
	{path: "internal/solana", may: []string{"market"}},
	// A row of its own, so that the FIX gateway can import strict verification and
	// nothing else of Solana.
	{path: "internal/solana/eddsa", may: []string{"internal/solana"}},
}

// testHelpers reports whether a folder has helpers that only tests may import, those of
// every package.
func testHelpers(dir string) bool {
	return dir == "internal/await" || dir == "internal/runtest"
}

func ownerOf(dir string) *row {
	var best *row
	for i := range table {
		if within(dir, table[i].path) && (best == nil || len(table[i].path) > len(best.path)) {
			best = &table[i]
		}
	}
	return best
}

// within reports whether the slash-separated path lies at or below root.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// impurePackages are what a pure package may not import: clocks, locks, I/O and
// randomness. Each covers the packages below it.
var impurePackages = []string{
	"time", "sync", "context", "net", "os", "log", "syscall",
	"math/rand", "crypto/rand",
}

// library is an outside module and the rows whose code may import it. Tests of
// outer packages may import every library.
type library struct {
	path   string
	owners []string
}

var libraries = []library{
	{"github.com/quickfixgo", []string{"fixgw/session", "bench"}},
	{"github.com/cockroachdb/pebble", []string{"persist", "bench"}},
	{"github.com/cespare/xxhash", []string{"persist"}},
	{"github.com/cockroachdb/errors", []string{"persist"}}, // Pebble's own error kinds
	{"github.com/valyala/fasthttp", []string{"httpgw", "feed", "bench"}},
	{"github.com/fasthttp/websocket", []string{"httpgw", "feed", "bench"}},
	{"github.com/prometheus", []string{"httpgw", "service"}},
	{"github.com/HdrHistogram/hdrhistogram-go", []string{"bench"}},
	{"github.com/klauspost/compress", []string{"httpgw", "feed", "bench"}},
	{"github.com/spf13/cobra", []string{"cmd"}},
	{"github.com/spf13/pflag", []string{"cmd"}},
	{"github.com/goccy/go-yaml", []string{"service/config", "fixgw/participants"}}, // the participants, given as bytes
	{"golang.org/x/crypto", []string{"fixgw/participants", "httpgw", "settle"}},
	{"golang.org/x/sys", []string{"persist", "bench", "settle"}},
	{"golang.org/x/term", []string{"cmd"}},
	{"golang.org/x/sync", []string{"persist", "feed", "fixgw", "httpgw", "mirror", "settle", "service", "bench"}},
	{"github.com/hashicorp", []string{"persist/quorum"}},
	{"github.com/nats-io", []string{"persist/fanout"}},
	{"github.com/gagliardetto/solana-go/base58", []string{"httpgw", "fixgw", "persist", "internal/solana", "service", "cmd"}},
	{"github.com/gagliardetto/solana-go", []string{"internal/solana"}}, // keys, programs, instructions
	{"github.com/oasisprotocol/curve25519-voi", []string{"internal/solana"}},
}

// testLibraries may be imported by tests of every row and by nothing else.
var testLibraries = []string{
	"testing",
	"pgregory.net/rapid",
	"github.com/santhosh-tekuri/jsonschema",
	"github.com/google/jsonschema-go",
	"github.com/cockroachdb/datadriven",
	"github.com/anishathalye/porcupine",
	"go.uber.org/goleak",
}
