package httpgw

// Groups of the desk's routes in the service description (spec, 2.4).
const (
	groupRFQ       group = "rfq"
	groupDesk      group = "desk_status"
	groupBoard     group = "public_board"
	groupDiscovery group = "discovery"
)

// rfqRoutes are the rows of the reading half of the RFQ surface (spec, 4.1 and
// 4.3). There are none without a desk.
func (g *Gateway) rfqRoutes() []route {
	return nil
}
