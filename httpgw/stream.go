package httpgw

// streamRoutes are the rows of server-sent events. There are none without a door.
// A connection costs one token, however long it lasts.
func (g *Gateway) streamRoutes(doors Doors) []route {
	if doors.Stream == nil {
		return nil
	}
	return []route{{
		path: "/api/v1/market/stream", method: methodGet, surfaces: onBase | onAPI,
		cache: neverCached, limit: marketLimit, group: groupMarket, stream: doors.Stream,
	}}
}
