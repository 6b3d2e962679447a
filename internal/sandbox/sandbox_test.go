package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/memo"
	"github.com/gagliardetto/solana-go/rpc"

	"blockdesk/internal/await"
)

func TestAirdropAndTransfer(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	from, to := newKey(t), newKey(t).PublicKey()
	if _, err := c.client.RequestAirdrop(c.ctx(), from.PublicKey(), 3*solana.LAMPORTS_PER_SOL, rpc.CommitmentFinalized); err != nil {
		t.Fatal(err)
	}
	tx := c.sign(c.blockhash().Blockhash, []solana.Instruction{transferSOL(solana.LAMPORTS_PER_SOL, from.PublicKey(), to)}, from)
	signature := c.mustSend(tx)
	if got, want := c.lamports(from.PublicKey()), 2*solana.LAMPORTS_PER_SOL-5000; got != want {
		t.Errorf("payer has %d, want %d", got, want)
	}
	if got := c.lamports(to); got != solana.LAMPORTS_PER_SOL {
		t.Errorf("receiver has %d", got)
	}

	// The levels of commitment, one after the other.
	for _, step := range []struct {
		slots         int
		level         rpc.ConfirmationStatusType
		confirmations *uint64
	}{{0, "processed", ptr(0)}, {1, "confirmed", ptr(1)}, {29, "confirmed", ptr(30)}, {1, "finalized", nil}} {
		c.advance(step.slots)
		got := c.status(signature)
		if got == nil || got.ConfirmationStatus != step.level || fmt.Sprint(deref(got.Confirmations)) != fmt.Sprint(deref(step.confirmations)) {
			t.Fatalf("after %d slots: %+v, want %s", step.slots, got, step.level)
		}
	}
	got := c.transaction(signature, &rpc.GetTransactionOpts{MaxSupportedTransactionVersion: ptr(0)})
	if got.Meta.Fee != 5000 || got.Meta.Err != nil || got.BlockTime == nil || got.Version != 0 {
		t.Errorf("got %+v", got)
	}
	decoded, err := got.Transaction.GetTransaction()
	if err != nil {
		t.Fatal(err)
	}
	if decoded.Signatures[0] != signature {
		t.Errorf("decoded %s", decoded.Signatures[0])
	}
}

func ptr(n uint64) *uint64 { return &n }

func deref(n *uint64) any {
	if n == nil {
		return nil
	}
	return *n
}

// TestTokenTransfers: both token programs, base64 and jsonParsed.
func TestTokenTransfers(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	desk := c.key(c.setup.Desk)
	to := newKey(t).PublicKey()
	for _, symbol := range []string{"SLUSD", "92C"} {
		const atoms = 1_234_567
		tx := c.sign(c.blockhash().Blockhash, []solana.Instruction{
			c.makeAccount(desk.PublicKey(), to, symbol),
			c.transferTokens(symbol, atoms, desk.PublicKey(), to),
		}, desk)
		signature := c.mustSend(tx)
		c.finalize()
		if got := c.tokens(c.account(to, symbol)); got != "1234567" {
			t.Errorf("%s: receiver has %s", symbol, got)
		}
		got := c.transaction(signature, &rpc.GetTransactionOpts{Encoding: solana.EncodingBase64, MaxSupportedTransactionVersion: ptr(0)})
		if len(got.Meta.PreTokenBalances) != 1 || len(got.Meta.PostTokenBalances) != 2 || len(got.Meta.InnerInstructions) != 1 {
			t.Fatalf("%s: %+v", symbol, got.Meta)
		}
		deltas := map[solana.PublicKey]string{}
		for _, b := range got.Meta.PostTokenBalances {
			if b.Mint.String() != c.setup.Mints[symbol].Address || b.ProgramId.String() != c.setup.Mints[symbol].Program {
				t.Errorf("%s: %+v", symbol, b)
			}
			deltas[*b.Owner] = b.UiTokenAmount.Amount
		}
		if want := map[solana.PublicKey]string{desk.PublicKey(): "99999998765433", to: "1234567"}; fmt.Sprint(deltas) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", symbol, deltas, want)
		}
	}
}

