package proof

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/store"
)

// unknownClaim is the reason of a payment that names a claim that the desk does not
// know.
var unknownClaim = payment.Reason(event.ReasonUnknownClaim.String())

// accountChanges are the effects of a finalized transaction on our accounts.
type accountChanges struct {
	*ledger.Confirmed
	// facts has an element for each of Prover.destinations.
	facts []*payment.Facts
	// otherMint: we gained tokens of a mint that no rail uses. valuable: one of them is in
	// Options.Known.
	otherMint, valuable bool
	// strandedLamports were sent to our token accounts. They pay nothing, and the
	// operator can recover them.
	strandedLamports market.Amount
}

// examine reads a transaction as a majority of the configured nodes has it, and records
// its payments or stores them as unmatched.
func (p *Prover) examine(ctx context.Context, l requestKey, from read) (result, error) {
	p.counts.reads.Add(1)
	c, found, err := from(ctx, l.signature, rpc.Finalized)
	switch {
	case errors.Is(err, rpc.ErrNoMajority):
		f := result{pending: true}
		if rpc.KindOf(err) != 0 {
			f.undecided = fmt.Errorf("payment %s: %w", l.signature, err)
		}
		return f, nil
	case errors.Is(err, rpc.ErrDisagree):
		return result{}, fmt.Errorf("payment %s: %w: %w", l.signature, ErrAnswer, err)
	case err != nil:
		return result{}, fmt.Errorf("payment %s: %w", l.signature, err)
	case !found:
		return result{pending: true}, nil
	}
	if err := verifySignatures(c, l.signature); err != nil {
		return result{}, fmt.Errorf("payment %s: %w", l.signature, err)
	}
	f := refusal(nil, payment.FailedOnChain)
	if !c.Failed {
		s, err := p.effectsOf(c)
		if err == nil {
			f, err = p.process(ctx, s, l.key)
		}
		if err != nil {
			return result{}, fmt.Errorf("payment %s: %w", l.signature, err)
		}
	}
	if f.refused != event.ReasonNone && f.payment == nil {
		p.counts.refused.Add(1)
	}
	return f, nil
}

// verifySignatures checks that the answer is of transaction s, and that every signer
// has signed its bytes: a node can hide a payment, or lie about balances, but cannot
// act for a wallet. The chain has verified the signatures more strictly; a verifier
// stricter than the chain's would leave payments without an answer.
func verifySignatures(c *ledger.Confirmed, s solana.Signature) error {
	if c.Signature() != s {
		return fmt.Errorf("%w: a node returned another transaction, %s", ErrAnswer, c.Signature())
	}
	for i, signer := range c.Tx.Message.Signers() {
		if !ed25519.Verify(signer[:], c.Tx.Signed, c.Tx.Signatures[i][:]) {
			return fmt.Errorf("%w: the signature of %s does not verify", ErrAnswer, solana.Base58(signer))
		}
	}
	return nil
}

func (p *Prover) effectsOf(c *ledger.Confirmed) (*accountChanges, error) {
	s := &accountChanges{Confirmed: c, facts: make([]*payment.Facts, len(p.destinations))}
	for i := range p.destinations {
		t := &p.destinations[i].target
		f, err := payment.Extract(c, t)
		if err == nil {
			err = checkBalanceReported(c, t)
		}
		if err != nil {
			return nil, err
		}
		s.facts[i] = f
		if at := slices.Index(c.Keys, t.PayTo); at >= 0 && t.Rail != market.RailSOL && c.Before[at] > 0 && c.After[at] > c.Before[at] {
			s.strandedLamports += c.After[at] - c.Before[at]
		}
	}
	s.otherMint, s.valuable = p.gainedOtherMint(c)
	return s, nil
}

// checkBalanceReported checks that an answer has the final balance of the token
// account to be paid, if the account exists: without it a payment would be refused.
// Package payment checks the earlier balance. The chain records balances only if a
// token program is part of the transaction.
func checkBalanceReported(c *ledger.Confirmed, t *payment.Target) error {
	at := slices.Index(c.Keys, t.PayTo)
	if at < 0 || t.Rail == market.RailSOL || !slices.ContainsFunc(c.Keys, solana.IsTokenProgram) {
		return nil
	}
	if c.After[at] > 0 && !slices.ContainsFunc(c.TokensAfter, func(b ledger.TokenBalance) bool { return b.Account == at }) {
		return fmt.Errorf("%w: the answer lacks the balance of %s", ErrAnswer, solana.Base58(t.PayTo))
	}
	return nil
}

