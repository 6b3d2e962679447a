package token_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/token"
)

// mint makes a mint account: 9 decimals, supply 77, both authorities.
func mint(extensions ...token.Extension) []byte {
	b := make([]byte, 82)
	b[0], b[4] = 1, 0xaa
	binary.LittleEndian.PutUint64(b[36:], 77)
	b[44], b[45] = 9, 1
	b[46], b[50] = 1, 0xbb
	return extend(b, 1, extensions...)
}

func extend(b []byte, kind byte, extensions ...token.Extension) []byte {
	if len(extensions) == 0 {
		return b
	}
	b = append(b, make([]byte, 165-len(b))...)
	b = append(b, kind)
	for _, e := range extensions {
		b = binary.LittleEndian.AppendUint16(b, uint16(e))
		b = binary.LittleEndian.AppendUint16(b, 3)
		b = append(b, 1, 2, 3)
	}
	return b
}

func TestParseMint(t *testing.T) {
	m, err := token.ParseMint(solana.Address{1}, solana.TokenProgram, mint())
	if err != nil || m.Decimals != 9 || m.Supply != 77 || m.MintAuthority != (solana.Address{0xaa}) || m.FreezeAuthority != (solana.Address{0xbb}) || len(m.Extensions) != 0 {
		t.Errorf("%+v, %v", m, err)
	}
	m, err = token.ParseMint(solana.Address{1}, solana.Token2022Program, append(mint(token.MetadataPointer, token.TransferFee, 200), 0, 0, 9))
	if err != nil || !slices.Equal(m.Extensions, []token.Extension{token.MetadataPointer, token.TransferFee, 200}) {
		t.Errorf("%+v, %v", m, err)
	}
	set := func(i int, v byte) []byte { b := mint(token.Metadata); b[i] = v; return b }
	for name, c := range map[string]struct {
		owner solana.Address
		data  []byte
		want  error
	}{
		"other program":            {solana.SystemProgram, mint(), token.ErrNotToken},
		"empty":                    {solana.TokenProgram, nil, token.ErrMalformed},
		"short":                    {solana.TokenProgram, mint()[:81], token.ErrMalformed},
		"long, classic":            {solana.TokenProgram, mint(token.Metadata), token.ErrMalformed},
		"not initialized":          {solana.Token2022Program, set(45, 0), token.ErrMalformed},
		"authority neither 0 or 1": {solana.Token2022Program, set(0, 2), token.ErrMalformed},
		"freezer neither 0 or 1":   {solana.Token2022Program, set(47, 1), token.ErrMalformed},
		"token account as mint":    {solana.Token2022Program, set(165, 2), token.ErrMalformed},
		"padding not zero":         {solana.Token2022Program, set(100, 1), token.ErrMalformed},
		"extension cut":            {solana.Token2022Program, mint(token.Metadata)[:171], token.ErrMalformed},
		"extension's length cut":   {solana.Token2022Program, mint(token.Metadata)[:168], token.ErrMalformed},
		"165 bytes":                {solana.Token2022Program, mint(token.Metadata)[:165], token.ErrMalformed},
		"huge":                     {solana.Token2022Program, make([]byte, token.MaxAccountData+1), token.ErrMalformed},
	} {
		if m, err := token.ParseMint(solana.Address{1}, c.owner, c.data); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for e := token.Extension(0); e < 300; e++ {
		m := token.Mint{Address: solana.Address{1}, Program: solana.Token2022Program, Decimals: 6, Extensions: []token.Extension{token.Metadata, e}}
		harmless := e >= 18 && e <= 23
		c, err := m.Check(token.Harmless())
		if harmless != (err == nil) || harmless == c.IsZero() || !harmless && !errors.Is(err, token.ErrExtension) {
			t.Errorf("extension %d: %v, %v", e, c, err)
		}
		if _, err := m.Check(token.Harmless() | token.ExtensionSet(e)); (err == nil) != (e < 64) {
			t.Errorf("extension %d, allowed: %v", e, err)
		}
	}
	m := token.Mint{Address: solana.Address{1}, Program: solana.TokenProgram, Decimals: token.MaxDecimals}
	if c, err := m.Check(0); err != nil || c.Address() != m.Address || c.Program() != m.Program || c.Decimals() != m.Decimals {
		t.Errorf("%v, %v", c, err)
	}
	m.Decimals++
	if _, err := m.Check(0); !errors.Is(err, token.ErrDecimals) {
		t.Errorf("20 decimals: %v", err)
	}
}

func tokenAccount() []byte {
	b := make([]byte, 165)
	b[0], b[32] = 1, 2
	binary.LittleEndian.PutUint64(b[64:], 500)
	b[72], b[76] = 1, 3
	b[108] = 2
	b[109] = 1
	binary.LittleEndian.PutUint64(b[121:], 20)
	b[129], b[133] = 1, 4
	return b
}

func TestParseAccount(t *testing.T) {
	want := token.Account{
		Mint: solana.Address{1}, Owner: solana.Address{2}, Program: solana.Token2022Program, Amount: 500, State: token.Frozen,
		Delegate: solana.Address{3}, CloseAuthority: solana.Address{4}, DelegatedAmount: 20, Native: true,
	}
	got, err := token.ParseAccount(solana.Token2022Program, extend(tokenAccount(), 2, 7))
	if err != nil || !slices.Equal(got.Extensions, []token.Extension{7}) {
		t.Errorf("%+v, %v", got, err)
	}
	got.Extensions = nil
	if got.Mint != want.Mint || got.Owner != want.Owner || got.Amount != want.Amount || got.State != want.State || got.Delegate != want.Delegate ||
		got.CloseAuthority != want.CloseAuthority || got.DelegatedAmount != want.DelegatedAmount || !got.Native || got.Program != want.Program {
		t.Errorf("%+v, want %+v", got, want)
	}
	set := func(i int, v byte) []byte { b := tokenAccount(); b[i] = v; return b }
	for name, data := range map[string][]byte{
		"short": tokenAccount()[:164], "long": append(tokenAccount(), 0), "not initialized": set(108, 0), "state 3": set(108, 3), "delegate": set(73, 1), "closer": set(132, 1),
	} {
		if got, err := token.ParseAccount(solana.TokenProgram, data); !errors.Is(err, token.ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := token.ParseAccount(solana.MemoProgram, tokenAccount()); !errors.Is(err, token.ErrNotToken) {
		t.Errorf("other program: %v", err)
	}
}

// TestRealAccounts reads accounts of the real chain.
func TestRealAccounts(t *testing.T) {
	root := os.Getenv("BLOCKDESK_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	read := func(name string) (owner solana.Address, data []byte) {
		b, err := os.ReadFile(filepath.Join(root, "solana", name))
		if err != nil {
			t.Skipf("skipped: no recorded accounts here (set BLOCKDESK_TESTDATA): %v", err)
		}
		type value struct {
			Data  []string `json:"data"`
			Owner string   `json:"owner"`
		}
		var file struct {
			Result struct {
				Value value `json:"value"`
			} `json:"result"`
			Account *value `json:"account"`
			value
		}
		if err := json.Unmarshal(b, &file); err != nil {
			t.Fatal(err)
		}
		v := file.Result.Value
		if file.Account != nil {
			v = *file.Account
		} else if file.value.Owner != "" {
			v = file.value
		}
		if owner, err = solana.ParseAddress(v.Owner); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if data, err = base64.StdEncoding.DecodeString(v.Data[0]); err != nil {
			t.Fatal(err)
		}
		return owner, data
	}
	owner, data := read("mints/usdc_mint.json")
	m, err := token.ParseMint(solana.Address{1}, owner, data)
	if err != nil || m.Decimals != 6 || m.Supply == 0 || m.FreezeAuthority == (solana.Address{}) {
		t.Errorf("USDC: %+v, %v", m, err)
	}
	if c, err := m.Check(token.Harmless()); err != nil || c.Program() != solana.TokenProgram {
		t.Errorf("USDC: %v", err)
	}
	for _, name := range []string{"cpmm/vault0.json", "cpmm/vault1.json"} {
		owner, data := read(name)
		if a, err := token.ParseAccount(owner, data); err != nil || a.Amount == 0 || a.State != token.Initialized {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(mint(token.Metadata, token.TransferFee))
	f.Add(tokenAccount())
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, program := range []solana.Address{solana.TokenProgram, solana.Token2022Program} {
			m, err := token.ParseMint(solana.Address{1}, program, data)
			if err == nil {
				if c, err := m.Check(token.Harmless()); err == nil && c.IsZero() {
					t.Error("a checked mint is none")
				}
			}
			if a, err2 := token.ParseAccount(program, data); err2 == nil && (err == nil || a.State == 0) {
				t.Errorf("%x is a mint and an account", data)
			}
		}
	})
}
