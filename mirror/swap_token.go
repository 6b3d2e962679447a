package mirror

import (
	"encoding/binary"
	"math/bits"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// Instructions of the token programs that move an account's amount, by their first byte.
// keepsAmount has those that do not. Any other instruction may.
const (
	tokenTransfer        = 3
	tokenMintTo          = 7
	tokenBurn            = 8
	tokenTransferChecked = 12
	tokenMintToChecked   = 14
	tokenBurnChecked     = 15
	tokenFeeExtension    = 26
	tokenBatch           = 255
	// feeTransferChecked is the fee extension's second byte for a transfer with its fee:
	// { 1, amount u64, decimals u8, fee u64 }.
	feeTransferChecked = 1
	feeTransferSize    = 18
)

// keepsAmount reports whether a token instruction changes no amount: initializing,
// approving, freezing, asking for sizes.
func keepsAmount(op byte) bool {
	switch op {
	case 0, 1, 2, 4, 5, 6, 10, 11, 13, 16, 18, 19, 20, 21, 22, 23, 24:
		return true
	}
	return false
}

// flow is the amounts into and out of a vault in one call.
type flow struct {
	in, out market.Uint128
	// inexact: more may have moved, because a transfer fee is deducted on arrival, or
	// because wrapped lamports arrive without a transfer.
	inexact bool
}

func (f *flow) merge(o *flow) {
	addWide(&f.in, o.in)
	addWide(&f.out, o.out)
	f.inexact = f.inexact || o.inexact
}

// addWide adds to a total that cannot overflow, because it consists of fewer than 2^64
// amounts of 64 bits.
func addWide(total *market.Uint128, v market.Uint128) {
	var carry uint64
	total.Lo, carry = bits.Add64(total.Lo, v.Lo, 0)
	total.Hi += v.Hi + carry
}

// add is addWide of one amount.
func add(total *market.Uint128, atoms market.Amount) {
	addWide(total, market.Uint128{Lo: uint64(atoms)})
}

// subtract returns a − b, which must not be negative.
func subtract(a, b market.Uint128) market.Uint128 {
	lo, borrow := bits.Sub64(a.Lo, b.Lo, 0)
	return market.Uint128{Hi: a.Hi - b.Hi - borrow, Lo: lo}
}

// delta returns the net amount; ok is false if it is more than a vault can hold.
func (f *flow) delta() (d Delta, ok bool) {
	d.Out = f.in.Cmp(f.out) < 0
	net := subtract(f.in, f.out)
	if d.Out {
		net = subtract(f.out, f.in)
	}
	d.Atoms = market.Amount(net.Lo)
	return d, net.Hi == 0
}

// Indexes of a pair's vaults.
const (
	baseSide  = 0
	quoteSide = 1
	sides     = 2
)

// addToken adds the effect of a token program's instruction on the vaults, whose indexes
// among the transaction's keys are keys.
func (f *flows) addToken(program solana.Address, in *tx.Instruction, keys [sides]int) {
	if len(in.Data) > 0 && in.Data[0] == tokenBatch {
		f.addBatch(program, in, keys)
		return
	}
	f.addInstruction(program, in.Data, in.Accounts, keys)
}

// addBatch adds a batch: { accounts u8, length u8, data } repeated, with the accounts
// taken in order from the instruction's.
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

// addInstruction adds a single instruction.
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
	// from and to are indexes of the instruction's accounts, -1 for none.
	from, to    int
	amount, fee market.Amount
	// exact: amount less fee arrives.
	exact bool
}

// readMove parses an instruction and reports whether it is a move.
func readMove(program solana.Address, data []byte) (m move, ok bool) {
	if len(data) == 0 {
		return m, false
	}
	op, body := data[0], data[1:]
	m.exact = program == solana.TokenProgram // it has no transfer fees
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

// markInexact marks the flows of the vaults that an instruction names as inexact.
func (f *flows) markInexact(accounts []uint8, keys [sides]int) {
	for _, a := range accounts {
		for side := range f {
			if int(a) == keys[side] {
				f[side].inexact = true
			}
		}
	}
}
