package mirror

import (
	"encoding/binary"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
)

// Instructions of the token programs, by their first byte: those that move an
// account's amount, and those that certainly do not. What is in neither list may.
const (
	tokenTransfer        = 3
	tokenMintTo          = 7
	tokenBurn            = 8
	tokenTransferChecked = 12
	tokenMintToChecked   = 14
	tokenBurnChecked     = 15
	tokenFeeExtension    = 26
	tokenBatch           = 255
	// feeTransferChecked is the fee extension's second byte: a transfer that
	// tells its fee, as { 1, amount u64, decimals u8, fee u64 }.
	feeTransferChecked = 1
	feeTransferSize    = 18
)

// keepsAmount reports whether a token instruction leaves every account's amount
// alone: initializing, approving, freezing, and asking for sizes.
func keepsAmount(op byte) bool {
	switch op {
	case 0, 1, 2, 4, 5, 6, 10, 11, 13, 16, 18, 19, 20, 21, 22, 23, 24:
		return true
	}
	return false
}

// flow is what went into and out of a vault in one call.
type flow struct {
	in, out uint64
	// inexact: more may have come or gone than in and out tell, as a transfer
	// fee is taken from what arrives, and wrapped lamports come unannounced.
	inexact bool
	// overflow: sums that no mint's supply allows.
	overflow bool
}

// add counts atoms.
func add(sum *uint64, atoms uint64) (overflow bool) {
	*sum += atoms
	return *sum < atoms
}

func (f *flow) gain(atoms uint64) { f.overflow = add(&f.in, atoms) || f.overflow }

func (f *flow) lose(atoms uint64) { f.overflow = add(&f.out, atoms) || f.overflow }

func (f *flow) merge(o flow) {
	f.gain(o.in)
	f.lose(o.out)
	f.inexact, f.overflow = f.inexact || o.inexact, f.overflow || o.overflow
}

// moved reports whether anything came or went.
func (f *flow) moved() bool { return f.in != f.out || f.inexact }

// The vaults of a pair, as indexes.
const (
	baseSide  = 0
	quoteSide = 1
	sides     = 2
)

// tokens adds what an instruction of a token program did to the vaults, which are
// the transaction's keys at keys.
func (f *flows) tokens(program solana.Address, in *tx.Instruction, keys [sides]int) {
	if len(in.Data) > 0 && in.Data[0] == tokenBatch {
		f.batch(program, in, keys)
		return
	}
	f.one(program, in.Data, in.Accounts, keys)
}

// batch reads { accounts u8, length u8, data } again and again; the accounts are
// taken from the instruction's own, in their order.
func (f *flows) batch(program solana.Address, in *tx.Instruction, keys [sides]int) {
	data, accounts := in.Data[1:], in.Accounts
	for len(data) >= 2 {
		n, length := int(data[0]), int(data[1])
		data = data[2:]
		if n > len(accounts) || length > len(data) {
			f.doubt(accounts, keys)
			return
		}
		f.one(program, data[:length], accounts[:n], keys)
		data, accounts = data[length:], accounts[n:]
	}
	if len(data) > 0 {
		f.doubt(accounts, keys)
	}
}

// one adds a single instruction.
func (f *flows) one(program solana.Address, data []byte, accounts []uint8, keys [sides]int) {
	if len(data) > 0 && keepsAmount(data[0]) {
		return
	}
	m, ok := readMove(program, data)
	if !ok || max(m.from, m.to) >= len(accounts) {
		f.doubt(accounts, keys)
		return
	}
	for side := range f {
		if m.from >= 0 && int(accounts[m.from]) == keys[side] {
			f[side].lose(m.amount)
		}
		if m.to >= 0 && int(accounts[m.to]) == keys[side] {
			f[side].gain(m.amount - min(m.fee, m.amount))
			f[side].inexact = f[side].inexact || !m.exact
		}
	}
}

// move is a token instruction that moves an amount.
type move struct {
	// from and to are places among the instruction's accounts, -1 for none.
	from, to    int
	amount, fee uint64
	// exact: what arrives is the amount less the fee.
	exact bool
}

// readMove reads an instruction's data, and reports whether it is a move.
func readMove(program solana.Address, data []byte) (m move, ok bool) {
	if len(data) == 0 {
		return m, false
	}
	op, body := data[0], data[1:]
	m.exact = program == solana.TokenProgram // it takes no fees
	switch op {
	case tokenTransfer:
		m.from, m.to = 0, 1
	case tokenTransferChecked:
		m.from, m.to = 0, 2
	case tokenMintTo, tokenMintToChecked:
		m.from, m.to, m.exact = -1, 1, true
	case tokenBurn, tokenBurnChecked:
		m.from, m.to = 0, -1
	case tokenFeeExtension:
		if len(body) != feeTransferSize || body[0] != feeTransferChecked {
			return m, false
		}
		m.from, m.to, m.exact = 0, 2, true
		body = body[1:]
		m.fee = binary.LittleEndian.Uint64(body[9:])
	default:
		return m, false
	}
	if len(body) < 8 {
		return m, false
	}
	m.amount = binary.LittleEndian.Uint64(body)
	return m, true
}

// doubt notes that an instruction may have done anything to the vaults it names.
func (f *flows) doubt(accounts []uint8, keys [sides]int) {
	for _, a := range accounts {
		for side := range f {
			if int(a) == keys[side] {
				f[side].inexact = true
			}
		}
	}
}
