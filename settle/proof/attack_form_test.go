package proof

import (
	"math/big"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// formAttacks are payments of all forms, and signatures that are none.
func formAttacks() []attack {
	list := append(forms(), notThere()...)
	for i := range list {
		list[i].rail = market.RailUSDC
	}
	return list
}

func forms() []attack {
	return []attack{
		{name: "legacy", attack: func(s *stage, c claim) signature { return s.as(c, draft{version: tx.Legacy}) }, want: paid(dueUSDC)},
		{name: "version 1", attack: func(s *stage, c claim) signature { return s.as(c, draft{version: tx.V1}) }, want: paid(dueUSDC)},
		{name: "accounts out of a table", attack: func(s *stage, c claim) signature {
			return s.as(c, draft{table: s.props.table, looked: s.props.looked})
		}, want: paid(dueUSDC)},
		{name: "reference out of a table", attack: func(s *stage, c claim) signature {
			s.extend(s.props, binding.Reference(c.ID))
			return s.lands(&draft{
				table: s.props.table, looked: s.props.looked, calls: []call{s.pays(c, due(c)).with(binding.Reference(c.ID))},
			})
		}, want: paid(dueUSDC)},
		{name: "another's reference out of a table", attack: func(s *stage, c claim) signature {
			other := s.take(market.RailUSDC)
			s.extend(s.props, binding.Reference(other.ID))
			return s.lands(&draft{table: s.props.table, looked: s.props.looked, calls: []call{
				s.pays(c, due(c)).with(binding.Reference(other.ID)), memo(binding.Memo(c.ID)),
			}})
		}, want: nameless(payment.AmbiguousReference, market.RailUSDC, dueUSDC)},
		{name: "durable nonce", attack: func(s *stage, c claim) signature {
			nonce := s.props.nonce.addr
			return s.as(c, draft{nonce: s.nonceHash(nonce), calls: []call{advanceNonce(nonce, s.payer.addr)}})
		}, want: paid(dueUSDC)},
		{name: "durable nonce, an atom short", attack: func(s *stage, c claim) signature {
			nonce := s.props.nonce.addr
			return s.lands(&draft{nonce: s.nonceHash(nonce), calls: append([]call{advanceNonce(nonce, s.payer.addr)}, s.bound(c, due(c)-1)...)})
		}, want: short(market.RailUSDC, dueUSDC-1)},
		{name: "five signers", attack: func(s *stage, c claim) signature {
			return s.as(c, draft{calls: []call{memo("seen", s.friend.addr, s.thief.addr, s.issuer.addr, s.props.nonce.addr)}})
		}, want: paid(dueUSDC)},
		{name: "failed: more than there is", attack: func(s *stage, c claim) signature {
			return s.post(&draft{calls: s.bound(c, 1<<60)})
		}, want: refused(payment.FailedOnChain)},
		{name: "failed at its end", attack: func(s *stage, c claim) signature {
			return s.post(&draft{calls: append(s.bound(c, due(c)), s.usdc.close(s.usdc.of(s.payer.addr), s.payer.addr, s.payer.addr))})
		}, want: refused(payment.FailedOnChain)},
		{name: "failed, in version 1", attack: func(s *stage, c claim) signature {
			return s.post(&draft{version: tx.V1, calls: s.bound(c, 1<<60)})
		}, want: refused(payment.FailedOnChain)},
		{name: "failed, of SOL", attack: func(s *stage, _ claim) signature {
			return s.post(&draft{calls: []call{giveSOL(s.payer.addr, s.treasury.addr, 1<<60)}})
		}, want: refused(payment.FailedOnChain)},
	}
}

// order is that of the group that signatures are made in.
func order() *big.Int {
	n, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	return n
}

// malleated is a signature as a lax verifier would take it too: its scalar and
// the group's order.
func malleated(s solana.Signature) solana.Signature {
	scalar := slices.Clone(s[32:])
	slices.Reverse(scalar)
	n := new(big.Int).Add(new(big.Int).SetBytes(scalar), order())
	n.FillBytes(scalar)
	slices.Reverse(scalar)
	copy(s[32:], scalar)
	return s
}

// notThere are signatures that no node has as final. Their transactions pay
// nothing until it is.
func notThere() []attack {
	never := want{verdict: pending}
	return []attack{
		{name: "a signature that is not", attack: func(*stage, claim) signature { return signature{1, 2, 3} }, want: never},
		{name: "no signature", attack: func(*stage, claim) signature { return signature{} }, want: never},
		{name: "of another transaction's second signer", attack: func(s *stage, c claim) signature {
			raw := s.sealed(&draft{payer: s.friend.addr, calls: s.bound(c, due(c))})
			s.sends(raw)
			t, err := tx.Decode(raw)
			s.must(err)
			return t.Signatures[1]
		}, want: never.ignored()},
		{name: "malleated", attack: func(s *stage, c claim) signature { return malleated(s.as(c, draft{})) }, want: never.ignored()},
		{name: "a byte turned", attack: func(s *stage, c claim) signature {
			sig := s.as(c, draft{})
			sig[63] ^= 1
			return sig
		}, want: never.ignored()},
		{name: "processed only", attack: func(s *stage, c claim) signature {
			sig, err := s.Send(s.t.Context(), s.sealed(&draft{calls: s.bound(c, due(c))}), rpc.SendOptions{SkipPreflight: true})
			s.must(err)
			return sig
		}, want: never.ignored()},
		{name: "confirmed only", attack: func(s *stage, c claim) signature {
			sig, err := s.Send(s.t.Context(), s.sealed(&draft{calls: s.bound(c, due(c))}), rpc.SendOptions{SkipPreflight: true})
			s.must(err)
			s.advance(1)
			return sig
		}, want: never.ignored()},
		{name: "confirmed while nothing is finalized", attack: func(s *stage, c claim) signature {
			s.control("holdFinality", map[string]any{"hold": true})
			return s.post(&draft{calls: s.bound(c, due(c))})
		}, want: never.ignored()},
		{name: "dropped", attack: func(s *stage, c claim) signature {
			s.control("holdFinality", map[string]any{"hold": false})
			s.control("dropSends", map[string]any{"count": 1})
			return s.post(&draft{calls: s.bound(c, due(c))})
		}, want: never},
		{name: "of a blockhash that has expired", attack: func(s *stage, c claim) signature {
			raw := s.sealed(&draft{calls: s.bound(c, due(c))})
			s.advance(160)
			return s.sends(raw)
		}, want: never},
		{name: "of a wallet that has not signed", attack: func(s *stage, c claim) signature {
			l := draft{payer: s.thief.addr, calls: []call{s.usdc.give(s.payer.addr, s.treasury.addr, due(c)), memo(binding.Memo(c.ID))}}
			b, err := s.Blockhash(s.t.Context())
			s.must(err)
			raw, err := seal(l.compile(b.Hash), []person{s.thief, {s.thief.key, s.payer.addr}})
			s.must(err)
			return s.sends(raw)
		}, want: never},
	}
}

// ignored says that money came of which the answer cannot know yet.
func (w want) ignored() want {
	w.unbooked = true
	return w
}
