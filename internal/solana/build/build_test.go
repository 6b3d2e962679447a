package build_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	ata "github.com/gagliardetto/solana-go/programs/associated-token-account"
	computebudget "github.com/gagliardetto/solana-go/programs/compute-budget"
	"github.com/gagliardetto/solana-go/programs/system"
	sdktoken "github.com/gagliardetto/solana-go/programs/token"
	"pgregory.net/rapid"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/token"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

var update = flag.Bool("update", false, "write the golden bytes anew")

var (
	taker     = solana.Address{1, 1}
	desk      = solana.Address{2, 2}
	treasury  = solana.Address{3, 3}
	reference = solana.Address{4, 4}
	blockhash = solana.Hash{5, 5}
)

const claim = "C0000000000017"

func mint(t testing.TB, n byte, program solana.Address, decimals uint8) token.Checked {
	t.Helper()
	m := token.Mint{Address: solana.Address{n, n}, Program: program, Decimals: decimals}
	c, err := m.Check(0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func common() build.Common {
	return build.Common{Blockhash: blockhash, Budget: build.Budget{Units: 120_000, MicroLamports: 50_000}, Memo: claim, Reference: reference}
}

func payment(t testing.TB) build.Payment {
	return build.Payment{
		Common: common(), Wallet: taker,
		Leg: build.Leg{Rail: market.RailUSDC, Mint: mint(t, 6, solana.TokenProgram, 6), Amount: 250_000_000, To: treasury},
	}
}

func atomic(t testing.TB) build.Atomic {
	a := build.Atomic{
		Common: common(), Taker: taker, Desk: desk,
		Payment: build.Leg{Rail: market.RailUSDC, Mint: mint(t, 6, solana.TokenProgram, 6), Amount: 250_000_000, To: treasury},
		Base:    mint(t, 7, solana.TokenProgram, 9), BaseAmount: 251_256_281_407,
		FeePayer: build.Desk, RentPayer: build.Taker,
	}
	a.Reference = solana.Address{}
	return a
}

func delivery(t testing.TB) build.Delivery {
	return build.Delivery{Common: common(), Desk: desk, Wallet: taker, Base: mint(t, 7, solana.TokenProgram, 9), Amount: 251_256_281_407}
}

// builder is one of the three.
type builder interface {
	Build(*solana.AccountCache) (*build.Unsigned, error)
}

// golden are the transactions whose bytes are frozen.
func golden(t testing.TB) map[string]builder {
	t.Helper()
	usdc, sol := payment(t), payment(t)
	sol.Leg = build.Leg{Rail: market.RailSOL, Amount: 1_666_666_667, To: treasury}
	dvp, dvpTaker, dvpSOL, dvp2022, dvpReference := atomic(t), atomic(t), atomic(t), atomic(t), atomic(t)
	dvpTaker.FeePayer = build.Taker
	dvpSOL.Payment = sol.Leg
	dvp2022.Base = mint(t, 8, solana.Token2022Program, 9)
	dvp2022.RentPayer = build.Desk
	dvpReference.Reference = reference
	due, owed2022 := delivery(t), delivery(t)
	owed2022.Base = mint(t, 8, solana.Token2022Program, 6)
	return map[string]builder{
		"payment_usdc": &usdc, "payment_sol": &sol,
		"atomic_usdc": &dvp, "atomic_usdc_taker_pays_fee": &dvpTaker, "atomic_sol": &dvpSOL, "atomic_token2022": &dvp2022, "atomic_reference": &dvpReference,
		"delivery": &due, "delivery_token2022": &owed2022,
	}
}

// TestGolden: the bytes, and what solana-go reads in them.
func TestGolden(t *testing.T) {
	for name, b := range golden(t) {
		u, err := b.Build(&solana.AccountCache{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := fmt.Sprintf("%d bytes, message %s\n%x\n%s", len(u.Bytes()), u.Hash(), u.Bytes(), describe(t, u.Bytes()))
		file := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != text {
			t.Errorf("%s (%v):\n%s\nwant:\n%s", name, err, text, want)
		}
		unsigned(t, name, u)
	}
}

// unsigned checks what the package promises of every transaction.
func unsigned(t testing.TB, name string, u *build.Unsigned) {
	t.Helper()
	d, err := tx.Decode(u.Bytes())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if d.Message.Version != tx.V0 || d.Message.UsesLookups() || d.Message.UsesNonce() || !bytes.Equal(d.Signed, u.Message()) || tx.MessageHash(d.Signed) != u.Hash() {
		t.Errorf("%s: version %v, lookups %t, nonce %t", name, d.Message.Version, d.Message.UsesLookups(), d.Message.UsesNonce())
	}
	if len(d.Signatures) != len(u.Signers()) {
		t.Errorf("%s: %d slots, %d signers", name, len(d.Signatures), len(u.Signers()))
	}
	for i, s := range d.Signatures {
		if s != (solana.Signature{}) || u.Signers()[i] != d.Message.Keys[i] {
			t.Errorf("%s: slot %d is %s of %s", name, i, s, solana.Base58(u.Signers()[i]))
		}
	}
}

// describe decodes a transaction's instructions with solana-go.
func describe(t testing.TB, raw []byte) string {
	t.Helper()
	d, err := sdk.TransactionFromBytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i, key := range d.Message.AccountKeys {
		w, err := d.Message.IsWritable(key)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%2d %s signer=%t writable=%t\n", i, key, d.Message.IsSigner(key), w)
	}
	for _, in := range d.Message.Instructions {
		metas, err := in.ResolveInstructionAccounts(&d.Message)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %v\n", report(t, d.Message.AccountKeys[in.ProgramIDIndex], metas, in.Data), in.Accounts)
	}
	return b.String()
}

func report(t testing.TB, program sdk.PublicKey, metas []*sdk.AccountMeta, data []byte) string {
	t.Helper()
	var v any
	var err error
	switch program {
	case sdk.ComputeBudget:
		var in *computebudget.Instruction
		if in, err = computebudget.DecodeInstruction(metas, data); err == nil {
			v = in.Impl
		}
	case sdk.SystemProgramID:
		var in *system.Instruction
		if in, err = system.DecodeInstruction(metas, data); err == nil {
			return fmt.Sprintf("system transfer of %d", *in.Impl.(*system.Transfer).Lamports)
		}
	case sdk.TokenProgramID, sdk.Token2022ProgramID:
		var in *sdktoken.Instruction
		if in, err = sdktoken.DecodeInstruction(metas, data); err == nil {
			transfer := in.Impl.(*sdktoken.TransferChecked)
			return fmt.Sprintf("%s transfer of %d with %d decimals", program, *transfer.Amount, *transfer.Decimals)
		}
	case sdk.SPLAssociatedTokenAccountProgramID:
		var in *ata.Instruction
		if in, err = ata.DecodeInstruction(metas, data); err == nil {
			v = in.Impl
		}
	case sdk.MemoProgramID:
		return fmt.Sprintf("memo %q", data)
	default:
		t.Fatalf("program %s", program)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%T %x", v, data)
}

func TestSizes(t *testing.T) {
	for name, most := range map[string]int{"payment_usdc": 480, "payment_sol": 400, "atomic_usdc": 670, "atomic_sol": 610, "delivery": 530} {
		u, err := golden(t)[name].Build(&solana.AccountCache{})
		if err != nil || len(u.Bytes()) > most {
			t.Errorf("%s: %d bytes, %v; want at most %d", name, len(u.Bytes()), err, most)
		}
	}
}

func TestPaymentRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(p *build.Payment)
		want  error
	}{
		"no blockhash":        {func(p *build.Payment) { p.Blockhash = solana.Hash{} }, build.ErrTerms},
		"no budget":           {func(p *build.Payment) { p.Budget = build.Budget{} }, build.ErrBudget},
		"too many units":      {func(p *build.Payment) { p.Budget.Units = build.MaxUnits + 1 }, build.ErrBudget},
		"dear":                {func(p *build.Payment) { p.Budget.MicroLamports = 8_333_334 }, build.ErrBudget},
		"dear beyond words":   {func(p *build.Payment) { p.Budget.MicroLamports = 1<<64 - 1 }, build.ErrBudget},
		"no memo":             {func(p *build.Payment) { p.Memo = "" }, build.ErrMemo},
		"long memo":           {func(p *build.Payment) { p.Memo = strings.Repeat("x", build.MaxMemo+1) }, build.ErrMemo},
		"memo of two lines":   {func(p *build.Payment) { p.Memo = "a\nb" }, build.ErrMemo},
		"memo beyond ASCII":   {func(p *build.Payment) { p.Memo = "é" }, build.ErrMemo},
		"no reference":        {func(p *build.Payment) { p.Reference = solana.Address{} }, build.ErrTerms},
		"reference is payer":  {func(p *build.Payment) { p.Reference = p.Wallet }, build.ErrTerms},
		"reference is payee":  {func(p *build.Payment) { p.Reference = treasury }, build.ErrTerms},
		"no wallet":           {func(p *build.Payment) { p.Wallet = solana.Address{} }, build.ErrTerms},
		"no payee":            {func(p *build.Payment) { p.Leg.To = solana.Address{} }, build.ErrTerms},
		"paid to itself":      {func(p *build.Payment) { p.Leg.To = p.Wallet }, build.ErrTerms},
		"nothing":             {func(p *build.Payment) { p.Leg.Amount = 0 }, build.ErrTerms},
		"no mint":             {func(p *build.Payment) { p.Leg.Mint = token.Checked{} }, build.ErrTerms},
		"mint on SOL":         {func(p *build.Payment) { p.Leg.Rail = market.RailSOL }, build.ErrTerms},
		"no rail":             {func(p *build.Payment) { p.Leg.Rail = 0 }, build.ErrUnknown},
		"rail of another age": {func(p *build.Payment) { p.Leg.Rail = 3 }, build.ErrUnknown},
	} {
		p := payment(t)
		c.spoil(&p)
		if u, err := p.Build(&solana.AccountCache{}); !errors.Is(err, c.want) || u != nil {
			t.Errorf("%s: %v, %v", name, u, err)
		}
	}
	p := payment(t)
	p.Budget.MicroLamports = 8_333_333
	if fee, err := p.Budget.PriorityLamports(); err != nil || fee != build.MaxPriorityLamports {
		t.Errorf("the dearest budget: %d, %v", fee, err)
	}
}

func TestAtomicRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(a *build.Atomic)
		want  error
	}{
		"no blockhash":           {func(a *build.Atomic) { a.Blockhash = solana.Hash{} }, build.ErrTerms},
		"no fee payer":           {func(a *build.Atomic) { a.FeePayer = 0 }, build.ErrUnknown},
		"other fee payer":        {func(a *build.Atomic) { a.FeePayer = 3 }, build.ErrUnknown},
		"no rent payer":          {func(a *build.Atomic) { a.RentPayer = 0 }, build.ErrUnknown},
		"desk is taker":          {func(a *build.Atomic) { a.Taker = a.Desk }, build.ErrTerms},
		"no desk":                {func(a *build.Atomic) { a.Desk = solana.Address{} }, build.ErrUnknown},
		"no taker":               {func(a *build.Atomic) { a.Taker = solana.Address{}; a.RentPayer = build.Desk }, build.ErrTerms},
		"taker is treasury":      {func(a *build.Atomic) { a.Payment.To = a.Taker }, build.ErrTerms},
		"nothing delivered":      {func(a *build.Atomic) { a.BaseAmount = 0 }, build.ErrTerms},
		"no base":                {func(a *build.Atomic) { a.Base = token.Checked{} }, build.ErrTerms},
		"base is the payment":    {func(a *build.Atomic) { a.Base = a.Payment.Mint }, build.ErrTerms},
		"nothing paid":           {func(a *build.Atomic) { a.Payment.Amount = 0 }, build.ErrTerms},
		"reference is the desk":  {func(a *build.Atomic) { a.Reference = a.Desk }, build.ErrTerms},
		"reference is the taker": {func(a *build.Atomic) { a.Reference = a.Taker }, build.ErrTerms},
		"dear":                   {func(a *build.Atomic) { a.Budget.MicroLamports = 1 << 60 }, build.ErrBudget},
		"memo":                   {func(a *build.Atomic) { a.Memo = "" }, build.ErrMemo},
	} {
		a := atomic(t)
		c.spoil(&a)
		if u, err := a.Build(&solana.AccountCache{}); !errors.Is(err, c.want) || u != nil {
			t.Errorf("%s: %v, %v", name, u, err)
		}
	}
}

func TestDeliveryRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(d *build.Delivery)
		want  error
	}{
		"no blockhash":            {func(d *build.Delivery) { d.Blockhash = solana.Hash{} }, build.ErrTerms},
		"no memo":                 {func(d *build.Delivery) { d.Memo = "" }, build.ErrMemo},
		"dear":                    {func(d *build.Delivery) { d.Budget.MicroLamports = 1 << 60 }, build.ErrBudget},
		"no desk":                 {func(d *build.Delivery) { d.Desk = solana.Address{} }, build.ErrTerms},
		"no wallet":               {func(d *build.Delivery) { d.Wallet = solana.Address{} }, build.ErrTerms},
		"desk is wallet":          {func(d *build.Delivery) { d.Wallet = d.Desk }, build.ErrTerms},
		"nothing":                 {func(d *build.Delivery) { d.Amount = 0 }, build.ErrTerms},
		"no base":                 {func(d *build.Delivery) { d.Base = token.Checked{} }, build.ErrTerms},
		"no reference":            {func(d *build.Delivery) { d.Reference = solana.Address{} }, build.ErrTerms},
		"reference is the desk":   {func(d *build.Delivery) { d.Reference = d.Desk }, build.ErrTerms},
		"reference is the wallet": {func(d *build.Delivery) { d.Reference = d.Wallet }, build.ErrTerms},
	} {
		d := delivery(t)
		c.spoil(&d)
		if u, err := d.Build(&solana.AccountCache{}); !errors.Is(err, c.want) || u != nil {
			t.Errorf("%s: %v, %v", name, u, err)
		}
	}
}

