package httpgw

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go/base58"
	"github.com/valyala/fasthttp"

	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// hop is what a gateway says of a request that it forwards, in one header:
//
//	X-Blockdesk-Hop: v1 FROM TO UNIX_MS CLIENT TAKER MAC
//
// FROM and TO are groups' numbers, CLIENT is the address that its limits have
// counted for, TAKER the key of its DvP token in base58, or "-". MAC is
// HMAC-SHA256, in hexadecimal digits, by the groups' secret over all of that and
// the request: its method, target, Idempotency-Key and body. So nobody outside
// can say that a request was admitted, or for whom, and nobody on the way can
// change one; within internalLifetime the same request may be sent twice, as by the client.
//
// A request with the header is never forwarded, so there are no loops; one whose
// header is not right is refused, and not taken for a client's.
type internalRequest struct {
	from   market.ShardID
	client netip.Addr
	taker  market.Address // zero = no token, or one that only the other group may know
}

type internalRequestKey struct{}

const (
	internalHeader  = "X-Blockdesk-Hop"
	internalVersion = "v1"
	internalFields  = 7
	// maxInternalHeader is the longest header that is looked at, in bytes.
	maxInternalHeader = 256
	// internalLifetime is how far the two clocks may be apart, and how long a hop is good.
	internalLifetime = 30 * time.Second
)

// arrived returns what another gateway says of a request; nil where it comes from
// a client.
func (r *shardRouter) internalRequestIn(ctx *fasthttp.RequestCtx) (*internalRequest, *wire.Problem) {
	lines := ctx.Request.Header.PeekAll(internalHeader)
	if len(lines) == 0 {
		return nil, nil
	}
	h, ok := r.verify(lines, &ctx.Request)
	if !ok {
		return nil, &wire.Problem{
			Status: 400, Code: wire.CodeInvalidField, Field: internalHeader, Reason: "not_signed",
			Text: "This header is for the gateways of other groups, which sign it.",
		}
	}
	return h, nil
}

// verify reads the header of a hop to us that is not older than internalLifetime.
func (r *shardRouter) verify(lines [][]byte, request *fasthttp.Request) (*internalRequest, bool) {
	if len(lines) != 1 || len(lines[0]) > maxInternalHeader {
		return nil, false
	}
	said, digits, _ := cutLast(lines[0], ' ')
	mac := make([]byte, sha256.Size)
	if len(digits) != hex.EncodedLen(len(mac)) {
		return nil, false
	}
	if _, err := hex.Decode(mac, digits); err != nil {
		return nil, false
	}
	if !hmac.Equal(mac, r.sign(said, request.Header.RequestURI(), request)) {
		return nil, false
	}
	// Signed, so written by appendInternalHeader of some version.
	fields := bytes.Split(said, []byte{' '})
	if len(fields) != internalFields-1 || string(fields[0]) != internalVersion {
		return nil, false
	}
	from, err1 := strconv.ParseUint(string(fields[1]), 10, 8)
	to, err2 := strconv.ParseUint(string(fields[2]), 10, 8)
	ms, err3 := strconv.ParseInt(string(fields[3]), 10, 64)
	client, err4 := netip.ParseAddr(string(fields[4]))
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || market.ShardID(to) != r.own {
		return nil, false
	}
	if age := r.now()/int64(time.Millisecond) - ms; age > internalLifetime.Milliseconds() || age < -internalLifetime.Milliseconds() {
		return nil, false
	}
	h := &internalRequest{from: market.ShardID(from), client: client}
	if text := fields[5]; string(text) != "-" {
		var ok bool
		if h.taker, ok = wire.ParseAddress(text); !ok {
			return nil, false
		}
	}
	return h, true
}

// appendInternalHeader appends the header's value for a request to a raw target.
func (r *shardRouter) appendInternalHeader(dst []byte, h *internalRequest, to market.ShardID, raw []byte, request *fasthttp.Request) []byte {
	taker := "-"
	if h.taker != (market.Address{}) {
		taker = base58.Encode(h.taker[:])
	}
	from := len(dst)
	dst = append(append(dst, internalVersion...), ' ')
	dst = append(strconv.AppendUint(dst, uint64(h.from), 10), ' ')
	dst = append(strconv.AppendUint(dst, uint64(to), 10), ' ')
	dst = append(strconv.AppendInt(dst, r.now()/int64(time.Millisecond), 10), ' ')
	dst = append(h.client.AppendTo(dst), ' ')
	dst = append(dst, taker...)
	mac := r.sign(dst[from:], raw, request)
	return hex.AppendEncode(append(dst, ' '), mac)
}

// newMACs returns a pool of [hash.Hash], HMAC-SHA256 by a secret: to make one costs
// more than to use it.
func newMACs(secret []byte) *sync.Pool {
	return &sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }}
}

// sign returns the MAC of what is said of a request to a raw target.
func (r *shardRouter) sign(said, raw []byte, request *fasthttp.Request) []byte {
	h := &request.Header
	body := sha256.Sum256(request.Body())
	mac := r.macs.Get().(hash.Hash)
	defer r.macs.Put(mac)
	mac.Reset()
	// A line each, of things that have no line's end in them.
	for _, part := range [][]byte{said, h.Method(), raw, h.Peek(wire.IdempotencyHeader)} {
		_, _ = mac.Write(part) // never fails
		_, _ = mac.Write([]byte{'\n'})
	}
	_, _ = mac.Write(body[:])
	return mac.Sum(nil)
}

// cutLast cuts at the last sep; all is before it where there is none.
func cutLast(text []byte, sep byte) (before, after []byte, found bool) {
	i := bytes.LastIndexByte(text, sep)
	if i < 0 {
		return text, nil, false
	}
	return text[:i], text[i+1:], true
}

func cutComma(text []byte) (before, after []byte, found bool) { return bytes.Cut(text, []byte{','}) }
