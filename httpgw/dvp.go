package httpgw

// Groups of the DvP routes in the service description (spec, 2.4).
const (
	groupHandshake group = "handshake"
	groupDvP       group = "dvp_build_submit"
)

// Paths of DvP (spec, 4.4), and of a build's state (contract, section E).
const (
	pathHandshake = "/api/v1/dvp/handshake"
	pathBuild     = "/api/v1/dvp/build"
	pathSubmit    = "/api/v1/dvp/submit"
	pathBuilds    = "/api/v1/dvp/builds/"
	buildSegment  = "{build_id}"
)

// dvpRoutes are the rows of DvP. There are none without a desk.
func (g *Gateway) dvpRoutes() []route {
	if g.desk == nil {
		return nil
	}
	row := func(path string, limit limitClass, in group, do func(*post) (*answer, *problem)) route {
		return route{
			path: path, method: methodPost, surfaces: onBase, cache: neverCached, limit: limit, group: in,
			bearer: limit == dvpLimit, leader: true, post: do,
		}
	}
	return []route{
		{
			path: pathHandshake, method: methodGet, surfaces: onBase, cache: configData, limit: marketLimit,
			group: groupHandshake, read: g.handshakeTermsPage(),
		},
		row(pathHandshake, handshakeLimit, groupHandshake, g.postHandshake),
		row(pathBuild, dvpLimit, groupDvP, g.postBuild),
		row(pathSubmit, dvpLimit, groupDvP, g.postSubmit),
		{
			path: pathBuilds + buildSegment, method: methodGet, surfaces: onBase, cache: liveData, limit: marketLimit,
			group: groupDvP, leader: true, readOne: g.serveBuild,
		},
	}
}

// Machine words of REFUS_DVP that this package gives itself.
const (
	guardEmpty = "empty_counterparty"
	guardOther = "refused" // for a guard whose name is no machine word
)

// guards are the sentences for the words of a [desk.Refusal] that are not the desk's
// own (contract, section E).
var guards = map[string]string{
	guardEmpty:          "There is no counterparty: its address or its signature is empty.",
	"message_mismatch":  "This is not, byte for byte, the transaction that was built.",
	"bad_signature":     "The signature is not one of the taker over the transaction that was built.",
	"expired":           "The build can land no more, its reservation has ended, or the desk has changed since. Ask for a new one.",
	"already_settled":   "The claim has been settled.",
	"taker_funds":       "The taker does not hold what it is to pay.",
	"unbuildable":       "No transaction can settle this claim, for its wallet or its terms.",
	"simulation_failed": "The transaction would fail on the chain.",
}

// guarded says what a guard that has tripped is on the wire: REFUS_DVP, unless
// its word has a code of its own elsewhere.
func guarded(word string) *problem {
	if word == tokenOfAnother {
		return refuseToken(word)
	}
	for reason := range refusals {
		if reason.String() == word {
			return refuse(reason)
		}
	}
	bad := &problem{status: 409, code: codeRefused, reason: word, text: guards[word]}
	if bad.text == "" {
		bad.text = "A guard of the desk has refused this."
	}
	if !isWord(word) {
		bad.reason = guardOther
	}
	return bad
}

// isWord reports whether text is a machine word, which stands in JSON as it is.
func isWord(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return text != "" && len(text) <= MaxSegment
}

// rename calls the field that a refusal is about as this route does.
func (p *problem) rename(from, to string) *problem {
	if p.field == from {
		p.field = to
	}
	return p
}
