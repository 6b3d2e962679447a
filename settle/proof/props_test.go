package proof

import (
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/settle/binding"
)

// props are what attackers have prepared on the chain.
type props struct {
	relay, yes solana.Address
	// fake is a mint of our mint's decimals; taxed, hooked and seizable are
	// Token-2022 mints with a transfer fee of one percent, with a hook, and with a
	// delegate (the thief) that may take from everybody. Payer, treasury and thief
	// have accounts of each, the payer with plenty.
	fake, taxed, hooked, seizable coin
	// second and spare are USDC accounts of the payer's and of the treasury's that
	// are not associated. stolen is an associated account whose owner is the thief
	// by now. Of the desk's associated account the thief may take, as its delegate.
	second, spare, stolen solana.Address
	// jointly is a wallet of two signers, the payer and the friend.
	jointly solana.Address
	table   solana.Address
	looked  []solana.Address
	nonce   person
}

const plenty = 1_000_000_000_000

func (s *stage) prepare() *props {
	s.t.Helper()
	p := &props{relay: s.deploy(relayCode()), yes: s.deploy(yesCode())}
	p.fake = s.mint(solana.TokenProgram, 82)
	p.taxed = s.mint(solana.Token2022Program, 278, func(m coin) call {
		data := append([]byte{26, 0, 0, 0, 100, 0}, u64(nil, 1<<62)...)
		return call{m.program, []use{wr(m.mint)}, data}
	})
	p.hooked = s.mint(solana.Token2022Program, 234, func(m coin) call {
		data := append(append([]byte{36, 0}, make([]byte, 32)...), p.yes[:]...)
		return call{m.program, []use{wr(m.mint)}, data}
	})
	p.seizable = s.mint(solana.Token2022Program, 202, func(m coin) call {
		return call{m.program, []use{wr(m.mint)}, append([]byte{35}, s.thief.addr[:]...)}
	})
	p.second, p.spare = s.account(s.payer.addr), s.account(s.treasury.addr)
	owner := s.somebody()
	s.does(s.usdc.open(s.payer.addr, owner.addr), s.usdc.handOver(s.usdc.of(owner.addr), owner.addr, s.thief.addr, 2))
	p.stolen = s.usdc.of(owner.addr)
	s.does(s.usdc.give(s.payer.addr, s.desk.addr, plenty), s.usdc.giveFrom(s.usdc.of(s.payer.addr), p.second, s.payer.addr, plenty))
	s.does(s.usdc.approve(s.usdc.of(s.desk.addr), s.thief.addr, s.desk.addr, plenty))
	p.jointly = s.jointly(s.payer.addr, s.friend.addr)
	p.table, p.looked = s.lookup()
	p.nonce = s.somebody()
	s.does(createAccount(s.payer.addr, p.nonce.addr, 10*dueSOL, 80, solana.SystemProgram), initNonce(p.nonce.addr, s.payer.addr))
	return p
}

// mint makes a mint of the payer's with accounts for the cast.
func (s *stage) mint(program solana.Address, size uint64, extension ...func(coin) call) coin {
	s.t.Helper()
	m := coin{s.somebody().addr, program, s.usdc.decimals}
	calls := []call{createAccount(s.payer.addr, m.mint, 10_000_000, size, program)}
	for _, e := range extension {
		calls = append(calls, e(m))
	}
	s.does(append(calls, m.initMint(s.payer.addr))...)
	s.does(m.open(s.payer.addr, s.payer.addr), m.open(s.payer.addr, s.treasury.addr), m.open(s.payer.addr, s.thief.addr),
		m.open(s.payer.addr, s.desk.addr), m.issue(m.of(s.payer.addr), s.payer.addr, plenty))
	return m
}

const accountRent = 2_039_280

// account makes a USDC account of an address that says nothing.
func (s *stage) account(owner solana.Address) solana.Address {
	s.t.Helper()
	at := s.somebody().addr
	s.does(createAccount(s.payer.addr, at, accountRent, 165, s.usdc.program), s.usdc.openAt(at, owner))
	return at
}

// jointly makes a wallet of which all signers must sign, with USDC.
func (s *stage) jointly(signers ...solana.Address) solana.Address {
	s.t.Helper()
	at := s.somebody().addr
	s.does(createAccount(s.payer.addr, at, 10_000_000, 355, s.usdc.program), s.usdc.initMultisig(at, byte(len(signers)), signers...))
	s.does(s.usdc.open(s.payer.addr, at), s.usdc.give(s.payer.addr, at, plenty))
	return at
}

// lookup makes an address table of the treasury's accounts.
func (s *stage) lookup() (solana.Address, []solana.Address) {
	s.t.Helper()
	slot, err := s.Slot(s.t.Context(), rpc.Finalized)
	s.must(err)
	owner := s.payer.addr
	table, bump, err := solana.FindProgramAddress(tableProgram, owner[:], u64(nil, slot))
	s.must(err)
	looked := []solana.Address{s.usdc.of(s.treasury.addr), s.treasury.addr, binding.Reference(1), s.usdc.mint}
	data := u64(u32(nil, 2), uint64(len(looked)))
	for _, a := range looked {
		data = append(data, a[:]...)
	}
	s.does(call{tableProgram, []use{wr(table), sg(owner), sgwr(owner), rd(solana.SystemProgram)}, append(u64(u32(nil, 0), slot), bump)},
		call{tableProgram, []use{wr(table), sg(owner), sgwr(owner), rd(solana.SystemProgram)}, data})
	return table, looked
}

// extend adds an account to the table.
func (s *stage) extend(p *props, a solana.Address) {
	s.t.Helper()
	owner := s.payer.addr
	s.does(call{tableProgram, []use{wr(p.table), sg(owner), sgwr(owner), rd(solana.SystemProgram)}, append(u64(u32(nil, 2), 1), a[:]...)})
	p.looked = append(p.looked, a)
}

// nonceHash reads what a message that lives by the nonce has for a blockhash.
func (s *stage) nonceHash(at solana.Address) (h solana.Hash) {
	s.t.Helper()
	list, _, err := s.Accounts(s.t.Context(), []solana.Address{at}, rpc.Confirmed, 0)
	s.must(err)
	copy(h[:], list[0].Data[40:72])
	return h
}

// as writes a claim's honest payment in another form.
func (s *stage) as(c *rfq.Claim, form draft) solana.Signature {
	s.t.Helper()
	form.calls = append(form.calls, s.bound(c, due(c))...)
	return s.lands(&form)
}
