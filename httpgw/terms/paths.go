package terms

// Paths of DvP (docs/specification.md 4.4) and of a build's state (C.5).
const (
	PathHandshake = "/api/v1/dvp/handshake"
	PathBuild     = "/api/v1/dvp/build"
	PathSubmit    = "/api/v1/dvp/submit"
	PathBuilds    = "/api/v1/dvp/builds/"
	BuildSegment  = "{build_id}"
)

// SubmitFields are the names of the two members of a submission: the build, and its signed
// transaction (docs/specification.md C.5). Answers about a claim list them.
var SubmitFields = [...]string{"build_id", "transaction"}
