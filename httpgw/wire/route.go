package wire

import "github.com/valyala/fasthttp"

// Surface is an address that a route is served on, or a set of them.
type Surface uint8

const (
	OnBase Surface = 1 << iota
	OnAPI
	OnWS

	// OnREST are the two addresses of REST.
	OnREST = OnBase | OnAPI
)

// SurfaceNames are the words for single addresses, in logs and metrics.
var SurfaceNames = map[Surface]string{OnBase: "base", OnAPI: "api", OnWS: "ws"}

// Method is a request Method that a route may have. HEAD and OPTIONS follow
// from the others: a HEAD works wherever a GET does.
type Method uint8

const (
	MethodGet Method = iota + 1
	MethodPost
	MethodCount
)

// MethodNames are the methods as requests name them.
var MethodNames = [MethodCount]string{MethodGet: fasthttp.MethodGet, MethodPost: fasthttp.MethodPost}

// Cache says what a cache may do with an answer.
type Cache uint8

const (
	// NeverCached: errors, health, anything for one client.
	NeverCached Cache = iota + 1
	// LiveData may be kept, and must be asked about by its ETag each time.
	LiveData
	// ConfigData changes with a restart or a halt.
	ConfigData
	cacheClassCount
)

// CacheControl is the header's value for each class.
var CacheControl = [cacheClassCount][]byte{
	NeverCached: []byte("no-store"), LiveData: []byte("no-cache"), ConfigData: []byte("public, max-age=60"),
}

// LimitClass says which bucket a request takes its token from. All routes of a
// class share one bucket a client, over all addresses.
type LimitClass uint8

const (
	// Unlimited routes cost less than a refusal.
	Unlimited LimitClass = iota + 1
	// MarketLimit is the description's limit of market data; RFQ reads share it
	// (contract, section C).
	MarketLimit
	// PartnerLimit is that of aggregators, who poll faster (contract, section F).
	PartnerLimit
	// RFQWriteLimit is that of quotes, claims and proofs of payment.
	RFQWriteLimit
	// HandshakeLimit is that of nonces and tokens (contract, section C).
	HandshakeLimit
	// DvPLimit is the description's limit of builds and submissions.
	DvPLimit
	LimitClassCount
)

// Group is where the service description lists a route (spec, 2.4); "" = not listed.
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

// Route is one endpoint: a row of the table.
type Route struct {
	// path is compared byte for byte, but that a last segment in braces, as in
	// "/claims/{claim_id}", stands for any that IsSegment takes. A path without
	// braces goes before one with them. The metrics are labelled with path.
	Path   string
	Method Method
	On     Surface
	Cache  Cache
	Limit  LimitClass
	Group  Group
	// bearer: only who has a DvP token is answered (spec, 5.1). For a post.
	Bearer bool
	// wide: the document is of all groups, where there are some.
	Merged Merged
	// leader: only the node that leads can answer; see leadership.Leadership. Every post
	// is so.
	LeaderOnly bool
	// facts: made of a history, a settlement and a chain that a follower has not whole,
	// so that it would publish other figures than the leader.
	NotOnFollower bool

	// Exactly one of the five. read is a pure read: raw query string in, page
	// out. ReadOne is one of what the last segment names. post takes a JSON body.
	// raw takes an upgrade and does all of the answer itself; so does stream, which
	// answers without an end.
	Read    Reader
	ReadOne Reader
	Post    func(*Post) (*Answer, *Problem)
	Raw     fasthttp.RequestHandler
	Stream  fasthttp.RequestHandler
}

// Reader answers a read by its raw query, or by the last segment of its path.
type Reader = func(text []byte) (*Page, *Problem)

// Get returns the row of a GET with a query.
func Get(path string, on Surface, cache Cache, limit LimitClass, in Group, read Reader) Route {
	return Route{Path: path, Method: MethodGet, On: on, Cache: cache, Limit: limit, Group: in, Read: read}
}

// IsSegment reports whether text may be the last segment of a path that names
// something: 1..MaxSegment letters, digits and "_ . -", dots alone left out,
// since others on the way may take them for a direction.
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

// MethodOf returns the method that answers a request, 0 for one that no route
// takes.
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

// MaxSegment is the longest last segment of a path that names something, in
// bytes.
const MaxSegment = 64

// Page runs the handler of a read.
func (r *Route) Page(query, segment []byte) (*Page, *Problem) {
	if r.ReadOne != nil {
		return r.ReadOne(segment)
	}
	return r.Read(query)
}

// Merged says what of the groups a document is made of.
type Merged uint8

const (
	MergedDesks Merged = iota + 1
	MergedFacts
)