// TestTwoParties: delivery against payment in one version 0 transaction of two
// signers, the desk paying the fee, with a memo.
func TestTwoParties(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	desk, taker := c.key(c.setup.Desk), c.key(c.setup.Wallets[0])
	treasury := solana.MustPublicKeyFromBase58(c.setup.Treasury.Address)
	tx := c.sign(c.blockhash().Blockhash, []solana.Instruction{
		c.makeAccount(taker.PublicKey(), taker.PublicKey(), "92C"),
		c.transferTokens("USDC", 350_000, taker.PublicKey(), treasury),
		c.transferTokens("92C", 1_000_000, desk.PublicKey(), taker.PublicKey()),
		memo.NewMemoInstruction([]byte("claim:C42")).Build(),
	}, desk, taker)
	signature := c.mustSend(tx)
	c.finalize()
	for _, want := range []struct {
		account solana.PublicKey
		atoms   string
	}{
		{c.account(treasury, "USDC"), "350000"},
		{c.account(taker.PublicKey(), "USDC"), "4999999650000"},
		{c.account(taker.PublicKey(), "92C"), "1000000"},
		{c.account(desk.PublicKey(), "92C"), "99999999000000"},
	} {
		if got := c.tokens(want.account); got != want.atoms {
			t.Errorf("%s has %s, want %s", want.account, got, want.atoms)
		}
	}
	list, err := c.client.GetSignaturesForAddress(c.ctx(), c.account(treasury, "USDC"))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Signature != signature || list[0].Memo == nil || *list[0].Memo != "[9] claim:C42" {
		t.Errorf("got %+v", list)
	}
}

func TestPreflightFailure(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	taker := c.key(c.setup.Wallets[0])
	before := c.lamports(taker.PublicKey())
	treasury := solana.MustPublicKeyFromBase58(c.setup.Treasury.Address)
	short := c.sign(c.blockhash().Blockhash, []solana.Instruction{
		c.transferTokens("USDC", 1<<60, taker.PublicKey(), treasury),
	}, taker)
	_, err := c.send(short)
	got := refused(t, err)
	data, _ := json.Marshal(got.Data)
	if got.Code != -32002 || got.Message != "Transaction simulation failed: Error processing Instruction 0: custom program error: 0x1" ||
		!strings.Contains(string(data), `"InstructionError":[0,{"Custom":1}]`) || !strings.Contains(string(data), "insufficient funds") {
		t.Errorf("got %d %s %s", got.Code, got.Message, data)
	}
	if c.status(short.Signatures[0]) != nil || c.lamports(taker.PublicKey()) != before {
		t.Error("a transaction that failed in preflight left something behind")
	}

	// Without preflight the same bytes land, fail and cost their fee.
	if _, err := c.client.SendTransactionWithOpts(c.ctx(), short, rpc.TransactionOpts{SkipPreflight: true}); err != nil {
		t.Fatal(err)
	}
	if s := c.status(short.Signatures[0]); s == nil || s.Err == nil || c.lamports(taker.PublicKey()) != before-5000 {
		t.Errorf("got %+v", s)
	}

	short.Signatures[0][7] ^= 1
	_, err = c.send(short)
	if got := refused(t, err); got.Code != -32003 || got.Message != "Transaction signature verification failure" {
		t.Errorf("got %+v", got)
	}
}

func TestBlockhashExpiry(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	taker := c.key(c.setup.Wallets[0])
	hash := c.blockhash()
	pay := func(lamports uint64) *solana.Transaction {
		return c.sign(hash.Blockhash, []solana.Instruction{transferSOL(lamports, taker.PublicKey(), newKey(t).PublicKey())}, taker)
	}
	height := func() uint64 {
		got, err := c.client.GetBlockHeight(c.ctx(), rpc.CommitmentProcessed)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	c.advance(int(hash.LastValidBlockHeight - height()))
	if valid, err := c.client.IsBlockhashValid(c.ctx(), hash.Blockhash, rpc.CommitmentProcessed); err != nil || !valid.Value {
		t.Fatalf("at its last height: %+v, %v", valid, err)
	}
	opts := rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentProcessed}
	if _, err := c.client.SendTransactionWithOpts(c.ctx(), pay(solana.LAMPORTS_PER_SOL), opts); err != nil {
		t.Fatalf("at its last height: %v", err)
	}
	c.advance(1)
	if valid, err := c.client.IsBlockhashValid(c.ctx(), hash.Blockhash, rpc.CommitmentProcessed); err != nil || valid.Value {
		t.Fatalf("after its last height: %+v, %v", valid, err)
	}
	late := pay(2 * solana.LAMPORTS_PER_SOL)
	_, err := c.client.SendTransactionWithOpts(c.ctx(), late, opts)
	if got := refused(t, err); got.Code != -32002 || got.Message != "Transaction simulation failed: Blockhash not found" {
		t.Errorf("got %+v", got)
	}
	if _, err := c.client.SendTransactionWithOpts(c.ctx(), late, rpc.TransactionOpts{SkipPreflight: true}); err != nil {
		t.Fatal(err)
	}
	if s := c.status(late.Signatures[0]); s != nil {
		t.Errorf("an expired transaction landed: %+v", s)
	}
}

