package terms

// Paths of DvP (spec, 4.4), and of a build's state (contract, section E).
const (
	PathHandshake = "/api/v1/dvp/handshake"
	PathBuild     = "/api/v1/dvp/build"
	PathSubmit    = "/api/v1/dvp/submit"
	PathBuilds    = "/api/v1/dvp/builds/"
	BuildSegment  = "{build_id}"
)

// SubmitFields are the members of the body of a submission (contract, section E)
// that answers about a claim name: the build and its signed transaction.
var SubmitFields = [...]string{"build_id", "transaction"}
