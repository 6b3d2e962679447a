package settle_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/settle"
)

// firmBps is how far prices may move against the desk in these tests.
const firmBps = 100

// notary stands between settlement and the desk. It knows the prices, which move only by
// its hand, and holds each permission to sign against them, without the desk's
// arithmetic.
type notary struct {
	t  *testing.T
	mu sync.Mutex
	// anchor of both pairs and sol are dollars; 0: there is no price.
	anchor, sol float64
	// asked are the permissions that were asked for before: what the desk repeats, it checks no
	// more.
	asked map[permission]bool
}

type permission struct {
	claim market.ClaimID
	proof [32]byte
}

func newNotary(t *testing.T) *notary {
	return &notary{t: t, anchor: 1, sol: 150, asked: map[permission]bool{}}
}

// wrap returns the desk as settlement sees it.
func (n *notary) wrap(d settle.Desk) settle.Desk { return notarized{d, n} }

// move sets the prices. A life that is dying may refuse that.
func (n *notary) move(l *life, anchor, sol market.USDPrice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for in := market.InstrumentID(1); in <= 2; in++ {
		if _, err := l.desk.Do(&rfq.SetAnchor{Instrument: in, Price: anchor, Withdrawn: anchor == 0}); err != nil {
			n.t.Error(err)
		}
	}
	if _, err := l.desk.Do(&rfq.SetRailPrice{Rail: market.RailSOL, Price: sol}); err != nil {
		n.t.Error(err)
	}
	n.anchor, n.sol = float64(anchor)/1e9, float64(sol)/1e9
}

// beyond reports whether the prices refuse permission for a claim, which was made at a
// dollar, and at 150 dollars a SOL.
func (n *notary) beyond(rail market.Rail) bool {
	moved := n.anchor
	if rail == market.RailSOL {
		moved *= 150 / n.sol
	}
	return n.anchor == 0 || moved > 1+firmBps/1e4+1e-9
}

type notarized struct {
	settle.Desk
	*notary
}

func (d notarized) Do(r rfq.Request) (*desk.Result, error) {
	var p permission
	switch r := r.(type) {
	case *rfq.BeginDelivery:
		p = permission{r.Claim, r.Proof}
	case *rfq.CosignClaim:
		p = permission{r.Claim, r.Proof}
	default:
		return d.Desk.Do(r)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	again := d.asked[p]
	d.asked[p] = true
	result, err := d.Desk.Do(r)
	if err != nil || result.Reason != 0 || again {
		return result, err
	}
	if h, ok, failed := d.Claim(p.claim); failed == nil && ok && d.beyond(h.Claim.Terms.Rail) {
		d.t.Errorf("%T for claim %d at %v dollars, SOL at %v", r, p.claim, d.anchor, d.sol)
	}
	return result, err
}

// lyingNode is a proxy of a node that is bad while bad is set: how returns what it does
// instead of the truth.
type lyingNode struct {
	*httptest.Server
	node string
	bad  atomic.Bool
	n    atomic.Uint64
	seed uint64
	how  func(w http.ResponseWriter, rng *rand.Rand, id json.RawMessage, method string) (done bool)
}

func newLyingNode(t testing.TB, node string, seed uint64, how func(http.ResponseWriter, *rand.Rand, json.RawMessage, string) bool) *lyingNode {
	l := &lyingNode{node: node, seed: seed, how: how}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

// lie answers about half of the questions wrongly: transactions that are not there,
// statuses that it does not know, heights far ahead, lists without entries.
func lie(w http.ResponseWriter, rng *rand.Rand, id json.RawMessage, method string) bool {
	text := map[string]string{
		"getTransaction": "null", "getSignatureStatuses": `{"context":{"slot":99999999},"value":[null]}`,
		"getBlockHeight": "99999999", "getSignaturesForAddress": "[]",
	}[method]
	if text == "" || rng.IntN(2) == 0 {
		return false
	}
	writeResult(w, id, text)
	return true
}

// writeResult answers a request with a result.
func writeResult(w http.ResponseWriter, id json.RawMessage, text string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, text)
}

// busy is late with some answers, and has none to others.
func busy(w http.ResponseWriter, rng *rand.Rand, _ json.RawMessage, _ string) bool {
	switch rng.IntN(8) {
	case 0:
		w.WriteHeader(http.StatusTooManyRequests)
	case 1:
		w.WriteHeader(http.StatusServiceUnavailable)
	case 2:
		panic(http.ErrAbortHandler) // the connection is closed
	case 3:
		late := time.NewTimer(time.Duration(rng.IntN(200)) * time.Millisecond)
		defer late.Stop()
		<-late.C
		return false
	default:
		return false
	}
	return true
}

func (l *lyingNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var batch []json.RawMessage
	if json.Unmarshal(body, &batch) != nil {
		l.serve(w, body)
		return
	}
	// A batch is answered request by request, unless one of them has no answer.
	answers := make([][]byte, len(batch))
	for i, one := range batch {
		answer := httptest.NewRecorder()
		if l.serve(answer, one); answer.Code != http.StatusOK {
			w.WriteHeader(answer.Code)
			return
		}
		answers[i] = answer.Body.Bytes()
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(slices.Concat([]byte("["), bytes.Join(answers, []byte(",")), []byte("]"))); err != nil {
		return // the client is gone
	}
}

// serve answers one request.
func (l *lyingNode) serve(w http.ResponseWriter, body []byte) {
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(body, &request) == nil && l.bad.Load() &&
		l.how(w, rand.New(rand.NewPCG(l.seed, l.n.Add(1))), request.ID, request.Method) {
		return
	}
	res, err := http.Post(l.node, "application/json", bytes.NewReader(body))
	if err != nil {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	defer res.Body.Close()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(res.StatusCode)
	if _, err := io.Copy(w, res.Body); err != nil {
		return // the client has closed the connection
	}
}
