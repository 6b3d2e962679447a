package payment_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/payment"
	"blockdesk/market"
)

type object = map[string]any

// first returns the first element of a list member as an object.
func first(m object, name string) object { return m[name].([]any)[0].(object) }

// lookedUp is an honest payment that looks its destination up.
func lookedUp() *scene {
	s := paidUSDC()
	s.looked = []solana.Address{payTo}
	return s
}

// withInner is one with an inner instruction.
func withInner() *scene { return paidUSDC().innerCall(0, memoCall("x")) }

// TestHostileAnswers: what a wrong node may answer is an error, not a payment.
func TestHostileAnswers(t *testing.T) {
	amount := func(v any) func(_, meta object) {
		return func(_, meta object) { first(meta, "postTokenBalances")["uiTokenAmount"].(object)["amount"] = v }
	}
	balance := func(name string, v any) func(_, meta object) {
		return func(_, meta object) { first(meta, "postTokenBalances")[name] = v }
	}
	drop := func(name string) func(_, meta object) {
		return func(_, meta object) { delete(first(meta, "postTokenBalances"), name) }
	}
	innerSet := func(name string, v any) func(_, meta object) {
		return func(_, meta object) { first(first(meta, "innerInstructions"), "instructions")[name] = v }
	}
	load := func(writable, readonly []string) func(_, meta object) {
		return func(_, meta object) { meta["loadedAddresses"] = object{"writable": writable, "readonly": readonly} }
	}
	transaction := func(f func(raw []byte) any) func(result, _ object) {
		return func(result, _ object) {
			raw, err := base64.StdEncoding.DecodeString(result["transaction"].([]string)[0])
			if err != nil {
				t.Fatal(err)
			}
			result["transaction"] = f(raw)
		}
	}
	encoded := func(raw []byte) any { return []string{base64.StdEncoding.EncodeToString(raw), "base64"} }
	for _, c := range []struct {
		name  string
		scene *scene
		spoil func(result, meta object)
		want  error
	}{
		{"no meta", paidUSDC(), func(r, _ object) { delete(r, "meta") }, ledger.ErrIncomplete},
		{"meta null", paidUSDC(), func(r, _ object) { r["meta"] = nil }, ledger.ErrIncomplete},
		{"meta a text", paidUSDC(), func(r, _ object) { r["meta"] = "none" }, ledger.ErrMalformed},
		{"no slot", paidUSDC(), func(r, _ object) { delete(r, "slot") }, ledger.ErrIncomplete},
		{"slot negative", paidUSDC(), func(r, _ object) { r["slot"] = -1 }, ledger.ErrMalformed},
		{"slot a fraction", paidUSDC(), func(r, _ object) { r["slot"] = 1.5 }, ledger.ErrMalformed},
		{"slot a text", paidUSDC(), func(r, _ object) { r["slot"] = "5" }, ledger.ErrMalformed},
		{"block time beyond 64 bits", paidUSDC(), func(r, _ object) { r["blockTime"] = 1e30 }, ledger.ErrMalformed},
		{"no transaction", paidUSDC(), func(r, _ object) { delete(r, "transaction") }, ledger.ErrIncomplete},
		{"transaction as JSON", paidUSDC(), transaction(func([]byte) any { return object{"signatures": []string{}} }), ledger.ErrMalformed},
		{"transaction in base58", paidUSDC(), transaction(func([]byte) any { return []string{"abc", "base58"} }), ledger.ErrMalformed},
		{"transaction without encoding", paidUSDC(), transaction(func([]byte) any { return []string{"abc"} }), ledger.ErrMalformed},
		{"transaction not base64", paidUSDC(), transaction(func([]byte) any { return []string{"%%%", "base64"} }), ledger.ErrMalformed},
		{"transaction cut", paidUSDC(), transaction(func(raw []byte) any { return encoded(raw[:len(raw)-1]) }), ledger.ErrMalformed},
		{"transaction with a byte more", paidUSDC(), transaction(func(raw []byte) any { return encoded(append(raw, 0)) }), ledger.ErrMalformed},
		{"transaction empty", paidUSDC(), transaction(func([]byte) any { return encoded(nil) }), ledger.ErrMalformed},
		{"transaction of a megabyte", paidUSDC(), transaction(func([]byte) any { return encoded(make([]byte, 1<<20)) }), ledger.ErrMalformed},

		{"no err", paidUSDC(), func(_, m object) { delete(m, "err") }, ledger.ErrIncomplete},
		{"no fee", paidUSDC(), func(_, m object) { delete(m, "fee") }, ledger.ErrIncomplete},
		{"fee negative", paidUSDC(), func(_, m object) { m["fee"] = -1 }, ledger.ErrMalformed},
		{"no balances before", paidUSDC(), func(_, m object) { delete(m, "preBalances") }, ledger.ErrInconsistent},
		{"no balances after", paidUSDC(), func(_, m object) { delete(m, "postBalances") }, ledger.ErrInconsistent},
		{"balances short", paidUSDC(), func(_, m object) { m["preBalances"] = m["preBalances"].([]int64)[1:] }, ledger.ErrInconsistent},
		{"balances long", paidUSDC(), func(_, m object) { m["postBalances"] = append(m["postBalances"].([]int64), 1) }, ledger.ErrInconsistent},
		{"balance negative", paidUSDC(), func(_, m object) { m["postBalances"].([]int64)[0] = -1 }, ledger.ErrMalformed},
		{"balance beyond 64 bits", paidUSDC(), func(_, m object) { m["postBalances"] = []float64{1e20} }, ledger.ErrMalformed},

		{"no token balances before", paidUSDC(), func(_, m object) { delete(m, "preTokenBalances") }, ledger.ErrIncomplete},
		{"token balances null", paidUSDC(), func(_, m object) { m["postTokenBalances"] = nil }, ledger.ErrIncomplete},
		{"token balance twice", paidUSDC(), func(_, m object) {
			m["postTokenBalances"] = append(m["postTokenBalances"].([]any), m["postTokenBalances"].([]any)[1])
		}, ledger.ErrInconsistent},
		{"token balance before twice", paidUSDC(), func(_, m object) {
			m["preTokenBalances"] = append(m["preTokenBalances"].([]any), m["preTokenBalances"].([]any)[1])
		}, ledger.ErrInconsistent},
		{"token balances without end", paidUSDC(), func(_, m object) {
			one := m["postTokenBalances"].([]any)[0]
			list := make([]any, ledger.MaxTokenBalances+1)
			for i := range list {
				list[i] = one
			}
			m["postTokenBalances"] = list
		}, ledger.ErrInconsistent},
		{"token account out of range", paidUSDC(), balance("accountIndex", 200), ledger.ErrInconsistent},
		{"token account just out of range", paidUSDC(), func(_, m object) {
			first(m, "postTokenBalances")["accountIndex"] = len(m["preBalances"].([]int64))
		}, ledger.ErrInconsistent},
		{"token account negative", paidUSDC(), balance("accountIndex", -1), ledger.ErrInconsistent},
		{"token account a fraction", paidUSDC(), balance("accountIndex", 0.5), ledger.ErrMalformed},
		{"token account missing", paidUSDC(), drop("accountIndex"), ledger.ErrIncomplete},
		{"owner missing", paidUSDC(), drop("owner"), ledger.ErrIncomplete},
		{"program missing", paidUSDC(), drop("programId"), ledger.ErrIncomplete},
		{"mint missing", paidUSDC(), drop("mint"), ledger.ErrIncomplete},
		{"amount missing", paidUSDC(), drop("uiTokenAmount"), ledger.ErrIncomplete},
		{"decimals missing", paidUSDC(), func(_, m object) {
			delete(first(m, "postTokenBalances")["uiTokenAmount"].(object), "decimals")
		}, ledger.ErrIncomplete},
		{"owner not base58", paidUSDC(), balance("owner", "0OIl"), ledger.ErrMalformed},
		{"mint of 31 bytes", paidUSDC(), balance("mint", strings.Repeat("1", 31)), ledger.ErrMalformed},
		{"amount negative", paidUSDC(), amount("-250000010"), ledger.ErrMalformed},
		{"amount signed", paidUSDC(), amount("+250000010"), ledger.ErrMalformed},
		{"amount with a point", paidUSDC(), amount("250.000010"), ledger.ErrMalformed},
		{"amount with an exponent", paidUSDC(), amount("25e7"), ledger.ErrMalformed},
		{"amount in hex", paidUSDC(), amount("0xff"), ledger.ErrMalformed},
		{"amount with zeros before", paidUSDC(), amount("000250000010"), ledger.ErrMalformed},
		{"amount with underscores", paidUSDC(), amount("250_000_010"), ledger.ErrMalformed},
		{"amount empty", paidUSDC(), amount(""), ledger.ErrMalformed},
		{"amount a number", paidUSDC(), amount(250000010), ledger.ErrMalformed},
		{"amount of 2^64", paidUSDC(), amount("18446744073709551616"), ledger.ErrMalformed},
		{"amount in other digits", paidUSDC(), amount("٢٥٠"), ledger.ErrMalformed},

		{"loaded addresses missing", lookedUp(), func(_, m object) { delete(m, "loadedAddresses") }, ledger.ErrIncomplete},
		{"loaded addresses fewer", lookedUp(), load([]string{}, []string{}), ledger.ErrInconsistent},
		{"loaded addresses more", lookedUp(), load([]string{solana.Base58(payTo), solana.Base58(vault)}, nil), ledger.ErrInconsistent},
		{"loaded as read, not written", lookedUp(), load(nil, []string{solana.Base58(payTo)}), ledger.ErrInconsistent},
		{"loaded without lookups", paidUSDC(), load([]string{solana.Base58(vault)}, nil), ledger.ErrInconsistent},
		{"loaded a static key", lookedUp(), load([]string{solana.Base58(payer)}, nil), ledger.ErrInconsistent},
		{"loaded no address", lookedUp(), load([]string{"x"}, nil), ledger.ErrMalformed},

		{"inner instructions null", withInner(), func(_, m object) { m["innerInstructions"] = nil }, ledger.ErrIncomplete},
		{"inner instructions missing", withInner(), func(_, m object) { delete(m, "innerInstructions") }, ledger.ErrIncomplete},
		{"inner of no instruction", withInner(), func(_, m object) { first(m, "innerInstructions")["index"] = 9 }, ledger.ErrInconsistent},
		{"inner of a negative instruction", withInner(), func(_, m object) { first(m, "innerInstructions")["index"] = -1 }, ledger.ErrInconsistent},
		{"inner without index", withInner(), func(_, m object) { delete(first(m, "innerInstructions"), "index") }, ledger.ErrInconsistent},
		{"inner program out of range", withInner(), innerSet("programIdIndex", 99), ledger.ErrInconsistent},
		{"inner program negative", withInner(), innerSet("programIdIndex", -1), ledger.ErrInconsistent},
		{"inner account out of range", withInner(), innerSet("accounts", []int{0, 99}), ledger.ErrInconsistent},
		{"inner account negative", withInner(), innerSet("accounts", []int{-1}), ledger.ErrInconsistent},
		{"inner accounts without end", withInner(), innerSet("accounts", make([]int, 257)), ledger.ErrInconsistent},
		{"inner memo not base58", withInner(), innerSet("data", "0"), ledger.ErrMalformed},
		{"inner instructions without end", withInner(), func(_, m object) {
			group := first(m, "innerInstructions")
			one := group["instructions"].([]any)[0]
			list := make([]any, ledger.MaxInnerInstructions+1)
			for i := range list {
				list[i] = one
			}
			group["instructions"] = list
		}, ledger.ErrInconsistent},
	} {
		if _, err := ledger.Parse(c.scene.answer(t)); err != nil {
			t.Fatalf("%s: before it is spoiled: %v", c.name, err)
		}
		c.scene.spoil = c.spoil
		if got, err := ledger.Parse(c.scene.answer(t)); !errors.Is(err, c.want) || got != nil {
			t.Errorf("%s: %v; want %v", c.name, err, c.want)
		}
	}
	for _, text := range []string{"", "null", "[]", "0", `"x"`, "{", "{}", `{"slot":1}`, strings.Repeat("[", 100_000)} {
		if got, err := ledger.Parse([]byte(text)); err == nil || got != nil {
			t.Errorf("%.20q: %v", text, got)
		}
	}
}

