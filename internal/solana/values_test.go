package solana_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"testing"

	sdk "github.com/gagliardetto/solana-go"

	"blockdesk/internal/solana"
)

func TestTexts(t *testing.T) {
	for name, c := range map[string][2]solana.Address{
		"system": {solana.SystemProgram, solana.Address(sdk.SystemProgramID)}, "token": {solana.TokenProgram, solana.Address(sdk.TokenProgramID)},
		"token-2022": {solana.Token2022Program, solana.Address(sdk.Token2022ProgramID)}, "memo": {solana.MemoProgram, solana.Address(sdk.MemoProgramID)},
		"ata": {solana.AssociatedTokenProgram, solana.Address(sdk.SPLAssociatedTokenAccountProgramID)}, "wrapped SOL": {solana.NativeMint, solana.Address(sdk.WrappedSol)},
		"compute budget": {solana.ComputeBudgetProgram, solana.Address(sdk.ComputeBudget)}, "clock": {solana.ClockSysvar, solana.Address(sdk.SysVarClockPubkey)},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %s, solana-go has %s", name, solana.Text(c[0]), solana.Text(c[1]))
		}
		back, err := solana.ParseAddress(solana.Text(c[0]))
		if err != nil || back != c[0] {
			t.Errorf("%s: read back %v, %v", name, back, err)
		}
	}
	signature := solana.Signature{0: 1, 63: 2}
	if back, err := solana.ParseSignature(signature.String()); err != nil || back != signature {
		t.Errorf("signature %v, %v", back, err)
	}
	hash := solana.Hash{31: 9}
	if back, err := solana.ParseHash(hash.String()); err != nil || back != hash {
		t.Errorf("hash %v, %v", back, err)
	}
	if !solana.IsTokenProgram(solana.Token2022Program) || solana.IsTokenProgram(solana.MemoProgram) || !solana.IsMemoProgram(solana.MemoV1Program) || solana.IsMemoProgram(solana.SystemProgram) {
		t.Error("a program is taken for another")
	}
}

func TestTextsRefused(t *testing.T) {
	for _, text := range []string{
		"", "1", strings.Repeat("1", 31), strings.Repeat("1", 33), strings.Repeat("1", 1<<20), strings.Repeat("z", 44), "0" + strings.Repeat("1", 31),
		" " + strings.Repeat("1", 31), strings.Repeat("1", 31) + "l", strings.Repeat("1", 30) + "é", solana.Text(solana.TokenProgram) + "1",
	} {
		if a, err := solana.ParseAddress(text); !errors.Is(err, solana.ErrText) {
			t.Errorf("%.50q: %v, %v", text, a, err)
		}
	}
	if _, err := solana.ParseSignature(solana.Text(solana.TokenProgram)); !errors.Is(err, solana.ErrText) {
		t.Errorf("an address as signature: %v", err)
	}
}

func wallet(i int) solana.Address {
	return sha256.Sum256(binary.LittleEndian.AppendUint32(nil, uint32(i)))
}

func TestDerived(t *testing.T) {
	var cache solana.Accounts
	for i := range 300 {
		for _, program := range []solana.Address{solana.TokenProgram, solana.Token2022Program} {
			got, err := cache.Of(wallet(i), wallet(-i), program)
			if err != nil {
				t.Fatal(err)
			}
			owner, mint := wallet(i), wallet(-i)
			want, bump, err := sdk.FindProgramAddress([][]byte{owner[:], program[:], mint[:]}, sdk.SPLAssociatedTokenAccountProgramID)
			if err != nil || got != solana.Address(want) {
				t.Fatalf("%d: %s, solana-go %s (%v)", i, solana.Text(got), want, err)
			}
			if _, b, _ := solana.Derive(solana.AssociatedTokenProgram, owner[:], program[:], mint[:]); b != bump {
				t.Fatalf("%d: bump %d, solana-go %d", i, b, bump)
			}
			if solana.OnCurve(got) || solana.OnCurve(wallet(i)) != sdk.IsOnCurve(owner[:]) {
				t.Fatalf("%d: on the curve or not?", i)
			}
			if again, err := cache.Of(wallet(i), wallet(-i), program); err != nil || again != got {
				t.Fatalf("%d: remembered %s, %v", i, solana.Text(again), err)
			}
		}
	}
	if cache.Len() != 600 {
		t.Errorf("%d remembered", cache.Len())
	}
	if _, _, err := solana.Derive(wallet(0), make([]byte, 33)); !errors.Is(err, solana.ErrSeeds) {
		t.Errorf("a long seed: %v", err)
	}
	if _, _, err := solana.Derive(wallet(0), make([][]byte, 16)...); !errors.Is(err, solana.ErrSeeds) {
		t.Errorf("16 seeds and the bump: %v", err)
	}
	if _, _, err := solana.Derive(wallet(0), make([][]byte, 15)...); err != nil {
		t.Errorf("15 seeds and the bump: %v", err)
	}
}

// The cache stays within its bound.
func TestAccountsBound(t *testing.T) {
	var cache solana.Accounts
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := range solana.MaxCachedAccounts + 1000 {
				if _, err := cache.Of(wallet(i), wallet(-1), solana.TokenProgram); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := cache.Len(); n > 2*solana.MaxCachedAccounts || n < solana.MaxCachedAccounts {
		t.Errorf("%d held", n)
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add(solana.Text(solana.TokenProgram))
	f.Add("11111111111111111111111111111111")
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := solana.ParseAddress(text); err == nil && solana.Text(a) != text {
			t.Errorf("%q is read as %q", text, solana.Text(a))
		}
		if s, err := solana.ParseSignature(text); err == nil && solana.Text(s) != text {
			t.Errorf("%q is read as %q", text, solana.Text(s))
		}
	})
}

func BenchmarkTokenAccount(b *testing.B) {
	b.Run("derived", func(b *testing.B) {
		for b.Loop() {
			if _, err := solana.TokenAccount(wallet(1), wallet(2), solana.TokenProgram); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("remembered", func(b *testing.B) {
		var cache solana.Accounts
		for b.Loop() {
			if _, err := cache.Of(wallet(1), wallet(2), solana.TokenProgram); err != nil {
				b.Fatal(err)
			}
		}
	})
}
