package mirror

import (
	"encoding/binary"
	"math/bits"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
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
	in, out market.Uint128
	// inexact: more may have come or gone than in and out tell, as a transfer
	// fee is taken from what arrives, and wrapped lamports come unannounced.
	inexact bool
}

func (f *flow) merge(o *flow) {
	addWide(&f.in, o.in)
	addWide(&f.out, o.out)
	f.inexact = f.inexact || o.inexact
}

// addWide adds to a total that cannot overflow: it is of 64-bit amounts, and
// memory holds fewer than 2^64.
func addWide(total *market.Uint128, v market.Uint128) {
	var carry uint64
	total.Lo, carry = bits.Add64(total.Lo, v.Lo, 0)
	total.Hi += v.Hi + carry
}

// add is addWide of one amount.
func add(total *market.Uint128, atoms market.Amount) {
	addWide(total, market.Uint128{Lo: uint64(atoms)})
}

// less returns a − b, which must not be below zero.
func subtract(a, b market.Uint128) market.Uint128 {
	lo, borrow := bits.Sub64(a.Lo, b.Lo, 0)
	return market.Uint128{Hi: a.Hi - b.Hi - borrow, Lo: lo}
}

// delta returns what came and went on balance; ok is false for more than a vault
// can hold.
func (f *flow) delta() (d Delta, ok bool) {
	d.Out = f.in.Cmp(f.out) < 0
	net := subtract(f.in, f.out)
	if d.Out {
		net = subtract(f.out, f.in)
	}
	d.Atoms = market.Amount(net.Lo)
	return d, net.Hi == 0
}

// The vaults of a pair, as indexes.
const (
	baseSide  = 0
	quoteSide = 1
	sides     = 2
)

// tokens adds what an instruction of a token program did to the vaults, which are
// the transaction's keys at keys.
func (f *flows) addToken(program solana.Address, in *tx.Instruction, keys [sides]int) {
	if len(in.Data) > 0 && in.Data[0] == tokenBatch {
		f.addBatch(program, in, keys)
		return
	}
	f.addInstruction(program, in.Data, in.Accounts, keys)
}

// batch reads { accounts u8, length u8, data } again and again; the accounts are
// taken from the instruction's own, in their order.
func (f *flows) addBatch(program solana.Address, in *tx.Instruction, keys [sides]int) {
	data, accounts := in.Data[1:], in.Accounts
	for len(data) >= 2 {
		n, length := int(data[0]), int(data[1])
		data = data[2:]
		if n > len(accounts) || length > len(data) {
			f.markInexact(accounts, keys)
			return
		}
		f.addInstruction(program, data[:length], accounts[:n], keys)
		data, accounts = data[length:], accounts[n:]
	}
	if len(data) > 0 {
		f.markInexact(accounts, keys)
	}
}

// one adds a single instruction.
func (f *flows) addInstruction(program solana.Address, data []byte, accounts []uint8, keys [sides]int) {
	if len(data) > 0 && keepsAmount(data[0]) {
		return
	}
	m, ok := readMove(program, data)
	if !ok || max(m.from, m.to) >= len(accounts) {
		f.markInexact(accounts, keys)
		return
	}
	for side := range f {
		if m.from >= 0 && int(accounts[m.from]) == keys[side] {
			add(&f[side].out, m.amount)
		}
		if m.to >= 0 && int(accounts[m.to]) == keys[side] {
			add(&f[side].in, m.amount-min(m.fee, m.amount))
			f[side].inexact = f[side].inexact || !m.exact
		}
	}
}

// move is a token instruction that moves an amount.
type move struct {
	// from and to are places among the instruction's accounts, -1 for none.
	from, to    int
	amount, fee market.Amount
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
		m.fee = market.Amount(binary.LittleEndian.Uint64(body[9:]))
	default:
		return m, false
	}
	if len(body) < 8 {
		return m, false
	}
	m.amount = market.Amount(binary.LittleEndian.Uint64(body))
	return m, true
}

// doubt notes that an instruction may have done anything to the vaults it names.
func (f *flows) markInexact(accounts []uint8, keys [sides]int) {
	for _, a := range accounts {
		for side := range f {
			if int(a) == keys[side] {
				f[side].inexact = true
			}
		}
	}
}
