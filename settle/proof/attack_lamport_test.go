package proof

import (
	"crypto/sha256"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/payment"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// lamportAttacks pay a claim of the SOL rail.
func lamportAttacks() []attack {
	list := append(lamportPayments(), lamportRefusals()...)
	for i := range list {
		list[i].rail = market.RailSOL
		list[i].name = "SOL: " + list[i].name
	}
	return list
}

// wraps opens an account of wrapped SOL for a wallet with so many lamports.
func (s *stage) wraps(owner solana.Address, lamports uint64) solana.Address {
	s.t.Helper()
	at := s.somebody().addr
	s.does(createAccount(s.payer.addr, at, accountRent+lamports, 165, s.wrapped.program), s.wrapped.openAt(at, owner))
	return at
}

func lamportPayments() []attack {
	return []attack{
		{name: "honest", attack: pay(whole), want: paid(dueSOL)},
		{name: "a lamport too many", attack: pay(func(due uint64) uint64 { return due + 1 }), want: paid(dueSOL + 1)},
		{name: "in three transfers", attack: instead(func(s *stage, c claim) []call {
			return []call{s.pays(c, 1), s.pays(c, due(c)/2), s.pays(c, due(c)/2-1)}
		}), want: paid(dueSOL)},
		{name: "through a program", attack: instead(func(s *stage, c claim) []call {
			return []call{through(s.props.relay, s.pays(c, due(c)))}
		}), want: paid(dueSOL)},
		{name: "fee paid by another", attack: func(s *stage, c claim) signature {
			return s.lands(&draft{payer: s.friend.addr, calls: s.bound(c, due(c))})
		}, want: paid(dueSOL)},
		{name: "by unwrapping to us", attack: func(s *stage, c claim) signature {
			at := s.wraps(s.payer.addr, due(c)-accountRent)
			return s.does(s.wrapped.close(at, s.treasury.addr, s.payer.addr), memo(binding.Memo(c.ID)))
		}, want: paid(dueSOL)},
		{name: "by unwrapping on the way", attack: func(s *stage, c claim) signature {
			at := s.wraps(s.payer.addr, due(c))
			return s.does(s.wrapped.close(at, s.payer.addr, s.payer.addr), s.pays(c, due(c)), memo(binding.Memo(c.ID)))
		}, want: paid(dueSOL)},
		{name: "beside an atom of USDC", attack: beside(func(s *stage, _ claim) []call {
			return []call{s.usdc.give(s.payer.addr, s.treasury.addr, 1)}
		}), want: paid(dueSOL).and(payment.WrongDestination, market.RailUSDC, 1)},
		{name: "beside lamports into our USDC account", attack: beside(func(s *stage, _ claim) []call {
			return []call{giveSOL(s.payer.addr, s.usdc.of(s.treasury.addr), 77)}
		}), want: paid(dueSOL).and(payment.WrongDestination, market.RailSOL, 77)},
		{name: "beside an account of ours that is opened", attack: beside(func(s *stage, _ claim) []call {
			at := s.somebody().addr
			return []call{createAccount(s.payer.addr, at, accountRent, 165, s.usdc.program), s.usdc.openAt(at, s.treasury.addr)}
		}), want: paid(dueSOL)},
	}
}

func lamportRefusals() []attack {
	wrong := unmatchedFor(payment.WrongPayer, market.RailSOL, dueSOL)
	return []attack{
		{name: "a lamport short", attack: pay(func(due uint64) uint64 { return due - 1 }), want: short(market.RailSOL, dueSOL-1)},
		{name: "a lamport", attack: pay(func(uint64) uint64 { return 1 }), want: short(market.RailSOL, 1)},
		{name: "the rent of a closed account", attack: func(s *stage, c claim) signature {
			at := s.account(s.payer.addr)
			return s.does(s.usdc.close(at, s.treasury.addr, s.payer.addr), memo(binding.Memo(c.ID)))
		}, want: short(market.RailSOL, accountRent)},
		{name: "the rent of a thief's closed account", attack: func(s *stage, c claim) signature {
			at := s.account(s.thief.addr)
			return s.does(s.usdc.close(at, s.treasury.addr, s.thief.addr), memo(binding.Memo(c.ID)))
		}, want: short(market.RailSOL, accountRent)},
		{name: "a lamport, and all of it in USDC", attack: instead(func(s *stage, c claim) []call {
			return []call{s.pays(c, 1), s.usdc.give(s.payer.addr, s.treasury.addr, dueUSDC)}
		}), want: short(market.RailSOL, 1).and(payment.WrongDestination, market.RailUSDC, dueUSDC)},
		{name: "USDC instead", attack: instead(func(s *stage, _ claim) []call {
			return []call{s.usdc.give(s.payer.addr, s.treasury.addr, dueUSDC)}
		}), want: otherRail(market.RailUSDC, dueUSDC)},
		{name: "USDC to another wallet of ours", attack: instead(func(s *stage, _ claim) []call {
			return []call{s.usdc.give(s.payer.addr, s.desk.addr, dueUSDC)}
		}), want: otherRail(market.RailUSDC, dueUSDC)},
		{name: "wrapped SOL", attack: func(s *stage, c claim) signature {
			at := s.wrapped.of(s.treasury.addr)
			s.does(s.wrapped.open(s.payer.addr, s.treasury.addr))
			return s.does(giveSOL(s.payer.addr, at, due(c)), s.wrapped.sync(at), memo(binding.Memo(c.ID)))
		}, want: unmatchedFor(payment.WrongMint, 0, 0)},
		{name: "a new account of wrapped SOL handed to us", attack: func(s *stage, c claim) signature {
			at := s.wraps(s.payer.addr, due(c))
			return s.does(s.wrapped.handOver(at, s.payer.addr, s.treasury.addr, 2), memo(binding.Memo(c.ID)))
		}, want: unmatchedFor(payment.WrongDestination, 0, 0)},
		{name: "to another wallet of ours", attack: instead(func(s *stage, c claim) []call {
			return []call{giveSOL(s.payer.addr, s.desk.addr, due(c))}
		}), want: unmatchedFor(payment.WrongDestination, market.RailSOL, dueSOL)},
		{name: "into our USDC account", attack: instead(func(s *stage, c claim) []call {
			return []call{giveSOL(s.payer.addr, s.usdc.of(s.treasury.addr), due(c))}
		}), want: unmatchedFor(payment.WrongDestination, market.RailSOL, dueSOL)},
		{name: "to a thief", attack: instead(func(s *stage, c claim) []call {
			return []call{giveSOL(s.payer.addr, s.thief.addr, due(c))}
		}), want: refused(payment.WrongDestination)},
		{name: "to himself", attack: instead(func(s *stage, c claim) []call {
			return []call{giveSOL(s.payer.addr, s.payer.addr, due(c))}
		}), want: refused(payment.WrongDestination)},
		{name: "rent of an account that we get", attack: func(s *stage, c claim) signature {
			return s.does(s.usdc.open(s.payer.addr, s.somebody().addr), s.props.fake.open(s.payer.addr, s.treasury.addr), memo(binding.Memo(c.ID)))
		}, want: refused(payment.WrongDestination)},
		{name: "paid by another", attack: instead(func(s *stage, c claim) []call {
			return []call{giveSOL(s.friend.addr, s.treasury.addr, due(c))}
		}), want: wrong},
		{name: "a lamport paid by another", attack: instead(func(s *stage, c claim) []call {
			return []call{s.pays(c, due(c)-1), giveSOL(s.friend.addr, s.treasury.addr, 1)}
		}), want: wrong},
		{name: "made good by another", attack: beside(func(s *stage, c claim) []call {
			return []call{giveSOL(s.friend.addr, s.payer.addr, due(c))}
		}), want: wrong},
		{name: "a lamport made good by another", attack: beside(func(s *stage, _ claim) []call {
			return []call{giveSOL(s.friend.addr, s.payer.addr, 1)}
		}), want: wrong},
		{name: "another's account unwrapped to us", attack: func(s *stage, c claim) signature {
			at := s.wraps(s.friend.addr, due(c)-accountRent)
			return s.does(s.wrapped.close(at, s.treasury.addr, s.friend.addr), memo(binding.Memo(c.ID)))
		}, want: wrong},
		{name: "out of the payer's nonce account", attack: instead(func(s *stage, c claim) []call {
			return []call{withdrawNonce(s.props.nonce.addr, s.treasury.addr, s.payer.addr, due(c))}
		}), want: wrong},
		{name: "out of the payer's seeded account", attack: func(s *stage, c claim) signature {
			at := solana.Address(sha256.Sum256(append(append(append([]byte{}, s.payer.addr[:]...), "till"...), solana.SystemProgram[:]...)))
			s.does(giveSOL(s.payer.addr, at, 2*dueSOL))
			return s.does(giveSeeded(at, s.payer.addr, s.treasury.addr, due(c), "till"), memo(binding.Memo(c.ID)))
		}, want: wrong},
		{name: "out of a stake account", attack: func(s *stage, c claim) signature {
			at := s.somebody().addr
			s.does(createAccount(s.payer.addr, at, 3*dueSOL, 200, stakeProgram))
			return s.does(withdrawStake(at, s.treasury.addr, due(c)), memo(binding.Memo(c.ID)))
		}, want: wrong},
		{name: "the treasury pays itself", attack: func(s *stage, c claim) signature {
			return s.does(giveSOL(s.treasury.addr, s.treasury.addr, 1000), memo(binding.Memo(c.ID), s.treasury.addr))
		}, want: want{verdict: mismatch, word: string(payment.WrongDestination)}},
		{name: "the desk pays the treasury", attack: func(s *stage, c claim) signature {
			return s.does(giveSOL(s.desk.addr, s.treasury.addr, due(c)), memo(binding.Memo(c.ID)))
		}, want: want{verdict: mismatch, word: string(payment.WrongDestination)}},
		{name: "the operator's own business", attack: func(s *stage, _ claim) signature {
			return s.does(s.usdc.give(s.friend.addr, s.treasury.addr, 1000), memo("invoice 7", s.desk.addr))
		}, want: want{verdict: mismatch, word: string(payment.MissingReference), unbooked: true}},
		{name: "the treasury has signed beside the payer", attack: beside(func(s *stage, _ claim) []call {
			return []call{memo("seen", s.treasury.addr)}
		}), want: want{verdict: mismatch, word: string(payment.WrongDestination), unbooked: true}},
	}
}
