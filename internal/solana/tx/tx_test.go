package tx_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"runtime"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"pgregory.net/rapid"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
)

func drawBytes(t *rapid.T, name string, least, most int) []byte {
	return rapid.SliceOfN(rapid.Byte(), least, most).Draw(t, name)
}

// drawTransaction makes any transaction that the rules allow and that is small
// enough.
func drawTransaction(t *rapid.T) *tx.Transaction {
	out := &tx.Transaction{}
	m := &out.Message
	m.Version = rapid.SampledFrom([]tx.Version{tx.Legacy, tx.V0, tx.V1}).Draw(t, "version")
	m.Header.Required = uint8(rapid.IntRange(1, 4).Draw(t, "required"))
	m.Header.ReadonlySigned = uint8(rapid.IntRange(0, int(m.Header.Required)-1).Draw(t, "readonly signed"))
	keys := int(m.Header.Required) + rapid.IntRange(1, 8).Draw(t, "others")
	m.Header.ReadonlyUnsigned = uint8(rapid.IntRange(0, keys-int(m.Header.Required)).Draw(t, "readonly"))
	for i := range keys {
		m.Keys = append(m.Keys, solana.Address{0: uint8(i), 31: rapid.Byte().Draw(t, "key")})
	}
	copy(m.Blockhash[:], drawBytes(t, "blockhash", 32, 32))
	all := keys
	if m.Version == tx.V0 {
		for range rapid.IntRange(0, 2).Draw(t, "lookups") {
			l := tx.Lookup{Writable: drawBytes(t, "writable", 1, 4), Readonly: drawBytes(t, "read", 0, 4)}
			copy(l.Table[:], drawBytes(t, "table", 32, 32))
			all += len(l.Writable) + len(l.Readonly)
			m.Lookups = append(m.Lookups, l)
		}
	}
	if m.Version == tx.V1 {
		m.Config = drawConfig(t)
	}
	for range rapid.IntRange(0, 5).Draw(t, "instructions") {
		in := tx.Instruction{Program: uint8(rapid.IntRange(1, keys-1).Draw(t, "program")), Data: drawBytes(t, "data", 0, 40)}
		for range rapid.IntRange(0, 5).Draw(t, "accounts") {
			in.Accounts = append(in.Accounts, uint8(rapid.IntRange(0, all-1).Draw(t, "account")))
		}
		m.Instructions = append(m.Instructions, in)
	}
	for range m.Header.Required {
		out.Signatures = append(out.Signatures, solana.Signature(drawBytes(t, "signature", 64, 64)))
	}
	return out
}

func drawConfig(t *rapid.T) (c tx.Config) {
	if rapid.Bool().Draw(t, "fee?") {
		c.Mask, c.PriorityFee = c.Mask|tx.HasPriorityFee, rapid.Uint64().Draw(t, "fee")
	}
	if rapid.Bool().Draw(t, "units?") {
		c.Mask, c.Units = c.Mask|tx.HasUnits, rapid.Uint32().Draw(t, "units")
	}
	if rapid.Bool().Draw(t, "loaded?") {
		c.Mask, c.LoadedBytes = c.Mask|tx.HasLoadedBytes, rapid.Uint32().Draw(t, "loaded")
	}
	if rapid.Bool().Draw(t, "heap?") {
		c.Mask, c.HeapBytes = c.Mask|tx.HasHeapBytes, 1024*uint32(rapid.IntRange(32, 256).Draw(t, "heap"))
	}
	return c
}

// TestRoundTrip: any transaction, to bytes and back, equal, and solana-go reads
// the same.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawTransaction(rt)
		raw, err := in.Append(nil)
		if err != nil {
			rt.Fatal(err)
		}
		out, err := tx.Decode(raw)
		if err != nil {
			rt.Fatal(err)
		}
		again, err := out.Append([]byte("kept"))
		if err != nil || string(again) != "kept"+string(raw) {
			rt.Fatalf("other bytes (%v)", err)
		}
		m, err := tx.DecodeMessage(out.Signed)
		if err != nil {
			rt.Fatal(err)
		}
		signed, err := m.Append(nil)
		if err != nil || !bytes.Equal(signed, out.Signed) {
			rt.Fatalf("other message bytes (%v)", err)
		}
		same(t, "drawn", raw)
	})
}

