package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
)

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

var signature = solana.Signature{1, 2, 3}

// signed is a transaction whose signature is not checked here.
func signed(t testing.TB) []byte {
	t.Helper()
	whole := tx.Transaction{Signatures: []solana.Signature{signature}, Message: tx.Message{
		Version: tx.V0, Header: tx.Header{Required: 1, ReadonlyUnsigned: 1}, Keys: []solana.Address{{1}, {2}},
		Instructions: []tx.Instruction{{Program: 1, Data: []byte("x")}},
	}}
	raw, err := whole.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

const answerAccount = `{"lamports":5,"owner":"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA","data":["AQID","base64"],"executable":false,"rentEpoch":18446744073709551615,"space":3}`

// methods calls each method once. The fuzz test feeds them all.
func methods(ctx context.Context, t testing.TB, c *rpc.Client) map[string]func() (any, error) {
	a := []solana.Address{{1}, {2}}
	type pair struct {
		V any
		S uint64
	}
	return map[string]func() (any, error){
		"getSlot":                           func() (any, error) { return c.Slot(ctx, rpc.Processed) },
		"getBlockHeight":                    func() (any, error) { return c.BlockHeight(ctx, rpc.Finalized) },
		"getEpochInfo":                      func() (any, error) { return c.Position(ctx, rpc.Confirmed) },
		"getMinimumBalanceForRentExemption": func() (any, error) { return c.Rent(ctx, 165) },
		"getBalance":                        func() (any, error) { v, s, err := c.Balance(ctx, a[0], rpc.Finalized); return pair{v, s}, err },
		"getMultipleAccounts":               func() (any, error) { v, s, err := c.Accounts(ctx, a, rpc.Confirmed, 7); return pair{v, s}, err },
		"getTokenAccountsByOwner": func() (any, error) {
			v, s, err := c.TokenAccounts(ctx, a[0], a[1], solana.Address{}, rpc.Confirmed)
			return pair{v, s}, err
		},
		"getTransaction": func() (any, error) {
			v, found, err := c.Transaction(ctx, signature, rpc.Finalized)
			return found && v != nil, err
		},
		"getSignaturesForAddress": func() (any, error) {
			return c.Signatures(ctx, a[0], rpc.Page{Before: signature, Until: solana.Signature{9}, Limit: 2, MinSlot: 7}, rpc.Finalized)
		},
		"sendTransaction":     func() (any, error) { return c.Send(ctx, signed(t), rpc.SendOptions{SkipPreflight: true, MinSlot: 3}) },
		"simulateTransaction": func() (any, error) { return c.Simulate(ctx, signed(t), rpc.SimulateOptions{Verify: true}) },
		"getSignatureStatuses": func() (any, error) {
			v, s, err := c.Statuses(ctx, []solana.Signature{signature, {4}}, true)
			return pair{v, s}, err
		},
		"getLatestBlockhash": func() (any, error) { b, err := c.Blockhash(ctx); b.FetchedAt = time.Time{}; return b, err },
	}
}

// TestMethods: what is sent, byte for byte, and what is read.
func TestMethods(t *testing.T) {
	one, two := solana.Base58(solana.Address{1}), solana.Base58(solana.Address{2})
	for method, c := range map[string]struct{ params, result, want string }{
		"getSlot":                           {`[{"commitment":"processed"}]`, "5", "5"},
		"getBlockHeight":                    {`[{"commitment":"finalized"}]`, "6", "6"},
		"getEpochInfo":                      {`[{"commitment":"confirmed"}]`, `{"absoluteSlot":9,"blockHeight":8,"epoch":0}`, "{Slot:9 Height:8}"},
		"getMinimumBalanceForRentExemption": {`[165]`, "2039280", "2039280"},
		"getBalance":                        {`["` + one + `",{"commitment":"finalized"}]`, `{"context":{"slot":9},"value":18446744073709551615}`, "{V:18446744073709551615 S:9}"},
		"getTransaction":                    {`["` + signature.String() + `",{"commitment":"finalized","encoding":"base64","maxSupportedTransactionVersion":1}]`, "null", "false"},
		"getSignaturesForAddress": {
			`["` + one + `",{"before":"` + signature.String() + `","commitment":"finalized","limit":2,"minContextSlot":7,"until":"` + solana.Signature{9}.String() + `"}]`,
			`[{"signature":"` + signature.String() + `","slot":4,"err":null,"memo":"[3] abc","blockTime":11,"confirmationStatus":"finalized"},{"signature":"` + signature.String() + `","slot":3,"err":"x","memo":null,"blockTime":null}]`,
			"[{Signature:" + signature.String() + " Slot:4 BlockTime:11 Failed:false Memo:[3] abc} {Signature:" + signature.String() + " Slot:3 BlockTime:0 Failed:true Memo:}]",
		},
		"sendTransaction":     {`["` + base64Of(signed(t)) + `",{"encoding":"base64","maxRetries":0,"minContextSlot":3,"preflightCommitment":"confirmed","skipPreflight":true}]`, `"` + signature.String() + `"`, signature.String()},
		"simulateTransaction": {`["` + base64Of(signed(t)) + `",{"commitment":"confirmed","encoding":"base64","replaceRecentBlockhash":false,"sigVerify":true}]`, `{"context":{"slot":8},"value":{"err":{"A":1},"logs":["l"],"unitsConsumed":150,"accounts":null}}`, `{Failed:true Error:{"A":1} Logs:[l] Units:150 Slot:8}`},
		"getSignatureStatuses": {
			`[["` + signature.String() + `","` + solana.Signature{4}.String() + `"],{"searchTransactionHistory":true}]`,
			`{"context":{"slot":8},"value":[{"slot":7,"confirmations":null,"err":{"B":2},"status":{"Err":1},"confirmationStatus":"finalized"},null]}`,
			`{V:[{Known:true Slot:7 Level:finalized Failed:true Error:{"B":2}} {Known:false Slot:0 Level:commitment? Failed:false Error:}] S:8}`,
		},
		"getLatestBlockhash": {`[{"commitment":"finalized"}]`, `{"context":{"slot":8},"value":{"blockhash":"` + one + `","lastValidBlockHeight":158}}`, "{Hash:" + one + " LastValidBlockHeight:158 Slot:8 FetchedAt:0001-01-01 00:00:00 +0000 UTC}"},
		"getMultipleAccounts": {
			`[["` + one + `","` + two + `"],{"commitment":"confirmed","encoding":"base64","minContextSlot":7}]`, `{"context":{"slot":7},"value":[null,` + answerAccount + `]}`, "",
		},
		"getTokenAccountsByOwner": {`["` + one + `",{"mint":"` + two + `"},{"commitment":"confirmed","encoding":"base64"}]`, `{"context":{"slot":7},"value":[{"pubkey":"` + two + `","account":` + answerAccount + `}]}`, ""},
	} {
		n := newNode(t, result(c.result))
		client := newClient(t, options(n))
		got, err := methods(t.Context(), t, client)[method]()
		if text := fmt.Sprintf("%+v", got); err != nil || c.want != "" && text != c.want {
			t.Errorf("%s: %s, %v; want %s", method, text, err, c.want)
		}
		calls := n.calls()
		params, _ := json.Marshal(calls[0].Params)
		if len(calls) != 1 || calls[0].Method != method || string(params) != c.params {
			t.Errorf("%s: sent %s\nwant %s", method, params, c.params)
		}
	}
}

func base64Of(b []byte) string {
	text, _ := json.Marshal(b) // encoding/json writes bytes so
	return strings.Trim(string(text), `"`)
}

func TestAccounts(t *testing.T) {
	n := newNode(t, result(`{"context":{"slot":7},"value":[null,`+answerAccount+`]}`))
	c := newClient(t, options(n))
	list, slot, err := c.Accounts(t.Context(), []solana.Address{{1}, {2}}, rpc.Confirmed, 0)
	if err != nil || slot != 7 || list[0] != nil || list[1].Address != (solana.Address{2}) || list[1].Owner != solana.TokenProgram || list[1].Lamports != 5 || string(list[1].Data) != "\x01\x02\x03" {
		t.Errorf("%v, %d, %v", list, slot, err)
	}
	if _, _, err := c.Accounts(t.Context(), make([]solana.Address, rpc.MaxAccountsPerCall+1), rpc.Confirmed, 0); !errors.Is(err, rpc.ErrTooMany) {
		t.Errorf("101 accounts: %v", err)
	}
	if _, _, err := c.Statuses(t.Context(), make([]solana.Signature, rpc.MaxStatusesPerCall+1), false); !errors.Is(err, rpc.ErrTooMany) {
		t.Errorf("257 statuses: %v", err)
	}
	if _, err := c.Signatures(t.Context(), solana.Address{}, rpc.Page{Limit: rpc.MaxSignaturesPerCall + 1}, rpc.Confirmed); !errors.Is(err, rpc.ErrTooMany) {
		t.Errorf("1001 signatures: %v", err)
	}
	if len(n.calls()) != 1 {
		t.Errorf("%d calls", len(n.calls()))
	}
	n.respond(result(`{"context":{"slot":7},"value":[]}`))
	if list, _, err := c.TokenAccounts(t.Context(), solana.Address{1}, solana.Address{}, solana.Token2022Program, rpc.Confirmed); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if calls := n.calls(); !strings.Contains(string(calls[len(calls)-1].Params[1]), `"programId":"Tokenz`) {
		t.Errorf("asked for %s", calls[len(calls)-1].Params)
	}
}

// TestWrongResults: well-formed answers that cannot be right.
func TestWrongResults(t *testing.T) {
	for method, results := range map[string][]string{
		"getBalance": {`5`, `{"value":5}`, `{"context":{"slot":1},"value":null}`, `{"context":{"slot":1}}`, `{"context":{"slot":1},"value":-1}`, `{"context":{"slot":1},"value":1.0e3}`},
		"getMultipleAccounts": {
			`{"context":{"slot":7},"value":[]}`, `{"context":{"slot":7},"value":[null,null,null]}`, `{"context":{"slot":6},"value":[null,null]}`, `{"value":[null,null]}`, `null`,
			`{"context":{"slot":7},"value":[null,{"lamports":1,"owner":"x","data":["","base64"]}]}`, `{"context":{"slot":7},"value":[null,{"owner":"11111111111111111111111111111111","data":["","base64"]}]}`,
			`{"context":{"slot":7},"value":[null,{"lamports":1,"owner":"11111111111111111111111111111111","data":["","base58"]}]}`, `{"context":{"slot":7},"value":[null,{"lamports":1,"owner":"11111111111111111111111111111111","data":["!","base64"]}]}`,
			`{"context":{"slot":7},"value":[null,{"lamports":1,"owner":"11111111111111111111111111111111","data":{"parsed":1}}]}`,
		},
		"getTokenAccountsByOwner": {`{"context":{"slot":7},"value":[{"pubkey":"x","account":` + answerAccount + `}]}`, `{"context":{"slot":7},"value":[{"pubkey":"11111111111111111111111111111111"}]}`, `{"value":[]}`},
		"getTransaction":          {`{}`, `5`, `{"slot":1,"transaction":["","base64"],"meta":{}}`},
		"getSignaturesForAddress": {`null`, `{}`, `[{"slot":1}]`, `[{"signature":"x","slot":1}]`, `[{"signature":"` + signature.String() + `"}]`, `[{},{},{}]`},
		"sendTransaction":         {`null`, `5`, `"x"`, `"` + solana.Signature{7}.String() + `"`},
		"simulateTransaction":     {`null`, `{"context":{"slot":1},"value":null}`, `{"context":{"slot":1},"value":{"logs":[]}}`, `{"value":{"err":null}}`},
		"getSignatureStatuses": {
			`{"context":{"slot":1},"value":[null]}`, `{"context":{"slot":1},"value":[null,null,null]}`, `{"context":{"slot":1},"value":[null,{"slot":1,"err":null,"confirmationStatus":"rooted"}]}`,
			`{"context":{"slot":1},"value":[null,{"err":null,"confirmationStatus":"finalized"}]}`, `{"context":{"slot":1},"value":[null,{"slot":1,"err":null}]}`, `{"context":{"slot":1},"value":[null,{"slot":1,"err":null,"confirmationStatus":null}]}`,
		},
	} {
		for _, text := range results {
			n := newNode(t, result(text))
			if got, err := methods(t.Context(), t, newClient(t, options(n)))[method](); rpc.KindOf(err) != rpc.WrongAnswer {
				t.Errorf("%s: %s gives %v, %v", method, text, got, err)
			}
		}
	}
}

// TestIncompleteTransaction: a node that has pruned is called last, and the ledger's
// error says what is missing.
func TestIncompleteTransaction(t *testing.T) {
	n := newNode(t, result(`{"slot":1,"transaction":["x","base64"],"meta":null}`))
	if _, _, err := newClient(t, options(n)).Transaction(t.Context(), signature, rpc.Finalized); !errors.Is(err, ledger.ErrIncomplete) {
		t.Errorf("%v", err)
	}
}

// TestOtherTransaction: a node that answers with another transaction is wrong.
func TestOtherTransaction(t *testing.T) {
	n := newNode(t, result(`{"slot":4,"blockTime":5,"transaction":["`+base64Of(signed(t))+`","base64"],"meta":{"err":null,"fee":5000,"preBalances":[9,1],"postBalances":[4,1],"preTokenBalances":[],"postTokenBalances":[],"innerInstructions":[]}}`))
	c := newClient(t, options(n))
	if got, found, err := c.Transaction(t.Context(), signature, rpc.Finalized); err != nil || !found || got.Slot != 4 || got.Fee != 5000 {
		t.Errorf("%+v, %t, %v", got, found, err)
	}
	if got, found, err := c.Transaction(t.Context(), solana.Signature{9}, rpc.Finalized); rpc.KindOf(err) != rpc.WrongAnswer || found || got != nil {
		t.Errorf("%+v, %t, %v", got, found, err)
	}
}

func TestSendRefuses(t *testing.T) {
	n := newNode(t, result(`"x"`))
	c := newClient(t, options(n))
	unsigned := signed(t)
	copy(unsigned[1:65], make([]byte, 64))
	if _, err := c.Send(t.Context(), unsigned, rpc.SendOptions{}); !errors.Is(err, rpc.ErrUnsigned) {
		t.Errorf("unsigned: %v", err)
	}
	if _, err := c.Send(t.Context(), append(signed(t), 0), rpc.SendOptions{}); !errors.Is(err, tx.ErrTrailing) {
		t.Errorf("trailing byte: %v", err)
	}
	if len(n.calls()) != 0 {
		t.Errorf("%d calls", len(n.calls()))
	}
}

// TestSendLost: a node takes the transaction and its answer is lost; the next node gets
// the same bytes. Either node may be the first one.
func TestSendLost(t *testing.T) {
	var mu sync.Mutex // of firsts
	firsts := map[string]bool{}
	for range 1000 {
		a, b := newNode(t, nil), newNode(t, nil)
		reply := func(other *node, name string) func(http.ResponseWriter, asked) {
			return func(w http.ResponseWriter, c asked) {
				if len(other.calls()) == 0 {
					mu.Lock()
					firsts[name] = true
					mu.Unlock()
					panic(http.ErrAbortHandler)
				}
				result(`"`+signature.String()+`"`)(w, c)
			}
		}
		a.respond(reply(b, "a"))
		b.respond(reply(a, "b"))
		if got, err := newClient(t, options(a, b)).Send(t.Context(), signed(t), rpc.SendOptions{}); err != nil || got != signature {
			t.Errorf("%s, %v", got, err)
		}
		first, second := a.calls(), b.calls()
		if len(first) == 0 || len(second) == 0 || string(first[0].Params[0]) != string(second[0].Params[0]) {
			t.Errorf("%d and %d calls, of the same bytes?", len(first), len(second))
		}
		mu.Lock()
		both := len(firsts) == 2
		mu.Unlock()
		if both {
			return
		}
	}
	t.Errorf("the first node was always %v", firsts)
}

// FuzzAnswers: no answer of a node breaks any method.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{"null", "5", answerAccount, `{"context":{"slot":7},"value":[null,` + answerAccount + `]}`, `{"context":{"slot":8},"value":{"err":null,"logs":["l"],"unitsConsumed":1}}`, `[{"signature":"x","slot":1}]`} {
		f.Add(text)
	}
	n := newNode(f, result("null"))
	f.Fuzz(func(t *testing.T, text string) {
		n.respond(result(text))
		o := options(n)
		o.Attempts = 1
		c, err := rpc.New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for method, do := range methods(t.Context(), t, c) {
			if _, err := do(); err != nil && rpc.KindOf(err) == 0 {
				t.Errorf("%s: %s: an error of no kind: %v", method, text, err)
			}
		}
	})
}

func BenchmarkSlot(b *testing.B) {
	c := newClient(b, options(newNode(b, result("5"))))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Slot(b.Context(), rpc.Confirmed); err != nil {
			b.Fatal(err)
		}
	}
}