// TestLongInnerData: a memo beyond the bound is as if it were not there, and
// costs no time.
func TestLongInnerData(t *testing.T) {
	s := withInner()
	s.spoil = func(_, m object) {
		first(first(m, "innerInstructions"), "instructions")["data"] = strings.Repeat("z", ledger.MaxInnerText+1)
	}
	f, v := judge(t, s, target(market.RailUSDC), terms())
	if v.Reason != "" || len(f.Memos) != 1 {
		t.Errorf("%+v, memos %v", v, f.Memos)
	}
}

func TestExtractRefuses(t *testing.T) {
	c, err := ledger.Parse(paidUSDC().answer(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*payment.Target){
		"no rail":                 func(p *payment.Target) { p.Rail = 0 },
		"no mint":                 func(p *payment.Target) { p.Mint = solana.Address{} },
		"no program":              func(p *payment.Target) { p.Program = solana.Address{} },
		"nobody to pay":           func(p *payment.Target) { p.PayTo = solana.Address{} },
		"no treasury":             func(p *payment.Target) { p.Treasury = nil },
		"mint on SOL":             func(p *payment.Target) { p.Rail = market.RailSOL },
		"SOL to a stranger":       func(p *payment.Target) { *p = *target(market.RailSOL); p.PayTo = thief },
		"rail of another century": func(p *payment.Target) { p.Rail = 9 },
	} {
		to := target(market.RailUSDC)
		spoil(to)
		if f, err := payment.Extract(c, to); !errors.Is(err, payment.ErrTarget) || f != nil {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	const most = "18446744073709551615"
	for name, s := range map[string]*scene{
		"one owner's balances before": change(func(s *scene) { s.holds(payerTokens, usdc, payer, most, "0").holds(payerMore, usdc, payer, "1", "0") })(),
		"one owner's balances after":  change(func(s *scene) { s.holds(payerTokens, usdc, payer, "0", most).holds(payerMore, usdc, payer, "0", "1") })(),
		"the balances of all of ours": change(func(s *scene) { s.holds(payTo, usdc, treasury, "0", most).holds(vault, usdc, desk, "0", "1") })(),
		"a stranger's are bounded too": change(func(s *scene) {
			s.holds(friendToken, usdc, friend, "0", most).holds(thiefTokens, usdc, friend, "0", "1")
		})(),
	} {
		c, err := ledger.Parse(s.answer(t))
		if err != nil {
			t.Fatal(err)
		}
		if f, err := payment.Extract(c, target(market.RailUSDC)); !errors.Is(err, payment.ErrOverflow) || f != nil {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}

// TestUnknownBalance: an answer without the balance that our account had before is an
// error, not a payment.
func TestUnknownBalance(t *testing.T) {
	for name, s := range map[string]*scene{
		"the account to be paid": change(func(s *scene) { s.tokens[1].before = "-1" })(),
		"another one of ours":    change(func(s *scene) { s.holds(vault, usdc, desk, "-1", "900").lamport(vault, 2_039_280, 2_039_280) })(),
		"in a mint of no matter": change(func(s *scene) { s.holds(vault, fake, desk, "-1", "900").lamport(vault, 1, 1) })(),
	} {
		c, err := ledger.Parse(s.answer(t))
		if err != nil {
			t.Fatal(err)
		}
		if f, err := payment.Extract(c, target(market.RailUSDC)); !errors.Is(err, payment.ErrUnknownBalance) || f != nil {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}

// FuzzAnswer: whatever a node answers, what is accepted is credited in full and
// bound to the claim.
func FuzzAnswer(f *testing.F) {
	for _, s := range []*scene{paidUSDC(), paidSOL(), lookedUp(), withInner()} {
		f.Add(s.answer(f))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ledger.Parse(text)
		if err != nil {
			return
		}
		for _, rail := range []market.Rail{market.RailUSDC, market.RailSOL} {
			facts, err := payment.Extract(c, target(rail))
			if err != nil {
				continue
			}
			v := payment.Decide(facts, terms())
			if facts.Credited > facts.Gained {
				t.Fatalf("credited %d of %d", facts.Credited, facts.Gained)
			}
			if v.Reason == "" && (facts.Credited < due || facts.Lost(payer) < due || facts.Failed || facts.Slot < since) {
				t.Fatalf("accepted: %+v", facts)
			}
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	text, to, want := paidUSDC().answer(b), target(market.RailUSDC), terms()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		c, err := ledger.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		f, err := payment.Extract(c, to)
		if err != nil {
			b.Fatal(err)
		}
		if v := payment.Decide(f, want); v.Reason != "" {
			b.Fatal(v)
		}
	}
}
