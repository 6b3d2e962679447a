package payment_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// The cast. PayTo is a token account whose address says nothing about its owner.
var (
	payer       = solana.Address{1, 1}
	payerTokens = solana.Address{1, 2}
	payerMore   = solana.Address{1, 3}
	friend      = solana.Address{2, 1}
	friendToken = solana.Address{2, 2}
	thief       = solana.Address{3, 1}
	thiefTokens = solana.Address{3, 2}
	treasury    = solana.Address{4, 1}
	payTo       = solana.Address{4, 2}
	vault       = solana.Address{4, 3} // another token account of the treasury's
	desk        = solana.Address{4, 4} // another wallet of ours
	usdc        = solana.Address{5, 1}
	fake        = solana.Address{5, 2} // a look-alike mint
	reference   = solana.Address{6, 1}
	program     = solana.Address{7, 1} // an unknown program
	fakeMemo    = solana.Address{7, 2}
	table       = solana.Address{8, 1}
)

const (
	claim = "C0000000000017"
	other = "C0000000000018"
	due   = 250_000_000
	made  = 1_800_000_000 // when the claim was made
	since = 5_000         // and in which slot
)

// held is what a token account held before and after; -1 is no account.
type held struct {
	account, mint, owner, program solana.Address
	before, after                 string
}

// called is an instruction, by addresses.
type called struct {
	program  solana.Address
	accounts []solana.Address
	data     []byte
}

type calledInner struct {
	outer int
	called
}

// scene is a confirmed transaction, described by addresses.
type scene struct {
	version   tx.Version
	feePayer  solana.Address
	calls     []called
	extra     []solana.Address // accounts beside those of the calls
	looked    []solana.Address // accounts from a table, written
	lamports  map[solana.Address][2]int64
	tokens    []held
	inner     []calledInner
	fee       int64
	err       any
	blockTime any
	slot      any
	logs      []string
	// spoil changes the answer's members at the end.
	spoil func(result, meta map[string]any)
}

func transfer(from, mint, to, owner solana.Address, references ...solana.Address) called {
	return called{solana.TokenProgram, append([]solana.Address{from, mint, to, owner}, references...), []byte{12, 0x80, 0xb2, 0xe6, 0x0e, 0, 0, 0, 0, 6}}
}

func memoCall(text string) called { return called{solana.MemoProgram, nil, []byte(text)} }

// paidUSDC is an honest payment with reference and memo.
func paidUSDC() *scene {
	return &scene{
		version: tx.V0, feePayer: payer, fee: 5000, blockTime: made + 10, slot: since + 25,
		calls: []called{transfer(payerTokens, usdc, payTo, payer, reference), memoCall(claim)},
		lamports: map[solana.Address][2]int64{
			payer: {1_000_000_000, 999_995_000}, payerTokens: {2_039_280, 2_039_280}, payTo: {2_039_280, 2_039_280}, usdc: {1, 1},
		},
		tokens: []held{
			{payerTokens, usdc, payer, solana.TokenProgram, "1000000000", "750000000"},
			{payTo, usdc, treasury, solana.TokenProgram, "10", "250000010"},
		},
	}
}

// paidSOL is the same on the other rail.
func paidSOL() *scene {
	s := paidUSDC()
	s.calls[0] = called{solana.SystemProgram, []solana.Address{payer, treasury, reference}, []byte{2, 0, 0, 0, 0x80, 0xb2, 0xe6, 0x0e, 0, 0, 0, 0}}
	s.tokens = nil
	s.lamports = map[solana.Address][2]int64{payer: {1_000_000_000, 749_995_000}, treasury: {7_000_000, 257_000_000}}
	return s
}

func target(rail market.Rail) *payment.Target {
	if rail == market.RailSOL {
		return &payment.Target{Rail: rail, PayTo: treasury, Treasury: []solana.Address{treasury, desk}}
	}
	return &payment.Target{Rail: rail, Mint: usdc, Program: solana.TokenProgram, PayTo: payTo, Treasury: []solana.Address{treasury, desk}}
}

func terms() *payment.Terms {
	return &payment.Terms{Payer: payer, Amount: due, Reference: reference, Memo: claim, NotBefore: made, NotBeforeSlot: since}
}

// holds sets what a token account held, replacing an earlier entry.
func (s *scene) holds(account, mint, owner solana.Address, before, after string) *scene {
	s.tokens = slices.DeleteFunc(s.tokens, func(h held) bool { return h.account == account })
	s.tokens = append(s.tokens, held{account, mint, owner, solana.TokenProgram, before, after})
	s.touch(account)
	return s
}

