package feed

// message is one message to subscribers in the dialects that have been asked for.
// A dialect's bytes are made once, for all who speak it, and never change. The
// zero value says nothing.
type message struct {
	frame []byte // as the encoder made it: a WebSocket frame
	// large: worth compressing. Deflate pays for snapshots and costs for updates.
	large bool
}

// in returns what a connection of that dialect is sent; nil = nothing.
func (m *message) in(dialect) []byte { return m.frame }
