package access

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"blockdesk/desk"
	"blockdesk/internal/solana"
)

// TestGoldenNonce: what clients sign is frozen, since they may look into it.
func TestGoldenNonce(t *testing.T) {
	n := newNonce(solana.Address{0: 0xaa, 31: 0xbb}, day0)
	copy(n[nonceRandom:], bytes.Repeat([]byte{0xcc}, 32))
	n.seal([32]byte{1, 2, 3})
	const want = "7376635f6476705f68616e647368616b655f7631" + "00" +
		"aa000000000000000000000000000000000000000000000000000000000000bb" +
		"000001a1f641a6db" +
		"cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
	if got := hex.EncodeToString(n[:nonceTag]); got != want {
		t.Errorf("nonce\n got %s\nwant %s", got, want)
	}
	const tag = "dd78346da4829fc2df63d4be5fd5072b"
	if got := hex.EncodeToString(n.tag()); got != tag {
		t.Errorf("tag %s, want %s", got, tag)
	}
	if len(n.text()) != 148 || NonceText != 148 || !n.sealed([32]byte{1, 2, 3}) || n.sealed([32]byte{1, 2, 4}) {
		t.Errorf("text %s", n.text())
	}
	if m, ok := parseNonce(n.text()); !ok || m != n {
		t.Errorf("%x is not what was written", m)
	}
}

// TestGoldenBytes: the layout in the store is frozen. Another one is another
// version.
func TestGoldenBytes(t *testing.T) {
	kv := newMemKV()
	w := newWatch()
	a := mustOpen(t, w.options(), kv)
	i := issue{at: day0, ends: day0 + week, hash: [32]byte{0: 0x11, 31: 0x12}, key: solana.Address{0: 0x21, 31: 0x22}, client: client(7)}
	r := revocation{at: day0 + 1, by: "ann"}
	kv.Put(string(tokenKey(keyIssue, i.at)), i.value())
	kv.Put(string(tokenKey(keyRevocation, i.at)), r.value())
	if err := a.maintain(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, key := range kv.Keys("") {
		got = append(got, hex.EncodeToString([]byte(key))+" "+hex.EncodeToString([]byte(kv.Content()[key])))
	}
	want := []string{
		"20 01",
		"21 01" + "18e997c54c02cd15",
		"22" + "18e997c54c02cd15" + " 01" + "18ebbdd5452bcd15" +
			"1100000000000000000000000000000000000000000000000000000000000012" +
			"2100000000000000000000000000000000000000000000000000000000000022" +
			"00000000000000000000ffffc0000207",
		"23" + "18e997c54c02cd15" + " 01" + "18e997c54c02cd16" + "616e6e",
	}
	if !slices.Equal(got, want) {
		t.Errorf("store\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if id := idOf(day0); id != "K18e997c54c02cd15" {
		t.Errorf("id %s", id)
	}
	list, err := a.List("", 10, true)
	e := Entry{ID: idOf(day0), Key: i.key, IssuedAt: day0, ExpiresAt: i.ends, RevokedAt: r.at, RevokedBy: "ann"}
	if err != nil || len(list) != 1 || list[0] != e {
		t.Errorf("list %+v, %v", list, err)
	}
}

// TestDamage: what this version cannot read is an error, not a token that is or is
// not admitted.
func TestDamage(t *testing.T) {
	at := string(tokenKey(keyIssue, day0))
	good := (&issue{at: day0, ends: day0 + week}).value()
	for name, c := range map[string]struct{ key, value string }{
		"layout version":   {"\x20", "\x02"},
		"no version":       {"\x20", ""},
		"time":             {"\x21", "\x01\x00"},
		"time's version":   {"\x21", "\x02\x00\x00\x00\x00\x00\x00\x00\x01"},
		"time 0":           {"\x21", "\x01\x00\x00\x00\x00\x00\x00\x00\x00"},
		"issue's key":      {at + "\x00", string(good)},
		"issue cut short":  {at, string(good[:len(good)-1])},
		"issue too long":   {at, string(good) + "\x00"},
		"issue's version":  {at, "\x00" + string(good[1:])},
		"issue's end":      {at, "\x01\xff" + string(good[2:])},
		"revocation":       {"\x23" + at[1:], "\x01\x00\x00\x00\x00\x00\x00\x00\x01"},
		"revocation's end": {"\x23" + at[1:], "\x01\x00\x00\x00\x00\x00\x00\x00\x01" + strings.Repeat("n", MaxName+1)},
	} {
		w := newWatch()
		kv := newMemKV()
		a := mustOpen(t, w.options(), kv)
		kv.Put(at, good)
		kv.Put(c.key, []byte(c.value))
		if _, err := Open(w.options(), kv); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: opens: %v", name, err)
		}
		if c.key < at {
			continue
		}
		if _, err := a.List("", 10, true); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: lists: %v", name, err)
		}
		if _, err := a.Revoke(idOf(day0), "ann"); !errors.Is(err, ErrLayout) && len(c.key) == tokenKeySize {
			t.Errorf("%s: revokes: %v", name, err)
		}
	}
}

// TestID: one text a token.
func TestID(t *testing.T) {
	for _, at := range []int64{1, day0, 1<<63 - 1} {
		if got, ok := parseID(idOf(at)); !ok || got != at {
			t.Errorf("%s: %d, %v", idOf(at), got, ok)
		}
	}
	for _, id := range []string{"", "K", "K000000000000000", "K0000000000000000", "K8000000000000000", "k0000000000000001", "K000000000000000A", "K+00000000000001", "K0x0000000000001"} {
		if _, ok := parseID(id); ok {
			t.Errorf("%q is an id", id)
		}
	}
}

func FuzzNonce(f *testing.F) {
	n := newNonce(newPerson(1).key, day0)
	n.seal([32]byte{1})
	f.Add(n.text())
	f.Add(n.text()[:NonceText-1] + "\n")
	f.Add(strings.Repeat("A", NonceText))
	a, err := Open(newWatch().options(), newMemKV())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := parseNonce(text); ok && (n.text() != text || base64.StdEncoding.EncodeToString(n[:]) != text) {
			t.Errorf("%q is not the one text of %x", text, n)
		}
		if _, err := a.Issue(newPerson(1).key, text, newPerson(1).sign(text), client(1)); !errors.Is(err, desk.ErrBadNonce) {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// FuzzValues: what a decoder reads, its encoder writes.
func FuzzValues(f *testing.F) {
	f.Add((&issue{at: day0, ends: day0}).value())
	f.Add((&revocation{at: day0, by: "ann"}).value())
	f.Add(timeValue(day0))
	f.Add(tokenKey(keyIssue, day0))
	f.Add([]byte(idOf(day0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if i, ok := parseIssue(day0, b); ok && (!bytes.Equal(i.value(), b) || i.at != day0 || i.ends <= 0) {
			t.Errorf("issue %x: %+v", b, i)
		}
		if r, ok := parseRevocation(b); ok && (!bytes.Equal(r.value(), b) || r.at <= 0 || r.by == "" || len(r.by) > MaxName) {
			t.Errorf("revocation %x: %+v", b, r)
		}
		if at, ok := parseTimeValue(b); ok && !bytes.Equal(timeValue(at), b) {
			t.Errorf("time %x: %d", b, at)
		}
		if at, ok := parseTokenKey(b); ok && !bytes.Equal(tokenKey(b[0], at), b) {
			t.Errorf("key %x: %d", b, at)
		}
		if at, ok := parseID(string(b)); ok && idOf(at) != string(b) {
			t.Errorf("id %q: %d", b, at)
		}
	})
}
