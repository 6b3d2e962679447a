package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
)

// The actions of a group's REST clients.
const (
	clusterWait     = 1200 * time.Millisecond // wait for one answer, where the nodes are not slow
	clusterFill     = 250                     // dollars a claim
	clusterCapacity = 6 * clusterFill         // of a tranche, each round's own
)

// restClient asks the nodes of a group by HTTP, the last one that has answered
// first. It follows redirects, as any client does.
type restClient struct {
	http   *http.Client
	nodes  []string // URLs of their base addresses
	at     int
	number int // in histories
	past   *history
	waits  tolerance
}

func newRESTClient(number int, nodes []string, past *history) *restClient {
	return &restClient{
		http:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 5 * time.Second}},
		nodes: nodes, number: number, past: past, waits: tolerance{least: clusterWait},
	}
}

// restAnswer is what a node says.
type restAnswer struct {
	status int
	body   []byte
	Code   string `json:"code"`
	Reason string `json:"reason"`
	Claim  string `json:"claim_id"`
	State  string `json:"state"`
	Ticket struct {
		Order string `json:"order_id"`
	} `json:"ticket"`
}

// once sends one request to one node. An error means that there was no answer, or
// none that says what has happened: the next request goes to another node.
func (c *restClient) once(ctx context.Context, method, path, key string, body any) (*restAnswer, error) {
	limited, cancel := context.WithTimeout(ctx, c.waits.wait())
	defer cancel()
	a, err := c.try(limited, method, path, key, body)
	switch {
	case err == nil:
		c.waits.shorter()
		return a, nil
	case limited.Err() != nil:
		c.waits.longer()
	}
	c.at = (c.at + 1) % len(c.nodes)
	return a, err
}

func (c *restClient) try(ctx context.Context, method, path, key string, body any) (*restAnswer, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if body == nil {
		text = nil
	}
	req, err := http.NewRequestWithContext(ctx, method, c.nodes[c.at]+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", chaintest.ErrNoAnswer, err)
	}
	defer resp.Body.Close()
	a := &restAnswer{status: resp.StatusCode}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return nil, fmt.Errorf("%w: %w", chaintest.ErrNoAnswer, err)
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 || resp.StatusCode >= 500 {
		return nil, fmt.Errorf("%w: %d %.200s", chaintest.ErrNoAnswer, a.status, a.body)
	}
	return a, json.Unmarshal(a.body, a)
}

// digest is a body in few characters.
func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}

// restLoad is what REST clients do to a group, with what they find wrong.
type restLoad struct {
	past  *history
	nodes []string

	mu       sync.Mutex
	wrong    error
	claims   map[string]string // id by key, of all rounds
	unknown  int               // requests without an answer
	answered int
	stale    int // reads that did not know what was acknowledged before
}

// ticketRound is one round's ticket.
type ticketRound struct {
	order  string
	claims map[string]bool // ids that were acknowledged
}

func newRESTLoad(nodes []string, past *history) *restLoad {
	return &restLoad{past: past, nodes: nodes, claims: map[string]string{}}
}

func (l *restLoad) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrong == nil {
		l.wrong = fmt.Errorf(format, args...)
	}
}

func (l *restLoad) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrong
}

func (l *restLoad) count(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.answered++
	} else {
		l.unknown++
	}
}

// claim takes claims on a ticket's first tranche until ctx ends, each until it is
// answered, and now and then one again that was answered.
func (l *restLoad) claim(ctx, last context.Context, number int, round *ticketRound, wallet string, rng *rand.Rand) {
	c := newRESTClient(number, l.nodes, l.past)
	defer c.http.CloseIdleConnections()
	c.at = rng.IntN(len(l.nodes))
	type taken struct{ key, reply string }
	var before []taken
	for n := 0; ctx.Err() == nil && l.err() == nil; n++ {
		key := fmt.Sprintf("%s-%d-%d", round.order, number, n)
		was := ""
		if len(before) > 0 && rng.IntN(3) == 0 {
			t := before[rng.IntN(len(before))]
			key, was = t.key, t.reply
		}
		reply, ok := l.take(last, c, round, key, wallet)
		if !ok {
			return
		}
		if was != "" && reply != was {
			l.fail("key %s was answered %s, then %s", key, was, reply)
		}
		before = append(before, taken{key, reply})
		programtest.Pause(ctx, time.Duration(20+rng.IntN(120))*time.Millisecond)
	}
}

