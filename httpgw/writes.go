package httpgw

import "blockdesk/engine/rfq"

// writeRoutes are the rows of the writing half of the RFQ surface (spec, 4.1),
// and the one read of what it made. There are none without a desk. The native
// backend is served by the base address; its aliases do the same.
func (g *Gateway) writeRoutes() []route {
	if g.desk == nil {
		return nil
	}
	row := func(path string, on surface, do func(*post) (*answer, *problem)) route {
		return route{
			path: path, method: methodPost, surfaces: on, cache: neverCached, limit: rfqWriteLimit,
			group: groupRFQ, leader: true, post: do,
		}
	}
	const both = onBase | onAPI
	return []route{
		row(pathRFQ+"quote", both, g.postQuote),
		row(pathNativeModular, onBase, g.postModularClaim),
		row(pathModular, both, g.postModularClaim),
		row(pathNativeAtomic, onBase, g.postAtomicClaim),
		row(pathAtomic, both, g.postAtomicClaim),
		row(pathNativeVerify, onBase, g.postPayment),
		row(pathAliasVerify, onBase, g.postPayment),
		row(pathFallbackVerify, onAPI, g.postPayment),
		{
			path: pathRFQ + "claims/{claim_id}", method: methodGet, surfaces: both, cache: liveData,
			limit: marketLimit, group: groupRFQ, leader: true, readOne: g.serveClaim,
		},
	}
}

// deskView returns the newest view; before the first one, an empty one.
func (g *Gateway) deskView() *rfq.View {
	if v := g.desk.View(); v != nil {
		return v
	}
	return &rfq.View{}
}

// terms returns a writer of terms under the newest view.
func (g *Gateway) terms() termsWriter { return termsWriter{g.opts.Instruments, g.deskView()} }
