package participants

import (
	"fmt"
	"strings"
	"testing"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/fixgw/participants/participantstest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/market"
)

func TestPassword(t *testing.T) {
	t.Parallel()
	text, err := HashPassword("open sesame")
	if err != nil {
		t.Fatal(err)
	}
	h, err := parseHash(text)
	if err != nil {
		t.Fatal(err)
	}
	if !h.Verify([]byte("open sesame")) || h.Verify([]byte("open sesame ")) || h.Verify(nil) {
		t.Error("verify is wrong")
	}
	if h.Verify([]byte(strings.Repeat("x", 10_000))) {
		t.Error("a long password passed")
	}
	if again, _ := HashPassword("open sesame"); again == text {
		t.Error("two hashes share their salt")
	}
	for _, n := range []int{0, MaxPassword + 1} {
		if _, err := HashPassword(strings.Repeat("x", n)); err == nil {
			t.Errorf("a password of %d bytes passed", n)
		}
	}
	// The reference implementation's own test: argon2id, v=19, m=256 KiB.
	known, err := parseHash("$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4")
	if err != nil || !known.Verify([]byte("password")) {
		t.Errorf("a known hash does not match: %v", err)
	}
}

func TestParseHashRefuses(t *testing.T) {
	t.Parallel()
	const salt, hash = "c29tZXNhbHQ", "nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	for _, text := range []string{
		"", "x", "$argon2i$v=19$m=256,t=2,p=1$" + salt + "$" + hash, "$argon2id$v=16$m=256,t=2,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=256,t=2$" + salt + "$" + hash, "$argon2id$v=19$m=256,t=2,p=1,x=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=4,t=2,p=1$" + salt + "$" + hash, fmt.Sprintf("$argon2id$v=19$m=%d,t=2,p=1$", maxArgonMemory+1) + salt + "$" + hash,
		"$argon2id$v=19$m=256,t=0,p=1$" + salt + "$" + hash, "$argon2id$v=19$m=256,t=17,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=256,t=2,p=9$" + salt + "$" + hash, "$argon2id$v=19$m=256,t=2,p=1$!!$" + hash,
		"$argon2id$v=19$m=256,t=2,p=1$c2Fs$" + hash, "$argon2id$v=19$m=256,t=2,p=1$" + salt + "$aGFzaA",
		"$argon2id$v=19$m=256,t=2,p=1$" + salt + "$" + hash + "$",
	} {
		if _, err := parseHash(text); err == nil {
			t.Errorf("%q passed", text)
		}
	}
}

const goodFile = `
participants:
  - name: mm1
    number: 1
    comp_ids: [MM1, MM1-BACKUP]
    password_hash: "%s"
    stp: cancel_oldest
    limits:
      - {symbol: "*", max_qty: "100", max_open_orders: 10}
      - {symbol: "SLUSD/USDC", max_qty: "50.5", max_notional: "1000", band_bps: 500}
  - {name: tk, number: 2, comp_ids: [TK], password_hash: "%s"}
`

func TestParseParticipants(t *testing.T) {
	t.Parallel()
	list, err := Parse(fmt.Appendf(nil, goodFile, participantstest.Hash("x"), participantstest.Hash("x")))
	if err != nil {
		t.Fatal(err)
	}
	p := list[0]
	if len(list) != 2 || p.Name != "mm1" || p.Number != 1 || strings.Join(p.CompIDs, ",") != "MM1,MM1-BACKUP" || p.STP != book.STPCancelOldest || list[1].STP != book.STPCancelNewest {
		t.Errorf("read %+v", list)
	}
	json := fmt.Sprintf(`{"participants": [{"name": "a", "number": 3, "comp_ids": ["A"], "password_hash": %q}]}`, participantstest.Hash("x"))
	if list, err := Parse([]byte(json)); err != nil || list[0].Number != 3 {
		t.Errorf("JSON: %+v, %v", list, err)
	}
	set := wiretest.Instruments(t)
	l, ok := p.LimitOn("SLUSD/USDC")
	got, err := l.Limits(set.Get(0))
	if want := (engine.Limits{MaxQty: 5050, MaxNotional: market.Uint128{Lo: 1000_000000}, BandBps: 500}); !ok || err != nil || got != want {
		t.Errorf("limits %+v, %v, %v", got, ok, err)
	}
	l, ok = p.LimitOn("92C/SLUSD")
	if got, err := l.Limits(set.Get(1)); !ok || err != nil || got.MaxQty != 100 || got.MaxOpenOrders != 10 {
		t.Errorf("limits %+v, %v, %v", got, ok, err)
	}
	if _, ok := list[1].LimitOn("92C/SLUSD"); ok {
		t.Error("limits out of nothing")
	}
	for _, bad := range []Limit{{MaxQty: "x"}, {MaxQty: "0.001"}, {MaxNotional: "-1"}, {MaxNotional: "0.0000001"}, {MaxOpenOrders: 1 << 40}} {
		if _, err := bad.Limits(set.Get(0)); err == nil {
			t.Errorf("%+v passed", bad)
		}
	}
}

