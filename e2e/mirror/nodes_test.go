package mirror

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
)

// accountJSON is an account in getMultipleAccounts' form.
type accountJSON struct {
	Lamports   uint64    `json:"lamports"`
	Owner      string    `json:"owner"`
	Data       [2]string `json:"data"`
	Executable bool      `json:"executable"`
	RentEpoch  uint64    `json:"rentEpoch"`
	Space      int       `json:"space"`
}

// bank is the immutable state of the accounts as of a slot.
type bank struct {
	slot     uint64
	unix     int64
	accounts map[string]*accountJSON
	// The book's levels that must be published.
	bids, asks [][2]string
}

func (b *bank) data(address string) ([]byte, error) {
	a := b.accounts[address]
	if a == nil {
		return nil, fmt.Errorf("no account %s", address)
	}
	return base64.StdEncoding.DecodeString(a.Data[0])
}

// with returns a bank with other data in some accounts.
func (b *bank) with(data map[solana.Address][]byte) *bank {
	c := *b
	c.accounts = maps.Clone(b.accounts)
	for at, bytes := range data {
		a := *c.accounts[solana.Base58(at)]
		a.Data[0], a.Space = base64.StdEncoding.EncodeToString(bytes), len(bytes)
		c.accounts[solana.Base58(at)] = &a
	}
	return &c
}

// at returns a bank as of another slot, as its clock says too.
func (b *bank) at(slot uint64, unix int64) *bank {
	data := make([]byte, 40)
	binary.LittleEndian.PutUint64(data, slot)
	binary.LittleEndian.PutUint64(data[32:], uint64(unix))
	c := b.with(map[solana.Address][]byte{solana.ClockSysvar: data})
	c.slot, c.unix = slot, unix
	return c
}

const (
	// maxBanks bounds the lag of nodes.
	maxBanks = 600
	// maxSlots is how long a book may be published while no node answers.
	maxSlots = 1500
)

// chainCluster is the chain as all nodes have seen it.
type chainCluster struct {
	url     string
	watched []string
	http    *http.Client

	mu    sync.Mutex
	banks []*bank
	// diverge replaces a bank that is not final on all nodes; it is rolled back when the
	// fork ends.
	diverge func(b *bank) *bank
	// may are the books that may be published for a slot: those of more than a minority.
	may map[uint64][]*bank
	// held are the first pool's vault balances in the chain's own banks.
	held map[uint64][2]string
	// landed are the transactions by their signatures, and done the slots of trades,
	// each by its symbol and its signature.
	landed map[string]landing
	done   map[string]uint64
}

// landing is where a transaction is, and what it has to do with.
type landing struct {
	slot  uint64
	parts []poolMove
}

func newCluster(url string, watched []string) *chainCluster {
	return &chainCluster{url: url, watched: watched, http: &http.Client{Timeout: runtest.HangTimeout}, may: map[uint64][]*bank{}, held: map[uint64][2]string{}, landed: map[string]landing{}, done: map[string]uint64{}}
}

// read makes a bank of some accounts on the chain, with the clock's.
func (c *chainCluster) read(m *chainMarket, names []string) (*bank, error) {
	var answer struct{ Value []*accountJSON }
	if err := m.call("getMultipleAccounts", &answer, []any{names, map[string]string{"encoding": "base64", "commitment": "processed"}}); err != nil {
		return nil, err
	}
	b := &bank{accounts: map[string]*accountJSON{}}
	for i, a := range answer.Value {
		b.accounts[names[i]] = a
	}
	clock, err := b.data(solana.Base58(solana.ClockSysvar))
	if err != nil {
		return nil, err
	}
	b.slot, b.unix = binary.LittleEndian.Uint64(clock), int64(binary.LittleEndian.Uint64(clock[32:]))
	b.bids, b.asks = m.book.shown(b.slot, true), m.book.shown(b.slot, false)
	return b, nil
}

// add makes a bank the newest, of which held is what the first pool's vaults hold.
func (c *chainCluster) add(b *bank, held [2]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[b.slot] = held
	c.banks = append(c.banks, b)
	c.banks = c.banks[max(0, len(c.banks)-maxBanks):]
	c.allow(b)
	if c.diverge != nil {
		c.allow(c.diverge(b))
	}
}

// allow lets a bank be published. Banks that are too old are dropped.
func (c *chainCluster) allow(b *bank) {
	c.may[b.slot] = append(c.may[b.slot], b)
	delete(c.may, b.slot-maxSlots)
}

// setDiverge begins a fork that all nodes follow, or ends it.
func (c *chainCluster) setDiverge(diverge func(b *bank) *bank) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.diverge = diverge
	if diverge != nil {
		c.allow(diverge(c.banks[len(c.banks)-1]))
	}
}

