// Package fixterm turns the lines that a trader types into FIX messages, and FIX messages
// into lines. It owns what one session knows of its orders, quotes, claims and books. The
// caller sends and shows; the package reads no clock, file or socket. Package console runs it
// over a connection.
//
//	line ─▶ Command ─▶ Action: a message to send, reports to show, a pause
//	message ─▶ Message ─▶ Reports: a sentence for people, names and values for programs
//
// command.go has the commands; orderentry.go, request.go and list.go carry them out.
// message.go, desk.go and marketdata.go render messages. A request waits until a message
// answers it (Sent, Waiting), so that a script knows when to go on.
//
// # Invariants
//
//  1. A Terminal has orders, quotes, claims and books as the messages of its session report
//     them. It never assumes that a request was accepted.
//  2. Its memory is bounded: MaxOrders, MaxQuotes, MaxClaims, MaxSubscriptions. The oldest
//     entry that has ended is dropped first.
//  3. It shows printable ASCII only, whatever a message contains.
//
// # Limits
//
// It knows the gateway's messages in the stock dictionary, and the custom fields 5605 to
// 5610. It shows other messages by their type and text. A line is at most MaxLine bytes; a
// book has at most maxLevels levels a side. It is made for a person's pace: each message
// allocates.
package fixterm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of a Terminal's memory.
const (
	MaxOrders        = 1000
	MaxQuotes        = 100
	MaxClaims        = 100
	MaxSubscriptions = 32
	// MaxLine is the longest command, in bytes.
	MaxLine = 8 << 10
)

// Terminal is the state of one session. Not safe for concurrent use.
type Terminal struct {
	prefix string // of the ids that it makes
	count  int
	now    func() time.Time

	orders  map[string]*order // by every ClOrdID and by OrderID
	listed  []*order          // oldest first
	quotes  []*quote          // oldest first
	claims  []*claim          // oldest first
	books   []*book
	fills   map[string]string // fill_usd of quote requests, by QuoteReqID
	symbols map[string]bool   // seen in messages
	pending []*pendingRequest
	ended   map[string]bool // subscriptions that were ended: their late messages are not shown
}

// order is an order as of its newest report; texts are FIX values.
type order struct {
	id, clOrdID       string // newest; id is empty until the order is accepted
	names             []string
	symbol, side      string
	qty, price        string
	left, filled      string
	ordType, tif      string
	status            string // OrdStatus (39)
	known             bool   // a report of it has come
	market, immediate bool   // cannot rest: its answer is its last report
}

func (o *order) live() bool {
	switch o.status {
	case "0", "1", "5", "6", "A", "E":
		return true
	}
	return false
}

type quote struct {
	id, reqID, symbol, security string
	price, size, fill, rail     string
	until                       string
}

type claim struct {
	id, clOrdID, symbol string
	price, qty          string
	deadline, state     string
}

// pendingRequest is a request without its answer.
type pendingRequest struct {
	seq    int      // MsgSeqNum
	values []string // ids, one of which is in the answer
	exec   string   // ExecType (150) of the answer; empty = any
	final  bool     // the answer is an order's last report
	pack   bool     // a claim: its package is the answer
}

// New returns a Terminal without orders. prefix begins every id that it makes, and must
// differ for each start of the program; now gives TransactTime.
func New(prefix string, now func() time.Time) *Terminal {
	return &Terminal{
		prefix: prefix, now: now, orders: map[string]*order{}, fills: map[string]string{},
		symbols: map[string]bool{}, ended: map[string]bool{},
	}
}

// newID makes an id for ClOrdID, QuoteReqID and the like.
func (t *Terminal) newID() string {
	t.count++
	return t.prefix + strconv.Itoa(t.count)
}

// Waiting returns the number of requests without an answer.
func (t *Terminal) Waiting() int { return len(t.pending) }