// TestDuplicate: one message runs once, however often it is sent.
func TestDuplicate(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	taker, to := c.key(c.setup.Wallets[0]), newKey(t).PublicKey()
	tx := c.sign(c.blockhash().Blockhash, []solana.Instruction{transferSOL(solana.LAMPORTS_PER_SOL, taker.PublicKey(), to)}, taker)
	c.mustSend(tx)
	_, err := c.send(tx)
	if got := refused(t, err); got.Code != -32002 || got.Message != "Transaction simulation failed: This transaction has already been processed" {
		t.Errorf("got %+v", got)
	}
	c.advance(10)
	if _, err := c.client.SendTransactionWithOpts(c.ctx(), tx, rpc.TransactionOpts{SkipPreflight: true}); err != nil {
		t.Fatal(err)
	}
	if got := c.lamports(to); got != solana.LAMPORTS_PER_SOL {
		t.Errorf("receiver has %d", got)
	}
}

// TestLostSends: an answer that is lost and a send that is lost look the same
// to the sender; the same bytes again settle either.
func TestLostSends(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	taker := c.key(c.setup.Wallets[0])
	pay := func(to solana.PublicKey) *solana.Transaction {
		return c.sign(c.blockhash().Blockhash, []solana.Instruction{transferSOL(solana.LAMPORTS_PER_SOL, taker.PublicKey(), to)}, taker)
	}
	landed := pay(newKey(t).PublicKey())
	c.control("sandbox_loseAnswers", map[string]int{"count": 1})
	if _, err := c.send(landed); err == nil {
		t.Error("a lost answer came")
	}
	if s := c.status(landed.Signatures[0]); s == nil || s.Err != nil {
		t.Errorf("it did not land: %+v", s)
	}

	to := newKey(t).PublicKey()
	dropped := pay(to)
	c.control("sandbox_dropSends", map[string]int{"count": 1})
	c.mustSend(dropped)
	if s := c.status(dropped.Signatures[0]); s != nil {
		t.Errorf("a dropped send landed: %+v", s)
	}
	c.mustSend(dropped)
	if got := c.lamports(to); got != solana.LAMPORTS_PER_SOL {
		t.Errorf("receiver has %d", got)
	}
}

// TestRestart: a chain with a state file continues where it was stopped.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep := func(o *Options) { o.SetupDir, o.StateFile = dir, filepath.Join(dir, "chain.state") }
	c := start(t, keep)
	taker, to := c.key(c.setup.Wallets[0]), newKey(t).PublicKey()
	tx := c.sign(c.blockhash().Blockhash, []solana.Instruction{transferSOL(solana.LAMPORTS_PER_SOL, taker.PublicKey(), to)}, taker)
	c.mustSend(tx)
	c.finalize()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, keep)
	if again.setup.GenesisHash != c.setup.GenesisHash || again.setup.Desk.Address != c.setup.Desk.Address {
		t.Error("another chain came back")
	}
	if got := again.lamports(to); got != solana.LAMPORTS_PER_SOL {
		t.Errorf("receiver has %d", got)
	}
	if got := again.tokens(again.account(solana.MustPublicKeyFromBase58(c.setup.Desk.Address), "92C")); got != "100000000000000" {
		t.Errorf("the setup was made twice: %s", got)
	}
	again.transaction(tx.Signatures[0], &rpc.GetTransactionOpts{MaxSupportedTransactionVersion: ptr(0)})
	_, err := again.send(tx)
	if got := refused(t, err); !strings.Contains(got.Message, "already been processed") {
		t.Errorf("got %+v", got)
	}
}