// tip is the newest bank but so many.
func (c *chainCluster) tip(lag int) *bank {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.banks[max(0, len(c.banks)-1-lag)]
	if c.diverge != nil && lag == 0 {
		return c.diverge(b)
	}
	return b
}

// land records a transaction of the open slot.
func (c *chainCluster) land(signature string, l landing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.landed[signature] = l
}

// enter records a trade.
func (c *chainCluster) enter(symbol, signature string, slot uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[symbol+signature] = slot
}

// unpublished returns the trades up to a slot that are not in published.
func (c *chainCluster) unpublished(reported map[string]bool, final uint64) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, slot := range c.done {
		if slot <= final && !reported[name] {
			names = append(names, fmt.Sprintf("%s of slot %d", name, slot))
		}
	}
	return names
}

// final reports whether a transaction is final by now.
func (c *chainCluster) final(signature string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.landed[signature]
	return ok && l.slot+finalizeSlots <= c.banks[len(c.banks)-1].slot+1 // which is the open one
}

// allowed returns the banks that may be published of a slot.
func (c *chainCluster) allowed(slot uint64) []*bank {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.may[slot]
}

// trouble is a node's fault.
type trouble struct {
	// answer replaces every answer. It may take until ctx ends, when the client has
	// disconnected or the trouble is over.
	answer func(ctx context.Context, w http.ResponseWriter)
	lag    int // slots
	lie    func(b *bank) *bank
	// altered: transactions appear to have moved more. invents: lists have an invented
	// one. hides: lists omit every other one.
	altered, invents, hides bool
}

// chainNode is a node of the cluster behind a URL of its own.
type chainNode struct {
	*httptest.Server
	cluster *chainCluster

	mu   sync.Mutex
	now  trouble
	over chan struct{} // closed when now ends
	// lied counts the answers about accounts that were no bank's, hasty the
	// questions about transactions that were not to be final.
	lied, hasty int
}

func newChainNode(t *testing.T, c *chainCluster) *chainNode {
	n := &chainNode{cluster: c, over: make(chan struct{})}
	n.Server = httptest.NewServer(http.HandlerFunc(n.serve))
	t.Cleanup(func() {
		n.set(trouble{})
		n.CloseClientConnections()
		n.Close()
	})
	return n
}

// set changes the node's fault.
func (n *chainNode) set(now trouble) {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.over)
	n.now, n.over = now, make(chan struct{})
}

// rpcCall is a client's request.
type rpcCall struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

func (n *chainNode) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	var call rpcCall
	if err != nil || json.Unmarshal(body, &call) != nil {
		http.Error(w, "no request", http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	now, over := n.now, n.over
	if call.hasty() {
		n.hasty++
	}
	n.mu.Unlock()
	if now.answer != nil {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-over:
				cancel()
			case <-ctx.Done():
			}
		}()
		now.answer(ctx, w)
		return
	}
	switch call.Method {
	case "getMultipleAccounts":
		b := n.cluster.tip(now.lag + call.settled())
		if now.lie != nil {
			b = now.lie(b)
			n.mu.Lock()
			n.lied++
			n.mu.Unlock()
		}
		n.reply(w, &call, b.answer(&call))
	case "getSlot":
		n.reply(w, &call, member("result", n.cluster.tip(now.lag).slot+1))
	default:
		n.forward(w, body, &call, &now)
	}
}

// hasty reports whether a request about transactions is not for finalized ones.
func (c *rpcCall) hasty() bool {
	if c.Method != "getTransaction" && c.Method != "getSignaturesForAddress" {
		return false
	}
	var options struct{ Commitment string }
	return len(c.Params) < 2 || json.Unmarshal(c.Params[1], &options) != nil || options.Commitment != "finalized"
}

// member is one of an answer.
func member(name string, v any) []byte { return fmt.Appendf(nil, "%q:%s", name, programtest.JSON(v)) }

func (n *chainNode) reply(w http.ResponseWriter, call *rpcCall, member []byte) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, call.ID, member)
}

// settled is by how many slots what is asked for is older than what is confirmed.
func (c *rpcCall) settled() int {
	var options struct{ Commitment string }
	if len(c.Params) > 1 && json.Unmarshal(c.Params[1], &options) == nil && options.Commitment == "finalized" {
		return finalizeSlots
	}
	return 0
}

// minSlot is the slot that an answer must be as of at least.
func (c *rpcCall) minSlot(param int) uint64 {
	var options struct{ MinContextSlot uint64 }
	if len(c.Params) > param && json.Unmarshal(c.Params[param], &options) != nil {
		return 0
	}
	return options.MinContextSlot
}

