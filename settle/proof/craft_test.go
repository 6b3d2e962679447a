package proof

import (
	"crypto/ed25519"
	"encoding/binary"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
)

// use is an account of an instruction.
type use struct {
	key         solana.Address
	sign, write bool
}

// call is an instruction by addresses, whatever it may be.
type call struct {
	program  solana.Address
	accounts []use
	data     []byte
}

func rd(a solana.Address) use   { return use{key: a} }
func wr(a solana.Address) use   { return use{key: a, write: true} }
func sg(a solana.Address) use   { return use{key: a, sign: true} }
func sgwr(a solana.Address) use { return use{key: a, sign: true, write: true} }

// with adds accounts that are only there to be found by.
func (c call) with(extra ...solana.Address) call {
	c.accounts = slices.Clone(c.accounts)
	for _, a := range extra {
		c.accounts = append(c.accounts, rd(a))
	}
	return c
}

var le = binary.LittleEndian

func u32(dst []byte, n uint32) []byte { return le.AppendUint32(dst, n) }
func u64(dst []byte, n uint64) []byte { return le.AppendUint64(dst, n) }

// The addresses of what only tests call.
var (
	rentSysvar    = program("SysvarRent111111111111111111111111111111111")
	recentSysvar  = program("SysvarRecentB1ockHashes11111111111111111111")
	clockSysvar   = program("SysvarC1ock11111111111111111111111111111111")
	historySysvar = program("SysvarStakeHistory1111111111111111111111111")
	stakeProgram  = program("Stake11111111111111111111111111111111111111")
	tableProgram  = program("AddressLookupTab1e1111111111111111111111111")
	loaderProgram = program("BPFLoaderUpgradeab1e11111111111111111111111")
)

func program(text string) solana.Address {
	a, err := solana.ParseAddress(text)
	if err != nil {
		panic(err)
	}
	return a
}

func giveSOL(from, to solana.Address, lamports uint64) call {
	return call{solana.SystemProgram, []use{sgwr(from), wr(to)}, u64(u32(nil, 2), lamports)}
}

func createAccount(payer, at solana.Address, lamports, space uint64, owner solana.Address) call {
	return call{solana.SystemProgram, []use{sgwr(payer), sgwr(at)}, append(u64(u64(u32(nil, 0), lamports), space), owner[:]...)}
}

// giveSeeded moves lamports out of an account that base signs for by a seed.
func giveSeeded(from, base, to solana.Address, lamports uint64, seed string) call {
	data := append(u64(u64(u32(nil, 11), lamports), uint64(len(seed))), seed...)
	return call{solana.SystemProgram, []use{wr(from), sg(base), wr(to)}, append(data, solana.SystemProgram[:]...)}
}

func initNonce(nonce, authority solana.Address) call {
	return call{solana.SystemProgram, []use{wr(nonce), rd(recentSysvar), rd(rentSysvar)}, append(u32(nil, 6), authority[:]...)}
}

func advanceNonce(nonce, authority solana.Address) call {
	return call{solana.SystemProgram, []use{wr(nonce), rd(recentSysvar), sg(authority)}, u32(nil, 4)}
}

func withdrawNonce(nonce, to, authority solana.Address, lamports uint64) call {
	return call{solana.SystemProgram, []use{wr(nonce), wr(to), rd(recentSysvar), rd(rentSysvar), sg(authority)}, u64(u32(nil, 5), lamports)}
}

// withdrawStake takes lamports out of a stake account that was never initialized,
// which signs for itself.
func withdrawStake(stake, to solana.Address, lamports uint64) call {
	return call{stakeProgram, []use{sgwr(stake), wr(to), rd(clockSysvar), rd(historySysvar), sg(stake)}, u64(u32(nil, 4), lamports)}
}

func memo(text string, signers ...solana.Address) call {
	c := call{program: solana.MemoProgram, data: []byte(text)}
	for _, s := range signers {
		c.accounts = append(c.accounts, sg(s))
	}
	return c
}

func memoV1(text string) call { return call{program: solana.MemoV1Program, data: []byte(text)} }

// coin is a mint as tests use it.
type coin struct {
	mint, program solana.Address
	decimals      uint8
}

// of is the associated account of a wallet.
func (m coin) of(wallet solana.Address) solana.Address {
	a, err := solana.TokenAccount(wallet, m.mint, m.program)
	if err != nil {
		panic(err)
	}
	return a
}

// giveFrom moves tokens between accounts by a checked transfer.
func (m coin) giveFrom(from, to, owner solana.Address, atoms uint64) call {
	return call{m.program, []use{wr(from), rd(m.mint), wr(to), sg(owner)}, append(u64([]byte{12}, atoms), m.decimals)}
}

// give moves tokens between the associated accounts of two wallets.
func (m coin) give(from, to solana.Address, atoms uint64) call {
	return m.giveFrom(m.of(from), m.of(to), from, atoms)
}

// givePlain is the transfer that names no mint.
func (m coin) givePlain(from, to solana.Address, atoms uint64) call {
	return call{m.program, []use{wr(m.of(from)), wr(m.of(to)), sg(from)}, u64([]byte{3}, atoms)}
}

// open creates a wallet's associated account where it is missing.
func (m coin) open(payer, wallet solana.Address) call {
	return call{
		solana.AssociatedTokenProgram,
		[]use{sgwr(payer), wr(m.of(wallet)), rd(wallet), rd(m.mint), rd(solana.SystemProgram), rd(m.program)},
		[]byte{1},
	}
}

