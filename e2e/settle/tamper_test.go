package settle

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
)

// The places of the instructions in the desk's atomic transaction.
const (
	atLimit = iota
	atPrice
	atPayment
	atCreate
	atDelivery
	atMemo
)

// surgeon changes a message. Its keys stay grouped by privilege, and every instruction
// keeps its accounts unless the test changes them.
type surgeon struct{ *tx.Message }

// insert puts a key at a place and renumbers.
func (s surgeon) insert(at int, key solana.Address) uint8 {
	s.Keys = slices.Insert(s.Keys, at, key)
	for i := range s.Instructions {
		in := &s.Instructions[i]
		in.Accounts = slices.Clone(in.Accounts)
		if int(in.Program) >= at {
			in.Program++
		}
		for j := range in.Accounts {
			if int(in.Accounts[j]) >= at {
				in.Accounts[j]++
			}
		}
	}
	return uint8(at)
}

// key returns the number of a key that is read alone, which may be new.
func (s surgeon) key(k solana.Address) uint8 {
	if i := slices.Index(s.Keys, k); i >= 0 {
		return uint8(i)
	}
	s.Header.ReadonlyUnsigned++
	return s.insert(len(s.Keys), k)
}

// written returns the number of a new key that is written and does not sign.
func (s surgeon) written(k solana.Address) uint8 {
	if i := slices.Index(s.Keys, k); i >= 0 {
		return uint8(i)
	}
	return s.insert(len(s.Keys)-int(s.Header.ReadonlyUnsigned), k)
}

// add puts an instruction at a place.
func (s surgeon) add(at int, program solana.Address, data []byte, accounts ...uint8) {
	s.Instructions = slices.Insert(s.Instructions, at, tx.Instruction{Program: s.key(program), Accounts: accounts, Data: data})
}

func (s surgeon) remove(at int) { s.Instructions = slices.Delete(s.Instructions, at, at+1) }

// replace replaces a key by another.
func (s surgeon) replace(was, is solana.Address) { s.Keys[slices.Index(s.Keys, was)] = is }

// account returns the key that an instruction names.
func (s surgeon) account(at, number int) solana.Address {
	return s.Keys[s.Instructions[at].Accounts[number]]
}

// amount lays a token transfer's or a SOL transfer's amount bare.
func (s surgeon) amount(at int) []byte {
	data := bytes.Clone(s.Instructions[at].Data)
	s.Instructions[at].Data = data
	if data[0] == 12 { // TransferChecked
		return data[1:9]
	}
	return data[4:12] // the system program's transfer
}

func (s surgeon) addAmount(at int, by uint64) {
	raw := s.amount(at)
	binary.LittleEndian.PutUint64(raw, binary.LittleEndian.Uint64(raw)+by)
}

// tampering is one way to change what both have agreed on.
type tampering struct {
	name   string
	change func(s surgeon, p parties)
}

// parties are the wallets in a tampered transaction. Mallory is the attacker.
type parties struct{ desk, taker, mallory solana.Address }

const less = ^uint64(0) // adding it takes one away

