package feed

// encodedMessage is a market-data message in the encodings that connections have asked
// for. Each encoding is made once for all its subscribers and never changes. The zero
// value is no message.
type encodedMessage struct {
	frame []byte // WebSocket frame as encoded
	// large: compress it. Compression pays for snapshots and costs more than it saves on
	// updates.
	large      bool
	compressed []byte // compressed frame, or frame if that is shorter; nil = not made yet
	event      []byte // as a server-sent event; nil = not made yet
}

// as returns the message in an encoding; nil if there is none. z belongs to the caller.
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

// encoding is the form in which a connection gets messages.
type encoding uint8

const (
	plain        encoding = iota // WebSocket frames
	deflated                     // WebSocket frames, snapshots compressed (RFC 7692)
	eventStream                  // server-sent events
	numEncodings                 // their number
)
