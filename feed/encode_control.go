package feed

import (
	"fmt"

	"blockdesk/market"
)

// apiVersion is the version of the market API (docs/specification.md 9).
const apiVersion = "1.1.0"

// welcome returns the first message of a connection.
func (e *encoder) welcome(o *Options, session string, epoch uint64) []byte {
	e.begin()
	e.buf = fmt.Appendf(e.buf, `{"channel":"status","type":"welcome","session":"%s","epoch":"e%d","api_version":"`+apiVersion+`","limits":{`+
		`"frame_bytes":%d,"messages_per_s":%d,"connections_per_ip":%d,"subscriptions":%d,"symbols_per_request":%d,"resume_updates":%d,`+
		`"subscribe_within_ms":%d,"slow_after_ms":%d,"heartbeat_ms":%d,"depths":[%d,%d,%d,%d]}}`,
		session, epoch, MaxFrame, o.MessagesPerSecond, o.MaxPerIP, o.MaxSubscriptions, maxSymbols, MaxResume,
		o.SubscribeWithin.Milliseconds(), o.SlowAfter.Milliseconds(), o.Heartbeat.Milliseconds(), depths[0], depths[1], depths[2], depths[3])
	return e.end(finText)
}

// openControl begins an answer. id is the request's id as in its JSON, or empty.
func (e *encoder) openControl(form string, id []byte) {
	e.begin()
	e.text(`{"channel":"control","type":"`)
	e.text(form)
	e.text(`"`)
	if len(id) > 0 {
		e.text(`,"id":`)
		e.buf = append(e.buf, id...)
	}
}

// errorMessage returns an error message.
func (e *encoder) errorMessage(id []byte, f fault) []byte {
	e.openControl("error", id)
	e.text(`,"code":"`)
	e.text(f.code)
	e.text(`","message":"`)
	e.text(f.message)
	e.text(`","retryable":`)
	e.bool(f.retryable)
	e.text(`}`)
	return e.end(finText)
}

// pong returns the answer to PING.
func (e *encoder) pong(id []byte, at int64) []byte {
	e.openControl("pong", id)
	e.text(`,"ts":`)
	e.ts(at)
	e.text(`}`)
	return e.end(finText)
}

// openAck begins an acknowledgement; subscribed adds the subscriptions that the request
// concerns, and closeAck ends it. For UNSUBSCRIBE_MARKET they are those that have ended.
func (e *encoder) openAck(a action, id []byte, success bool) {
	e.openControl("ack", id)
	e.text(`,"action":"`)
	e.text(a.String())
	e.text(`","success":`)
	e.bool(success)
	if a == unsubscribe {
		e.text(`,"unsubscribed":[`)
	} else {
		e.text(`,"subscribed":[`)
	}
}

func (e *encoder) subscribed(in *market.Instrument, k kind, seq uint64, resumed bool, more bool) {
	if more {
		e.text(`,`)
	}
	e.text(`{"channel":"`)
	e.text(k.channel())
	e.text(`","symbol":"`)
	e.text(in.Symbol)
	e.text(`"`)
	if k < trades {
		e.text(`,"depth":`)
		e.number(uint64(depths[k]))
	}
	e.text(`,"seq":`)
	e.number(seq)
	e.text(`,"resumed":`)
	e.bool(resumed)
	e.text(`}`)
}

func (e *encoder) closeAck(rejected []rejection) []byte {
	e.text(`],"rejected":[`)
	for i := range rejected {
		if i > 0 {
			e.text(`,`)
		}
		e.text(`{"channel":`)
		e.buf = append(e.buf, rejected[i].channel...)
		if len(rejected[i].symbol) > 0 {
			e.text(`,"symbol":`)
			e.buf = append(e.buf, rejected[i].symbol...)
		}
		e.text(`,"code":"`)
		e.text(rejected[i].code)
		if rejected[i].wsURL != "" {
			e.text(`","ws_url":"`)
			e.text(rejected[i].wsURL)
		}
		e.text(`"}`)
	}
	e.text(`]}`)
	return e.end(finText)
}

// heartbeatHead begins a heartbeat and no other message.
const heartbeatHead = channelHead + `heartbeat"`

// openHeartbeat begins a heartbeat; heartbeatSeq adds sequence numbers, and closeHeartbeat
// ends it.
func (e *encoder) openHeartbeat(at int64) {
	e.begin()
	e.text(heartbeatHead + `,"ts":`)
	e.ts(at)
	e.text(`,"seqs":{`)
}

func (e *encoder) heartbeatSeq(in *market.Instrument, k kind, seq uint64, more bool) {
	if more {
		e.text(`,`)
	}
	e.text(`"`)
	e.text(k.channel())
	e.text(`:`)
	e.text(in.Symbol)
	e.text(`":`)
	e.number(seq)
}

func (e *encoder) closeHeartbeat() []byte {
	e.text(`}}`)
	return e.end(finText)
}

// closing returns a close frame. text is at most 123 bytes.
func (e *encoder) closing(code uint16, text string) []byte {
	e.begin()
	e.buf = append(e.buf, byte(code>>8), byte(code))
	e.text(text)
	return e.end(finClose)
}

// pongFrame returns a pong frame. data is at most 125 bytes.
func (e *encoder) pongFrame(data []byte) []byte {
	e.begin()
	e.buf = append(e.buf, data...)
	return e.end(finPong)
}
