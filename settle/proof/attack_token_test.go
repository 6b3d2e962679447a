package proof

import (
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/payment"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// signature is what a case returns, and player how it is made.
type (
	signature = solana.Signature
	claim     = *rfq.Claim
	player    = func(s *stage, c claim) signature
)

// pay lands the honest payment of so many atoms, changed by more calls.
func pay(atoms func(due uint64) uint64, more ...func(s *stage, c claim) []call) player {
	return func(s *stage, c claim) signature {
		calls := s.bound(c, atoms(due(c)))
		for _, m := range more {
			calls = append(calls, m(s, c)...)
		}
		return s.does(calls...)
	}
}

func whole(due uint64) uint64 { return due }

// instead lands other calls than the honest ones, with the claim's memo.
func instead(calls func(s *stage, c claim) []call) player {
	return func(s *stage, c claim) signature {
		return s.does(append(calls(s, c), memo(binding.Memo(c.ID)))...)
	}
}

// beside lands the honest payment and something else.
func beside(calls func(s *stage, c claim) []call) player { return pay(whole, calls) }

// tokenAttacks pay a claim of the USDC rail.
func tokenAttacks() []attack {
	list := append(tokenPayments(), tokenShort()...)
	list = append(list, tokenElsewhere()...)
	list = append(list, tokenOtherMints()...)
	list = append(list, tokenPayers()...)
	for i := range list {
		list[i].rail = market.RailUSDC
	}
	return list
}

// tokenPayments are odd, and pay.
func tokenPayments() []attack {
	return []attack{
		{name: "honest", attack: pay(whole), want: paid(dueUSDC)},
		{name: "an atom too many", attack: pay(func(due uint64) uint64 { return due + 1 }), want: paid(dueUSDC + 1)},
		{name: "the transfer that names no mint", attack: instead(func(s *stage, c claim) []call {
			return []call{s.usdc.givePlain(s.payer.addr, s.treasury.addr, due(c))}
		}), want: paid(dueUSDC)},
		{name: "paid twice in one transaction", attack: beside(func(s *stage, c claim) []call { return []call{s.pays(c, due(c))} }), want: paid(2 * dueUSDC)},
		{name: "in four transfers", attack: instead(func(s *stage, c claim) []call {
			part := s.pays(c, due(c)/4)
			return []call{part, part, part, part}
		}), want: paid(dueUSDC)},
		{name: "out of two accounts of the payer", attack: instead(func(s *stage, c claim) []call {
			return []call{s.pays(c, due(c)-7), s.usdc.giveFrom(s.props.second, s.usdc.of(s.treasury.addr), s.payer.addr, 7)}
		}), want: paid(dueUSDC)},
		{name: "in a batch", attack: instead(func(s *stage, c claim) []call {
			return []call{s.usdc.batch(s.pays(c, due(c)-1), s.pays(c, 1))}
		}), want: paid(dueUSDC)},
		{name: "through a program", attack: instead(func(s *stage, c claim) []call {
			return []call{through(s.props.relay, s.pays(c, due(c)))}
		}), want: paid(dueUSDC)},
		{name: "through a program that calls itself", attack: instead(func(s *stage, c claim) []call {
			return []call{through(s.props.relay, through(s.props.relay, s.usdc.batch(s.pays(c, due(c)))))}
		}), want: paid(dueUSDC)},
		{name: "by the payer's delegate", attack: func(s *stage, c claim) signature {
			s.does(s.usdc.approve(s.props.second, s.friend.addr, s.payer.addr, due(c)))
			return s.does(s.usdc.giveFrom(s.props.second, s.usdc.of(s.treasury.addr), s.friend.addr, due(c)), memo(binding.Memo(c.ID)))
		}, want: paid(dueUSDC)},
		{name: "by two of a shared wallet", wallet: func(s *stage) solana.Address { return s.props.jointly }, attack: instead(func(s *stage, c claim) []call {
			pays := s.usdc.give(s.props.jointly, s.treasury.addr, due(c))
			pays.accounts[3] = rd(s.props.jointly)
			pays.accounts = append(pays.accounts, sg(s.payer.addr), sg(s.friend.addr))
			return []call{pays}
		}), want: paid(dueUSDC)},
		{name: "the account closed after", attack: func(s *stage, c claim) signature {
			at := s.account(s.payer.addr)
			s.does(s.usdc.giveFrom(s.usdc.of(s.payer.addr), at, s.payer.addr, due(c)))
			return s.does(s.usdc.giveFrom(at, s.usdc.of(s.treasury.addr), s.payer.addr, due(c)), s.usdc.close(at, s.payer.addr, s.payer.addr), memo(binding.Memo(c.ID)))
		}, want: paid(dueUSDC)},
		{name: "beside a trade of others", attack: beside(func(s *stage, _ claim) []call {
			return []call{s.usdc.give(s.friend.addr, s.thief.addr, 900*dueUSDC)}
		}), want: paid(dueUSDC)},
		{name: "beside a gift of a worthless token", attack: beside(func(s *stage, _ claim) []call {
			return []call{s.props.fake.give(s.payer.addr, s.treasury.addr, 5)}
		}), want: paid(dueUSDC)},
		{name: "fee paid by another", attack: func(s *stage, c claim) signature {
			return s.lands(&draft{payer: s.friend.addr, calls: s.bound(c, due(c))})
		}, want: paid(dueUSDC)},
		{name: "burned by the payer, minted to us", attack: instead(func(s *stage, c claim) []call {
			return []call{s.usdc.burn(s.usdc.of(s.payer.addr), s.payer.addr, due(c)), s.usdc.issue(s.usdc.of(s.treasury.addr), s.issuer.addr, due(c))}
		}), want: paid(dueUSDC)},
		{name: "beside a lamport", attack: beside(func(s *stage, _ claim) []call {
			return []call{giveSOL(s.payer.addr, s.treasury.addr, 1)}
		}), want: paid(dueUSDC).and(payment.WrongDestination, market.RailSOL, 1)},
		{name: "as much again to another account of ours", attack: beside(func(s *stage, c claim) []call {
			return []call{s.usdc.give(s.payer.addr, s.desk.addr, due(c))}
		}), want: paid(dueUSDC).and(payment.WrongDestination, market.RailUSDC, dueUSDC)},
	}
}

// and says what came beside a payment.
func (w want) and(why payment.Reason, rail market.Rail, amount uint64) want {
	w.unmatchedAs, w.unmatchedOn, w.strayed = string(why), rail, amount
	return w
}

// tokenShort credit too little.
func tokenShort() []attack {
	back := func(s *stage, to solana.Address, atoms uint64) call {
		return s.usdc.giveFrom(s.usdc.of(s.desk.addr), s.usdc.of(to), s.thief.addr, atoms)
	}
	return []attack{
		{name: "an atom short", attack: pay(func(due uint64) uint64 { return due - 1 }), want: short(market.RailUSDC, dueUSDC-1)},
		{name: "an atom", attack: pay(func(uint64) uint64 { return 1 }), want: short(market.RailUSDC, 1)},
		{name: "dollars mistaken for atoms", attack: pay(func(due uint64) uint64 { return due / 1_000_000 }), want: short(market.RailUSDC, 250)},
		{name: "an atom looped back by a delegate", attack: beside(func(s *stage, _ claim) []call {
			return []call{back(s, s.thief.addr, 1)}
		}), want: short(market.RailUSDC, dueUSDC-1)},
		{name: "half to another wallet of ours", attack: instead(func(s *stage, c claim) []call {
			return []call{s.pays(c, due(c)/2), s.usdc.give(s.payer.addr, s.desk.addr, due(c)/2)}
		}), want: short(market.RailUSDC, dueUSDC/2).and(payment.WrongDestination, market.RailUSDC, dueUSDC/2)},
		{name: "half to another account of the treasury", attack: instead(func(s *stage, c claim) []call {
			return []call{s.pays(c, due(c)/2), s.usdc.giveFrom(s.usdc.of(s.payer.addr), s.props.spare, s.payer.addr, due(c)/2)}
		}), want: short(market.RailUSDC, dueUSDC/2).and(payment.WrongDestination, market.RailUSDC, dueUSDC/2)},
		{name: "half in a worthless token", attack: instead(func(s *stage, c claim) []call {
			return []call{s.pays(c, due(c)/2), s.props.fake.give(s.payer.addr, s.treasury.addr, due(c)/2)}
		}), want: short(market.RailUSDC, dueUSDC/2)},
		{name: "an atom short, by another", attack: instead(func(s *stage, c claim) []call {
			return []call{s.usdc.give(s.friend.addr, s.treasury.addr, due(c)-1)}
		}), want: short(market.RailUSDC, dueUSDC-1)},
		{name: "an atom, and all of it in SOL", attack: instead(func(s *stage, c claim) []call {
			return []call{s.pays(c, 1), giveSOL(s.payer.addr, s.treasury.addr, dueSOL)}
		}), want: short(market.RailUSDC, 1).and(payment.WrongDestination, market.RailSOL, dueSOL)},
		{name: "looped back by a delegate", attack: beside(func(s *stage, c claim) []call {
			return []call{back(s, s.payer.addr, due(c))}
		}), want: refused(payment.WrongDestination)},
		{name: "looped back by a delegate to a friend", attack: beside(func(s *stage, c claim) []call {
			return []call{back(s, s.friend.addr, due(c))}
		}), want: refused(payment.WrongDestination)},
		{name: "more looped back than paid", attack: beside(func(s *stage, c claim) []call {
			return []call{back(s, s.thief.addr, due(c)+1)}
		}), want: want{verdict: mismatch, word: string(payment.WrongDestination), unbooked: true}},
		{name: "looped back in a batch", attack: instead(func(s *stage, c claim) []call {
			return []call{s.usdc.batch(s.pays(c, due(c)), back(s, s.thief.addr, due(c)))}
		}), want: refused(payment.WrongDestination)},
		{name: "looped back through a program", attack: instead(func(s *stage, c claim) []call {
			return []call{through(s.props.relay, s.pays(c, due(c))), through(s.props.relay, back(s, s.thief.addr, due(c)))}
		}), want: refused(payment.WrongDestination)},
	}
}

// tokenElsewhere pay other accounts.
func tokenElsewhere() []attack {
	to := func(at func(s *stage) solana.Address) player {
		return instead(func(s *stage, c claim) []call {
			return []call{s.usdc.giveFrom(s.usdc.of(s.payer.addr), at(s), s.payer.addr, due(c)).with(binding.Reference(c.ID))}
		})
	}
	return []attack{
		{name: "to another wallet of ours", attack: to(func(s *stage) solana.Address { return s.usdc.of(s.desk.addr) }), want: unmatchedFor(payment.WrongDestination, market.RailUSDC, dueUSDC)},
		{name: "to another account of the treasury", attack: to(func(s *stage) solana.Address { return s.props.spare }), want: unmatchedFor(payment.WrongDestination, market.RailUSDC, dueUSDC)},
		{name: "to a thief", attack: to(func(s *stage) solana.Address { return s.usdc.of(s.thief.addr) }), want: refused(payment.WrongDestination)},
		{name: "to an associated account that a thief owns", attack: to(func(s *stage) solana.Address { return s.props.stolen }), want: refused(payment.WrongDestination)},
		{name: "to himself", attack: to(func(s *stage) solana.Address { return s.usdc.of(s.payer.addr) }), want: refused(payment.WrongDestination)},
		{name: "to nobody: burned", attack: instead(func(s *stage, c claim) []call {
			return []call{s.usdc.burn(s.usdc.of(s.payer.addr), s.payer.addr, due(c))}
		}), want: refused(payment.WrongDestination)},
		{name: "nothing but the memo", attack: instead(func(*stage, claim) []call { return nil }), want: refused(payment.WrongDestination)},
		{name: "a transfer of nothing", attack: pay(func(uint64) uint64 { return 0 }), want: refused(payment.WrongDestination)},
		{name: "an account handed over with its tokens", attack: func(s *stage, c claim) signature {
			at := s.account(s.payer.addr)
			s.does(s.usdc.giveFrom(s.usdc.of(s.payer.addr), at, s.payer.addr, due(c)))
			return s.does(s.usdc.handOver(at, s.payer.addr, s.treasury.addr, 2), memo(binding.Memo(c.ID)))
		}, want: unmatchedFor(payment.WrongDestination, market.RailUSDC, dueUSDC)},
		{name: "a new account of ours", attack: func(s *stage, c claim) signature {
			at := s.somebody().addr
			return s.does(createAccount(s.payer.addr, at, accountRent, 165, s.usdc.program), s.usdc.openAt(at, s.treasury.addr),
				s.usdc.giveFrom(s.usdc.of(s.payer.addr), at, s.payer.addr, due(c)), memo(binding.Memo(c.ID)))
		}, want: unmatchedFor(payment.WrongDestination, market.RailUSDC, dueUSDC)},
		{name: "an account of ours that is the thief's in the end", attack: func(s *stage, c claim) signature {
			at := s.account(s.thief.addr)
			return s.does(s.usdc.giveFrom(s.usdc.of(s.payer.addr), at, s.payer.addr, due(c)),
				s.usdc.handOver(at, s.thief.addr, s.treasury.addr, 3), memo(binding.Memo(c.ID)))
		}, want: refused(payment.WrongDestination)},
		{name: "lamports into our USDC account", attack: instead(func(s *stage, _ claim) []call {
			return []call{giveSOL(s.payer.addr, s.usdc.of(s.treasury.addr), dueSOL)}
		}), want: unmatchedFor(payment.WrongDestination, market.RailSOL, dueSOL)},
	}
}

// tokenOtherMints pay in something else.
func tokenOtherMints() []attack {
	in := func(m func(s *stage) coin) player {
		return instead(func(s *stage, c claim) []call {
			return []call{m(s).give(s.payer.addr, s.treasury.addr, due(c)).with(binding.Reference(c.ID))}
		})
	}
	worthless, valuable := refused(payment.WrongMint), unmatchedFor(payment.WrongMint, 0, 0)
	return []attack{
		{name: "a mint of the same decimals", attack: in(func(s *stage) coin { return s.props.fake }), want: worthless},
		{name: "a mint of the same decimals to another wallet of ours", attack: instead(func(s *stage, c claim) []call {
			return []call{s.props.fake.give(s.payer.addr, s.desk.addr, due(c))}
		}), want: worthless},
		{name: "a mint with a transfer fee", attack: in(func(s *stage) coin { return s.props.taxed }), want: worthless},
		{name: "a mint with a transfer hook", attack: instead(func(s *stage, c claim) []call {
			return []call{s.props.hooked.give(s.payer.addr, s.treasury.addr, due(c)).with(s.props.yes)}
		}), want: worthless},
		{name: "a mint that can seize", attack: in(func(s *stage) coin { return s.props.seizable }), want: worthless},
		{name: "a mint that can seize, seized", attack: instead(func(s *stage, c claim) []call {
			m := s.props.seizable
			return []call{m.give(s.payer.addr, s.treasury.addr, due(c)), m.giveFrom(m.of(s.treasury.addr), m.of(s.thief.addr), s.thief.addr, due(c))}
		}), want: refused(payment.WrongDestination)},
		{name: "what the desk sells", attack: func(s *stage, c claim) signature {
			s.does(s.slusd.open(s.payer.addr, s.treasury.addr), s.slusd.issue(s.slusd.of(s.treasury.addr), s.issuer.addr, 1))
			return s.does(s.slusd.issue(s.slusd.of(s.treasury.addr), s.issuer.addr, due(c)), memo(binding.Memo(c.ID)))
		}, want: valuable},
		{name: "wrapped SOL", attack: func(s *stage, c claim) signature {
			at := s.wrapped.of(s.treasury.addr)
			s.does(s.wrapped.open(s.payer.addr, s.treasury.addr))
			return s.does(giveSOL(s.payer.addr, at, dueSOL), s.wrapped.sync(at), memo(binding.Memo(c.ID)))
		}, want: valuable},
		{name: "a worthless token and no claim", attack: func(s *stage, c claim) signature {
			return s.does(s.props.fake.give(s.payer.addr, s.treasury.addr, due(c)))
		}, want: refused(payment.MissingReference)},
		{name: "a worthless token and a claim that is not", attack: func(s *stage, c claim) signature {
			return s.does(s.props.fake.give(s.payer.addr, s.treasury.addr, due(c)), memo(binding.Memo(12345)))
		}, want: want{verdict: unknown}},
		{name: "SOL on the USDC rail", attack: instead(func(s *stage, _ claim) []call {
			return []call{giveSOL(s.payer.addr, s.treasury.addr, dueSOL)}
		}), want: otherRail(market.RailSOL, dueSOL)},
		{name: "a lamport on the USDC rail", attack: instead(func(s *stage, _ claim) []call {
			return []call{giveSOL(s.payer.addr, s.treasury.addr, 1)}
		}), want: otherRail(market.RailSOL, 1)},
		{name: "another's SOL on the USDC rail", attack: instead(func(s *stage, _ claim) []call {
			return []call{giveSOL(s.friend.addr, s.treasury.addr, dueSOL)}
		}), want: otherRail(market.RailSOL, dueSOL)},
	}
}

// tokenPayers pay with what is not the claim's wallet's.
func tokenPayers() []attack {
	wrong := unmatchedFor(payment.WrongPayer, market.RailUSDC, dueUSDC)
	return []attack{
		{name: "paid by another", attack: instead(func(s *stage, c claim) []call {
			return []call{s.usdc.give(s.friend.addr, s.treasury.addr, due(c))}
		}), want: wrong},
		{name: "half paid by another", attack: instead(func(s *stage, c claim) []call {
			return []call{s.pays(c, due(c)/2), s.usdc.give(s.friend.addr, s.treasury.addr, due(c)/2)}
		}), want: wrong},
		{name: "an atom paid by another", attack: instead(func(s *stage, c claim) []call {
			return []call{s.pays(c, due(c)-1), s.usdc.give(s.friend.addr, s.treasury.addr, 1)}
		}), want: wrong},
		{name: "made good by another", attack: beside(func(s *stage, c claim) []call {
			return []call{s.usdc.give(s.friend.addr, s.payer.addr, due(c))}
		}), want: wrong},
		{name: "an atom made good by another", attack: beside(func(s *stage, _ claim) []call {
			return []call{s.usdc.give(s.friend.addr, s.payer.addr, 1)}
		}), want: wrong},
		{name: "made good into another account of the payer", attack: beside(func(s *stage, c claim) []call {
			return []call{s.usdc.giveFrom(s.usdc.of(s.friend.addr), s.props.second, s.friend.addr, due(c))}
		}), want: wrong},
		{name: "by a delegate of another's account", attack: func(s *stage, c claim) signature {
			at := s.account(s.friend.addr)
			s.does(s.usdc.giveFrom(s.usdc.of(s.friend.addr), at, s.friend.addr, due(c)), s.usdc.approve(at, s.payer.addr, s.friend.addr, due(c)))
			return s.does(s.usdc.giveFrom(at, s.usdc.of(s.treasury.addr), s.payer.addr, due(c)), memo(binding.Memo(c.ID)))
		}, want: wrong},
		{name: "minted to us", attack: instead(func(s *stage, c claim) []call {
			return []call{s.usdc.issue(s.usdc.of(s.treasury.addr), s.issuer.addr, due(c))}
		}), want: wrong},
		{name: "out of an account opened and filled by another", attack: func(s *stage, c claim) signature {
			at := s.somebody().addr
			return s.does(createAccount(s.payer.addr, at, accountRent, 165, s.usdc.program), s.usdc.openAt(at, s.payer.addr),
				s.usdc.giveFrom(s.usdc.of(s.friend.addr), at, s.friend.addr, due(c)),
				s.usdc.giveFrom(at, s.usdc.of(s.treasury.addr), s.payer.addr, due(c)),
				s.usdc.close(at, s.payer.addr, s.payer.addr), memo(binding.Memo(c.ID)))
		}, want: wrong},
		{name: "paid, closed, opened again and filled by another", wallet: func(s *stage) solana.Address {
			p := s.somebody().addr
			s.does(giveSOL(s.payer.addr, p, dueSOL), s.usdc.open(s.payer.addr, p), s.usdc.give(s.payer.addr, p, dueUSDC))
			return p
		}, attack: instead(func(s *stage, c claim) []call {
			p := c.Wallet
			return []call{
				s.usdc.give(p, s.treasury.addr, due(c)), s.usdc.close(s.usdc.of(p), p, p), s.usdc.open(p, p), s.usdc.give(s.friend.addr, p, due(c)),
			}
		}), want: wrong},
		{name: "by one of a shared wallet for himself", attack: instead(func(s *stage, c claim) []call {
			pays := s.usdc.give(s.props.jointly, s.treasury.addr, due(c))
			pays.accounts[3] = rd(s.props.jointly)
			pays.accounts = append(pays.accounts, sg(s.payer.addr), sg(s.friend.addr))
			return []call{pays}
		}), want: wrong},
		{name: "a claim of the treasury's own", wallet: func(s *stage) solana.Address { return s.treasury.addr }, attack: pay(whole), want: wrong},
		{name: "a claim of the desk's own", wallet: func(s *stage) solana.Address { return s.desk.addr }, attack: pay(whole), want: wrong},
	}
}

// taxedAttacks pay on a rail whose mint keeps a hundredth of what is sent.
func taxedAttacks() []attack {
	return []attack{
		{name: "taxed: as much as is due", rail: market.RailUSDC, attack: pay(whole), want: short(market.RailUSDC, dueUSDC/100*99)},
		{name: "taxed: as much as arrives in full", rail: market.RailUSDC, attack: pay(func(due uint64) uint64 {
			return (due*100 + 98) / 99
		}), want: paid(dueUSDC)},
		{name: "taxed: an atom less", rail: market.RailUSDC, attack: pay(func(due uint64) uint64 {
			return (due*100+98)/99 - 1
		}), want: short(market.RailUSDC, dueUSDC-1)},
		{name: "taxed: the rail of the others", rail: market.RailUSDC, attack: func(s *stage, c claim) signature {
			return s.does(s.chain.usdc.give(s.payer.addr, s.treasury.addr, due(c)), memo(binding.Memo(c.ID)))
		}, want: refused(payment.WrongMint)},
	}
}