func notReached(slot uint64) []byte {
	return member("error", map[string]any{"code": -32016, "message": "Minimum context slot has not been reached", "data": map[string]uint64{"contextSlot": slot}})
}

// answer returns accounts as of the bank.
func (b *bank) answer(call *rpcCall) []byte {
	if call.minSlot(1) > b.slot {
		return notReached(b.slot)
	}
	var names []string
	if len(call.Params) == 0 || json.Unmarshal(call.Params[0], &names) != nil {
		return member("error", map[string]any{"code": -32602, "message": "Invalid params"})
	}
	value := make([]*accountJSON, len(names))
	for i, name := range names {
		value[i] = b.accounts[name]
	}
	return member("result", map[string]any{"context": map[string]any{"slot": b.slot, "apiVersion": "3.0.0"}, "value": value})
}

// forward asks the chain and omits what a lagging node cannot have finalized.
func (n *chainNode) forward(w http.ResponseWriter, body []byte, call *rpcCall, now *trouble) {
	resp, err := n.cluster.http.Post(n.cluster.url, "application/json", bytes.NewReader(body))
	if err != nil {
		http.Error(w, "no chain", http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	var answer struct {
		Result, Error json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		http.Error(w, "no answer", http.StatusBadGateway)
		return
	}
	final := n.cluster.tip(now.lag).slot - finalizeSlots
	switch {
	case answer.Error != nil:
		n.reply(w, call, append([]byte(`"error":`), answer.Error...))
		return
	case call.Method == "getSignaturesForAddress":
		if now.lag > 0 && call.minSlot(1) > final {
			n.reply(w, call, notReached(final))
			return
		}
		answer.Result = now.list(answer.Result, final)
	case call.Method == "getTransaction":
		answer.Result = now.transaction(answer.Result, final)
	}
	n.reply(w, call, append([]byte(`"result":`), answer.Result...))
}

// list returns a history with the node's faults.
func (now *trouble) list(result json.RawMessage, final uint64) json.RawMessage {
	var entries []map[string]any
	if now.well() || json.Unmarshal(result, &entries) != nil {
		return result
	}
	visible := []map[string]any{}
	for i, e := range entries {
		slot, ok := e["slot"].(float64)
		if !ok || now.lag > 0 && uint64(slot) > final || now.hides && i%2 == 1 {
			continue
		}
		visible = append(visible, e)
		if now.invents && i == 0 {
			lie := maps.Clone(e)
			lie["signature"] = solana.Base58(solana.Signature{1, 2, 3, byte(uint64(slot)), byte(uint64(slot) >> 8)})
			visible = append(visible, lie)
		}
	}
	return json.RawMessage(programtest.JSON(visible))
}

// transaction returns a transaction with the node's faults.
func (now *trouble) transaction(result json.RawMessage, final uint64) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(result))
	decoder.UseNumber()
	var x map[string]any
	if decoder.Decode(&x) != nil || x == nil {
		return result
	}
	if slot, err := x["slot"].(json.Number).Int64(); err != nil || now.lag > 0 && uint64(slot) > final {
		return json.RawMessage("null")
	}
	if !now.altered {
		return result
	}
	if err := alter(x); err != nil {
		return json.RawMessage("null")
	}
	return json.RawMessage(programtest.JSON(x))
}

// alter makes a transaction's transfers larger, in its bytes and in the balances, so that
// only other nodes' answers reveal it.
func alter(x map[string]any) error {
	const more = 1_000_000
	encoded, meta := x["transaction"].([]any), x["meta"].(map[string]any)
	raw, err := base64.StdEncoding.DecodeString(encoded[0].(string))
	if err != nil {
		return err
	}
	t, err := tx.Decode(raw)
	if err != nil {
		return err
	}
	gained := map[uint8]int64{}
	for i := range t.Message.Instructions {
		in := &t.Message.Instructions[i]
		if len(in.Data) == 10 && in.Data[0] == 12 { // TransferChecked
			in.Data = slices.Clone(in.Data)
			binary.LittleEndian.PutUint64(in.Data[1:], le64(in.Data[1:])+more)
			gained[in.Accounts[0]] -= more
			gained[in.Accounts[2]] += more
		}
	}
	for _, b := range meta["postTokenBalances"].([]any) {
		at, err1 := b.(map[string]any)["accountIndex"].(json.Number).Int64()
		amount := b.(map[string]any)["uiTokenAmount"].(map[string]any)
		n, err2 := strconv.ParseInt(amount["amount"].(string), 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		amount["amount"] = strconv.FormatInt(n+gained[uint8(at)], 10)
	}
	if raw, err = t.Append(nil); err == nil {
		encoded[0] = base64.StdEncoding.EncodeToString(raw)
	}
	return err
}
