package httpgw

// Groups of the desk's routes in the service description (spec, 2.4).
const (
	groupRFQ       group = "rfq"
	groupDesk      group = "desk_status"
	groupBoard     group = "public_board"
	groupDiscovery group = "discovery"
)

// rfqRoutes are the rows of the reading half of the RFQ surface (spec, 4.1 and
// 4.3). There are none without a desk. The public mirror, the registry backend
// and the native backend read one book, so they serve the same bytes.
func (g *Gateway) rfqRoutes() []route {
	if g.rfq == nil {
		return nil
	}
	row := func(path string, on surface, cache cacheClass, in group, d document) route {
		r := route{
			path: path, method: methodGet, surfaces: on, cache: cache, limit: marketLimit, group: in,
			leader: d == docStatus || d == docDesk, // which say how the settlement is
			read:   g.rfq.serve(d),
		}
		switch d {
		case docSellable, docTickets, docCompact, docPairs, docTokens, docBoard:
			r.read, r.wide = g.rfqAll.serve(d), ofDesks
		}
		return r
	}
	const both = onBase | onAPI
	return []route{
		row(pathStatus, both, liveData, groupRFQ, docStatus),
		row(pathSellable, both, liveData, groupRFQ, docSellable),
		row(pathTickets, both, liveData, groupRFQ, docTickets),
		row(pathCompact, both, liveData, groupRFQ, docCompact),
		row(pathLevels, both, liveData, groupRFQ, docLevels),
		row(pathPairs, both, liveData, groupRFQ, docPairs),
		row(pathTokens, both, liveData, groupRFQ, docTokens),
		row(pathRails, both, liveData, groupRFQ, docRails),
		row(pathManifest, both, liveData, groupRFQ, docManifest),
		row(pathNativeTickets, onBase, liveData, groupRFQ, docTickets),
		row(pathNativeSellable, onBase, liveData, groupRFQ, docSellable),
		row(pathDiscovery, both, configData, groupDiscovery, docDiscovery),
		row(pathBoard, onBase, liveData, groupBoard, docBoard),
		row(pathDeskStatus, onBase, liveData, groupDesk, docDesk),
	}
}
