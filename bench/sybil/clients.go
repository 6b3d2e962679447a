package sybil

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"blockdesk/bench"
	"blockdesk/bench/server"
	"blockdesk/internal/solana"
)

const claimTarget = "/rfq-native/modular-claim-take"

// fills are what the attack asks for, in dollars.
var fills = [...]int{25_000, 1000, 250}

func addressOf(key ed25519.PublicKey) string { return solana.Base58(solana.Address(key)) }

// claimAnswer is what a client needs of an answer.
type claimAnswer struct {
	ExpiresAt time.Time `json:"expires_at"`
	Code      string    `json:"code"`
	Reason    string    `json:"reason"`
}

// claim asks for a claim from a client address, and returns the status and the answer.
func (a *attack) claim(from net.IP, body string) (status int, answer claimAnswer, text string, err error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: 10 * time.Second}
	client := &fasthttp.Client{Dial: func(addr string) (net.Conn, error) { return dialer.Dial("tcp", addr) }}
	defer client.CloseIdleConnections()
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI(a.srv.Addresses.Base + claimTarget)
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetContentType("application/json")
	req.SetBodyString(body)
	if err := client.DoTimeout(req, resp, 30*time.Second); err != nil {
		return 0, answer, "", err
	}
	text = string(resp.Body())
	return resp.StatusCode(), answer, text, json.Unmarshal(resp.Body(), &answer)
}

func (a *attack) body(wallet string, fill int, more string) string {
	return fmt.Sprintf(`{"bot_wallet":%q,"order_id":%q,"tranche_id":%q,"fill_usd":"%d"%s}`, wallet, a.order, a.tranche, fill, more)
}

// attackers run until ctx ends: attackRate claims a second, each from the next address,
// for the next wallet.
func (a *attack) attackers(ctx context.Context, group *errgroup.Group) {
	var next atomic.Int64
	for worker := range attackers {
		group.Go(func() error {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			tick := time.NewTicker(time.Second * attackers / attackRate)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
				}
				n := int(next.Add(1))
				client := n % a.o.Clients
				from := net.IPv4(127, 1+byte(client>>16), byte(client>>8), byte(client))
				if client&0xff == 0 || client&0xff == 0xff {
					from = net.IPv4(127, 100, byte(client>>8), 1+byte(client&1)) // no network's own address
				}
				fill := fills[rng.IntN(len(fills))]
				status, answer, text, err := a.claim(from, a.body(a.keys[n%len(a.keys)], fill, ""))
				if err != nil {
					if ctx.Err() != nil {
						return nil
					}
					text = err.Error()
				}
				a.count(status, &answer, fill, text)
			}
		})
	}
}

// count enters an answer to the attack.
func (a *attack) count(status int, answer *claimAnswer, fill int, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case status == fasthttp.StatusOK:
		a.granted++
		a.held = append(a.held, holding{float64(fill), answer.ExpiresAt.Add(grace)})
	case status == fasthttp.StatusTooManyRequests:
		a.limited++
	case status == fasthttp.StatusConflict && strings.HasPrefix(answer.Reason, "unproven_"):
		a.refused++
	default:
		a.failures[strconv.Itoa(status)+" "+answer.Code+" "+answer.Reason+" "+text[:min(len(text), 100)]]++
	}
}

// buy claims with proof until ctx ends, and returns the answers to claims that failed.
func (a *attack) buy(ctx context.Context, s *bench.Series) (failed []string, err error) {
	var keys [buyerKeys]ed25519.PrivateKey
	for i := range keys {
		if _, keys[i], err = ed25519.GenerateKey(nil); err != nil {
			return nil, err
		}
	}
	tick := time.NewTicker(buyerEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		key := keys[n%buyerKeys]
		proof := fmt.Appendf(nil, "blockdesk-claim-v1|%s|%s|%d|USDC|%d", a.order, a.tranche, buyerFill, time.Now().Unix()/60)
		more := fmt.Sprintf(`,"wallet_signature":%q`, solana.Signature(ed25519.Sign(key, proof)).String())
		start := time.Now()
		status, _, text, err := a.claim(net.IPv4(127, 200, 0, 1), a.body(addressOf(key.Public().(ed25519.PublicKey)), buyerFill, more))
		if err != nil {
			text = err.Error()
		}
		s.Ops++
		if status != fasthttp.StatusOK {
			failed = append(failed, text)
		} else if err := s.Hist.RecordValue(int64(time.Since(start))); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return failed, nil
		case <-tick.C:
		}
	}
}

// sample adds a point to each line of the graph until ctx ends.
func (a *attack) sample(ctx context.Context, start time.Time, g *bench.Graph) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		reserved, err := a.reserved()
		if err != nil {
			return err
		}
		at := time.Since(start).Seconds()
		for i, dollars := range []float64{a.unproven(), reserved} {
			g.Lines[i].Points = append(g.Lines[i].Points, bench.Point{Seconds: at, Value: 100 * dollars / capacity})
		}
	}
}

// unproven returns the dollars that the attack holds, by its own record.
func (a *attack) unproven() (sum float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.held = slices.DeleteFunc(a.held, func(h holding) bool { return now.After(h.until) })
	for _, h := range a.held {
		sum += h.dollars
	}
	return sum
}

// reserved returns the dollars of the tranche that the public book shows as taken.
func (a *attack) reserved() (float64, error) {
	_, body, err := server.Fetch(a.srv.Addresses.Base+server.TicketsTarget, nil, fasthttp.StatusOK)
	if err != nil {
		return 0, err
	}
	var book struct {
		Tickets []struct {
			Tranches []struct {
				Available string `json:"available_usd"`
			} `json:"tranches"`
		} `json:"tickets"`
	}
	if err := json.Unmarshal(body, &book); err != nil {
		return 0, err
	}
	if len(book.Tickets) != 1 || len(book.Tickets[0].Tranches) != 1 {
		return 0, fmt.Errorf("sybil: the book has %d tickets", len(book.Tickets))
	}
	left, err := strconv.ParseFloat(book.Tickets[0].Tranches[0].Available, 64)
	return capacity - left, err
}
