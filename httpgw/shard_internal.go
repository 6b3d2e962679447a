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

// internalRequest is what a gateway states about a request that it forwards, in a header:
//
//	X-Blockdesk-Hop: v1 FROM TO UNIX_MS CLIENT TAKER MAC
//
// FROM and TO are numbers of shards, CLIENT is the address that the limits counted,
// TAKER the owner of its DvP token in base58, or "-". MAC is the hexadecimal
// HMAC-SHA256, with the shards' secret, of all of that and the request's method, target,
// Idempotency-Key and body. Outsiders can therefore neither claim that a request was
// admitted nor change one. A captured request can be replayed for internalLifetime, which
// does no more than a client that repeats it.
//
// A request with the header is never forwarded, so there are no loops. A request with an
// invalid header is refused, and not treated as a client's.
type internalRequest struct {
	from   market.ShardID
	client netip.Addr
	taker  market.Address // zero = no token, or one that this shard does not know
}

type internalRequestKey struct{}

const (
	internalHeader  = "X-Blockdesk-Hop"
	internalVersion = "v1"
	internalFields  = 7
	// maxInternalHeader is the longest header value, in bytes.
	maxInternalHeader = 256
	// internalLifetime bounds the age of a header and the difference of the two clocks.
	internalLifetime = 30 * time.Second
)

// internalRequestIn returns the statement of another gateway about a request, or nil if a
// client sent it.
func (r *shardRouter) internalRequestIn(ctx *fasthttp.RequestCtx) (*internalRequest, *wire.Problem) {
	lines := ctx.Request.Header.PeekAll(internalHeader)
	if len(lines) == 0 {
		return nil, nil
	}
	h, ok := r.verify(lines, &ctx.Request)
	if !ok {
		return nil, &wire.Problem{
			Status: 400, Code: wire.CodeInvalidField, Field: internalHeader, Reason: "not_signed",
			Text: "This header is reserved for signed requests between groups.",
		}
	}
	return h, nil
}

// verify parses and checks the header of an internal request to this shard.
func (r *shardRouter) verify(lines [][]byte, request *fasthttp.Request) (*internalRequest, bool) {
	if len(lines) != 1 || len(lines[0]) > maxInternalHeader {
		return nil, false
	}
	cut := bytes.LastIndexByte(lines[0], ' ')
	if cut < 0 {
		return nil, false
	}
	signed := lines[0][:cut]
	mac, err := hex.DecodeString(string(lines[0][cut+1:]))
	if err != nil || !hmac.Equal(mac, r.sign(signed, request.Header.RequestURI(), request)) {
		return nil, false
	}
	// The signature is valid, so some version of appendInternalHeader wrote the header.
	fields := bytes.Split(signed, []byte{' '})
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

// appendInternalHeader appends the header's value for a request to the target raw.
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

// newMACs returns a pool of HMAC-SHA256 [hash.Hash] values with a secret, because
// creating one costs more than using it.
func newMACs(secret []byte) *sync.Pool {
	return &sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }}
}

// sign returns the MAC of a header without its MAC, and of a request to the target raw.
func (r *shardRouter) sign(signed, raw []byte, request *fasthttp.Request) []byte {
	h := &request.Header
	body := sha256.Sum256(request.Body())
	mac := r.macs.Get().(hash.Hash)
	defer r.macs.Put(mac)
	mac.Reset()
	// One line each; none of them contains a line break.
	for _, part := range [][]byte{signed, h.Method(), raw, h.Peek(wire.IdempotencyHeader)} {
		_, _ = mac.Write(part) // never fails
		_, _ = mac.Write([]byte{'\n'})
	}
	_, _ = mac.Write(body[:])
	return mac.Sum(nil)
}