// openAt makes an account of another address; create it first.
func (m coin) openAt(at, owner solana.Address) call {
	return call{m.program, []use{wr(at), rd(m.mint)}, append([]byte{18}, owner[:]...)}
}

func (m coin) close(at, to, owner solana.Address) call {
	return call{m.program, []use{wr(at), wr(to), sg(owner)}, []byte{9}}
}

func (m coin) approve(at, delegate, owner solana.Address, atoms uint64) call {
	return call{m.program, []use{wr(at), rd(delegate), sg(owner)}, u64([]byte{4}, atoms)}
}

// handOver changes an account's owner (kind 2) or its close authority (3).
func (m coin) handOver(at, owner, to solana.Address, kind byte) call {
	return call{m.program, []use{wr(at), sg(owner)}, append([]byte{6, kind, 1}, to[:]...)}
}

func (m coin) initMint(authority solana.Address) call {
	return call{m.program, []use{wr(m.mint)}, append(append([]byte{20, m.decimals}, authority[:]...), 0)}
}

func (m coin) issue(to, authority solana.Address, atoms uint64) call {
	return call{m.program, []use{wr(m.mint), wr(to), sg(authority)}, u64([]byte{7}, atoms)}
}

func (m coin) burn(at, owner solana.Address, atoms uint64) call {
	return call{m.program, []use{wr(at), wr(m.mint), sg(owner)}, u64([]byte{8}, atoms)}
}

// sync makes wrapped SOL count the lamports that were sent to its account.
func (m coin) sync(at solana.Address) call { return call{m.program, []use{wr(at)}, []byte{17}} }

// initMultisig makes need of the signers sign for an account.
func (m coin) initMultisig(at solana.Address, need byte, signers ...solana.Address) call {
	c := call{m.program, []use{wr(at)}, []byte{19, need}}
	return c.with(signers...)
}

// batch is several instructions of the token program in one, which no reader of
// instructions finds.
func (m coin) batch(calls ...call) call {
	c := call{program: m.program, data: []byte{255}}
	for _, in := range calls {
		c.accounts = append(c.accounts, in.accounts...)
		c.data = append(append(c.data, byte(len(in.accounts)), byte(len(in.data))), in.data...)
	}
	return c
}

// draft is an unsigned transaction in the making: its instructions, its fee payer, and its
// encoding.
type draft struct {
	version tx.Version // zero: version 0
	payer   solana.Address
	calls   []call
	table   solana.Address   // of an address table
	looked  []solana.Address // what is in it
	nonce   solana.Hash      // in place of the blockhash
}

// compile numbers the accounts: signers first, written ones before read ones, and
// what the table has last.
func (l *draft) compile(blockhash solana.Hash) *tx.Message {
	used := []use{sgwr(l.payer)}
	enter := func(u use) {
		for i := range used {
			if used[i].key == u.key {
				used[i].sign, used[i].write = used[i].sign || u.sign, used[i].write || u.write
				return
			}
		}
		used = append(used, u)
	}
	for _, c := range l.calls {
		for _, u := range c.accounts {
			enter(u)
		}
	}
	for _, c := range l.calls {
		enter(rd(c.program))
	}
	m := &tx.Message{Version: l.version, Blockhash: blockhash}
	if m.Version == 0 {
		m.Version = tx.V0
	}
	if m.Version == tx.V1 {
		m.Config = tx.Config{Mask: tx.HasUnits | tx.HasLoadedBytes, Units: 400_000, LoadedBytes: 1 << 20}
	}
	var look tx.Lookup
	var late []solana.Address
	for _, run := range []use{{sign: true, write: true}, {sign: true}, {write: true}, {}} {
		for _, u := range used {
			if u.sign != run.sign || u.write != run.write {
				continue
			}
			if at := slices.Index(l.looked, u.key); at >= 0 && !u.sign {
				late = append(late, u.key)
				if u.write {
					look.Writable = append(look.Writable, uint8(at))
				} else {
					look.Readonly = append(look.Readonly, uint8(at))
				}
				continue
			}
			m.Keys = append(m.Keys, u.key)
			switch {
			case u.sign && u.write:
				m.Header.Required++
			case u.sign:
				m.Header.Required++
				m.Header.ReadonlySigned++
			case !u.write:
				m.Header.ReadonlyUnsigned++
			}
		}
	}
	if len(late) > 0 {
		look.Table, m.Lookups = l.table, []tx.Lookup{}
		m.Lookups = append(m.Lookups, look)
	}
	all := append(slices.Clone(m.Keys), late...)
	for _, c := range l.calls {
		in := tx.Instruction{Program: uint8(slices.Index(all, c.program)), Data: c.data}
		for _, u := range c.accounts {
			in.Accounts = append(in.Accounts, uint8(slices.Index(all, u.key)))
		}
		m.Instructions = append(m.Instructions, in)
	}
	return m
}

// person has a key.
type person struct {
	key  ed25519.PrivateKey
	addr solana.Address
}

func personOf(key ed25519.PrivateKey) person {
	return person{key, solana.Address(key.Public().(ed25519.PublicKey))}
}

// seal signs a message with every key that it asks for.
func seal(m *tx.Message, keys []person) ([]byte, error) {
	signed, err := m.Append(nil)
	if err != nil {
		return nil, err
	}
	t := tx.Transaction{Signatures: make([]solana.Signature, m.Header.Required), Message: *m}
	for _, k := range keys {
		if slot, ok := m.Slot(k.addr); ok {
			t.Signatures[slot] = solana.Signature(ed25519.Sign(k.key, signed))
		}
	}
	return t.Append(nil)
}