// touch makes an account part of the transaction.
func (s *scene) touch(accounts ...solana.Address) *scene {
	s.extra = append(s.extra, accounts...)
	return s
}

func (s *scene) lamport(account solana.Address, before, after int64) *scene {
	s.lamports[account] = [2]int64{before, after}
	return s.touch(account)
}

func (s *scene) innerCall(outer int, c called) *scene {
	s.inner = append(s.inner, calledInner{outer, c})
	return s.touch(append([]solana.Address{c.program}, c.accounts...)...)
}

// message compiles the calls: the fee payer signs, the programs are last.
func (s *scene) message() *tx.Message {
	m := &tx.Message{Version: s.version, Keys: []solana.Address{s.feePayer}, Header: tx.Header{Required: 1}, Blockhash: solana.Hash{9}}
	add := func(key solana.Address) {
		if !slices.Contains(m.Keys, key) && !slices.Contains(s.looked, key) {
			m.Keys = append(m.Keys, key)
		}
	}
	for _, c := range s.calls {
		for _, a := range c.accounts {
			add(a)
		}
	}
	for _, a := range s.extra {
		add(a)
	}
	for _, c := range s.calls {
		add(c.program)
	}
	if len(s.looked) > 0 {
		numbers := make([]uint8, len(s.looked))
		m.Lookups = []tx.Lookup{{Table: table, Writable: numbers}}
	}
	for _, c := range s.calls {
		in := tx.Instruction{Program: s.number(m, c.program), Data: c.data}
		for _, a := range c.accounts {
			in.Accounts = append(in.Accounts, s.number(m, a))
		}
		m.Instructions = append(m.Instructions, in)
	}
	return m
}

func (s *scene) keys(m *tx.Message) []solana.Address {
	return append(slices.Clone(m.Keys), s.looked...)
}

func (s *scene) number(m *tx.Message, key solana.Address) uint8 {
	i := slices.Index(s.keys(m), key)
	if i < 0 {
		panic("no account " + solana.Base58(key))
	}
	return uint8(i)
}

// answer is the result member of getTransaction's answer.
func (s *scene) answer(t testing.TB) []byte {
	t.Helper()
	m := s.message()
	whole := tx.Transaction{Signatures: []solana.Signature{{1, 2, 3}}, Message: *m}
	raw, err := whole.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	var before, after []int64
	for _, key := range s.keys(m) {
		before, after = append(before, s.lamports[key][0]), append(after, s.lamports[key][1])
	}
	loaded := map[string]any{"writable": texts(s.looked), "readonly": []string{}}
	meta := map[string]any{
		"err": s.err, "status": map[string]any{"Ok": nil}, "fee": s.fee, "preBalances": before, "postBalances": after,
		"preTokenBalances":  s.balances(m, func(h held) string { return h.before }),
		"postTokenBalances": s.balances(m, func(h held) string { return h.after }),
		"innerInstructions": s.innerList(m), "logMessages": s.logs, "loadedAddresses": loaded, "rewards": []any{}, "computeUnitsConsumed": 6400,
	}
	result := map[string]any{
		"slot": s.slot, "blockTime": s.blockTime, "version": 0, "meta": meta,
		"transaction": []string{base64.StdEncoding.EncodeToString(raw), "base64"},
	}
	if s.spoil != nil {
		s.spoil(result, meta)
	}
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func texts(keys []solana.Address) []string {
	list := []string{}
	for _, k := range keys {
		list = append(list, solana.Base58(k))
	}
	return list
}

func (s *scene) balances(m *tx.Message, side func(held) string) []any {
	list := []any{}
	for _, h := range s.tokens {
		if side(h) == "-1" {
			continue
		}
		n, _ := strconv.ParseFloat(side(h), 64)
		list = append(list, map[string]any{
			"accountIndex": s.number(m, h.account), "mint": solana.Base58(h.mint), "owner": solana.Base58(h.owner), "programId": solana.Base58(h.program),
			"uiTokenAmount": map[string]any{"amount": side(h), "decimals": 6, "uiAmount": n / 1e6, "uiAmountString": "?"},
		})
	}
	return list
}

func (s *scene) innerList(m *tx.Message) []any {
	list := []any{}
	for _, in := range s.inner {
		accounts := []int{}
		for _, a := range in.accounts {
			accounts = append(accounts, int(s.number(m, a)))
		}
		list = append(list, map[string]any{"index": in.outer, "instructions": []any{map[string]any{
			"programIdIndex": s.number(m, in.program), "accounts": accounts, "data": base58.Encode(in.data), "stackHeight": 2,
		}}})
	}
	return list
}