// TestKill: what was saved survives a crash, and the keys always do.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep := func(o *Options) { o.SetupDir, o.StateFile = dir, filepath.Join(dir, "chain.state") }
	c := start(t, keep)
	saved, lost := newKey(t).PublicKey(), newKey(t).PublicKey()
	taker := c.key(c.setup.Wallets[0])
	pay := func(to solana.PublicKey) {
		c.mustSend(c.sign(c.blockhash().Blockhash, []solana.Instruction{transferSOL(solana.LAMPORTS_PER_SOL, taker.PublicKey(), to)}, taker))
	}
	pay(saved)
	c.control("sandbox_saveState", nil)
	pay(lost)
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	again := start(t, keep)
	if got := again.lamports(saved); got != solana.LAMPORTS_PER_SOL {
		t.Errorf("saved: %d", got)
	}
	if got := again.lamports(lost); got != 0 {
		t.Errorf("lost: %d", got)
	}
}

// TestRun: a chain ends with the context of its Run, and says so when it ends
// by itself.
func TestRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := start(t, nil)
	cancel()
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
	crashed, err := Start(t.Context(), Options{Dir: ".", ManualSlots: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := crashed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := crashed.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "the chain ended") {
		t.Errorf("got %v", err)
	}
}

// TestStartFails: the server's own words are in the error.
func TestStartFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "damaged.state")
	if err := os.WriteFile(file, []byte("no chain"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Dir: ".", StateFile: file})
	if errors.Is(err, ErrUnavailable) {
		needChain(t, err)
	}
	if err == nil || !strings.Contains(err.Error(), "is not a whole state file") {
		t.Errorf("got %v", err)
	}
	for _, o := range []Options{{Dir: ".", Addr: "nonsense"}, {Dir: ".", SlotTime: time.Microsecond}} {
		if _, err := Start(t.Context(), o); err == nil {
			t.Errorf("%+v started", o)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got := Find(t.TempDir(), filepath.Join(here, "lib")); got != here {
		t.Errorf("got %q, want %q", got, here)
	}
	if got := Find(t.TempDir()); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestRefusals: the chain's errors reach the caller of a control.
func TestRefusals(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	var refused *Error
	if err := c.Call(c.ctx(), "sandbox_advance", map[string]int{"slots": -1}, nil); !errors.As(err, &refused) || refused.Code != -32602 {
		t.Errorf("got %v", err)
	}
	var status struct {
		Slot int `json:"slot"`
	}
	if err := c.Call(c.ctx(), "sandbox_status", nil, &status); err != nil || status.Slot < 500 {
		t.Errorf("%+v, %v", status, err)
	}
}

// TestTimer: slots pass by themselves, and the chain ends with its input.
func TestTimer(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) {
		o.ManualSlots, o.SlotTime, o.FinalizeSlots, o.BlockhashSlots = false, 5*time.Millisecond, 4, 100_000
	})
	taker := c.key(c.setup.Wallets[0])
	signature := c.mustSend(c.sign(c.blockhash().Blockhash, []solana.Instruction{
		transferSOL(solana.LAMPORTS_PER_SOL, taker.PublicKey(), newKey(t).PublicKey()),
	}, taker))
	await.True(t, "a finalized transfer", func() bool {
		s := c.status(signature)
		return s != nil && s.ConfirmationStatus == rpc.ConfirmationStatusFinalized
	})
}

func TestKeyFiles(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Seed = "keys" })
	info, err := os.Stat(filepath.Join(c.setup.dir, c.setup.Desk.Keypair))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("keypair has mode %o", info.Mode().Perm())
	}
	if got := c.key(c.setup.Desk).PublicKey().String(); got != c.setup.Desk.Address {
		t.Errorf("the desk's key is %s's, not %s's", got, c.setup.Desk.Address)
	}
	for name, text := range map[string]string{
		"text": "secret", "short": "[1,2,3]", "range": "[" + strings.Repeat("256,", 63) + "0]", "foreign": "[" + strings.Repeat("7,", 63) + "7]",
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadKey(file); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"no node":   {Dir: ".", Node: "no-such-node"},
		"no server": {Dir: t.TempDir()},
	} {
		if _, err := Start(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), ErrUnavailable.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
