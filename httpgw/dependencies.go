package httpgw

import (
	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/httpgw/dvp"
	marketapi "blockdesk/httpgw/market"
	"blockdesk/httpgw/terms"
)

// Dependencies are what the surfaces answer from. A nil one leaves its routes out of
// the table.
type Dependencies struct {
	// WebSocket takes an upgrade request for /ws/rfq. It must not panic.
	WebSocket fasthttp.RequestHandler
	// Stream takes a request for /api/v1/market/stream, GET or HEAD, and answers it
	// itself, X-Request-Id and the headers of the limit apart. It must not panic.
	Stream fasthttp.RequestHandler
	// WebSocketHealth returns the body of /ws/rfq/health, any value that
	// encoding/json encodes. It is called once a request.
	WebSocketHealth func() any
	// History is behind klines, candles and trades older than a view's. Nil:
	// there is none.
	History marketapi.History
	// Signatures has the transactions that trades of mirrored instruments were made
	// by. Nil: none is known.
	Signatures marketapi.Signatures
	// Facts returns what the documents of package catalog are made of: the same
	// value until the next cycle, which nobody changes. It must not block for long.
	// Nil: none of them is served.
	Facts func() *catalog.Facts
	// Desk is behind every RFQ route.
	Desk terms.Desk
	// Settlement is behind claims and proofs of payment. Where it is nil, they
	// stand in the table, and what is right is answered CHAIN_UNAVAILABLE. The
	// same holds for Handshake and Cosigner; without a Handshake no token is good.
	Settlement terms.Settlement
	Handshake  dvp.Handshake
	Cosigner   dvp.Cosigner
	// ChainHealth is what /api/v1/dvp/status says of the chain, asked at most
	// once for a rendering of it. It must not block. Nil: nothing is known.
	ChainHealth func() desk.ChainHealth
}