// gainedOtherMint reports whether our wallets together gained tokens of a mint that no
// rail uses, and whether one of these is a known one.
func (p *Prover) gainedOtherMint(c *ledger.Confirmed) (gained, known bool) {
	ours := func(b *ledger.TokenBalance) bool {
		return slices.Contains(p.ours, b.Owner) && !slices.ContainsFunc(p.destinations, func(x destination) bool {
			return x.target.Mint == b.Mint && x.target.Program == b.Program
		})
	}
	// Such mints have any supply: the sums may need 128 bits.
	sum := func(list []ledger.TokenBalance, mint solana.Address) (hi, lo uint64) {
		for i := range list {
			if b := &list[i]; b.Mint == mint && ours(b) {
				var carry uint64
				lo, carry = bits.Add64(lo, uint64(b.Amount), 0)
				hi += carry
			}
		}
		return hi, lo
	}
	for i := range c.TokensAfter {
		b := &c.TokensAfter[i]
		if !ours(b) {
			continue
		}
		hi, lo := sum(c.TokensAfter, b.Mint)
		hi0, lo0 := sum(c.TokensBefore, b.Mint)
		if hi > hi0 || hi == hi0 && lo > lo0 {
			gained = true
			known = known || b.Mint == solana.NativeMint || slices.Contains(p.options.Known, b.Mint)
		}
	}
	return gained, known
}

