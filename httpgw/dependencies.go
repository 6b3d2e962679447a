package httpgw

import (
	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/httpgw/dvp"
	marketapi "blockdesk/httpgw/market"
	"blockdesk/httpgw/terms"
)

// Dependencies are the packages that the surfaces call. A nil field removes its routes.
type Dependencies struct {
	// WebSocket serves upgrade requests for /ws/rfq. It must not panic.
	WebSocket fasthttp.RequestHandler
	// Stream serves GET and HEAD of /api/v1/market/stream. It writes the whole answer
	// except X-Request-Id and the rate limit headers. It must not panic.
	Stream fasthttp.RequestHandler
	// WebSocketHealth returns the body of /ws/rfq/health for encoding/json. It is called
	// once per request.
	WebSocketHealth func() any
	// History has klines, candles and trades older than those of a view. Nil: none.
	History marketapi.History
	// Signatures has the transactions of the trades of mirrored instruments. Nil: none.
	Signatures marketapi.Signatures
	// Swaps has those trades as they are on the chain. Nil: none.
	Swaps marketapi.Swaps
	// Facts returns the facts of the catalog's documents: the same immutable value until
	// the next cycle. It must not block for long. Nil: these documents are not served.
	Facts func() *catalog.Facts
	// Prices returns the prices of the assets that have rules. It must not block. Nil: no
	// asset has one.
	Prices func() []desk.AssetPrice
	// Network returns the name of the network on which trades execute: catalog.NetworkName.
	// It must not block. Nil: catalog.ExecutionNetwork.
	Network func() string
	// Desk serves all RFQ and DvP routes.
	Desk terms.Desk
	// Settlement serves claims and proofs of payment. If it is nil, valid requests are
	// answered CHAIN_UNAVAILABLE. The same holds for Handshake and Cosigner; without a
	// Handshake no token is valid.
	Settlement terms.Settlement
	Handshake  dvp.Handshake
	Cosigner   dvp.Cosigner
	// ChainHealth returns the chain's health for /api/v1/dvp/status. It is called at most
	// once per rendering and must not block. Nil: unknown.
	ChainHealth func() desk.ChainHealth
}