// TestEveryPrefix: a cut anywhere, or a byte more, is refused.
func TestEveryPrefix(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		raw, err := drawTransaction(rt).Append(nil)
		if err != nil {
			rt.Fatal(err)
		}
		for n := range raw {
			if _, err := tx.Decode(raw[:n]); err == nil {
				rt.Fatalf("%d of %d bytes were taken", n, len(raw))
			}
		}
		if _, err := tx.Decode(append(raw, 0)); !errors.Is(err, tx.ErrTrailing) && !errors.Is(err, tx.ErrTooLong) {
			rt.Fatalf("a byte more: %v", err)
		}
	})
}

// minimal is a transfer of lamports, in hex with spaces.
const minimal = "01 " + // one signature
	"SIG " +
	"01 00 01 " + // header
	"03 KEY1 KEY2 KEY0 " +
	"HASH " +
	lastCall

// lastCall is its only instruction, with their count.
const lastCall = "01 02 02 00 01 0c 020000000100000000000000"

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	for name, value := range map[string]string{
		"SIG": strings.Repeat("aa", 64), "KEY0": strings.Repeat("00", 32), "KEY1": strings.Repeat("11", 32),
		"KEY2": strings.Repeat("22", 32), "HASH": strings.Repeat("bb", 32),
	} {
		text = strings.ReplaceAll(text, name, value)
	}
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecodeRefuses(t *testing.T) {
	same(t, "minimal", unhex(t, minimal))
	replace := func(old, by string) string {
		if !strings.Contains(minimal, old) {
			t.Fatalf("the minimal transaction has no %q", old)
		}
		return strings.Replace(minimal, old, by, 1)
	}
	v1 := "81 01 00 01 MASK HASH 01 03 KEY1 KEY2 KEY0 VALUES 02 02 0c00 00 01 020000000100000000000000 SIG"
	one := func(mask, values string) string {
		return strings.NewReplacer("MASK", mask, "VALUES", values).Replace(v1)
	}
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"empty", "", tx.ErrTruncated},
		{"count alias of two bytes", replace("03 KEY1", "8300 KEY1"), tx.ErrCount},
		{"count alias of three bytes", replace("03 KEY1", "838000 KEY1"), tx.ErrCount},
		{"count over 16 bits", replace("01 SIG", "ffff04 SIG"), tx.ErrCount},
		{"count of four bytes", replace("01 SIG", "ffffff7f SIG"), tx.ErrCount},
		{"many signatures claimed", replace("01 SIG", "ffff03 SIG"), tx.ErrTruncated},
		{"no signature", replace("01 SIG", "00"), tx.ErrMalformed},
		{"two signatures for one signer", replace("01 SIG", "02 SIG SIG"), tx.ErrMalformed},
		{"many keys claimed", replace("03 KEY1", "ffff03 KEY1"), tx.ErrTruncated},
		{"many instructions claimed", replace("HASH 01", "HASH ffff03"), tx.ErrTruncated},
		{"much data claimed", replace("0c 02", "ffff03 02"), tx.ErrTruncated},
		{"no signer", replace("01 SIG 01 00 01", "00 00 00 01"), tx.ErrMalformed},
		{"fee payer is read", replace("01 00 01", "01 01 01"), tx.ErrMalformed},
		{"more read than keys", replace("01 00 01", "01 00 03"), tx.ErrMalformed},
		{"program is the fee payer", replace("01 02 02", "01 00 02"), tx.ErrMalformed},
		{"program out of range", replace("01 02 02", "01 03 02"), tx.ErrMalformed},
		{"account out of range", replace("02 00 01 0c", "02 00 03 0c"), tx.ErrMalformed},
		{"key twice", replace("KEY1 KEY2", "KEY1 KEY1"), tx.ErrMalformed},
		{"version 2", replace("SIG 01 00 01", "SIG 82 01 00 01"), tx.ErrVersion},
		{"version 127", replace("SIG 01 00 01", "SIG ff 01 00 01"), tx.ErrVersion},
		{"version 1 in the frame of 0", replace("SIG 01 00 01", "SIG 81 01 00 01"), tx.ErrVersion},
		{"version 0 without lookups' count", replace("SIG 01 00 01", "SIG 80 01 00 01"), tx.ErrTruncated},
		{"lookup of nothing", replace("SIG 01 00 01", "SIG 80 01 00 01") + " 01 KEY0 00 00", tx.ErrMalformed},
		{"program looked up", replace("SIG 01 00 01", "SIG 80 01 00 01")[:len(replace("SIG 01 00 01", "SIG 80 01 00 01"))-len(lastCall)] + "01 03" + lastCall[len("01 02"):] + " 01 KEY0 01 05 00", tx.ErrMalformed},
		{"many lookups claimed", replace("SIG 01 00 01", "SIG 80 01 00 01") + " ffff03", tx.ErrTruncated},
		{"trailing byte", minimal + " 00", tx.ErrTrailing},
		{"too long", minimal + strings.Repeat("00", tx.MaxSize), tx.ErrTooLong},
		{"version 1", one("00000000", ""), nil},
		{"version 1, everything set", one("1f000000", "0100000000000000 01000000 01000000 00800000"), nil},
		{"half a fee", one("01000000", "01000000"), tx.ErrMalformed},
		{"other half", one("02000000", "01000000"), tx.ErrMalformed},
		{"unknown bit", one("20000000", "01000000"), tx.ErrMalformed},
		{"highest bit", one("00000080", "01000000"), tx.ErrMalformed},
		{"small heap", one("10000000", "00040000"), tx.ErrMalformed},
		{"odd heap", one("10000000", "01800000"), tx.ErrMalformed},
		{"large heap", one("10000000", "00040400"), tx.ErrMalformed},
		{"version 1, trailing", one("00000000", "") + " 00", tx.ErrTrailing},
		{"version 1, no signature", strings.TrimSuffix(one("00000000", ""), "SIG"), tx.ErrTruncated},
		{"version 1, key twice", strings.Replace(one("00000000", ""), "KEY2", "KEY1", 1), tx.ErrMalformed},
		{"version 1, too long", one("00000000", "") + strings.Repeat("00", tx.MaxSizeV1), tx.ErrTooLong},
	} {
		got, err := tx.Decode(unhex(t, c.text))
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v; want %v", c.name, err, c.want)
		}
		if (got == nil) != (c.want != nil) {
			t.Errorf("%s: a value of %v", c.name, got)
		}
	}
}

