package cosign

import (
	"encoding/binary"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// Summary describes everything that a message of the desk does.
type Summary struct {
	Kind Kind
	// Claim is the one that the memo and the reference name.
	Claim market.ClaimID
	// Desk delivers to Wallet. Of an atomic transaction Wallet is the taker, who pays.
	Desk, Wallet solana.Address
	// Base is the delivered mint, and BaseAmount the atoms of it.
	Base       solana.Address
	BaseAmount market.Amount
	// PayMint, zero for SOL, PayTo, the account that is paid, and PayAmount are the
	// payment of an atomic transaction, and zero for a delivery.
	PayMint, PayTo solana.Address
	PayAmount      market.Amount
}

// Signers of the messages.
const (
	atomicSigners  = 2
	deskSignsAlone = 1 // a delivery, refunds
)

// CheckAtomic decodes the message of an atomic transaction, and refuses any other. It
// has these instructions, in this order, and nothing else:
//
//	compute limit, compute price
//	the taker pays: lamports, or tokens from its associated account
//	create the taker's associated account of the base asset
//	the desk delivers from its associated account to that one
//	memo: the claim
//
// The desk and the taker sign; one of them pays the fee, one the rent of the taker's
// account. The payment names the claim's reference. No account has a privilege that no
// instruction needs. Errors: [ErrShape].
func CheckAtomic(message []byte, desk solana.Address) (Summary, error) {
	m, err := decode(message, desk, atomicSigners)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{Kind: Cosign, Desk: desk, Wallet: m.Keys[0]}
	if s.Wallet == desk {
		s.Wallet = m.Keys[1]
	}
	r := reader{m: m, summary: &s}
	r.budget()
	r.pay()
	r.deliver()
	r.memo()
	return r.finish()
}

// CheckDelivery decodes the message of a delivery, and refuses any other. It has these
// instructions, in this order, and nothing else:
//
//	compute limit, compute price
//	create the wallet's associated account of the base asset, at the desk's expense
//	the desk delivers from its associated account to that one
//	memo: the claim
//
// Only the desk signs. The delivery names the claim's reference. No account has a
// privilege that no instruction needs. Errors: [ErrShape].
func CheckDelivery(message []byte, desk solana.Address) (Summary, error) {
	m, err := decode(message, desk, deskSignsAlone)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{Kind: Deliver, Desk: desk}
	r := reader{m: m, summary: &s}
	r.budget()
	r.deliver()
	r.memo()
	return r.finish()
}

// decode decodes a message without address tables or a durable nonce, so that its
// bytes say all that it does.
func decode(message []byte, desk solana.Address, signers int) (*tx.Message, error) {
	m, err := tx.DecodeMessage(message)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrShape, err)
	}
	_, signs := m.Slot(desk)
	switch {
	case m.Version != tx.V0:
		return nil, fmt.Errorf("%w: its version is %s, want %s", ErrShape, m.Version, tx.V0)
	case m.UsesLookups():
		return nil, fmt.Errorf("%w: it uses address tables", ErrShape)
	case m.UsesNonce():
		return nil, fmt.Errorf("%w: it uses a durable nonce", ErrShape)
	case m.Blockhash == (solana.Hash{}):
		return nil, fmt.Errorf("%w: it has no blockhash", ErrShape)
	case int(m.Header.Required) != signers:
		return nil, fmt.Errorf("%w: it has %d signers, want %d", ErrShape, m.Header.Required, signers)
	case !signs:
		return nil, fmt.Errorf("%w: %s does not sign it", ErrShape, solana.Base58(desk))
	}
	return m, nil
}

// The forms of our instructions: their numbers, and the sizes of their data. They are
// not taken from package build, which is checked against them.
const (
	setUnitLimit, setUnitLimitSize     = 2, 5
	setUnitPrice, setUnitPriceSize     = 3, 9
	systemTransfer, systemTransferSize = 2, 12
	createIdempotent, createSize       = 1, 1
	transferChecked, transferSize      = 12, 10
	// memoSize is the size of a claim's text.
	memoSize = 14
	// maxData and maxAccounts are the largest data and the most accounts of an
	// instruction.
	maxData, maxAccounts = memoSize, 6
	// maxText is the largest memo of a refund.
	maxText = 96
)

