package httpgw

import "github.com/valyala/fasthttp"

// surface is an address that a route is served on, or a set of them.
type surface uint8

const (
	onBase surface = 1 << iota
	onAPI
	onWS
)

var surfaceNames = map[surface]string{onBase: "base", onAPI: "api", onWS: "ws"}

// method is a request method that a route may have. HEAD and OPTIONS follow
// from the others: a HEAD works wherever a GET does.
type method uint8

const (
	methodGet method = iota + 1
	methodPost
	methodCount
)

var methodNames = [methodCount]string{methodGet: fasthttp.MethodGet, methodPost: fasthttp.MethodPost}

// cacheClass says what a cache may do with an answer.
type cacheClass uint8

const (
	// neverCached: errors, health, anything for one client.
	neverCached cacheClass = iota + 1
	// liveData may be kept, and must be asked about by its ETag each time.
	liveData
	// configData changes with a restart or a halt.
	configData
	cacheClassCount
)

var cacheControl = [cacheClassCount][]byte{
	neverCached: []byte("no-store"), liveData: []byte("no-cache"), configData: []byte("public, max-age=60"),
}

// limitClass says which bucket a request takes its token from. All routes of a
// class share one bucket a client, over all addresses.
type limitClass uint8

const (
	// unlimited routes cost less than a refusal.
	unlimited limitClass = iota + 1
	// marketLimit is the description's limit of market data; RFQ reads share it
	// (contract, section C).
	marketLimit
	// partnerLimit is that of aggregators, who poll faster (contract, section F).
	partnerLimit
	// rfqWriteLimit is that of quotes, claims and proofs of payment.
	rfqWriteLimit
	// handshakeLimit is that of nonces and tokens (contract, section C).
	handshakeLimit
	// dvpLimit is the description's limit of builds and submissions.
	dvpLimit
	limitClassCount
)

// group is where the service description lists a route (spec, 2.4); "" = not listed.
type group string

const (
	groupMarket    group = "market_data_rest"
	groupWebSocket group = "websocket"
	groupRFQ       group = "rfq"
	groupDesk      group = "desk_status"
	groupBoard     group = "public_board"
	groupDiscovery group = "discovery"
	groupHandshake group = "handshake"
	groupDvP       group = "dvp_build_submit"
)

// route is one endpoint: a row of the table.
type route struct {
	// path is compared byte for byte, but that a last segment in braces, as in
	// "/claims/{claim_id}", stands for any that isSegment takes. A path without
	// braces goes before one with them. The metrics are labelled with path.
	path     string
	method   method
	surfaces surface
	cache    cacheClass
	limit    limitClass
	group    group
	// bearer: only who has a DvP token is answered (spec, 5.1). For a post.
	bearer bool
	// wide: the document is of all groups, where there are some.
	wide wideParts
	// leader: only the node that leads can answer; see Options.ReadOnly. Every post
	// is so.
	leader bool
	// facts: made of a history, a settlement and a chain that a follower has not whole,
	// so that it would tell other figures than the leader.
	facts bool

	// Exactly one of the five. read is a pure read: raw query string in, page
	// out. readOne is one of what the last segment names. post takes a JSON body.
	// raw takes an upgrade and does all of the answer itself; so does stream, which
	// answers without an end.
	read    func(query []byte) (*page, *problem)
	readOne func(segment []byte) (*page, *problem)
	post    func(*post) (*answer, *problem)
	raw     fasthttp.RequestHandler
	stream  fasthttp.RequestHandler
}

// isSegment reports whether text may be the last segment of a path that names
// something: 1..MaxSegment letters, digits and "_ . -", dots alone left out,
// since others on the way may take them for a direction.
func isSegment(text []byte) bool {
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

// methodOf returns the method that answers a request, 0 for one that no route
// takes.
func methodOf(name []byte) method {
	switch string(name) {
	case fasthttp.MethodGet, fasthttp.MethodHead:
		return methodGet
	case fasthttp.MethodPost:
		return methodPost
	default:
		return 0
	}
}

// MaxSegment is the longest last segment of a path that names something, in
// bytes.
const MaxSegment = 64

// page runs the handler of a read.
func (r *route) page(query, segment []byte) (*page, *problem) {
	if r.readOne != nil {
		return r.readOne(segment)
	}
	return r.read(query)
}

// wideParts says what of the groups a document is made of.
type wideParts uint8

const (
	ofDesks wideParts = iota + 1
	ofFacts
)