// TestClaimsCostNothing: a count for which there are no bytes allocates nothing.
func TestClaimsCostNothing(t *testing.T) {
	var before, after runtime.MemStats
	hostile := [][]byte{
		unhex(t, strings.Replace(minimal, "HASH 01", "HASH ffff03", 1)), unhex(t, strings.Replace(minimal, "03 KEY1", "ffff03 KEY1", 1)),
		unhex(t, strings.Replace(minimal, "SIG 01 00 01", "SIG 80 01 00 01", 1)+" ffff03"),
	}
	runtime.ReadMemStats(&before)
	for range 100 {
		for _, raw := range hostile {
			if _, err := tx.Decode(raw); !errors.Is(err, tx.ErrTruncated) {
				t.Fatal(err)
			}
		}
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / 300; n > 8<<10 {
		t.Errorf("%d bytes for each", n)
	}
}

func TestLimits(t *testing.T) {
	build := func(v tx.Version, data int) []byte {
		m := tx.Message{
			Version: v, Header: tx.Header{Required: 1, ReadonlyUnsigned: 1}, Keys: []solana.Address{{1}, {2}},
			Instructions: []tx.Instruction{{Program: 1, Data: make([]byte, data)}},
		}
		whole := tx.Transaction{Signatures: make([]solana.Signature, 1), Message: m}
		raw, err := whole.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for _, c := range []struct {
		version tx.Version
		most    int
	}{{tx.Legacy, tx.MaxSize}, {tx.V0, tx.MaxSize}, {tx.V1, tx.MaxSizeV1}} {
		frame := len(build(c.version, 1000)) - 1000
		if _, err := tx.Decode(build(c.version, c.most-frame)); err != nil {
			t.Errorf("version %v of %d bytes: %v", c.version, c.most, err)
		}
		if _, err := tx.Decode(build(c.version, c.most-frame+1)); !errors.Is(err, tx.ErrTooLong) {
			t.Errorf("version %v of %d bytes: %v", c.version, c.most+1, err)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	key := []solana.Address{{1}, {2}}
	for name, m := range map[string]tx.Message{
		"data beyond a count":      {Version: tx.V0, Keys: key, Instructions: []tx.Instruction{{Program: 1, Data: make([]byte, 1<<16)}}},
		"data beyond 16 bits":      {Version: tx.V1, Keys: key, Instructions: []tx.Instruction{{Program: 1, Data: make([]byte, 1<<16)}}},
		"accounts beyond a byte":   {Version: tx.V1, Keys: key, Instructions: []tx.Instruction{{Program: 1, Accounts: make([]byte, 256)}}},
		"keys beyond version 1":    {Version: tx.V1, Keys: make([]solana.Address, tx.MaxKeysV1+1)},
		"instructions beyond":      {Version: tx.V1, Keys: key, Instructions: make([]tx.Instruction, tx.MaxInstructionsV1+1)},
		"keys beyond a count here": {Version: tx.Legacy, Keys: make([]solana.Address, 1<<16)},
	} {
		if _, err := m.Append(nil); !errors.Is(err, tx.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, m := range map[string]tx.Message{
		"no version":           {Header: tx.Header{Required: 1}, Keys: key},
		"version 4":            {Version: 4, Header: tx.Header{Required: 1}, Keys: key},
		"lookups in legacy":    {Version: tx.Legacy, Header: tx.Header{Required: 1}, Keys: key, Lookups: []tx.Lookup{{Writable: []byte{1}}}},
		"config in version 0":  {Version: tx.V0, Header: tx.Header{Required: 1}, Keys: key, Config: tx.Config{Units: 1}},
		"128 signers, legacy":  {Version: tx.Legacy, Header: tx.Header{Required: 128}, Keys: make([]solana.Address, 200)},
		"13 signers, v1":       {Version: tx.V1, Header: tx.Header{Required: 13}, Keys: make([]solana.Address, 20)},
		"257 keys with lookup": {Version: tx.V0, Header: tx.Header{Required: 1}, Keys: key, Lookups: []tx.Lookup{{Readonly: make([]byte, 255)}}},
	} {
		if err := m.Check(); !errors.Is(err, tx.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAccessors(t *testing.T) {
	m := tx.Message{
		Version: tx.V0, Header: tx.Header{Required: 3, ReadonlySigned: 1, ReadonlyUnsigned: 2},
		Keys: []solana.Address{{1}, {2}, {3}, {4}, {}, {6}},
	}
	var writable []bool
	for i := range m.Keys {
		writable = append(writable, m.Writable(i))
	}
	for i, want := range []bool{true, true, false, true, false, false} {
		if writable[i] != want {
			t.Errorf("key %d writable: %t", i, writable[i])
		}
	}
	if m.FeePayer() != m.Keys[0] || len(m.Signers()) != 3 {
		t.Errorf("fee payer %v, signers %v", m.FeePayer(), m.Signers())
	}
	if slot, ok := m.Slot(solana.Address{3}); slot != 2 || !ok {
		t.Errorf("slot %d %t", slot, ok)
	}
	if _, ok := m.Slot(solana.Address{4}); ok {
		t.Error("a key that does not sign has a slot")
	}
	for _, c := range []struct {
		program uint8
		data    []byte
		want    bool
	}{
		{4, []byte{4, 0, 0, 0}, true},
		{4, []byte{4, 0, 0, 0, 9}, true},
		{4, []byte{4, 0, 0}, false},
		{4, []byte{2, 0, 0, 0}, false},
		{5, []byte{4, 0, 0, 0}, false},
	} {
		m.Instructions = []tx.Instruction{{Program: c.program, Data: c.data}}
		if m.UsesNonce() != c.want {
			t.Errorf("program %d data %v: nonce %t", c.program, c.data, !c.want)
		}
	}
	m.Instructions = append([]tx.Instruction{{Program: 5}}, m.Instructions...)
	m.Instructions[1] = tx.Instruction{Program: 4, Data: []byte{4, 0, 0, 0}}
	if m.UsesNonce() {
		t.Error("a nonce advanced by the second instruction does not count")
	}
	if got := tx.MessageHash([]byte("abc")); hex.EncodeToString(got[:]) != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("hash %x", got)
	}
}

func FuzzDecode(f *testing.F) {
	t := &testing.T{}
	f.Add(unhex(t, minimal))
	f.Add(unhex(t, strings.Replace(minimal, "SIG 01 00 01", "SIG 80 01 00 01", 1)+" 01 KEY0 01 05 00"))
	f.Add(unhex(t, "81 01 00 01 1f000000 HASH 01 03 KEY1 KEY2 KEY0 0100000000000000 01000000 01000000 00800000 02 02 0c00 00 01 020000000100000000000000 SIG"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, err := tx.Decode(raw)
		if err != nil {
			return
		}
		again, err := out.Append(nil)
		if err != nil || !bytes.Equal(again, raw) {
			t.Fatalf("%x becomes %x (%v)", raw, again, err)
		}
		out.Message.UsesNonce()
		for i := range out.Message.Instructions {
			out.Message.ProgramOf(&out.Message.Instructions[i])
		}
		if theirs, err := sdk.TransactionFromBytes(raw); err != nil {
			t.Fatalf("%x: only we take it: %v", raw, err)
		} else if err := theirs.Sanitize(); err != nil {
			t.Fatalf("%x: only we take it: %v", raw, err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	raw := unhex(&testing.T{}, minimal)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tx.Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}
