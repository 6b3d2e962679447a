package proof

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// object is a JSON object whose numbers keep their text.
type object = map[string]any

// liar is a proxy of a node that changes its answers about transactions.
type liar struct {
	*httptest.Server
	node string
	mu   sync.Mutex
	// lie changes the result of getTransaction, or answers all by itself.
	lie func(w http.ResponseWriter, result object) any
}

// answered marks that a lie has answered already.
type answered struct{}

func newLiar(t testing.TB, node string) *liar {
	l := &liar{node: node}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

func (l *liar) answerWith(lie func(w http.ResponseWriter, result object) any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lie = lie
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	res, err := http.Post(l.node, "application/json", bytes.NewReader(body))
	if err != nil {
		http.Error(w, "node", http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		http.Error(w, "node", http.StatusBadGateway)
		return
	}
	l.mu.Lock()
	lie := l.lie
	l.mu.Unlock()
	if lie != nil && bytes.Contains(body, []byte("getTransaction")) {
		var answer object
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(&answer) != nil {
			http.Error(w, "node", http.StatusBadGateway)
			return
		}
		result, _ := answer["result"].(object)
		answer["result"] = lie(w, result)
		if answer["result"] == (answered{}) {
			return
		}
		if text, err = json.Marshal(answer); err != nil {
			http.Error(w, "lie", http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the client may have gone
}

// errAny stands for any error.
var errAny = errors.New("any error")

// lie is what a node says of an honest payment of the USDC rail, and what comes
// of it: an error, or a verdict.
type lie struct {
	name       string
	answerWith func(w http.ResponseWriter, result object) any
	err        error
	// verdict and word count where err is nil.
	verdict verdictWord
	word    string
	// hasty: the client's calls time out early.
	hasty bool
}

// meta changes members of the answer's meta.
func meta(change func(m object)) func(http.ResponseWriter, object) any {
	return func(_ http.ResponseWriter, result object) any {
		change(result["meta"].(object))
		return result
	}
}

// top changes members of the answer.
func top(change func(r object)) func(http.ResponseWriter, object) any {
	return func(_ http.ResponseWriter, result object) any {
		change(result)
		return result
	}
}

// set sets one member of the meta, and drop takes one away.
func set(name string, v any) func(http.ResponseWriter, object) any {
	return meta(func(m object) { m[name] = v })
}

func drop(name string) func(http.ResponseWriter, object) any {
	return meta(func(m object) { delete(m, name) })
}

// balance changes the treasury's balance in a list of them: the last one with the
// mint, as the treasury's account is named after the payer's.
func balance(list string, change func(b object)) func(http.ResponseWriter, object) any {
	return meta(func(m object) {
		all := m[list].([]any)
		change(all[len(all)-1].(object))
	})
}

func amount(text any) func(http.ResponseWriter, object) any {
	return balance("postTokenBalances", func(b object) { b["uiTokenAmount"].(object)["amount"] = text })
}

// bytesOf changes the transaction's bytes.
func bytesOf(change func(raw []byte) []byte) func(http.ResponseWriter, object) any {
	return top(func(r object) {
		pair := r["transaction"].([]any)
		raw, err := base64.StdEncoding.DecodeString(pair[0].(string))
		if err != nil {
			panic(err)
		}
		pair[0] = base64.StdEncoding.EncodeToString(change(raw))
	})
}

// raw answers with these bytes.
func raw(status int, text string) func(http.ResponseWriter, object) any {
	return func(w http.ResponseWriter, _ object) any {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
		return answered{}
	}
}

func fault(code int) func(http.ResponseWriter, object) any {
	return func(w http.ResponseWriter, _ object) any {
		text, err := json.Marshal(object{"jsonrpc": "2.0", "error": object{"code": code, "message": "no"}, "id": nil})
		if err != nil {
			panic(err)
		}
		_, _ = w.Write(text)
		return answered{}
	}
}

// lies are what a node that is wrong, behind, down or hostile answers.
func lies() []lie {
	list := append(membersLies(), numbersLies()...)
	list = append(list, bytesLies()...)
	return append(list, faultLies()...)
}

func membersLies() []lie {
	return []lie{
		{name: "nothing", answerWith: func(http.ResponseWriter, object) any { return nil }, verdict: pending},
		{name: "no meta", answerWith: top(func(r object) { delete(r, "meta") }), err: ledger.ErrIncomplete},
		{name: "null meta", answerWith: top(func(r object) { r["meta"] = nil }), err: ledger.ErrIncomplete},
		{name: "meta that is a text", answerWith: top(func(r object) { r["meta"] = "ok" }), err: ledger.ErrMalformed},
		{name: "no slot", answerWith: top(func(r object) { delete(r, "slot") }), err: ledger.ErrIncomplete},
		{name: "a slot that is a text", answerWith: top(func(r object) { r["slot"] = "5" }), err: ledger.ErrMalformed},
		{name: "no transaction", answerWith: top(func(r object) { delete(r, "transaction") }), err: ledger.ErrIncomplete},
		{name: "no block time", answerWith: top(func(r object) { r["blockTime"] = nil }), err: ErrAnswer},
		{name: "a block time of zero", answerWith: top(func(r object) { r["blockTime"] = 0 }), err: ErrAnswer},
		{name: "a block time before the epoch", answerWith: top(func(r object) { r["blockTime"] = -5 }), err: ErrAnswer},
		{name: "no err", answerWith: drop("err"), err: ledger.ErrIncomplete},
		{name: "no fee", answerWith: drop("fee"), err: ledger.ErrIncomplete},
		{name: "no balances before", answerWith: drop("preBalances"), err: ledger.ErrInconsistent},
		{name: "no balances after", answerWith: drop("postBalances"), err: ledger.ErrInconsistent},
		{name: "no token balances before", answerWith: drop("preTokenBalances"), err: ledger.ErrIncomplete},
		{name: "null token balances after", answerWith: set("postTokenBalances", nil), err: ledger.ErrIncomplete},
		{name: "token balances before left empty", answerWith: set("preTokenBalances", []any{}), err: payment.ErrUnknownBalance},
		{name: "token balances after left empty", answerWith: set("postTokenBalances", []any{}), err: ErrAnswer},
		{name: "token balances left empty", answerWith: meta(func(m object) { m["preTokenBalances"], m["postTokenBalances"] = []any{}, []any{} }), err: ErrAnswer},
		{name: "the treasury's balance left out", answerWith: meta(func(m object) {
			for _, list := range []string{"preTokenBalances", "postTokenBalances"} {
				all := m[list].([]any)
				m[list] = all[:len(all)-1]
			}
		}), err: ErrAnswer},
		{name: "null inner instructions", answerWith: set("innerInstructions", nil), err: ledger.ErrIncomplete},
		{name: "a balance without owner", answerWith: balance("postTokenBalances", func(b object) { delete(b, "owner") }), err: ledger.ErrIncomplete},
		{name: "a balance without program", answerWith: balance("postTokenBalances", func(b object) { delete(b, "programId") }), err: ledger.ErrIncomplete},
		{name: "a balance without amount", answerWith: balance("postTokenBalances", func(b object) { delete(b, "uiTokenAmount") }), err: ledger.ErrIncomplete},
		{name: "a balance listed twice", answerWith: meta(func(m object) {
			all := m["postTokenBalances"].([]any)
			m["postTokenBalances"] = append(all, all[len(all)-1])
		}), err: ledger.ErrInconsistent},
		{name: "a mint that is no address", answerWith: balance("postTokenBalances", func(b object) { b["mint"] = "USDC" }), err: ledger.ErrMalformed},
		{name: "an owner with a character too many", answerWith: balance("postTokenBalances", func(b object) { b["owner"] = b["owner"].(string) + "1" }), err: ledger.ErrMalformed},
		{name: "addresses out of a table that is not", answerWith: set("loadedAddresses", object{"writable": []any{solana.Base58(solana.TokenProgram)}, "readonly": []any{}}), err: ledger.ErrInconsistent},
		{name: "no logs", answerWith: set("logMessages", nil), verdict: verified},
		{name: "another version's label", answerWith: top(func(r object) { r["version"] = "legacy" }), verdict: verified},
		{name: "unknown members", answerWith: top(func(r object) { r["shred"] = object{"a": []any{1, nil}} }), verdict: verified},
	}
}

func numbersLies() []lie {
	const huge = "340282366920938463463374607431768211456"
	number := func(text string) json.Number { return json.Number(text) }
	lamports := func(text string) func(http.ResponseWriter, object) any {
		return meta(func(m object) { m["postBalances"].([]any)[0] = number(text) })
	}
	index := func(text string) func(http.ResponseWriter, object) any {
		return balance("postTokenBalances", func(b object) { b["accountIndex"] = number(text) })
	}
	return []lie{
		{name: "a negative amount", answerWith: amount("-250000000"), err: ledger.ErrMalformed},
		{name: "an amount with a sign", answerWith: amount("+250000000"), err: ledger.ErrMalformed},
		{name: "an amount with a leading zero", answerWith: amount("0250000000"), err: ledger.ErrMalformed},
		{name: "an amount with a point", answerWith: amount("250000000.0"), err: ledger.ErrMalformed},
		{name: "an amount with an exponent", answerWith: amount("25e7"), err: ledger.ErrMalformed},
		{name: "an amount in hexadecimals", answerWith: amount("0xee6b280"), err: ledger.ErrMalformed},
		{name: "an amount of other digits", answerWith: amount("２５０"), err: ledger.ErrMalformed},
		{name: "an amount beyond 64 bits", answerWith: amount(huge), err: ledger.ErrMalformed},
		{name: "an amount that is a number", answerWith: amount(250), err: ledger.ErrMalformed},
		{name: "an empty amount", answerWith: amount(""), err: ledger.ErrMalformed},
		{name: "negative lamports", answerWith: lamports("-1"), err: ledger.ErrMalformed},
		{name: "lamports beyond 64 bits", answerWith: lamports(huge), err: ledger.ErrMalformed},
		{name: "lamports with a point", answerWith: lamports("1.5"), err: ledger.ErrMalformed},
		{name: "lamports with an exponent", answerWith: lamports("1e9"), err: ledger.ErrMalformed},
		{name: "a balance of no account", answerWith: index("64"), err: ledger.ErrInconsistent},
		{name: "a balance of account -1", answerWith: index("-1"), err: ledger.ErrInconsistent},
		{name: "decimals beyond a byte", answerWith: balance("postTokenBalances", func(b object) { b["uiTokenAmount"].(object)["decimals"] = 300 }), err: ledger.ErrMalformed},
		{name: "a balance too many", answerWith: meta(func(m object) { m["postBalances"] = append(m["postBalances"].([]any), 5) }), err: ledger.ErrInconsistent},
		{name: "a negative fee", answerWith: set("fee", -5000), err: ledger.ErrMalformed},
		{name: "sums beyond 64 bits", answerWith: meta(func(m object) {
			for _, b := range m["postTokenBalances"].([]any) {
				b.(object)["uiTokenAmount"].(object)["amount"] = "18446744073709551615"
				b.(object)["owner"] = m["preTokenBalances"].([]any)[0].(object)["owner"]
			}
		}), err: payment.ErrOverflow},
		{name: "a slot beyond 64 bits", answerWith: top(func(r object) { r["slot"] = number(huge) }), err: ledger.ErrMalformed},
	}
}

func bytesLies() []lie {
	return []lie{
		{name: "a transaction cut short", answerWith: bytesOf(func(b []byte) []byte { return b[:len(b)-1] }), err: tx.ErrTruncated},
		{name: "a transaction with a byte more", answerWith: bytesOf(func(b []byte) []byte { return append(b, 0) }), err: tx.ErrTrailing},
		{name: "an empty transaction", answerWith: bytesOf(func([]byte) []byte { return nil }), err: ledger.ErrMalformed},
		{name: "a transaction of another signature", answerWith: bytesOf(func(b []byte) []byte { b[1] ^= 1; return b }), err: errAny},
		{name: "a transaction with a bit turned in its memo", answerWith: bytesOf(func(b []byte) []byte { b[len(b)-2] ^= 1; return b }), err: ErrAnswer},
		{name: "a transaction of another blockhash", answerWith: bytesOf(func(b []byte) []byte {
			t, err := tx.Decode(b)
			if err != nil {
				panic(err)
			}
			t.Message.Blockhash[0] ^= 1
			out, err := t.Append(nil)
			if err != nil {
				panic(err)
			}
			return out
		}), err: ErrAnswer},
		{name: "not base64", answerWith: top(func(r object) { r["transaction"].([]any)[0] = "%%%" }), err: ledger.ErrMalformed},
		{name: "in another encoding", answerWith: top(func(r object) { r["transaction"].([]any)[1] = "base58" }), err: ledger.ErrMalformed},
		{name: "decoded by the node", answerWith: top(func(r object) {
			r["transaction"] = object{"message": object{}, "signatures": []any{}}
		}), err: ledger.ErrMalformed},
	}
}

func faultLies() []lie {
	return []lie{
		{name: "a page of HTML", answerWith: raw(200, "<html>busy</html>"), err: errAny},
		{name: "an empty body", answerWith: raw(200, ""), err: errAny},
		{name: "half an answer", answerWith: raw(200, `{"jsonrpc":"2.0","result":{"slot":5`), err: errAny},
		{name: "the answer to another request", answerWith: raw(200, `{"jsonrpc":"2.0","result":null,"id":999999}`), err: errAny},
		{name: "an array", answerWith: raw(200, `[]`), err: errAny},
		{name: "no result", answerWith: raw(200, `{"jsonrpc":"2.0","id":1}`), err: errAny},
		{name: "503", answerWith: raw(503, "busy"), err: errAny},
		{name: "500 with a result", answerWith: raw(500, `{"jsonrpc":"2.0","result":null,"id":1}`), err: errAny},
		{name: "401", answerWith: raw(401, ""), err: errAny},
		{name: "404", answerWith: raw(404, "{}"), err: errAny},
		{name: "429", answerWith: raw(429, ""), err: errAny},
		{name: "a redirect", answerWith: func(w http.ResponseWriter, _ object) any {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return answered{}
		}, err: errAny},
		{name: "block not available", answerWith: fault(-32004), err: errAny},
		{name: "slot was skipped", answerWith: fault(-32007), err: errAny},
		{name: "missing in long-term storage", answerWith: fault(-32009), err: errAny},
		{name: "no history", answerWith: fault(-32011), err: errAny},
		{name: "unsupported version", answerWith: fault(-32015), err: errAny},
		{name: "node is behind", answerWith: fault(-32005), err: errAny},
		{name: "internal error", answerWith: fault(-32603), err: errAny},
		{name: "connection reset", answerWith: func(w http.ResponseWriter, _ object) any {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
			return answered{}
		}, err: errAny},
		{name: "no answer in time", hasty: true, answerWith: func(w http.ResponseWriter, _ object) any {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.Copy(io.Discard, conn) // until the caller hangs up
				conn.Close()
			}
			return answered{}
		}, err: errAny},
	}
}

// TestLies: an honest payment stays what it is, whatever a node says of it meanwhile:
// nothing is booked or stored, and no refusal rests on anything but an answer that
// does not contradict itself.
func TestLies(t *testing.T) {
	c := startChain(t)
	l := newLiar(t, c.local.URL())
	client := func(timeout time.Duration) *rpc.Client {
		client, err := rpc.New(rpc.Options{
			Upstreams: []rpc.Upstream{{Name: "liar", URL: l.URL}}, HedgeAfter: -1, Attempts: 1, Timeout: timeout, AttemptTimeout: timeout,
		})
		c.must(err)
		t.Cleanup(client.Close)
		return client
	}
	s := c.stage(client(runtest.HangTimeout), c.options(c.checked))
	hasty, err := New(c.options(c.checked), client(20*time.Millisecond), s.machine, s.store)
	c.must(err)
	names := map[string]bool{}
	for _, x := range append(lies(), lie{
		name: "it failed", answerWith: set("err", object{"InstructionError": []any{0, "Custom"}}), verdict: mismatch, word: string(payment.FailedOnChain),
	}) {
		if names[x.name] {
			t.Fatalf("two lies are named %q", x.name)
		}
		names[x.name] = true
		t.Run(x.name, func(t *testing.T) { s.lie(t, l, &x, hasty) })
	}
	if len(names) < 70 {
		t.Errorf("%d lies", len(names))
	}
	t.Logf("%d lies", len(names))
}

func (s *stage) lie(t *testing.T, l *liar, x *lie, hasty *Prover) {
	s.in(t)
	c := s.take(market.RailUSDC)
	sig := s.as(c, draft{})
	l.answerWith(x.answerWith)
	retrying := s.prover
	if x.hasty {
		s.prover = hasty
	}
	v, err := s.verify(sig, c)
	watch := s.prover.examineListed(t.Context(), sig)
	s.prover = retrying
	l.answerWith(nil)
	switch {
	case x.err != nil && (err == nil || !errors.Is(x.err, errAny) && !errors.Is(err, x.err)):
		t.Errorf("%+v, %v; want %v", v, err, x.err)
	case x.err == nil && (err != nil || wordOf(&v) != x.verdict || v.Mismatch != x.word):
		t.Errorf("%+v, %v", v, err)
	case (watch != nil) != (x.err != nil || x.verdict == pending):
		t.Errorf("the watch: %v", watch)
	}
	now, _, err := s.machine.Claim(c.ID)
	s.must(err)
	if _, stored := s.unmatched(sig); stored || x.verdict != verified && len(now.Payments) != 0 || x.err != nil && (now.Claim.State != rfq.ClaimReserved || len(now.Payments) != 0) {
		t.Errorf("claim in state %d, payments %+v, unmatched %t", now.Claim.State, now.Payments, stored)
	}
	if v, err := s.verify(sig, c); err != nil || wordOf(&v) != verified {
		t.Errorf("the truth: %+v, %v", v, err)
	}
	s.machine.check(t)
}