// GiveUp drops the requests without an answer and returns their number: after a timeout,
// or when the connection is lost.
func (t *Terminal) GiveUp() int {
	n := len(t.pending)
	t.pending = nil
	return n
}

// answered removes the request that m answers.
func (t *Terminal) answered(m message) {
	t.pending = slices.DeleteFunc(t.pending, func(w *pendingRequest) bool { return t.answers(m, w) })
}

func (t *Terminal) answers(m message, w *pendingRequest) bool {
	switch m.typ() {
	case "3":
		return m.num(45) == w.seq
	case "j":
		return m.num(45) == w.seq && w.seq != 0 || slices.Contains(w.values, m.get(379))
	}
	if !m.names(w.values) || w.exec != "" && m.typ() == "8" && m.get(150) != w.exec {
		return false
	}
	if m.typ() != "8" {
		return true
	}
	switch {
	case w.pack && m.get(150) != "8":
		// The package follows; its headline has the claim's id.
		w.values = []string{packagePrefix + m.get(37)}
		return slices.ContainsFunc(t.claims, func(c *claim) bool { return c.id == m.get(37) && c.state == statePackage })
	case w.final:
		return !(&order{status: m.get(39)}).live()
	}
	return true
}

const packagePrefix = "CLAIM "

// order returns the order with an id: a ClOrdID that it had, its OrderID, or "last".
func (t *Terminal) order(id string) (*order, error) {
	if id == "last" && len(t.listed) > 0 {
		return t.listed[len(t.listed)-1], nil
	}
	if o := t.orders[id]; o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("order %s is unknown to this session; `status %s SYMBOL` asks the gateway", id, id)
}

// addName makes o known under id too.
func (t *Terminal) addName(o *order, id string) {
	if id != "" && id != "NONE" && t.orders[id] == nil {
		t.orders[id] = o
		o.names = append(o.names, id)
	}
}

// addOrder lists a new order. If there are too many, it drops the oldest that has ended,
// or the oldest of all.
func (t *Terminal) addOrder(o *order) {
	if len(t.listed) >= MaxOrders {
		i := max(0, slices.IndexFunc(t.listed, func(o *order) bool { return !o.live() }))
		for _, name := range t.listed[i].names {
			delete(t.orders, name)
		}
		t.listed = slices.Delete(t.listed, i, i+1)
	}
	t.listed = append(t.listed, o)
}

func (t *Terminal) quote(id string) (*quote, error) {
	if id == "last" && len(t.quotes) > 0 {
		return t.quotes[len(t.quotes)-1], nil
	}
	for _, q := range t.quotes {
		if q.id == id {
			return q, nil
		}
	}
	return nil, fmt.Errorf("quote %s is unknown to this session", id)
}

func (t *Terminal) claim(id string) (*claim, error) {
	if id == "last" && len(t.claims) > 0 {
		return t.claims[len(t.claims)-1], nil
	}
	for _, c := range t.claims {
		if c.id == id {
			return c, nil
		}
	}
	return nil, fmt.Errorf("claim %s is unknown to this session", id)
}

// bounded appends v, and drops the oldest element if there are most already.
func bounded[T any](list []T, v T, most int) []T {
	if len(list) >= most {
		list = slices.Delete(list, 0, len(list)-most+1)
	}
	return append(list, v)
}

// symbol returns the symbol that a word means: the word itself, or the only known symbol
// that begins with it, whatever the letters' case.
func (t *Terminal) symbol(word string) string {
	if t.symbols[word] {
		return word
	}
	found := ""
	for s := range t.symbols {
		if len(s) >= len(word) && strings.EqualFold(s[:len(word)], word) {
			if found != "" {
				return word
			}
			found = s
		}
	}
	return cmp.Or(found, word)
}

// stamp returns TransactTime, a UTCTimestamp.
func (t *Terminal) stamp() string { return t.now().UTC().Format("20060102-15:04:05.000") }

// States of a claim that can be paid.
const (
	stateReserved = "reserved"
	statePackage  = "awaits payment"
)