// access is the privilege that an instruction needs on an account.
type access uint8

const (
	named     access = 1
	write     access = 2 | named
	sign      access = 4 | named
	writeSign        = write | sign
)

// reader reads the instructions of a message one by one, and collects what they need
// of each account. After an error it returns zeros.
type reader struct {
	m       *tx.Message
	summary *Summary
	next    int
	needs   [tx.MaxKeys]access
	// reference is the account that the one transfer with a reference has named.
	reference solana.Address
	err       error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: at instruction %d: %s", ErrShape, r.next, fmt.Sprintf(format, args...))
	}
}

func (r *reader) require(ok bool, what string) {
	if !ok {
		r.fail("%s", what)
	}
}

// program returns the program of the next instruction; ok is false at the end.
func (r *reader) program() (a solana.Address, ok bool) {
	if r.err != nil || r.next >= len(r.m.Instructions) {
		return a, false
	}
	return r.m.ProgramOf(&r.m.Instructions[r.next]), true
}

type call struct {
	data [maxData]byte
	keys [maxAccounts]solana.Address
}

// take reads the next instruction, which must call program with size bytes of data and
// exactly the accounts that are needed.
func (r *reader) take(program solana.Address, size int, needs ...access) (c call) {
	called, ok := r.program()
	if !ok || called != program {
		r.fail("the instruction does not call program %s", solana.Base58(program))
		return call{}
	}
	in := &r.m.Instructions[r.next]
	if len(in.Data) != size || len(in.Accounts) != len(needs) {
		r.fail("it has %d bytes of data and %d accounts, want %d and %d", len(in.Data), len(in.Accounts), size, len(needs))
		return call{}
	}
	r.needs[in.Program] |= named
	for i, account := range in.Accounts {
		r.needs[account] |= needs[i]
		c.keys[i] = r.m.Keys[account]
	}
	copy(c.data[:], in.Data)
	r.next++
	return c
}

func (r *reader) budget() {
	limit := r.take(solana.ComputeBudgetProgram, setUnitLimitSize)
	r.require(limit.data[0] == setUnitLimit, "it does not set the compute unit limit")
	price := r.take(solana.ComputeBudgetProgram, setUnitPriceSize)
	r.require(price.data[0] == setUnitPrice, "it does not set the compute unit price")
	b := build.Budget{Units: binary.LittleEndian.Uint32(limit.data[1:]), MicroLamports: binary.LittleEndian.Uint64(price.data[1:])}
	if _, err := b.PriorityLamports(); err != nil {
		r.fail("%v", err)
	}
}

// account is an associated token account that the message creates unless it exists.
type account struct{ payer, at, owner, mint, program solana.Address }

func (r *reader) create() account {
	c := r.take(solana.AssociatedTokenProgram, createSize, writeSign, write, named, named, named, named)
	r.require(c.data[0] == createIdempotent, "it does not create an account idempotently")
	r.require(c.keys[4] == solana.SystemProgram, "the account is not created by the system program")
	return account{c.keys[0], c.keys[1], c.keys[2], c.keys[3], c.keys[5]}
}

// transfer is a transfer of tokens, or of lamports, which have no program and no
// mint.
type transfer struct {
	program, from, mint, to, owner solana.Address
	amount                         market.Amount
}

// tokens reads a transfer of tokens; referenced says whether it must name the
// reference.
func (r *reader) tokens(referenced bool) transfer {
	program, ok := r.program()
	if !ok || !solana.IsTokenProgram(program) {
		r.fail("the instruction does not call a token program")
		return transfer{}
	}
	needs := []access{write, named, write, sign, named}
	if !referenced {
		needs = needs[:4]
	}
	c := r.take(program, transferSize, needs...)
	r.require(c.data[0] == transferChecked, "it is not a checked transfer")
	if referenced {
		r.reference = c.keys[4]
	}
	return transfer{program, c.keys[0], c.keys[1], c.keys[2], c.keys[3], market.Amount(binary.LittleEndian.Uint64(c.data[1:]))}
}

