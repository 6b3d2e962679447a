package build

import (
	"encoding/binary"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/token"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// access says how an instruction uses an account.
type access uint8

const (
	read   access = 0
	write  access = 1
	sign   access = 2
	isBoth access = write | sign
)

// account is one that an instruction names.
type account struct {
	key solana.Address
	use access
}

// call is an instruction before its accounts have numbers.
type call struct {
	program  solana.Address
	accounts []account
	data     []byte
}

// Numbers of the instructions that we build, by their programs.
const (
	systemTransfer       = 2
	tokenTransferChecked = 12
	createIdempotent     = 1
	setComputeUnitLimit  = 2
	setComputeUnitPrice  = 3
)

func transferLamports(from, to solana.Address, amount market.Amount, references []solana.Address) call {
	data := binary.LittleEndian.AppendUint32(make([]byte, 0, 12), systemTransfer)
	return call{
		program: solana.SystemProgram, data: binary.LittleEndian.AppendUint64(data, uint64(amount)),
		accounts: withReferences(references, account{from, isBoth}, account{to, write}),
	}
}

func transferTokens(mint token.Checked, from, to, owner solana.Address, amount market.Amount, references []solana.Address) call {
	data := binary.LittleEndian.AppendUint64(append(make([]byte, 0, 10), tokenTransferChecked), uint64(amount))
	return call{
		program: mint.Program(), data: append(data, mint.Decimals()),
		accounts: withReferences(references, account{from, write}, account{mint.Address(), read}, account{to, write}, account{owner, sign}),
	}
}

// withReferences adds keys that are only there to be found by, in Solana Pay's
// manner: read, after the accounts that the program looks at.
func withReferences(references []solana.Address, accounts ...account) []account {
	for _, r := range references {
		accounts = append(accounts, account{r, read})
	}
	return accounts
}

// createTokenAccount creates an associated token account, or finds it there.
func createTokenAccount(mint token.Checked, payer, wallet, at solana.Address) call {
	return call{
		program: solana.AssociatedTokenProgram, data: []byte{createIdempotent},
		accounts: []account{
			{payer, isBoth}, {at, write}, {wallet, read}, {mint.Address(), read}, {solana.SystemProgram, read}, {mint.Program(), read},
		},
	}
}

func memo(text string) call { return call{program: solana.MemoProgram, data: []byte(text)} }

func (b Budget) calls() []call {
	limit := binary.LittleEndian.AppendUint32([]byte{setComputeUnitLimit}, b.Units)
	price := binary.LittleEndian.AppendUint64([]byte{setComputeUnitPrice}, b.MicroLamports)
	return []call{{program: solana.ComputeBudgetProgram, data: limit}, {program: solana.ComputeBudgetProgram, data: price}}
}

// compile numbers the accounts of a version 0 message without tables: the fee
// payer first, then each run of the header in order of first appearance, so that
// the same values give the same bytes.
func compile(feePayer solana.Address, blockhash solana.Hash, calls []call) (*Unsigned, error) {
	used := make([]account, 1, 16)
	used[0] = account{feePayer, isBoth}
	for i := range calls {
		for _, a := range calls[i].accounts {
			used = use(used, a)
		}
		used = use(used, account{calls[i].program, read})
	}
	m := tx.Message{Version: tx.V0, Blockhash: blockhash, Keys: make([]solana.Address, 0, len(used)), Instructions: make([]tx.Instruction, len(calls))}
	for _, run := range [...]access{isBoth, sign, write, read} {
		for _, a := range used {
			if a.use == run {
				m.Keys = append(m.Keys, a.key)
				count(&m.Header, run)
			}
		}
	}
	for i := range calls {
		in := &m.Instructions[i]
		in.Program, in.Data = number(m.Keys, calls[i].program), calls[i].data
		in.Accounts = make([]uint8, len(calls[i].accounts))
		for j, a := range calls[i].accounts {
			in.Accounts[j] = number(m.Keys, a.key)
		}
	}
	return seal(&m)
}

func count(h *tx.Header, run access) {
	switch run {
	case isBoth:
		h.Required++
	case sign:
		h.Required++
		h.ReadonlySigned++
	case read:
		h.ReadonlyUnsigned++
	}
}

// use enters an account, or what else is done with it.
func use(used []account, a account) []account {
	for i := range used {
		if used[i].key == a.key {
			used[i].use |= a.use
			return used
		}
	}
	return append(used, a)
}

// number returns a key's place. Every key has been entered by use.
func number(keys []solana.Address, key solana.Address) uint8 {
	for i := range keys {
		if keys[i] == key {
			return uint8(i)
		}
	}
	panic(fmt.Sprintf("build: key %s was not entered", solana.Text(key)))
}

// seal encodes a message with an empty slot for each signer.
func seal(m *tx.Message) (*Unsigned, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	t := tx.Transaction{Signatures: make([]solana.Signature, m.Header.Required), Message: *m}
	raw, err := t.Append(make([]byte, 0, 768))
	if err != nil {
		return nil, err
	}
	if len(raw) > tx.MaxSize {
		return nil, fmt.Errorf("%w: %d bytes", tx.ErrTooLong, len(raw))
	}
	u := &Unsigned{raw: raw, signers: m.Signers()}
	u.message = raw[1+len(u.signers)*len(solana.Signature{}):]
	u.hash = tx.MessageHash(u.message)
	return u, nil
}
