package cosign

import (
	"encoding/binary"
	"testing"

	sdk "github.com/gagliardetto/solana-go"

	"blockdesk/internal/solana"
)

// FuzzShape: in every accepted message another library finds the desk only where it
// may be, and one transfer of its tokens, which is the shape's.
func FuzzShape(f *testing.F) {
	for _, b := range variants(f) {
		f.Add(built(f, b).Message())
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if s, err := CheckAtomic(message, deskAddress); err == nil {
			holdShape(t, message, atomicSigners, &s)
		}
		if s, err := CheckDelivery(message, deskAddress); err == nil {
			holdShape(t, message, deskSignsAlone, &s)
		}
	})
}

func holdShape(t *testing.T, message []byte, signers int, s *Summary) {
	raw := append([]byte{byte(signers)}, make([]byte, signers*signatureSize)...)
	d, err := sdk.TransactionFromBytes(append(raw, message...))
	if err != nil {
		t.Fatalf("another library cannot read it: %v", err)
	}
	if d.Message.NumLookups() != 0 || len(d.Signatures) != int(d.Message.Header.NumRequiredSignatures) {
		t.Fatalf("%d lookups, %d signatures for %d", d.Message.NumLookups(), len(d.Signatures), d.Message.Header.NumRequiredSignatures)
	}
	moves := 0
	for _, in := range d.Message.Instructions {
		metas, err := in.ResolveInstructionAccounts(&d.Message)
		if err != nil {
			t.Fatal(err)
		}
		program := d.Message.AccountKeys[in.ProgramIDIndex]
		for i, meta := range metas {
			if solana.Address(meta.PublicKey) != deskAddress {
				continue
			}
			switch {
			case program == sdk.SPLAssociatedTokenAccountProgramID && (i == 0 || i == 2): // pays, or is created for
			case program == sdk.SystemProgramID && i == 1: // is paid
			case (program == sdk.TokenProgramID || program == sdk.Token2022ProgramID) && i == 3 && in.Data[0] == 12:
				moves++
				to, err := solana.TokenAccount(s.Wallet, s.Base, solana.Address(program))
				if err != nil || solana.Address(metas[2].PublicKey) != to || solana.Address(metas[1].PublicKey) != s.Base ||
					binary.LittleEndian.Uint64(in.Data[1:]) != uint64(s.BaseAmount) {
					t.Fatalf("moved %v, the shape has %+v", metas, s)
				}
			default:
				t.Fatalf("the desk is account %d of %s", i, program)
			}
		}
	}
	if moves != 1 {
		t.Fatalf("the desk's tokens move %d times", moves)
	}
}
