package httpgw

// Paths of DvP (spec, 4.4), and of a build's state (contract, section E).
const (
	pathHandshake = "/api/v1/dvp/handshake"
	pathBuild     = "/api/v1/dvp/build"
	pathSubmit    = "/api/v1/dvp/submit"
	pathBuilds    = "/api/v1/dvp/builds/"
	buildSegment  = "{build_id}"
)

// submitFields are the members of the body of a submission (contract, section E)
// that answers about a claim name: the build and its signed transaction.
var submitFields = [...]string{"build_id", "transaction"}
