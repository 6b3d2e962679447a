package solana_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oasisprotocol/curve25519-voi/curve"
	"pgregory.net/rapid"

	"blockdesk/internal/solana"
)

func TestTexts(t *testing.T) {
	for text, want := range map[string]solana.Address{
		"11111111111111111111111111111111":             solana.SystemProgram,
		"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA":  solana.TokenProgram,
		"TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb":  solana.Token2022Program,
		"MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr":  solana.MemoProgram,
		"Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo":  solana.MemoV1Program,
		"ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL": solana.AssociatedTokenProgram,
		"So11111111111111111111111111111111111111112":  solana.NativeMint,
		"ComputeBudget111111111111111111111111111111":  solana.ComputeBudgetProgram,
		"SysvarC1ock11111111111111111111111111111111":  solana.ClockSysvar,
	} {
		if got := solana.Base58(want); got != text {
			t.Errorf("%s is written %s", text, got)
		}
		if back, err := solana.ParseAddress(text); err != nil || back != want {
			t.Errorf("%s: read %v, %v", text, back, err)
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
		" " + strings.Repeat("1", 31), strings.Repeat("1", 31) + "l", strings.Repeat("1", 30) + "é", solana.Base58(solana.TokenProgram) + "1",
	} {
		if a, err := solana.ParseAddress(text); !errors.Is(err, solana.ErrText) {
			t.Errorf("%.50q: %v, %v", text, a, err)
		}
	}
	if _, err := solana.ParseSignature(solana.Base58(solana.TokenProgram)); !errors.Is(err, solana.ErrText) {
		t.Errorf("an address as signature: %v", err)
	}
}

func wallet(i int) solana.Address {
	return sha256.Sum256(binary.LittleEndian.AppendUint32(nil, uint32(i)))
}

// derive is the rule of the runtime, written out, beside solana-go's.
func derive(program solana.Address, seeds ...[]byte) (solana.Address, uint8) {
	for bump := uint8(255); bump > 0; bump-- {
		h := sha256.New()
		for _, s := range append(slices.Clone(seeds), []byte{bump}, program[:], []byte("ProgramDerivedAddress")) {
			h.Write(s)
		}
		if a := solana.Address(h.Sum(nil)); !onCurve(a) {
			return a, bump
		}
	}
	return solana.Address{}, 0
}

func onCurve(a solana.Address) bool {
	compressed := curve.CompressedEdwardsY(a)
	var p curve.EdwardsPoint
	_, err := p.SetCompressedY(&compressed)
	return err == nil
}

// encode is base58 by its definition, in big numbers.
func encode(data []byte) string {
	const digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	n, rest := new(big.Int).SetBytes(data), new(big.Int)
	var text []byte
	for base := big.NewInt(58); n.Sign() > 0; {
		n.DivMod(n, base, rest)
		text = append(text, digits[rest.Int64()])
	}
	for i := 0; i < len(data) && data[i] == 0; i++ {
		text = append(text, digits[0])
	}
	slices.Reverse(text)
	return string(text)
}

// TestTextsByDefinition holds the library's texts, which are written and read by
// assembly where the processor has it, to base58's definition.
func TestTextsByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s solana.Signature
		zeros := rapid.IntRange(0, 64).Draw(t, "zeros")
		copy(s[zeros:], rapid.SliceOfN(rapid.Byte(), 64, 64).Draw(t, "bytes"))
		a := solana.Address(s[32:])
		if got, want := solana.Base58(s), encode(s[:]); got != want {
			t.Fatalf("%x is %s, want %s", s, got, want)
		}
		if got, want := solana.Base58(a), encode(a[:]); got != want {
			t.Fatalf("%x is %s, want %s", a, got, want)
		}
		if back, err := solana.ParseSignature(encode(s[:])); err != nil || back != s {
			t.Fatalf("%x reads %x, %v", s, back, err)
		}
		if back, err := solana.ParseAddress(encode(a[:])); err != nil || back != a {
			t.Fatalf("%x reads %x, %v", a, back, err)
		}
	})
}

func TestDerived(t *testing.T) {
	var cache solana.AccountCache
	for i := range 300 {
		for _, program := range []solana.Address{solana.TokenProgram, solana.Token2022Program} {
			got, err := cache.TokenAccount(wallet(i), wallet(-i), program)
			if err != nil {
				t.Fatal(err)
			}
			owner, mint := wallet(i), wallet(-i)
			want, bump := derive(solana.AssociatedTokenProgram, owner[:], program[:], mint[:])
			if got != want {
				t.Fatalf("%d: %s, want %s", i, solana.Base58(got), solana.Base58(want))
			}
			if _, b, _ := solana.FindProgramAddress(solana.AssociatedTokenProgram, owner[:], program[:], mint[:]); b != bump {
				t.Fatalf("%d: bump %d, want %d", i, b, bump)
			}
			if onCurve(got) {
				t.Fatalf("%d: a derived address is on the curve", i)
			}
			if again, err := cache.TokenAccount(wallet(i), wallet(-i), program); err != nil || again != got {
				t.Fatalf("%d: cached %s, %v", i, solana.Base58(again), err)
			}
		}
	}
	if cache.Len() != 600 {
		t.Errorf("%d cached", cache.Len())
	}
	if _, _, err := solana.FindProgramAddress(wallet(0), make([]byte, 33)); !errors.Is(err, solana.ErrSeeds) {
		t.Errorf("a long seed: %v", err)
	}
	if _, _, err := solana.FindProgramAddress(wallet(0), make([][]byte, 16)...); !errors.Is(err, solana.ErrSeeds) {
		t.Errorf("16 seeds and the bump: %v", err)
	}
	if _, _, err := solana.FindProgramAddress(wallet(0), make([][]byte, 15)...); err != nil {
		t.Errorf("15 seeds and the bump: %v", err)
	}
}

// The cache stays within its bound.
func TestAccountsBound(t *testing.T) {
	var cache solana.AccountCache
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := range solana.MaxCachedAccounts + 1000 {
				if _, err := cache.TokenAccount(wallet(i), wallet(-1), solana.TokenProgram); err != nil {
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
	f.Add(solana.Base58(solana.TokenProgram))
	f.Add("11111111111111111111111111111111")
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := solana.ParseAddress(text); err == nil && solana.Base58(a) != text {
			t.Errorf("%q is read as %q", text, solana.Base58(a))
		}
		if s, err := solana.ParseSignature(text); err == nil && solana.Base58(s) != text {
			t.Errorf("%q is read as %q", text, solana.Base58(s))
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
	b.Run("cached", func(b *testing.B) {
		var cache solana.AccountCache
		for b.Loop() {
			if _, err := cache.TokenAccount(wallet(1), wallet(2), solana.TokenProgram); err != nil {
				b.Fatal(err)
			}
		}
	})
}
