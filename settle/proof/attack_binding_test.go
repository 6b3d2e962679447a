package proof

import (
	"strings"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/payment"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// bindingAttacks pay in full, and name the claim somehow.
func bindingAttacks() []attack {
	list := append(bindingsGood(), bindingsMissing()...)
	list = append(list, bindingsOther()...)
	for i := range list {
		list[i].rail = market.RailUSDC
	}
	return list
}

// by lands the payment with what other calls name the claim.
func by(name func(s *stage, c claim) []call) player {
	return func(s *stage, c claim) signature { return s.does(append(name(s, c), s.pays(c, due(c)))...) }
}

// text is a memo made of the claim's own.
func text(change func(memo string) string) player {
	return by(func(_ *stage, c claim) []call { return []call{memo(change(binding.Memo(c.ID)))} })
}

func bindingsGood() []attack {
	return []attack{
		{name: "memo alone", attack: by(func(_ *stage, c claim) []call { return []call{memo(binding.Memo(c.ID))} }), want: paid(dueUSDC)},
		{name: "memo of the first memo program", attack: by(func(_ *stage, c claim) []call { return []call{memoV1(binding.Memo(c.ID))} }), want: paid(dueUSDC)},
		{name: "memo twice", attack: by(func(_ *stage, c claim) []call {
			return []call{memo(binding.Memo(c.ID)), memo(binding.Memo(c.ID))}
		}), want: paid(dueUSDC)},
		{name: "memo among chatter", attack: by(func(_ *stage, c claim) []call {
			return []call{memo("gm"), memo(binding.Memo(c.ID)), memo("C"), memo("thanks")}
		}), want: paid(dueUSDC)},
		{name: "memo signed", attack: by(func(s *stage, c claim) []call { return []call{memo(binding.Memo(c.ID), s.payer.addr)} }), want: paid(dueUSDC)},
		{name: "memo signed by another", attack: by(func(s *stage, c claim) []call { return []call{memo(binding.Memo(c.ID), s.thief.addr)} }), want: paid(dueUSDC)},
		{name: "memo through a program", attack: by(func(s *stage, c claim) []call {
			return []call{through(s.props.relay, memo(binding.Memo(c.ID)))}
		}), want: paid(dueUSDC)},
		{name: "reference alone", attack: func(s *stage, c claim) signature {
			return s.does(s.pays(c, due(c)).with(binding.Reference(c.ID)))
		}, want: paid(dueUSDC)},
		{name: "reference written to", attack: func(s *stage, c claim) signature {
			pays := s.pays(c, due(c))
			pays.accounts = append(pays.accounts, wr(binding.Reference(c.ID)))
			return s.does(pays)
		}, want: paid(dueUSDC)},
		{name: "reference beside a foreign program", attack: by(func(s *stage, c claim) []call {
			return []call{{program: s.props.yes, accounts: []use{rd(binding.Reference(c.ID))}}}
		}), want: paid(dueUSDC)},
		{name: "reference paid a lamport's rent", attack: by(func(s *stage, c claim) []call {
			return []call{giveSOL(s.payer.addr, binding.Reference(c.ID), 1_000_000)}
		}), want: paid(dueUSDC)},
	}
}

func bindingsMissing() []attack {
	none := nameless(payment.MissingReference, market.RailUSDC, dueUSDC)
	return []attack{
		{name: "no claim named", attack: by(func(*stage, claim) []call { return nil }), want: none},
		{name: "memo in lower case", attack: text(strings.ToLower), want: none},
		{name: "memo in upper case", attack: text(strings.ToUpper), want: none},
		{name: "memo after a space", attack: text(func(m string) string { return " " + m }), want: none},
		{name: "memo before a space", attack: text(func(m string) string { return m + " " }), want: none},
		{name: "memo before a line feed", attack: text(func(m string) string { return m + "\n" }), want: none},
		{name: "memo before a zero byte", attack: text(func(m string) string { return m + "\x00" }), want: none},
		{name: "memo in quotes", attack: text(func(m string) string { return `"` + m + `"` }), want: none},
		{name: "memo in a longer text", attack: text(func(m string) string { return "claim " + m }), want: none},
		{name: "memo a digit short", attack: text(func(m string) string { return m[:len(m)-1] }), want: none},
		{name: "memo a digit long", attack: text(func(m string) string { return m + "0" }), want: none},
		{name: "memo with a letter for a digit", attack: text(func(m string) string { return "C" + "o" + m[2:] }), want: none},
		{name: "memo with a digit beyond 64 bits", attack: text(func(m string) string { return "Cz" + m[2:] }), want: none},
		{name: "memo of a build", attack: text(func(m string) string { return "B" + m[1:] }), want: none},
		{name: "memo of a quote", attack: text(func(m string) string { return "Q" + m[1:] }), want: none},
		{name: "memo of no claim", attack: text(func(string) string { return "C0000000000000" }), want: none},
		{name: "memo in a look-alike alphabet", attack: text(func(m string) string { return "С" + m[1:] }), want: none}, // Cyrillic
		{name: "memo with a mark in front", attack: text(func(m string) string { return "\ufeff" + m }), want: none},
		{name: "memo in two parts", attack: by(func(_ *stage, c claim) []call {
			m := binding.Memo(c.ID)
			return []call{memo(m[:7]), memo(m[7:])}
		}), want: none},
		{name: "empty memo", attack: text(func(string) string { return "" }), want: none},
		{name: "memo to a foreign program", attack: by(func(s *stage, c claim) []call {
			return []call{{program: s.props.yes, data: []byte(binding.Memo(c.ID))}}
		}), want: none},
		{name: "memo program named and not called", attack: by(func(s *stage, c claim) []call {
			return []call{{program: s.props.yes, accounts: []use{rd(solana.MemoProgram)}, data: []byte(binding.Memo(c.ID))}}
		}), want: none},
		{name: "reference as text of a memo", attack: by(func(_ *stage, c claim) []call {
			return []call{memo(solana.Base58(binding.Reference(c.ID)))}
		}), want: none},
		{name: "reference with a bit turned", attack: by(func(s *stage, c claim) []call {
			a := binding.Reference(c.ID)
			a[31] ^= 1
			return []call{{program: s.props.yes, accounts: []use{rd(a)}}}
		}), want: none},
		{name: "reference with the number alone", attack: by(func(s *stage, c claim) []call {
			a := binding.Reference(c.ID)
			clear(a[8:])
			return []call{{program: s.props.yes, accounts: []use{rd(a)}}}
		}), want: none},
		{name: "reference of no claim", attack: by(func(s *stage, _ claim) []call {
			return []call{{program: s.props.yes, accounts: []use{rd(binding.Reference(0))}}}
		}), want: none},
	}
}

func bindingsOther() []attack {
	two := nameless(payment.AmbiguousReference, market.RailUSDC, dueUSDC)
	stranger := market.ClaimID(1<<63 + 12345)
	nobody := want{verdict: unknown, unmatchedAs: "unknown_claim", unmatchedOn: market.RailUSDC, strayed: dueUSDC, unnamed: true}
	names := func(s *stage, id market.ClaimID) call {
		return call{program: s.props.yes, accounts: []use{rd(binding.Reference(id))}}
	}
	return []attack{
		{name: "two claims' memos", attack: by(func(s *stage, c claim) []call {
			return []call{memo(binding.Memo(c.ID)), memo(binding.Memo(s.take(market.RailUSDC).ID))}
		}), want: two},
		{name: "two claims' references", attack: by(func(s *stage, c claim) []call {
			return []call{names(s, c.ID), names(s, s.take(market.RailUSDC).ID)}
		}), want: two},
		{name: "memo of one claim, reference of another", attack: by(func(s *stage, c claim) []call {
			return []call{memo(binding.Memo(c.ID)), names(s, s.take(market.RailUSDC).ID)}
		}), want: two},
		{name: "reference of one claim, memo of another", attack: by(func(s *stage, c claim) []call {
			return []call{names(s, c.ID), memo(binding.Memo(s.take(market.RailUSDC).ID))}
		}), want: two},
		{name: "another claim's memo of the first memo program", attack: by(func(s *stage, c claim) []call {
			return []call{memo(binding.Memo(c.ID)), memoV1(binding.Memo(s.take(market.RailUSDC).ID))}
		}), want: two},
		{name: "another claim's memo through a program", attack: by(func(s *stage, c claim) []call {
			return []call{memo(binding.Memo(c.ID)), through(s.props.relay, memo(binding.Memo(s.take(market.RailUSDC).ID)))}
		}), want: two},
		{name: "memo of a claim that is not", attack: by(func(*stage, claim) []call { return []call{memo(binding.Memo(stranger))} }), want: nobody},
		{name: "reference of a claim that is not", attack: by(func(s *stage, _ claim) []call { return []call{names(s, stranger+1)} }), want: nobody},
		{name: "the claim's memo, and of one that is not", attack: by(func(_ *stage, c claim) []call {
			return []call{memo(binding.Memo(c.ID)), memo(binding.Memo(stranger))}
		}), want: two},
	}
}
