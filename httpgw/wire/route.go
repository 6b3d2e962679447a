package wire

import "github.com/valyala/fasthttp"

// Surface is a set of listening addresses that serve a route.
type Surface uint8

const (
	OnBase Surface = 1 << iota
	OnAPI
	OnWS

	// OnREST is both REST addresses.
	OnREST = OnBase | OnAPI
)

// SurfaceNames names single addresses in logs and metrics.
var SurfaceNames = map[Surface]string{OnBase: "base", OnAPI: "api", OnWS: "ws"}

// Method is the request method of a route. Every route also answers OPTIONS, and HEAD
// if it answers GET.
type Method uint8

const (
	MethodGet Method = iota + 1
	MethodPost
	MethodCount
)

// MethodNames are the methods in HTTP.
var MethodNames = [MethodCount]string{MethodGet: fasthttp.MethodGet, MethodPost: fasthttp.MethodPost}

// Cache is the Cache-Control class of an answer.
type Cache uint8

const (
	NeverCached Cache = iota + 1 // errors, health, answers for one client
	LiveData                     // may be stored, and must be revalidated by its ETag
	ConfigData                   // changes only with a restart or a halt
	cacheClassCount
)

// CacheControl is the value of Cache-Control by class.
var CacheControl = [cacheClassCount][]byte{
	NeverCached: []byte("no-store"), LiveData: []byte("no-cache"), ConfigData: []byte("public, max-age=60"),
}

// LimitClass selects the rate limit of a route (docs/specification.md 8 and C.3). All
// routes of a class share one bucket per client, over all addresses.
type LimitClass uint8

const (
	Unlimited      LimitClass = iota + 1 // answering costs less than refusing
	MarketLimit                          // market data and RFQ reads
	PartnerLimit                         // adapters of aggregators
	RFQWriteLimit                        // quotes, claims and proofs of payment
	HandshakeLimit                       // nonces and tokens
	DvPLimit                             // builds and submissions
	LimitClassCount
)

// Group is the heading under which GET / lists a route (docs/specification.md 2.4);
// "" = not listed.
type Group string

const (
	GroupMarket    Group = "market_data_rest"
	GroupWebSocket Group = "websocket"
	GroupRFQ       Group = "rfq"
	GroupDesk      Group = "desk_status"
	GroupBoard     Group = "public_board"
	GroupDiscovery Group = "discovery"
	GroupHandshake Group = "handshake"
	GroupDvP       Group = "dvp_build_submit"
)

// Route is one endpoint.
type Route struct {
	// Path is compared byte for byte. A segment in braces, the last one or the one before
	// it, as in "/claims/{claim_id}", matches any that IsSegment accepts; a path without
	// braces takes precedence. Path is also the label of the route's metrics.
	Path string
	// Query is the template of the query that the read requires, "symbol={symbol}"; empty
	// if it requires none.
	Query string
	// Params are the names of all query parameters; others are refused. Nil: the query is
	// not looked at.
	Params []string
	Method Method
	On     Surface
	Cache  Cache
	Limit  LimitClass
	Group  Group
	// Bearer: a POST that requires a DvP token (docs/specification.md 5).
	Bearer bool
	// MayBearer: a POST that accepts a DvP token, which must then be valid.
	MayBearer bool
	// Merged: the document covers all shards.
	Merged Merged
	// LeaderOnly: only the leader can answer, as with every POST; see
	// leadership.Leadership.
	LeaderOnly bool
	// NotOnFollower: a follower lacks part of the history, settlement and chain data of
	// this document and would publish other figures than the leader.
	NotOnFollower bool

	// Exactly one handler is set.
	Read    Reader // takes the raw query
	ReadOne Reader // takes the last segment of the path
	// ReadOneOf takes the last segment of the path and the raw query.
	ReadOneOf func(segment, query []byte) (*Page, *Problem)
	Post      func(*Post) (*Answer, *Problem) // takes a JSON body
	Raw       fasthttp.RequestHandler         // takes an upgrade and writes the whole answer
	Stream    fasthttp.RequestHandler         // writes an answer without an end
}

// Reader answers a GET from its raw query or from the last segment of its path.
type Reader = func(text []byte) (*Page, *Problem)

// Get returns the route of a GET that takes a query.
func Get(path string, on Surface, cache Cache, limit LimitClass, in Group, read Reader) Route {
	return Route{Path: path, Method: MethodGet, On: on, Cache: cache, Limit: limit, Group: in, Read: read}
}

// IsSegment reports whether text may be the last segment of a path with braces:
// 1..MaxSegment letters, digits and "_ . -". It excludes "." and "..", which proxies may
// resolve.
func IsSegment(text []byte) bool {
	if len(text) == 0 || len(text) > MaxSegment || string(text) == "." || string(text) == ".." {
		return false
	}
	for _, c := range text {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// MethodOf returns the route method of a request method, or 0 if no route has it.
func MethodOf(name []byte) Method {
	switch string(name) {
	case fasthttp.MethodGet, fasthttp.MethodHead:
		return MethodGet
	case fasthttp.MethodPost:
		return MethodPost
	default:
		return 0
	}
}

// MaxSegment is the longest last segment of a path with braces, in bytes.
const MaxSegment = 64

// Page runs the handler of a GET.
func (r *Route) Page(query, segment []byte) (*Page, *Problem) {
	if r.Params != nil && len(query) > 0 {
		if problem := CheckParams(query, r.Params); problem != nil {
			return nil, problem
		}
	}
	switch {
	case r.ReadOneOf != nil:
		return r.ReadOneOf(segment, query)
	case r.ReadOne != nil:
		return r.ReadOne(segment)
	default:
		return r.Read(query)
	}
}

// Merged selects what a document merges from all shards; 0 = nothing.
type Merged uint8

const (
	MergedDesks Merged = iota + 1
	MergedFacts
)