func (r *reader) lamports() transfer {
	c := r.take(solana.SystemProgram, systemTransferSize, writeSign, write, named)
	r.require(binary.LittleEndian.Uint32(c.data[:]) == systemTransfer, "it is not a transfer of lamports")
	r.reference = c.keys[2]
	return transfer{from: c.keys[0], to: c.keys[1], owner: c.keys[0], amount: market.Amount(binary.LittleEndian.Uint64(c.data[4:]))}
}

func (r *reader) pay() {
	s := r.summary
	program, _ := r.program()
	var t transfer
	switch program {
	case solana.SystemProgram:
		t = r.lamports()
	default:
		t = r.tokens(true)
	}
	if t.program != solana.SystemProgram {
		r.associated(t.from, s.Wallet, &t)
	}
	r.require(t.owner == s.Wallet && t.to != t.from, "the taker's wallet is not the one that pays")
	r.require(t.amount > 0, "nothing is paid")
	s.PayMint, s.PayTo, s.PayAmount = t.mint, t.to, t.amount
}

// deliver reads the desk's leg. Only a delivery names the reference in it, and its
// receiver is the owner of the created account.
func (r *reader) deliver() {
	s := r.summary
	made := r.create()
	t := r.tokens(s.Kind == Deliver)
	if s.Kind == Deliver {
		s.Wallet = made.owner
	}
	r.require(made.owner == s.Wallet && s.Wallet != s.Desk && s.Wallet != (solana.Address{}), "it delivers to another wallet")
	r.require(made.payer == s.Desk || s.Kind == Cosign && made.payer == s.Wallet, "a third wallet pays the rent")
	r.require(made.at == t.to && made.mint == t.mint && made.program == t.program, "the account that receives is not the one that is created")
	r.require(t.owner == s.Desk, "the desk's wallet is not the one that delivers")
	r.require(t.mint != s.PayMint, "it delivers the asset that it is paid in")
	r.require(t.amount > 0, "nothing is delivered")
	r.associated(t.from, s.Desk, &t)
	r.associated(t.to, s.Wallet, &t)
	s.Base, s.BaseAmount = t.mint, t.amount
}

// associated checks that an account is a wallet's associated account of the mint.
func (r *reader) associated(a, wallet solana.Address, t *transfer) {
	if r.err != nil {
		return
	}
	want, err := solana.TokenAccount(wallet, t.mint, t.program)
	r.require(err == nil && a == want, "the account is not the associated token account of its wallet")
}

func (r *reader) memo() {
	c := r.take(solana.MemoProgram, memoSize)
	claim, ok := binding.ClaimOfMemo(string(c.data[:memoSize]))
	r.require(ok, "the memo names no claim")
	r.require(r.reference == binding.Reference(claim), "the reference is not that of the claim")
	r.summary.Claim = claim
}

// text reads a memo of any length up to maxText.
func (r *reader) text() string {
	called, ok := r.program()
	if !ok || called != solana.MemoProgram {
		r.fail("the instruction does not call program %s", solana.Base58(solana.MemoProgram))
		return ""
	}
	in := &r.m.Instructions[r.next]
	if len(in.Data) > maxText || len(in.Accounts) != 0 {
		r.fail("it has %d bytes of data and %d accounts, want at most %d bytes and no account", len(in.Data), len(in.Accounts), maxText)
		return ""
	}
	r.needs[in.Program] |= named
	r.next++
	return string(in.Data)
}

func (r *reader) finish() (Summary, error) {
	if err := r.check(); err != nil {
		return Summary{}, err
	}
	return *r.summary, nil
}

// check checks that no instruction is left, and that every account has exactly the
// privileges that the instructions need.
func (r *reader) check() error {
	r.require(r.next == len(r.m.Instructions), "it has more instructions than are allowed")
	r.needs[0] |= writeSign // pays the fee
	signers := int(r.m.Header.Required)
	for i, key := range r.m.Keys {
		has := named
		if i < signers {
			has |= sign
		}
		if r.m.Writable(i) {
			has |= write
		}
		if has != r.needs[i] {
			need := r.needs[i]
			r.fail("account %s is signer=%t writable=%t, want signer=%t writable=%t", solana.Base58(key),
				has&sign == sign, has&write == write, need&sign == sign, need&write == write)
		}
	}
	return r.err
}