// claims returns the claims that a transaction names, each once: by a memo that is
// nothing else, or by an account that is a reference.
func (s *accountChanges) claims() (list []market.ClaimID) {
	add := func(id market.ClaimID, ok bool) {
		if ok && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	for _, m := range s.facts[0].Memos {
		add(binding.ClaimOfMemo(m.Text))
	}
	for _, key := range s.Keys {
		add(binding.ClaimOfReference(key))
	}
	return list
}

// process finds the claim, and records the payment for it or stores it as unmatched.
func (p *Prover) process(ctx context.Context, s *accountChanges, key rfq.IdempotencyKey) (result, error) {
	list := s.claims()
	var claim *rfq.Claim
	if len(list) == 1 {
		h, ok, err := p.desk.Claim(list[0])
		if err != nil {
			return result{}, err
		}
		if ok {
			claim = &h.Claim
		}
	}
	signed := slices.ContainsFunc(s.Tx.Message.Signers(), func(a solana.Address) bool { return slices.Contains(p.ours, a) })
	switch {
	case signed:
		return p.signedByUs(s, list, claim)
	case len(list) == 0:
		return p.refuseUnmatched(s, 0, nil, payment.MissingReference)
	case len(list) > 1:
		return p.refuseUnmatched(s, 0, nil, payment.AmbiguousReference)
	case claim == nil:
		return p.refuseUnknownClaim(ctx, s, list[0])
	}
	return p.decide(s, claim, key)
}

// signedByUs handles a transaction that one of our wallets has signed. An atomic
// settlement that the desk has not recorded, for example after the restore of an old
// backup, is stored for an operator; any other transfer of ours is the operator's
// business.
func (p *Prover) signedByUs(s *accountChanges, list []market.ClaimID, claim *rfq.Claim) (result, error) {
	f := refusal(nil, payment.MissingReference)
	if claim != nil {
		f = ownTransaction(s.Signature(), claim)
	}
	if len(list) != 1 || claim != nil && !f.ended || !p.isAtomic(s.Tx.Signed, list[0]) {
		return f, nil
	}
	if claim == nil {
		f = refusal(nil, unknownClaim)
		f.ended = true
	}
	return f, p.addUnmatched(&store.UnmatchedPayment{
		Signature: s.Signature(), Reason: SettledUnrecorded, Slot: s.Slot, SeenAt: p.options.Now().UnixNano(), Claim: list[0],
	})
}

// decide compares the transaction with the terms of the claim that it names.
func (p *Prover) decide(s *accountChanges, c *rfq.Claim, key rfq.IdempotencyKey) (result, error) {
	at := slices.IndexFunc(p.destinations, func(x destination) bool { return x.rail == c.Terms.Rail && x.wallet == c.Terms.PayTo })
	switch {
	case at < 0:
		return result{}, fmt.Errorf("%w: claim %s, %s", ErrWallet, binding.Memo(c.ID), solana.Base58(c.Terms.PayTo))
	case s.BlockTime <= 0:
		// Every block has a time. This node does not know it; another may.
		return result{}, fmt.Errorf("%w: the answer lacks the block time", ErrAnswer)
	}
	facts := s.facts[at]
	verdict := payment.Decide(facts, p.termsOf(c))
	book := claimPayment{claim: c, rail: c.Terms.Rail, amount: facts.Credited, payer: facts.Payer()}
	switch verdict.Reason {
	case "":
		book.payer = c.Wallet
	case payment.AmountShort:
	case payment.WrongMint, payment.WrongDestination:
		other := slices.IndexFunc(s.facts, func(f *payment.Facts) bool { return f.Gained > 0 })
		if other < 0 || p.destinations[other].rail == c.Terms.Rail {
			return p.refuseUnmatched(s, c.ID, c, verdict.Reason)
		}
		book.rail, book.amount, book.payer = p.destinations[other].rail, s.facts[other].Gained, s.facts[other].Payer()
	default:
		return p.refuseUnmatched(s, c.ID, c, verdict.Reason)
	}
	if verdict.Reason != "" && book.amount < p.options.Rails[book.rail].Dust {
		return p.refuseUnmatched(s, c.ID, c, verdict.Reason)
	}
	return p.record(s, &book, key)
}

// termsOf returns what a payment of the claim is compared with.
func (p *Prover) termsOf(c *rfq.Claim) *payment.Terms {
	return &payment.Terms{
		Payer: c.Wallet, Amount: market.Amount(c.Terms.Payment), Reference: binding.Reference(c.ID), Memo: binding.Memo(c.ID),
		NotBefore: max(1, (c.ReservedAt-int64(p.options.ClockTolerance))/1e9),
	}
}

// refuseUnmatched refuses a transaction, and stores the amount that we received, if
// any, as an unmatched payment.
func (p *Prover) refuseUnmatched(s *accountChanges, id market.ClaimID, c *rfq.Claim, why payment.Reason) (result, error) {
	f := refusal(c, why)
	return f, p.addUnrecorded(s, id, nil, why, c != nil)
}

// addUnrecorded stores, as an unmatched payment, the amounts that the desk does not record:
// those beside recorded, or all if it is nil. A signature has one entry: of several rails it names the
// first. Tokens of a known mint are stored only if valuable is set, others are only
// counted: anyone can mint worthless ones.
func (p *Prover) addUnrecorded(s *accountChanges, id market.ClaimID, recorded *claimPayment, why payment.Reason, valuable bool) error {
	x := store.UnmatchedPayment{Signature: s.Signature(), Reason: string(why), Slot: s.Slot, SeenAt: p.options.Now().UnixNano(), Claim: id}
	dust := false
	for i, f := range s.facts {
		rail, amount := p.destinations[i].rail, f.Gained
		if recorded != nil && rail == recorded.rail {
			amount -= recorded.amount
		}
		if amount == 0 {
			continue
		}
		if amount >= p.options.Rails[rail].Dust {
			x.Rail, x.Amount, x.Payer = rail, uint64(amount), f.Payer()
			return p.addUnmatched(&x)
		}
		dust = true
	}
	if served := p.options.Rails[market.RailSOL]; s.strandedLamports > 0 && len(served.Treasury) > 0 {
		if s.strandedLamports >= served.Dust {
			x.Rail, x.Amount, x.Payer = market.RailSOL, uint64(s.strandedLamports), s.Tx.Message.FeePayer()
			return p.addUnmatched(&x)
		}
		dust = true
	}
	switch {
	case dust:
		p.counts.dust.Add(1)
	case s.valuable && valuable:
		x.Payer = s.Tx.Message.FeePayer()
		return p.addUnmatched(&x)
	case s.otherMint:
		p.counts.otherMint.Add(1)
	}
	return nil
}

func (p *Prover) addUnmatched(x *store.UnmatchedPayment) error {
	p.counts.unmatched.Add(1)
	return p.store.AddUnmatched(x)
}
