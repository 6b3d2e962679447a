package sandbox

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"testing"

	"github.com/gagliardetto/solana-go"
	ata "github.com/gagliardetto/solana-go/programs/associated-token-account"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/programs/token"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"

	"blockdesk/internal/runtest"
)

// chain is a running sandbox with its setup and a client that is not ours.
type chain struct {
	*Node
	t      testing.TB
	setup  *Setup
	client *rpc.Client
}

// start runs a chain whose slots are advanced by hand, unless o says otherwise.
func start(t testing.TB, change func(*Options)) *chain {
	t.Helper()
	o := Options{Dir: ".", ManualSlots: true, SetupDir: t.TempDir(), Stderr: os.Stderr}
	if change != nil {
		change(&o)
	}
	n, err := Start(t.Context(), o)
	if err != nil {
		needChain(t, err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	setup, err := ReadSetup(o.SetupDir)
	if err != nil {
		t.Fatal(err)
	}
	client := rpc.New(n.URL())
	t.Cleanup(func() { client.Close() })
	return &chain{Node: n, t: t, setup: setup, client: client}
}

// needChain ends a test that got err instead of a chain: it skips the test where a
// chain cannot run here, and else fails it.
func needChain(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	runtest.SkipMissing(t, err.Error(), "make sandbox (needs Node 20 and npm)")
}

func (c *chain) ctx() context.Context { return c.t.Context() }

func (c *chain) control(method string, params any) {
	c.t.Helper()
	if err := c.Call(c.ctx(), method, params, nil); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chain) advance(slots int) {
	c.t.Helper()
	c.control("sandbox_advance", map[string]int{"slots": slots})
}

// finalize moves on until what has landed is finalized.
func (c *chain) finalize() { c.t.Helper(); c.advance(31) }

func (c *chain) key(p Party) solana.PrivateKey {
	c.t.Helper()
	key, err := c.setup.Key(p)
	if err != nil {
		c.t.Fatal(err)
	}
	return solana.PrivateKey(key)
}

func (c *chain) blockhash() *rpc.LatestBlockhashResult {
	c.t.Helper()
	got, err := c.client.GetLatestBlockhash(c.ctx(), rpc.CommitmentFinalized)
	if err != nil {
		c.t.Fatal(err)
	}
	return got.Value
}

func (c *chain) sign(hash solana.Hash, instructions []solana.Instruction, signers ...solana.PrivateKey) *solana.Transaction {
	c.t.Helper()
	return signed(c.t, hash, instructions, signers...)
}

// signed builds a version 0 transaction that the first signer pays for.
func signed(t testing.TB, hash solana.Hash, instructions []solana.Instruction, signers ...solana.PrivateKey) *solana.Transaction {
	t.Helper()
	tx, err := solana.NewTransaction(instructions, hash,
		solana.TransactionPayer(signers[0].PublicKey()), solana.TransactionMessageVersion(solana.MessageVersionV0))
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.Sign(func(key solana.PublicKey) *solana.PrivateKey {
		for i := range signers {
			if signers[i].PublicKey() == key {
				return &signers[i]
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func (c *chain) send(tx *solana.Transaction) (solana.Signature, error) {
	return c.client.SendTransactionWithOpts(c.ctx(), tx, rpc.TransactionOpts{})
}

func (c *chain) mustSend(tx *solana.Transaction) solana.Signature {
	c.t.Helper()
	signature, err := c.send(tx)
	if err != nil {
		c.t.Fatal(err)
	}
	return signature
}

func (c *chain) status(signature solana.Signature) *rpc.SignatureStatusesResult {
	c.t.Helper()
	got, err := c.client.GetSignatureStatuses(c.ctx(), false, signature)
	if errors.Is(err, rpc.ErrNotFound) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return got.Value[0]
}

func (c *chain) lamports(key solana.PublicKey) uint64 {
	c.t.Helper()
	got, err := c.client.GetBalance(c.ctx(), key, rpc.CommitmentProcessed)
	if err != nil {
		c.t.Fatal(err)
	}
	return got.Value
}

func (c *chain) tokens(account solana.PublicKey) string {
	c.t.Helper()
	got, err := c.client.GetTokenAccountBalance(c.ctx(), account, rpc.CommitmentProcessed)
	if err != nil {
		c.t.Fatal(err)
	}
	return got.Value.Amount
}

func (c *chain) transaction(signature solana.Signature, opts *rpc.GetTransactionOpts) *rpc.GetTransactionResult {
	c.t.Helper()
	got, err := c.client.GetTransaction(c.ctx(), signature, opts)
	if err != nil {
		c.t.Fatal(err)
	}
	return got
}

func newKey(t testing.TB) solana.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return solana.PrivateKey(key)
}

func transferSOL(lamports uint64, from, to solana.PublicKey) solana.Instruction {
	return system.NewTransferInstruction(lamports, from, to).Build()
}

// account is a wallet's associated token account for a mint of the setup.
func (c *chain) account(wallet solana.PublicKey, symbol string) solana.PublicKey {
	c.t.Helper()
	m := c.setup.Mints[symbol]
	found, _, err := solana.FindProgramAddress([][]byte{
		wallet[:], solana.MustPublicKeyFromBase58(m.Program).Bytes(), solana.MustPublicKeyFromBase58(m.Address).Bytes(),
	}, solana.SPLAssociatedTokenAccountProgramID)
	if err != nil {
		c.t.Fatal(err)
	}
	return found
}

func (c *chain) makeAccount(payer, wallet solana.PublicKey, symbol string) solana.Instruction {
	m := c.setup.Mints[symbol]
	return ata.NewCreateIdempotentInstructionWithTokenProgram(payer, wallet,
		solana.MustPublicKeyFromBase58(m.Address), solana.MustPublicKeyFromBase58(m.Program)).Build()
}

func (c *chain) transferTokens(symbol string, atoms uint64, from, to solana.PublicKey) solana.Instruction {
	m := c.setup.Mints[symbol]
	mint := solana.MustPublicKeyFromBase58(m.Address)
	source, destination := c.account(from, symbol), c.account(to, symbol)
	transfer := token.NewTransferCheckedInstruction(atoms, m.Decimals, source, mint, destination, from, nil).Build()
	data, err := transfer.Data()
	if err != nil {
		c.t.Fatal(err)
	}
	// Token-2022 takes the same accounts and bytes.
	return solana.NewInstruction(solana.MustPublicKeyFromBase58(m.Program), transfer.Accounts(), data)
}

// refused returns the chain's error, and fails the test where there is none.
func refused(t testing.TB, err error) *jsonrpc.RPCError {
	t.Helper()
	var got *jsonrpc.RPCError
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want an error of the chain", err)
	}
	return got
}