// tamperings change a USDC build that has a reference, and leave a transaction that
// decodes. The desk must refuse one that is signed, and a client must refuse to sign
// it.
var tamperings = []tampering{
	{"payment one atom less", func(s surgeon, _ parties) { s.addAmount(atPayment, less) }},
	{"payment one atom more", func(s surgeon, _ parties) { s.addAmount(atPayment, 1) }},
	{"payment of nothing", func(s surgeon, _ parties) { clear(s.amount(atPayment)) }},
	{"delivery one atom more", func(s surgeon, _ parties) { s.addAmount(atDelivery, 1) }},
	{"delivery one atom less", func(s surgeon, _ parties) { s.addAmount(atDelivery, less) }},
	{"delivery of all", func(s surgeon, _ parties) { copy(s.amount(atDelivery), bytes.Repeat([]byte{255}, 8)) }},
	{"payment in other decimals", func(s surgeon, _ parties) { s.amount(atPayment); s.Instructions[atPayment].Data[9]++ }},
	{"delivery in other decimals", func(s surgeon, _ parties) { s.amount(atDelivery); s.Instructions[atDelivery].Data[9]++ }},
	{"paid to mallory", func(s surgeon, p parties) { s.replace(s.account(atPayment, 2), p.mallory) }},
	{"paid to the payer", func(s surgeon, _ parties) {
		in := &s.Instructions[atPayment]
		in.Accounts = slices.Clone(in.Accounts)
		in.Accounts[2] = in.Accounts[0]
	}},
	{"delivered to mallory", func(s surgeon, p parties) { s.replace(s.account(atDelivery, 2), p.mallory) }},
	{"paid from another account", func(s surgeon, p parties) { s.replace(s.account(atPayment, 0), p.mallory) }},
	{"delivered from another account", func(s surgeon, p parties) { s.replace(s.account(atDelivery, 0), p.mallory) }},
	{"paid in another mint", func(s surgeon, p parties) { s.replace(s.account(atPayment, 1), p.mallory) }},
	{"another asset delivered", func(s surgeon, p parties) { s.replace(s.account(atDelivery, 1), p.mallory) }},
	{"legs exchanged", func(s surgeon, _ parties) {
		s.Instructions[atPayment], s.Instructions[atDelivery] = s.Instructions[atDelivery], s.Instructions[atPayment]
	}},
	{"amounts exchanged", func(s surgeon, _ parties) {
		a, b := s.amount(atPayment), s.amount(atDelivery)
		for i := range a {
			a[i], b[i] = b[i], a[i]
		}
	}},
	{"SOL of the desk too", func(s surgeon, p parties) {
		s.add(atMemo, solana.SystemProgram, append([]byte{2, 0, 0, 0}, 0, 202, 154, 59, 0, 0, 0, 0), s.key(p.desk), s.key(p.taker))
	}},
	{"an allowance of the desk's tokens", func(s surgeon, p parties) {
		source := s.account(atDelivery, 0)
		s.add(atMemo, solana.TokenProgram, append([]byte{4}, bytes.Repeat([]byte{255}, 8)...), s.key(source), s.key(p.taker), s.key(p.desk))
	}},
	{"another owner of the desk's tokens", func(s surgeon, p parties) {
		source := s.account(atDelivery, 0)
		s.add(atMemo, solana.TokenProgram, append([]byte{6, 2, 1}, p.taker[:]...), s.key(source), s.key(p.desk))
	}},
	{"the desk's account closed", func(s surgeon, p parties) {
		source := s.account(atDelivery, 0)
		s.add(atMemo, solana.TokenProgram, []byte{9}, s.key(source), s.key(p.taker), s.key(p.desk))
	}},
	{"the delivery twice", func(s surgeon, _ parties) {
		s.Instructions = slices.Insert(s.Instructions, atMemo, s.Instructions[atDelivery])
	}},
	{"another memo too", func(s surgeon, _ parties) { s.add(atMemo, solana.MemoProgram, []byte("gift")) }},
	{"an instruction in front", func(s surgeon, _ parties) { s.add(0, solana.MemoProgram, []byte("gift")) }},
	{"an instruction behind", func(s surgeon, _ parties) { s.add(atMemo+1, solana.MemoProgram, []byte("gift")) }},
	{"no payment", func(s surgeon, _ parties) { s.remove(atPayment) }},
	{"no delivery", func(s surgeon, _ parties) { s.remove(atDelivery) }},
	{"no account for the delivery", func(s surgeon, _ parties) { s.remove(atCreate) }},
	{"no memo", func(s surgeon, _ parties) { s.remove(atMemo) }},
	{"no compute limit", func(s surgeon, _ parties) { s.remove(atLimit) }},
	{"no instruction", func(s surgeon, _ parties) { s.Instructions = nil }},
	{"instructions in reverse", func(s surgeon, _ parties) { slices.Reverse(s.Instructions) }},
	{"another claim's memo", func(s surgeon, _ parties) { s.Instructions[atMemo].Data = []byte("C0000000000001") }},
	{"memo with a space", func(s surgeon, _ parties) {
		s.Instructions[atMemo].Data = append(bytes.Clone(s.Instructions[atMemo].Data), ' ')
	}},
	{"no reference", func(s surgeon, _ parties) {
		in := &s.Instructions[atPayment]
		in.Accounts = in.Accounts[:4]
	}},
	{"another reference", func(s surgeon, p parties) { s.replace(s.account(atPayment, 4), p.mallory) }},
	{"another blockhash", func(s surgeon, p parties) { s.Blockhash = solana.Hash(p.mallory) }},
	{"a durable nonce", func(s surgeon, p parties) {
		s.add(0, solana.SystemProgram, []byte{4, 0, 0, 0}, s.written(p.mallory), s.key(solana.SystemProgram), s.key(p.taker))
	}},
	{"an address table", func(s surgeon, p parties) {
		s.Lookups = []tx.Lookup{{Table: p.mallory, Readonly: []uint8{0}}}
	}},
	{"legacy", func(s surgeon, _ parties) { s.Version = tx.Legacy }},
	{"version 1", func(s surgeon, _ parties) { s.Version = tx.V1 }},
	{"mallory pays the fee", func(s surgeon, p parties) {
		s.insert(0, p.mallory)
		s.Header.Required++
	}},
	{"one more signer", func(s surgeon, p parties) {
		s.insert(int(s.Header.Required), p.mallory)
		s.Header.Required++
		s.Header.ReadonlySigned++
	}},
	{"signers exchanged", func(s surgeon, _ parties) { s.Keys[0], s.Keys[1] = s.Keys[1], s.Keys[0] }},
	{"fee paid by the other", func(s surgeon, _ parties) { s.exchange(0, 1) }},
	{"mallory instead of the desk", func(s surgeon, p parties) { s.replace(p.desk, p.mallory) }},
	{"the desk does not sign", func(s surgeon, p parties) {
		at := slices.Index(s.Keys, p.desk)
		for ; at+1 < int(s.Header.Required); at++ {
			s.exchange(at, at+1)
		}
		s.Header.Required--
	}},
	{"one key more is written", func(s surgeon, _ parties) { s.Header.ReadonlyUnsigned-- }},
	{"one key less is written", func(s surgeon, _ parties) { s.Header.ReadonlyUnsigned++ }},
	{"a compute limit past the chain's", func(s surgeon, _ parties) {
		s.Instructions[atLimit].Data = binary.LittleEndian.AppendUint32([]byte{2}, 1_400_001)
	}},
	{"a dear compute price", func(s surgeon, _ parties) {
		s.Instructions[atPrice].Data = binary.LittleEndian.AppendUint64([]byte{3}, 1_000_000_000)
	}},
	{"another token program", func(s surgeon, _ parties) {
		s.replace(s.ProgramOf(&s.Instructions[atPayment]), solana.Token2022Program)
	}},
	{"the account made for mallory", func(s surgeon, p parties) {
		in := &s.Instructions[atCreate]
		in.Accounts = slices.Clone(in.Accounts)
		in.Accounts[2] = s.key(p.mallory)
	}},
	{"rent paid by another", func(s surgeon, _ parties) {
		in := &s.Instructions[atCreate]
		in.Accounts = slices.Clone(in.Accounts)
		in.Accounts[0] = 1 - in.Accounts[0]
	}},
	{"the payment by the desk", func(s surgeon, p parties) {
		in := &s.Instructions[atPayment]
		in.Accounts = slices.Clone(in.Accounts)
		in.Accounts[3] = s.key(p.desk)
	}},
}

// exchange moves two keys without changing what the instructions mean.
func (s surgeon) exchange(a, b int) {
	s.Keys[a], s.Keys[b] = s.Keys[b], s.Keys[a]
	swap := func(n uint8) uint8 {
		switch int(n) {
		case a:
			return uint8(b)
		case b:
			return uint8(a)
		default:
			return n
		}
	}
	for i := range s.Instructions {
		in := &s.Instructions[i]
		in.Program = swap(in.Program)
		in.Accounts = slices.Clone(in.Accounts)
		for j := range in.Accounts {
			in.Accounts[j] = swap(in.Accounts[j])
		}
	}
}

// apply returns the changed transaction, unsigned.
func (c *tampering) apply(t *testing.T, raw []byte, p parties) *tx.Transaction {
	t.Helper()
	changed, err := tx.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	c.change(surgeon{&changed.Message}, p)
	changed.Signatures = make([]solana.Signature, changed.Message.Header.Required)
	if out := encoded(t, changed); bytes.Equal(out, raw) {
		t.Fatalf("%s: nothing has changed", c.name)
	}
	return changed
}

// encoded returns a transaction's bytes.
func encoded(t *testing.T, x *tx.Transaction) []byte {
	t.Helper()
	raw, err := x.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