// TestAnyDelivery: the desk signs alone, pays all, and its tokens move once, to
// the wallet's own account.
func TestAnyDelivery(t *testing.T) {
	var accounts solana.AccountCache
	rapid.Check(t, func(rt *rapid.T) {
		d := delivery(t)
		d.Wallet = solana.Address(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(rt, "wallet"))
		d.Amount = market.Amount(rapid.Uint64Min(1).Draw(rt, "amount"))
		if rapid.Bool().Draw(rt, "Token-2022") {
			d.Base = mint(t, 8, solana.Token2022Program, 6)
		}
		u, err := d.Build(&accounts)
		if err != nil {
			rt.Fatal(err)
		}
		unsigned(t, "any", u)
		if len(u.Signers()) != 1 || u.Signers()[0] != desk {
			rt.Fatalf("signers %v", u.Signers())
		}
		target, err := solana.TokenAccount(d.Wallet, d.Base.Address(), d.Base.Program())
		if err != nil {
			rt.Fatal(err)
		}
		m, moves := decodeMessage(rt, u), 0
		for _, in := range m.Instructions {
			if m.ProgramOf(&in) == d.Base.Program() {
				moves++
				if m.Keys[in.Accounts[2]] != target || m.Keys[in.Accounts[3]] != desk {
					rt.Fatalf("moved to %s by %s", solana.Base58(m.Keys[in.Accounts[2]]), solana.Base58(m.Keys[in.Accounts[3]]))
				}
			}
		}
		if moves != 1 {
			rt.Fatalf("tokens move %d times", moves)
		}
	})
}

