package payment_test

import (
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// deal is a named scene and the reason it is refused with; "" accepts it.
type deal struct {
	name  string
	make  func() *scene
	terms func(*payment.Terms)
	want  payment.Reason
}

// change starts from an honest payment.
func change(f func(s *scene)) func() *scene {
	return func() *scene { s := paidUSDC(); f(s); return s }
}

func changeSOL(f func(s *scene)) func() *scene {
	return func() *scene { s := paidSOL(); f(s); return s }
}

// unreferenced is an honest payment without reference and with these calls
// instead of the memo.
func unreferenced(calls ...called) func() *scene {
	return change(func(s *scene) {
		s.calls = append([]called{transfer(payerTokens, usdc, payTo, payer)}, calls...)
	})
}

func judge(t testing.TB, s *scene, to *payment.Target, want *payment.Terms) (*payment.Facts, payment.Verdict) {
	t.Helper()
	c, err := ledger.Parse(s.answer(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := payment.Extract(c, to)
	if err != nil {
		t.Fatal(err)
	}
	return f, payment.Decide(f, want)
}

func run(t *testing.T, rail market.Rail, deals []deal) {
	t.Helper()
	seen := map[string]bool{}
	for _, d := range deals {
		if seen[d.name] {
			t.Errorf("two cases are named %q", d.name)
		}
		seen[d.name] = true
		t.Run(d.name, func(t *testing.T) {
			want := terms()
			if d.terms != nil {
				d.terms(want)
			}
			f, v := judge(t, d.make(), target(rail), want)
			if v.Reason != d.want {
				t.Errorf("%q, want %q: credited %d, gained %d, other %t, losses %v, memos %v", v.Reason, d.want, f.Credited, f.Gained, f.GainedOther, f.Losses, f.Memos)
			}
			if v.Reason == "" && f.Credited != want.Amount+v.Surplus {
				t.Errorf("credited %d, surplus %d", f.Credited, v.Surplus)
			}
		})
	}
}

func TestUSDCAccepted(t *testing.T) {
	run(t, market.RailUSDC, []deal{
		{name: "reference and memo", make: paidUSDC},
		{name: "reference alone", make: change(func(s *scene) { s.calls = s.calls[:1] })},
		{name: "memo alone", make: unreferenced(memoCall(claim))},
		{name: "memo of the first memo program", make: unreferenced(called{solana.MemoV1Program, nil, []byte(claim)})},
		{name: "memo twice", make: unreferenced(memoCall(claim), memoCall(claim))},
		{name: "memo among chatter", make: unreferenced(memoCall("gm"), memoCall(claim), memoCall("thanks"))},
		{name: "memo signed by the payer", make: unreferenced(called{solana.MemoProgram, []solana.Address{payer}, []byte(claim)})},
		{name: "memo by an inner call", make: func() *scene {
			return unreferenced(called{program, nil, nil})().innerCall(1, memoCall(claim))
		}},
		{name: "account created on the way", make: change(func(s *scene) { s.holds(payTo, usdc, treasury, "-1", "250000000").lamport(payTo, 0, 2_039_280) })},
		{name: "more than due", make: change(func(s *scene) {
			s.holds(payTo, usdc, treasury, "10", "260000010").holds(payerTokens, usdc, payer, "1000000000", "740000000")
		})},
		{name: "from two accounts of the payer", make: change(func(s *scene) {
			s.holds(payerTokens, usdc, payer, "100000000", "0").holds(payerMore, usdc, payer, "200000000", "50000000")
		})},
		{name: "payer's account closed after", make: change(func(s *scene) { s.holds(payerTokens, usdc, payer, "250000000", "-1") })},
		{name: "through a program", make: change(func(s *scene) {
			s.calls[0] = called{program, []solana.Address{payerTokens, payTo, payer, reference}, []byte("x")}
			s.innerCall(0, transfer(payerTokens, usdc, payTo, payer))
		})},
		{name: "in a batch of the token program", make: change(func(s *scene) { s.calls[0].data = []byte{255, 3, 9, 12} })},
		{name: "looked-up account", make: change(func(s *scene) { s.looked = []solana.Address{payTo} })},
		{name: "looked-up reference", make: change(func(s *scene) { s.looked = []solana.Address{reference} })},
		{name: "legacy", make: change(func(s *scene) { s.version = tx.Legacy })},
		{name: "version 1", make: change(func(s *scene) { s.version = tx.V1 })},
		{name: "fee paid by another", make: change(func(s *scene) { s.feePayer = friend })},
		{name: "fee paid by us", make: change(func(s *scene) { s.feePayer = desk; s.lamport(desk, 9_000_000, 8_995_000) })},
		{name: "beside a swap of others", make: change(func(s *scene) {
			s.holds(friendToken, usdc, friend, "5", "905").holds(thiefTokens, usdc, thief, "1000", "100")
		})},
		{name: "beside a gift in another mint", make: change(func(s *scene) { s.holds(vault, fake, treasury, "0", "5") })},
		{name: "block time unknown, slot fresh", make: change(func(s *scene) { s.blockTime = nil })},
		{name: "slot bound unset", make: paidUSDC, terms: func(w *payment.Terms) { w.NotBeforeSlot = 0 }},
		{name: "no bound set", make: change(func(s *scene) { s.blockTime, s.slot = nil, 1 }), terms: func(w *payment.Terms) { w.NotBefore, w.NotBeforeSlot = 0, 0 }},
		{name: "in the claim's own second and slot", make: change(func(s *scene) { s.blockTime, s.slot = made, since })},
		{name: "all there is", make: change(func(s *scene) {
			s.holds(payerTokens, usdc, payer, "18446744073709551615", "0").holds(payTo, usdc, treasury, "0", "18446744073709551615")
		})},
		{name: "reference bound, terms without memo", make: paidUSDC, terms: func(w *payment.Terms) { w.Memo = claim }},
	})
}

func TestUSDCRefused(t *testing.T) {
	run(t, market.RailUSDC, []deal{
		{name: "failed", make: change(func(s *scene) { s.err = map[string]any{"InstructionError": []any{0, map[string]any{"Custom": 1}}} }), want: payment.FailedOnChain},
		{name: "failed by a word", make: change(func(s *scene) { s.err = "AccountInUse" }), want: payment.FailedOnChain},
		{name: "failed before the claim in another mint", make: change(func(s *scene) { s.err, s.slot = "X", 1; s.tokens = nil }), want: payment.FailedOnChain},

		{name: "look-alike mint", make: change(func(s *scene) {
			s.holds(payerTokens, fake, payer, "1000000000", "750000000").holds(payTo, fake, treasury, "10", "250000010")
		}), want: payment.WrongMint},
		{name: "the mint under another program", make: change(func(s *scene) { s.tokens[0].program, s.tokens[1].program = program, program }), want: payment.WrongMint},
		{name: "the mint under Token-2022", make: change(func(s *scene) {
			s.tokens[0].program, s.tokens[1].program = solana.Token2022Program, solana.Token2022Program
		}), want: payment.WrongMint},
		{name: "SOL instead", make: func() *scene { return paidSOL() }, want: payment.WrongMint},
		{name: "look-alike mint to another account of ours", make: change(func(s *scene) {
			s.tokens = s.tokens[:1]
			s.holds(vault, fake, desk, "-1", "250000000")
		}), want: payment.WrongMint},

		{name: "to a look-alike account", make: change(func(s *scene) { s.tokens[1].account, s.tokens[1].owner = thiefTokens, thief; s.touch(thiefTokens) }), want: payment.WrongDestination},
		{name: "account of ours in name only", make: change(func(s *scene) { s.tokens[1].owner = thief }), want: payment.WrongDestination},
		{name: "account lost to a thief, another of ours paid", make: change(func(s *scene) {
			s.tokens[1].owner = thief
			s.tokens[0].after = "500000000"
			s.holds(vault, usdc, treasury, "0", "250000000")
		}), want: payment.WrongDestination},
		{name: "to another account of ours, with a gift", make: change(func(s *scene) {
			s.tokens[1].account = vault
			s.touch(vault).lamport(treasury, 0, 5)
		}), want: payment.WrongDestination},
		{name: "to another account of ours", make: change(func(s *scene) { s.tokens[1].account = vault; s.touch(vault) }), want: payment.WrongDestination},
		{name: "account handed over with its tokens", make: change(func(s *scene) {
			s.tokens = []held{
				{payerTokens, usdc, payer, solana.TokenProgram, "250000000", "-1"}, {vault, usdc, treasury, solana.TokenProgram, "-1", "250000000"},
			}
			s.touch(vault)
		}), want: payment.WrongDestination},
		{name: "instruction without effect", make: change(func(s *scene) { s.tokens[0].after, s.tokens[1].after = s.tokens[0].before, s.tokens[1].before }), want: payment.WrongDestination},
		{name: "nothing at all", make: change(func(s *scene) { s.calls, s.tokens = []called{memoCall(claim)}, nil }), want: payment.WrongDestination},
		{name: "burned", make: change(func(s *scene) { s.tokens = s.tokens[:1] }), want: payment.WrongDestination},
		{name: "treasury paid itself", make: change(func(s *scene) {
			s.tokens = s.tokens[1:]
			s.holds(vault, usdc, treasury, "900000000", "650000000")
		}), want: payment.WrongDestination},
		{name: "desk paid the treasury", make: change(func(s *scene) {
			s.tokens = s.tokens[1:]
			s.holds(vault, usdc, desk, "900000000", "650000000")
		}), want: payment.WrongDestination},
		{name: "looped back out of another account of ours", make: change(func(s *scene) {
			s.holds(vault, usdc, treasury, "900000000", "650000000").holds(payerTokens, usdc, payer, "1000000000", "1000000000")
		}), want: payment.WrongDestination},
		{name: "looped back to a friend", make: change(func(s *scene) {
			s.holds(vault, usdc, desk, "900000000", "650000000").holds(friendToken, usdc, friend, "0", "250000000")
		}), want: payment.WrongDestination},
		{name: "more looped back than paid", make: change(func(s *scene) {
			s.holds(vault, usdc, desk, "900000000", "100000000").holds(friendToken, usdc, friend, "0", "800000000")
		}), want: payment.WrongDestination},
		{name: "taken from us", make: change(func(s *scene) { s.tokens[1].before, s.tokens[1].after = "250000010", "10" }), want: payment.WrongDestination},

		{name: "an atom short", make: change(func(s *scene) { s.tokens[1].after = "250000009" }), want: payment.AmountShort},
		{name: "transfer fee kept on the way", make: change(func(s *scene) { s.tokens[1].after = "247500010" }), want: payment.AmountShort},
		{name: "an atom looped back", make: change(func(s *scene) { s.holds(vault, usdc, treasury, "7", "6").holds(friendToken, usdc, friend, "0", "1") }), want: payment.AmountShort},
		{name: "half here, half elsewhere", make: change(func(s *scene) {
			s.tokens[1].after = "125000010"
			s.holds(vault, usdc, treasury, "0", "125000000")
		}), want: payment.AmountShort},
		{name: "the old balance is no payment", make: change(func(s *scene) { s.tokens[1].before, s.tokens[1].after = "250000000", "250000001" }), want: payment.AmountShort},
		{name: "units mistaken for atoms", make: change(func(s *scene) { s.tokens[1].after = "260" }), want: payment.AmountShort},
		{name: "rest in a look-alike mint", make: change(func(s *scene) {
			s.tokens[1].after = "100000010"
			s.holds(vault, fake, treasury, "0", "150000000")
		}), want: payment.AmountShort},

		{name: "paid by another", make: change(func(s *scene) { s.tokens[0].owner = friend }), want: payment.WrongPayer},
		{name: "half paid by another", make: change(func(s *scene) {
			s.tokens[0].after = "875000000"
			s.holds(friendToken, usdc, friend, "200000000", "75000000")
		}), want: payment.WrongPayer},
		{name: "payer got it back from another", make: change(func(s *scene) {
			s.holds(payerMore, usdc, payer, "0", "250000000").holds(friendToken, usdc, friend, "250000000", "0")
		}), want: payment.WrongPayer},
		{name: "payer got an atom back", make: change(func(s *scene) {
			s.holds(payerMore, usdc, payer, "0", "1").holds(friendToken, usdc, friend, "1", "0")
		}), want: payment.WrongPayer},
		{name: "minted to us", make: change(func(s *scene) { s.tokens = s.tokens[1:] }), want: payment.WrongPayer},
		{name: "payer lost another mint", make: change(func(s *scene) {
			s.tokens[0].mint = fake
			s.holds(friendToken, usdc, friend, "250000000", "0")
		}), want: payment.WrongPayer},
		{name: "claim of our own wallet", make: paidUSDC, terms: func(w *payment.Terms) { w.Payer = treasury }, want: payment.WrongPayer},
		{name: "claim of our desk", make: paidUSDC, terms: func(w *payment.Terms) { w.Payer = desk }, want: payment.WrongPayer},
		{name: "claim without a payer", make: paidUSDC, terms: func(w *payment.Terms) { w.Payer = solana.Address{} }, want: payment.WrongPayer},
		{name: "claim of nothing", make: paidUSDC, terms: func(w *payment.Terms) { w.Amount = 0 }, want: payment.WrongPayer},

		{name: "neither reference nor memo", make: unreferenced(), want: payment.MissingReference},
		{name: "other claim's memo", make: unreferenced(memoCall(other)), want: payment.MissingReference},
		{name: "other claim's reference", make: func() *scene { return unreferenced()().touch(solana.Address{6, 2}) }, want: payment.MissingReference},
		{name: "memo in lower case", make: unreferenced(memoCall("c0000000000017")), want: payment.MissingReference},
		{name: "memo with a space", make: unreferenced(memoCall(claim + " ")), want: payment.MissingReference},
		{name: "memo with a line feed", make: unreferenced(memoCall(claim + "\n")), want: payment.MissingReference},
		{name: "memo with a zero byte", make: unreferenced(memoCall(claim + "\x00")), want: payment.MissingReference},
		{name: "memo in a longer text", make: unreferenced(memoCall("claim " + claim)), want: payment.MissingReference},
		{name: "memo in two parts", make: unreferenced(memoCall(claim[:7]), memoCall(claim[7:])), want: payment.MissingReference},
		{name: "empty memo", make: unreferenced(memoCall("")), want: payment.MissingReference},
		{name: "memo in another program's data", make: unreferenced(called{program, nil, []byte(claim)}), want: payment.MissingReference},
		{name: "memo in a look-alike memo program", make: unreferenced(called{fakeMemo, nil, []byte(claim)}), want: payment.MissingReference},
		{name: "memo in a token instruction", make: unreferenced(called{solana.TokenProgram, nil, []byte(claim)}), want: payment.MissingReference},
		{name: "memo in the logs", make: func() *scene {
			s := unreferenced()()
			s.logs = []string{"Program " + solana.Base58(solana.MemoProgram) + " invoke [1]", `Program log: Memo (len 14): "` + claim + `"`}
			return s
		}, want: payment.MissingReference},
		{name: "memo program named, not called", make: func() *scene {
			return unreferenced(called{program, []solana.Address{solana.MemoProgram}, []byte(claim)})()
		}, want: payment.MissingReference},
		{name: "inner call of a look-alike memo program", make: func() *scene {
			return unreferenced(called{program, nil, nil})().innerCall(1, called{fakeMemo, nil, []byte(claim)})
		}, want: payment.MissingReference},
		{name: "inner call of the token program with the text", make: func() *scene {
			return unreferenced(called{program, nil, nil})().innerCall(1, called{solana.TokenProgram, nil, []byte(claim)})
		}, want: payment.MissingReference},
		{name: "reference in a memo only", make: unreferenced(memoCall(solana.Base58(reference))), want: payment.MissingReference},
		{name: "claim without reference and memo", make: paidUSDC, terms: func(w *payment.Terms) { w.Reference, w.Memo = solana.Address{}, "" }, want: payment.MissingReference},
		{name: "empty memo for a claim without one", make: unreferenced(memoCall("")), terms: func(w *payment.Terms) { w.Memo = "" }, want: payment.MissingReference},
		{name: "system program for a claim without reference", make: func() *scene { return paidUSDC().touch(solana.SystemProgram) }, terms: func(w *payment.Terms) { w.Reference, w.Memo = solana.Address{}, other }, want: payment.MissingReference},

		{name: "two claims' memos", make: unreferenced(memoCall(claim), memoCall(other)), want: payment.AmbiguousReference},
		{name: "our reference, other claim's memo", make: change(func(s *scene) { s.calls[1] = memoCall(other) }), want: payment.AmbiguousReference},
		{name: "other claim's memo by an inner call", make: func() *scene { return paidUSDC().innerCall(0, memoCall(other)) }, want: payment.AmbiguousReference},
		{name: "other claim's memo of the first memo program", make: change(func(s *scene) { s.calls = append(s.calls, called{solana.MemoV1Program, nil, []byte(other)}) }), want: payment.AmbiguousReference},

		{name: "a second too old", make: change(func(s *scene) { s.blockTime = made - 1 }), want: payment.TooOld},
		{name: "a slot too old", make: change(func(s *scene) { s.slot = since - 1 }), want: payment.TooOld},
		{name: "time fresh, slot old", make: change(func(s *scene) { s.slot, s.blockTime = 1, made+1000 }), want: payment.TooOld},
		{name: "slot fresh, time old", make: change(func(s *scene) { s.slot, s.blockTime = since+1000, 1 }), want: payment.TooOld},
		{name: "negative time", make: change(func(s *scene) { s.blockTime = -5 }), want: payment.TooOld},
		{name: "age not provable", make: change(func(s *scene) { s.blockTime = nil }), terms: func(w *payment.Terms) { w.NotBeforeSlot = 0 }, want: payment.TooOld},
		{name: "time zero, slot unbound", make: change(func(s *scene) { s.blockTime = 0 }), terms: func(w *payment.Terms) { w.NotBeforeSlot = 0 }, want: payment.TooOld},
	})
}

func TestSOL(t *testing.T) {
	run(t, market.RailSOL, []deal{
		{name: "honest", make: paidSOL},
		{name: "more than due", make: changeSOL(func(s *scene) { s.lamport(payer, 1_000_000_000, 700_000_000).lamport(treasury, 0, 299_995_000) })},
		{name: "to a wallet that was empty", make: changeSOL(func(s *scene) { s.lamport(treasury, 0, due) })},
		{name: "fee paid by another", make: changeSOL(func(s *scene) { s.feePayer = friend; s.lamport(payer, 1_000_000_000, 750_000_000) })},
		{name: "fee paid by the treasury", make: changeSOL(func(s *scene) {
			s.feePayer = treasury
			s.lamport(payer, 1_000_000_000, 750_000_000).lamport(treasury, 7_000_000, 7_000_000+due-5000)
		})},
		{name: "by unwrapping", make: changeSOL(func(s *scene) {
			s.holds(payerTokens, solana.NativeMint, payer, "300000000", "-1").lamport(payerTokens, 302_039_280, 0)
			s.lamport(payer, 1_000_000, 1_000_000+302_039_280-due-5000)
		})},
		{name: "looked-up treasury", make: changeSOL(func(s *scene) { s.looked = []solana.Address{treasury} })},

		{name: "a lamport short", make: changeSOL(func(s *scene) { s.lamport(treasury, 7_000_000, 256_999_999) }), want: payment.AmountShort},
		{name: "to a look-alike wallet", make: changeSOL(func(s *scene) { s.lamport(treasury, 1, 1).lamport(thief, 0, due) }), want: payment.WrongDestination},
		{name: "to another wallet of ours", make: changeSOL(func(s *scene) { s.lamport(treasury, 1, 1).lamport(desk, 0, due) }), want: payment.WrongDestination},
		{name: "looped back out of the desk", make: changeSOL(func(s *scene) { s.lamport(desk, 900_000_000, 650_000_000).lamport(friend, 0, due) }), want: payment.WrongDestination},
		{name: "partly looped back", make: changeSOL(func(s *scene) { s.lamport(desk, 900_000_000, 899_999_999).lamport(friend, 0, 1) }), want: payment.AmountShort},
		{name: "USDC instead", make: func() *scene { return paidUSDC() }, want: payment.WrongMint},
		{name: "wrapped SOL to our token account", make: changeSOL(func(s *scene) {
			s.lamport(treasury, 1, 1).lamport(vault, 2_039_280, 2_039_280+due)
			s.holds(vault, solana.NativeMint, treasury, "0", "250000000")
		}), want: payment.WrongMint},
		{name: "rent of our new token account", make: changeSOL(func(s *scene) {
			s.lamport(treasury, 1, 1).lamport(vault, 0, due)
			s.holds(vault, usdc, treasury, "-1", "0")
		}), want: payment.WrongDestination},
		{name: "paid by another", make: changeSOL(func(s *scene) { s.lamport(payer, 1_000_000_000, 999_995_000).lamport(friend, due, 0) }), want: payment.WrongPayer},
		{name: "the fee is no payment", make: changeSOL(func(s *scene) {
			s.lamport(payer, 1_000_000_000, 999_995_000).lamport(friend, 5000, 0).lamport(treasury, 0, 5000)
		}), terms: func(w *payment.Terms) { w.Amount = 5000 }, want: payment.WrongPayer},
		{name: "payer filled up by another", make: changeSOL(func(s *scene) {
			s.lamport(payer, 1_000_000_000, 999_995_000).lamport(friend, 900_000_000, 900_000_000-due)
		}), want: payment.WrongPayer},
		{name: "payer only wrapped", make: changeSOL(func(s *scene) {
			s.lamport(payerTokens, 2_039_280, 2_039_280+due).holds(payerTokens, solana.NativeMint, payer, "0", "250000000")
			s.lamport(friend, 900_000_000, 900_000_000-due)
		}), want: payment.WrongPayer},
		{name: "failed", make: changeSOL(func(s *scene) { s.err = "InsufficientFundsForFee" }), want: payment.FailedOnChain},
		{name: "old", make: changeSOL(func(s *scene) { s.blockTime = made - 100 }), want: payment.TooOld},
		{name: "memo forged in the transfer", make: changeSOL(func(s *scene) {
			s.calls = []called{{solana.SystemProgram, []solana.Address{payer, treasury}, append([]byte{2, 0, 0, 0}, claim...)}}
		}), want: payment.MissingReference},
	})
}

// TestFacts checks all facts of one payment.
func TestFacts(t *testing.T) {
	s := paidUSDC().innerCall(0, memoCall("inner"))
	s.looked = []solana.Address{payTo}
	s.holds(friendToken, usdc, friend, "30", "20").holds(thiefTokens, usdc, thief, "40", "30").touch(vault)
	f, v := judge(t, s, target(market.RailUSDC), terms())
	if v.Reason != "" || v.Surplus != 0 || f.Credited != due || f.Gained != due || f.GainedOther {
		t.Errorf("%+v, %+v", v, f)
	}
	if f.Slot != since+25 || f.BlockTime != made+10 || f.Version != tx.V0 || !f.Lookups || f.Nonce || f.Failed || f.Signature != (solana.Signature{1, 2, 3}) {
		t.Errorf("%+v", f)
	}
	if f.Payer() != payer || len(f.Losses) != 3 || f.Losses[1] != (payment.Loss{Owner: friend, Amount: 10}) || f.Losses[2].Owner != thief || f.Lost(friend) != 10 || f.Lost(desk) != 0 {
		t.Errorf("losses %v", f.Losses)
	}
	if len(f.Memos) != 2 || f.Memos[0] != (payment.Memo{Text: "inner", Outer: 0, Inner: true}) || f.Memos[1] != (payment.Memo{Text: claim, Outer: 1}) {
		t.Errorf("memos %v", f.Memos)
	}
	if !f.Has(payTo) || !f.Has(reference) || f.Has(desk) || len(f.Signers) != 1 || f.Signers[0] != payer {
		t.Errorf("keys %v, signers %v", f.Keys, f.Signers)
	}
	failed := paidUSDC()
	failed.err = "AccountInUse"
	f, _ = judge(t, failed, target(market.RailUSDC), terms())
	if f.Error != `"AccountInUse"` || f.Credited != 0 || f.Payer() != (solana.Address{}) {
		t.Errorf("%+v", f)
	}
}
