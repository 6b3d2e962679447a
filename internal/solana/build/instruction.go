package build

import (
	"cmp"
	"fmt"
	"slices"

	sdk "github.com/gagliardetto/solana-go"
	ata "github.com/gagliardetto/solana-go/programs/associated-token-account"
	computebudget "github.com/gagliardetto/solana-go/programs/compute-budget"
	"github.com/gagliardetto/solana-go/programs/memo"
	"github.com/gagliardetto/solana-go/programs/system"
	sdktoken "github.com/gagliardetto/solana-go/programs/token"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/token"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

func meta(a solana.Address) *sdk.AccountMeta { return sdk.Meta(sdk.PublicKey(a)) }

func transferLamports(from, to solana.Address, amount market.Amount, references []solana.Address) sdk.Instruction {
	t := system.NewTransferInstruction(uint64(amount), sdk.PublicKey(from), sdk.PublicKey(to))
	t.AccountMetaSlice = withReferences(t.AccountMetaSlice, references)
	return t.Build()
}

func transferTokens(mint token.Checked, from, to, owner solana.Address, amount market.Amount, references []solana.Address) sdk.Instruction {
	t := sdktoken.NewTransferCheckedInstruction(uint64(amount), mint.Decimals(),
		sdk.PublicKey(from), sdk.PublicKey(mint.Address()), sdk.PublicKey(to), sdk.PublicKey(owner), nil)
	t.Accounts = withReferences(t.Accounts, references)
	return t.Build().SetProgramID(sdk.PublicKey(mint.Program()))
}

// withReferences appends reference keys as Solana Pay does: read-only, after the accounts
// that the program uses.
func withReferences(accounts sdk.AccountMetaSlice, references []solana.Address) sdk.AccountMetaSlice {
	for _, r := range references {
		accounts = append(accounts, meta(r))
	}
	return accounts
}

// createTokenAccount creates an associated token account unless it exists. The
// library's builder would derive the account's address again, without our cache.
func createTokenAccount(mint token.Checked, payer, wallet, at solana.Address) sdk.Instruction {
	return sdk.NewInstruction(sdk.SPLAssociatedTokenAccountProgramID, sdk.AccountMetaSlice{
		meta(payer).WRITE().SIGNER(), meta(at).WRITE(), meta(wallet), meta(mint.Address()), meta(solana.SystemProgram), meta(mint.Program()),
	}, []byte{ata.Instruction_CreateIdempotent})
}

func memoOf(text string) sdk.Instruction { return memo.NewMemoInstruction([]byte(text)).Build() }

func (b Budget) instructions() []sdk.Instruction {
	return []sdk.Instruction{
		computebudget.NewSetComputeUnitLimitInstruction(b.Units).Build(),
		computebudget.NewSetComputeUnitPriceInstruction(b.MicroLamports).Build(),
	}
}

// compile numbers the accounts of a version 0 message without tables: the fee payer
// first, then signers before others and writable before read-only, each in order of
// first appearance, so that the same values give the same bytes. It is our own because
// solana-go's NewTransaction puts the programs behind all other keys, which would
// change the bytes, and modifies its arguments.
func compile(feePayer solana.Address, blockhash solana.Hash, list []sdk.Instruction) (*Unsigned, error) {
	used := append(make([]sdk.AccountMeta, 0, 16), *meta(feePayer).WRITE().SIGNER())
	accounts := make([][]*sdk.AccountMeta, len(list))
	for i, in := range list {
		accounts[i] = in.Accounts()
		for _, a := range accounts[i] {
			used = addAccount(used, *a)
		}
		used = addAccount(used, sdk.AccountMeta{PublicKey: in.ProgramID()})
	}
	slices.SortStableFunc(used, func(a, b sdk.AccountMeta) int { return cmp.Compare(keyClass(a), keyClass(b)) })
	m := tx.Message{Version: tx.V0, Blockhash: blockhash, Keys: make([]solana.Address, len(used)), Instructions: make([]tx.Instruction, len(list))}
	for i, a := range used {
		m.Keys[i] = solana.Address(a.PublicKey)
		count(&m.Header, a)
	}
	for i, in := range list {
		data, err := in.Data()
		if err != nil {
			return nil, fmt.Errorf("build: instruction %d: %w", i, err)
		}
		out := &m.Instructions[i]
		out.Program, out.Data = keyIndex(m.Keys, in.ProgramID()), data
		out.Accounts = make([]uint8, len(accounts[i]))
		for j, a := range accounts[i] {
			out.Accounts[j] = keyIndex(m.Keys, a.PublicKey)
		}
	}
	return seal(&m)
}

// keyClass returns the position of an account's class among a message's keys: signers
// come before others, writable keys before read-only ones.
func keyClass(a sdk.AccountMeta) int {
	n := 0
	if !a.IsSigner {
		n += 2
	}
	if !a.IsWritable {
		n++
	}
	return n
}

func count(h *tx.Header, a sdk.AccountMeta) {
	switch {
	case a.IsSigner && a.IsWritable:
		h.Required++
	case a.IsSigner:
		h.Required++
		h.ReadonlySigned++
	case !a.IsWritable:
		h.ReadonlyUnsigned++
	}
}

// addAccount adds an account, or adds the access that it needs to its earlier entry.
func addAccount(used []sdk.AccountMeta, a sdk.AccountMeta) []sdk.AccountMeta {
	for i := range used {
		if used[i].PublicKey == a.PublicKey {
			used[i].IsSigner = used[i].IsSigner || a.IsSigner
			used[i].IsWritable = used[i].IsWritable || a.IsWritable
			return used
		}
	}
	return append(used, a)
}

// keyIndex returns the index of a key, which addAccount has added.
func keyIndex(keys []solana.Address, key sdk.PublicKey) uint8 {
	for i := range keys {
		if keys[i] == solana.Address(key) {
			return uint8(i)
		}
	}
	panic(fmt.Sprintf("build: key %s is not in the message", key))
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