func TestParseParticipantsRefuses(t *testing.T) {
	t.Parallel()
	line := func(name string, number int, compIDs, more string) string {
		return fmt.Sprintf("  - {name: %q, number: %d, comp_ids: %s, password_hash: %q%s}\n", name, number, compIDs, participantstest.Hash("x"), more)
	}
	for _, c := range []struct{ file, want string }{
		{"", "the list is empty"},
		{"participants: []", "the list is empty"},
		{"x: 1", "unknown field"},
		{"participants:\n" + line("a", 1, "[A]", ", colour: red"), "unknown field"},
		{"participants:\n" + line("", 1, "[A]", ""), "name: 1 to 32"},
		{"participants:\n" + line("a b", 1, "[A]", ""), "name: 1 to 32"},
		{"participants:\n" + line("a", 0, "[A]", ""), "number 0"},
		{"participants:\n" + line("a", 65536, "[A]", ""), "number 65536"},
		{"participants:\n" + line("a", 1, "[]", ""), "comp_ids is empty"},
		{"participants:\n" + line("a", 1, `["A B"]`, ""), `comp_id "A B"`},
		{"participants:\n" + line("a", 1, "["+strings.Repeat("A", wire.MaxCompID+1)+"]", ""), "comp_id"},
		{"participants:\n" + line("a", 1, "[A]", ", stp: sometimes"), `stp "sometimes"`},
		{"participants:\n" + line("a", 1, "[A]", "") + line("a", 2, "[B]", ""), "the name is taken"},
		{"participants:\n" + line("a", 1, "[A]", "") + line("b", 1, "[B]", ""), "number 1 is taken"},
		{"participants:\n" + line("a", 1, "[A]", "") + line("b", 2, "[A]", ""), `comp_id "A" is taken`},
		{"participants:\n  - {name: a, number: 1, comp_ids: [A], password_hash: secret}", "password_hash: must be"},
		{"participants:\n  - {name: a, number: 1, comp_ids: [A]}", "password_hash and ed25519 are empty"},
		{"participants:\n  - {name: a, number: 1, comp_ids: [A], ed25519: x}", "ed25519: must be"},
		{"participants:\n  - {name: a, number: 1, comp_ids: [A], ed25519: 11111111111111111111111111111111}", "ed25519: is a weak key"},
		{"participants:\n" + line("a", 1, "[A]", `, limits: [{symbol: "*", band_bps: 10001}]`), "band_bps"},
		{strings.Repeat("#", MaxFile+1), "at most"},
	} {
		if _, err := Parse([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.120s: %v, want %s", c.file, err, c.want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the hash is in the error: %v", err)
		}
	}
}

func FuzzParseParticipants(f *testing.F) {
	f.Add(fmt.Appendf(nil, goodFile, participantstest.Hash("x"), participantstest.Hash("x")))
	f.Add([]byte(`{"participants": [{"name": "a"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Parse(data)
		if err == nil && Validate(list, MaxParticipants) != nil {
			t.Fatalf("%q passed", data)
		}
	})
}