func decodeMessage(t *rapid.T, u *build.Unsigned) *tx.Message {
	m, err := tx.DecodeMessage(u.Message())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestAnyTerms: whatever the values, what is built keeps the promises and is the
// same again.
func TestAnyTerms(t *testing.T) {
	key := func(t *rapid.T, name string) solana.Address {
		return solana.Address(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, name))
	}
	var accounts solana.AccountCache
	rapid.Check(t, func(rt *rapid.T) {
		a := atomic(t)
		a.Taker, a.Desk, a.Payment.To, a.Reference = key(rt, "taker"), key(rt, "desk"), key(rt, "treasury"), key(rt, "reference")
		a.Payment.Amount, a.BaseAmount = market.Amount(rapid.Uint64Min(1).Draw(rt, "amount")), market.Amount(rapid.Uint64Min(1).Draw(rt, "base"))
		a.FeePayer, a.RentPayer = build.Party(rapid.IntRange(1, 2).Draw(rt, "fee")), build.Party(rapid.IntRange(1, 2).Draw(rt, "rent"))
		if rapid.Bool().Draw(rt, "SOL") {
			a.Payment = build.Leg{Rail: market.RailSOL, Amount: a.Payment.Amount, To: a.Payment.To}
		}
		if rapid.Bool().Draw(rt, "desk is treasury") {
			a.Payment.To = a.Desk
		}
		if rapid.Bool().Draw(rt, "Token-2022") {
			a.Base = mint(t, 8, solana.Token2022Program, 6)
		}
		u, err := a.Build(&accounts)
		if err != nil {
			rt.Fatal(err)
		}
		unsigned(t, "any", u)
		again, err := a.Build(&solana.AccountCache{})
		if err != nil || !bytes.Equal(again.Bytes(), u.Bytes()) {
			rt.Fatalf("other bytes the second time (%v)", err)
		}
		d, _ := tx.Decode(u.Bytes())
		if len(d.Message.Signers()) != 2 || d.Message.FeePayer() != map[build.Party]solana.Address{build.Desk: a.Desk, build.Taker: a.Taker}[a.FeePayer] {
			rt.Fatalf("signers %v", d.Message.Signers())
		}
		deskMoves := 0
		slot, _ := d.Message.Slot(a.Desk)
		for _, in := range d.Message.Instructions {
			if d.Message.ProgramOf(&in) == a.Base.Program() && len(in.Accounts) > 3 && int(in.Accounts[3]) == slot {
				deskMoves++
			}
		}
		if deskMoves != 1 {
			rt.Fatalf("the desk's tokens move %d times", deskMoves)
		}
		describe(t, u.Bytes())
	})
}

func BenchmarkBuild(b *testing.B) {
	for _, name := range []string{"payment_usdc", "atomic_usdc", "atomic_sol", "delivery"} {
		b.Run(name, func(b *testing.B) {
			what, accounts := golden(b)[name], &solana.AccountCache{}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := what.Build(accounts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