// take asks for a claim under a key until there is an answer, and returns it.
func (l *restLoad) take(ctx context.Context, c *restClient, round *ticketRound, key, wallet string) (reply string, ok bool) {
	body := map[string]string{
		"order_id": round.order, "tranche_id": round.order + "-1", "fill_usd": fmt.Sprint(clusterFill), "bot_wallet": wallet, "payment_rail": "USDC",
	}
	for ctx.Err() == nil {
		answered := l.past.call(c.number, operation{kind: opTake, object: round.order + "-1", key: key, amount: clusterFill})
		a, err := c.once(ctx, http.MethodPost, chaintest.PathModular, key, body)
		l.count(err)
		if err != nil {
			programtest.Pause(ctx, clusterRetry)
			continue
		}
		switch {
		case a.status == http.StatusOK && a.Claim != "":
			answered(outcome{answer: a.Claim})
			l.acknowledged(round, key, a.Claim)
			l.look(ctx, c, a.Claim)
		case a.status == http.StatusConflict && a.Code == "CAPACITY_EXHAUSTED":
			answered(outcome{})
			return a.Code, true // a refusal differs in its request_id
		default:
			l.fail("a claim: %d %.300s", a.status, a.body)
			return "", false
		}
		return string(a.body), true
	}
	return "", false
}

func (l *restLoad) acknowledged(round *ticketRound, key, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	round.claims[id] = true
	if was, known := l.claims[key]; known && was != id {
		l.wrong = fmt.Errorf("key %s has claim %s, then %s", key, was, id)
	}
	l.claims[key] = id
}

// look reads a claim that was acknowledged. A leader of the past may not know it.
func (l *restLoad) look(ctx context.Context, c *restClient, id string) {
	a, err := c.once(ctx, http.MethodGet, chaintest.PathClaims+id, "", nil)
	switch {
	case err != nil:
	case a.status == http.StatusNotFound:
		l.mu.Lock()
		l.stale++
		l.mu.Unlock()
	case a.status != http.StatusOK || a.State != "reserved":
		l.fail("claim %s: %d %.300s", id, a.status, a.body)
	}
}

// quote asks for quotes until ctx ends, each under a key of its own until it is
// answered, and then once more.
func (l *restLoad) quote(ctx, last context.Context, number int, round *ticketRound) {
	c := newRESTClient(number, l.nodes, l.past)
	defer c.http.CloseIdleConnections()
	body := map[string]string{"order_id": round.order, "tranche_id": round.order + "-1", "fill_usd": fmt.Sprint(clusterFill), "rail": "USDC"}
	for n := 0; ctx.Err() == nil && l.err() == nil; n++ {
		key := fmt.Sprintf("q%s-%d-%d", round.order, number, n)
		for reply := 0; reply < 2 && last.Err() == nil; {
			answered := l.past.call(number, operation{kind: opAnswer, object: key})
			a, err := c.once(last, http.MethodPost, "/api/v1/rfq/quote", key, body)
			l.count(err)
			switch {
			case err != nil:
				programtest.Pause(last, clusterRetry)
				continue
			case a.status == http.StatusOK:
				answered(outcome{answer: digest(a.body)})
			case a.Code == "CAPACITY_EXHAUSTED":
				answered(outcome{answer: a.Code})
			default:
				l.fail("a quote: %d %.300s", a.status, a.body)
			}
			reply++
		}
		programtest.Pause(ctx, 40*time.Millisecond)
	}
}

// checkTicket holds what a ticket says to the claims that were acknowledged.
func (l *restLoad) checkTicket(ctx context.Context, round *ticketRound) error {
	c := newRESTClient(0, l.nodes, l.past)
	defer c.http.CloseIdleConnections()
	for ctx.Err() == nil {
		a, err := c.once(ctx, http.MethodGet, "/api/v1/rfq/market-tickets", "", nil)
		if err != nil || a.status != http.StatusOK {
			programtest.Pause(ctx, clusterRetry)
			continue
		}
		var book struct {
			Tickets []struct {
				Order    string `json:"order_id"`
				Tranches []struct {
					Reserved string `json:"reserved_usd"`
				} `json:"tranches"`
			} `json:"tickets"`
		}
		if err := json.Unmarshal(a.body, &book); err != nil {
			return err
		}
		for i := range book.Tickets {
			if k := &book.Tickets[i]; k.Order == round.order {
				want := fmt.Sprint(clusterFill * len(round.claims))
				if got, _, _ := strings.Cut(k.Tranches[0].Reserved, "."); got != want {
					return fmt.Errorf("ticket %s has %s reserved, %d claims were acknowledged", round.order, got, len(round.claims))
				}
				return nil
			}
		}
		return fmt.Errorf("ticket %s is not there", round.order)
	}
	return ctx.Err()
}
