package feed

// message is one message to subscribers in the dialects that have been asked for.
// A dialect's bytes are made once, for all who speak it, and never change. The
// zero value says nothing.
type encodedMessage struct {
	frame []byte // as the encoder made it: a WebSocket frame
	// large: worth compressing. Deflate pays for snapshots and costs for updates.
	large      bool
	compressed []byte // frame compressed, or frame itself where that does not pay; nil = not asked for yet
	event      []byte // as a server-sent event; nil = not asked for yet
}

// in returns what a connection of that dialect is sent; nil = nothing. The
// deflater is the caller's.
func (m *encodedMessage) as(d encoding, z *deflater) []byte {
	if d == eventStream && m.frame != nil {
		if m.event == nil {
			m.event = appendEvent(nil, m.frame)
		}
		return m.event
	}
	if d != deflated || !m.large || len(m.frame) < minDeflate {
		return m.frame
	}
	if m.compressed == nil {
		m.compressed = z.frame(m.frame)
	}
	return m.compressed
}
