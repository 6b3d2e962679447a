package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// patience bounds the wait for the desk's book.
const patience = time.Minute

const (
	TicketsTarget = "/api/v1/rfq/market-tickets"
	QuoteTarget   = "/api/v1/rfq/quote"
	FullBook      = 1000 // of the full RFQ book
	TicketsEach   = 100  // posted from one address
)

// DeskConfig is the configuration of a desk that quotes both rails. There are no keys of
// these addresses. Quotes live for a second, so that many can be requested.
const DeskConfig = `rfq:
  quote_ttl_s: 1
  sol_price_usd: "150"
  pay_to: {USDC: PLaceho1derPaytoUSDCxxxxxxxxxxxxxxxxxxxxxxx, SOL: PLaceho1derPaytoSoLxxxxxxxxxxxxxxxxxxxxxxxx}
  pairs:
    - {symbol: SLUSD/USDC, base_mint: PLaceho1derSLUSDmintxxxxxxxxxxxxxxxxxxxxxxx, base_decimals: 6, rails: [USDC, SOL], price_source: operator, reference_price_usd: "0.999", corridor_bps: 1000, max_age_s: 3600, inventory: "1000000000"}
`

// PostTickets fills the desk's book with tickets of one pair and waits until it
// shows them.
func PostTickets(srv *Server, n int) error {
	if err := OfferTickets(srv, Symbol, n, Visitor); err != nil {
		return err
	}
	return AwaitTickets(srv.Addresses.Base, n)
}

// OfferTickets posts tickets of a pair over the admin address, as an operator does,
// from 127.0.0.host and the addresses that follow, because it limits each client address.
func OfferTickets(srv *Server, symbol string, n, host int) error {
	token, err := os.ReadFile(filepath.Join(srv.DataDir(), "operator.token"))
	if err != nil {
		return err
	}
	for i := range n {
		body, err := json.Marshal(map[string]any{
			"pair": symbol, "label": fmt.Sprintf("Block %d", i+1), "tranches": []string{"2500000", "1000000", "250000"}[:1+i%3],
		})
		if err != nil {
			return err
		}
		var req fasthttp.Request
		req.SetRequestURI(srv.Addresses.Admin + "/desk/tickets")
		req.Header.SetMethod(fasthttp.MethodPost)
		req.Header.SetContentType("application/json")
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		req.SetBody(body)
		if _, _, err := RequestFrom(host+i/TicketsEach, &req, fasthttp.StatusOK); err != nil {
			return fmt.Errorf("ticket %d: %w", i+1, err)
		}
	}
	return nil
}

// AwaitTickets returns when the public book shows n tickets and no longer
// changes: it follows the durable events.
func AwaitTickets(base string, n int) error {
	var last []byte
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		_, body, err := Fetch(base+TicketsTarget, nil, fasthttp.StatusOK)
		if err != nil {
			return err
		}
		if bytes.Count(body, []byte(`"order_id"`)) == n && bytes.Equal(body, last) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the RFQ book does not show its tickets after %v", patience)
		}
		last = bytes.Clone(body)
	}
}

// FirstOffer returns a tranche that can be quoted.
func FirstOffer(base string) (order, tranche string, err error) {
	_, body, err := Fetch(base+TicketsTarget, nil, fasthttp.StatusOK)
	if err != nil {
		return "", "", err
	}
	var book struct {
		Tickets []struct {
			OrderID  string `json:"order_id"`
			Tranches []struct {
				TrancheID string `json:"tranche_id"`
			} `json:"tranches"`
		} `json:"tickets"`
	}
	if err := json.Unmarshal(body, &book); err != nil {
		return "", "", err
	}
	if len(book.Tickets) == 0 || len(book.Tickets[0].Tranches) == 0 {
		return "", "", errors.New("the RFQ book has no ticket")
	}
	return book.Tickets[0].OrderID, book.Tickets[0].Tranches[0].TrancheID, nil
}

// Visitor is the last byte of the address that the benchmark's own requests come
// from, so that wrk, which comes from 127.0.0.1, has its limits to itself.
const Visitor = 2

// RequestFrom sends one request from 127.0.0.host over a connection of its own and
// returns the answer's ETag and body.
func RequestFrom(host int, req *fasthttp.Request, status int) (etag string, body []byte, err error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(host))}, Timeout: 5 * time.Second}
	client := &fasthttp.Client{
		Dial: func(addr string) (net.Conn, error) { return dialer.Dial("tcp", addr) },
	}
	defer client.CloseIdleConnections()
	var resp fasthttp.Response
	if err := client.DoTimeout(req, &resp, 10*time.Second); err != nil {
		return "", nil, err
	}
	if resp.StatusCode() != status {
		return "", nil, fmt.Errorf("%s: status %d, not %d: %s", req.URI(), resp.StatusCode(), status, resp.Body())
	}
	return string(resp.Header.Peek("ETag")), resp.Body(), nil
}

// Fetch reads one page and its ETag.
func Fetch(url string, headers []string, status int) (etag string, body []byte, err error) {
	var req fasthttp.Request
	req.SetRequestURI(url)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	return RequestFrom(Visitor, &req, status)
}

const (
	DepthTarget = "/api/v1/market/depth?symbol=" + Symbol + "&limit="
	DepthBytes  = 4096 // the depth's limit is chosen so that it comes near
)

// RESTConfig returns the configuration of a server with a desk and these limits of
// requests: a value of the section http.
func RESTConfig(dir, http string) (string, error) {
	path, err := WriteParticipants(dir, Password, "BENCH")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`log: {level: warn}
durability: {mode: interval, interval_ms: 5}
fix: {participants_file: %q, messages_per_second: 1000000}
http: %s
%s`, path, http, DeskConfig), nil
}

// OpenLimits keep the limiter at work on every request and let any load through.
const OpenLimits = "{market_data_per_minute: 60000000, market_data_burst: 1000000, rfq_writes_per_minute: 60000000, rfq_writes_burst: 1000000}"

// DepthOf returns the depth with the largest body that is not above a size.
func DepthOf(base string, size int) (target string, body []byte, err error) {
	for limit := 100; limit > 0; limit-- {
		target = fmt.Sprintf("%s%d", DepthTarget, limit)
		_, body, err := Fetch(base+target, nil, fasthttp.StatusOK)
		if err != nil {
			return "", nil, err
		}
		if len(body) <= size {
			return target, body, nil
		}
	}
	return "", nil, errors.New("no depth is small enough")
}
