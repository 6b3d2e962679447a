package cosign

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// limitsText are limits for the transactions of these tests: 250 USDC for 251.256281407
// of the token, of which 1,000 may leave in an hour and 3,000 in a day.
func limitsText() string {
	return fmt.Sprintf(`{
  "version": 1, "usdc_mint": %q, "payees": [%q],
  "tokens": [{"mint": %q, "floor_usdc": "990000/1000000000", "floor_sol": "6000000/1000000000", "max_hour": "1000000000000", "max_day": "3000000000000"}],
  "refunds": {"usdc": {"max_hour": "5000", "max_day": "9000"}, "sol": {"max_hour": "5000", "max_day": "9000"}},
  "network": {"max_hour": "200000000", "max_day": "1000000000"}
}`, solana.Base58(usdcMint), solana.Base58(treasury), solana.Base58(baseMint))
}

func testLimits(t testing.TB) *Limits {
	t.Helper()
	l, err := ParseLimits([]byte(limitsText()))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLimitsFile: what is misspelt, missing or contradictory is refused, and nothing of it
// becomes a limit of none.
func TestLimitsFile(t *testing.T) {
	good := limitsText()
	if _, err := ParseLimits([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for old, by := range map[string]string{
		`"version": 1`: `"version": 2`, `"version": 1,`: ``, `"max_hour": "1000000000000"`: `"max_hours": "1000000000000"`,
		`"max_day": "3000000000000"`: `"max_day": "999999999999"`, `"max_day": "9000"}, "sol"`: `"max_day": 9000}, "sol"`,
		`"990000/1000000000"`: `"0/1000000000"`, `"6000000/1000000000"`: `"6000000"`, `"network"`: `"networks"`, `"payees": [`: `"payees": ["x", `,
		solana.Base58(baseMint): solana.Base58(usdcMint), `"1000000000000"`: `"01000000000000"`, `"5000", "max_day": "9000"}}`: `"5000"}}`,
		`"usdc_mint": "` + solana.Base58(usdcMint) + `",`: ``, "\n}": "\n} x", `"200000000"`: `"-1"`,
	} {
		text := strings.Replace(good, old, by, 1)
		if text == good {
			t.Fatalf("%s is not in the text", old)
		}
		if l, err := ParseLimits([]byte(text)); !errors.Is(err, ErrLimits) || l != nil {
			t.Errorf("%s instead of %s: %v", by, old, err)
		}
	}
	path := filepath.Join(t.TempDir(), "limits")
	if err := os.WriteFile(path, []byte(good), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLimits(path); !errors.Is(err, ErrKeyFile) {
		t.Errorf("open to others: %v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLimits(path); err != nil {
		t.Error(err)
	}
	many := strings.Repeat(`"`+solana.Base58(treasury)+`",`, MaxPayees) + `"x"`
	if _, err := ParseLimits([]byte(strings.Replace(good, `"payees": ["`+solana.Base58(treasury)+`"]`, `"payees": [`+many+`]`, 1))); !errors.Is(err, ErrLimits) {
		t.Errorf("too many payees: %v", err)
	}
}

// TestFloor: the price is compared exactly, also where products need 128 bits.
func TestFloor(t *testing.T) {
	most := ^uint64(0)
	for _, c := range []struct {
		f             floor
		payment, base uint64
		want          bool
	}{
		{floor{}, most, 1, false},
		{floor{1, 1}, 5, 5, true},
		{floor{1, 1}, 4, 5, false},
		{floor{990, 1000}, 99, 100, true},
		{floor{990, 1000}, 98, 99, false},
		{floor{most, most}, most, most, true},
		{floor{most, most}, most - 1, most, false},
		{floor{most, 1}, most, 1, true},
		{floor{most, 1}, most, 2, false},
		{floor{1, most}, 1, most, true},
	} {
		if got := c.f.allows(c.payment, c.base); got != c.want {
			t.Errorf("%d for %d, at least %+v: %v", c.payment, c.base, c.f, got)
		}
	}
}

// limited is a running signer with limits and a clock that the test sets.
type limited struct {
	*service
	o     ServerOptions
	clock *atomic.Int64
	dial  *SocketSigner
	next  market.ClaimID
}

func startLimited(t testing.TB) *limited {
	t.Helper()
	l := &limited{o: options(t), clock: new(atomic.Int64), next: testClaim}
	l.clock.Store(1_700_000_000)
	l.o.Now = func() time.Time { return time.Unix(l.clock.Load(), 0) }
	l.o.Limits = testLimits(t)
	l.again(t)
	return l
}

// again starts the signer, or starts it again after its end.
func (l *limited) again(t testing.TB) {
	t.Helper()
	if l.service != nil {
		l.stop()
	}
	l.service = start(t, l.o)
	l.dial = dialled(t, l.path)
}

// deliver has the signer sign a delivery of a new claim.
func (l *limited) deliver(t testing.TB, atoms market.Amount) error {
	t.Helper()
	l.next++
	d := deliveryOf(t, l.next)
	d.Amount = atoms
	return l.sign(t, Deliver, built(t, &d).Bytes())
}

// sign speaks the protocol as an attacker in control of the gateway would: no desk is asked.
func (l *limited) sign(t testing.TB, kind Kind, raw []byte) error {
	t.Helper()
	var s solana.Signature
	return l.dial.call(context.Background(), frame{requestSign, append([]byte{byte(kind)}, raw...)}, answerSignature, s[:])
}

// TestLimitsOfATransaction: payees, tokens and prices of atomic transactions; tokens of
// deliveries.
func TestLimitsOfATransaction(t *testing.T) {
	l := startLimited(t)
	for name, c := range map[string]struct {
		spoil func(a *build.Atomic)
		want  Refusal
	}{
		"as sold":         {func(*build.Atomic) {}, 0},
		"lowest price":    {func(a *build.Atomic) { a.BaseAmount, a.Payment.Amount = 100_000_000_000, 99_000_000 }, 0},
		"below it":        {func(a *build.Atomic) { a.BaseAmount, a.Payment.Amount = 100_000_000_000, 98_999_999 }, RefusalPrice},
		"for one atom":    {func(a *build.Atomic) { a.Payment.Amount = 1 }, RefusalPrice},
		"to somebody":     {func(a *build.Atomic) { a.Payment.To = otherAddress }, RefusalPayee},
		"to the taker's":  {func(a *build.Atomic) { a.Payment.To = deskAddress }, RefusalPayee},
		"other token":     {func(a *build.Atomic) { a.Base = checkedMint(t, 8, solana.TokenProgram, 9) }, RefusalToken},
		"worthless money": {func(a *build.Atomic) { a.Payment.Mint = checkedMint(t, 9, solana.TokenProgram, 6) }, RefusalToken},
		"for SOL": {func(a *build.Atomic) {
			a.BaseAmount = 1_000_000_000
			a.Payment = build.Leg{Rail: market.RailSOL, Amount: 6_000_000, To: treasury}
		}, 0},
		"for less SOL": {func(a *build.Atomic) {
			a.BaseAmount = 1_000_000_000
			a.Payment = build.Leg{Rail: market.RailSOL, Amount: 5_999_999, To: treasury}
		}, RefusalPrice},
	} {
		l.next++
		a := atomicOf(t, l.next)
		c.spoil(&a)
		u := built(t, &a)
		raw := append([]byte(nil), u.Bytes()...)
		signature := signatureOf(takerKey, u.Message())
		copy(raw[1+signatureSize:], signature[:])
		if err := l.sign(t, Cosign, raw); !isRefusal(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	other := deliveryOf(t, testClaim+1000)
	other.Base = checkedMint(t, 8, solana.TokenProgram, 9)
	if err := l.sign(t, Deliver, built(t, &other).Bytes()); !isRefusal(err, RefusalToken) {
		t.Errorf("a delivery of another token: %v", err)
	}
}

func isRefusal(err error, want Refusal) bool {
	var got Refusal
	if !errors.As(err, &got) {
		return err == nil && want == 0
	}
	return got == want
}

// TestThief: an attacker who has taken over the gateway asks for everything as fast as it can, for
// an hour and a day, over restarts of the signer. No more leaves than the ceilings say.
func TestThief(t *testing.T) {
	l := startLimited(t)
	const unit = 100_000_000_000
	steal := func() (got uint64) {
		for range 40 {
			if l.deliver(t, unit) == nil {
				got += unit
			}
		}
		return got
	}
	first := l.deliver(t, 1)
	if first != nil {
		t.Fatal(first)
	}
	if got := steal(); got != 9*unit { // an atom has left before
		t.Errorf("%d in the first minute", got)
	}
	if err := l.deliver(t, unit); !isRefusal(err, RefusalHour) {
		t.Errorf("beyond the hour's: %v", err)
	}
	l.again(t)
	if got := steal(); got != 0 {
		t.Errorf("%d after a restart", got)
	}
	l.clock.Add(-7200) // set back
	if got := steal(); got != 0 {
		t.Errorf("%d with a clock that was set back", got)
	}
	l.clock.Add(7200)
	all := uint64(9 * unit)
	for range 22 {
		l.clock.Add(3601)
		l.again(t)
		all += steal()
	}
	if all != 29*unit {
		t.Errorf("%d in a day", all)
	}
	if err := l.deliver(t, unit); !isRefusal(err, RefusalDay) {
		t.Errorf("beyond the day's: %v", err)
	}
	// Everything once more, as atomic transactions with a taker of the thief's.
	l.next++
	a := atomicOf(t, l.next)
	u := built(t, &a)
	raw := append([]byte(nil), u.Bytes()...)
	signature := signatureOf(takerKey, u.Message())
	copy(raw[1+signatureSize:], signature[:])
	if err := l.sign(t, Cosign, raw); !isRefusal(err, RefusalDay) {
		t.Errorf("an atomic transaction: %v", err)
	}
	l.clock.Add(2 * 3600)
	if err := l.deliver(t, unit); err != nil {
		t.Errorf("a day later: %v", err)
	}
}

// TestThiefOfFees: transactions of one atom are stopped by what they cost in fees and rent.
func TestThiefOfFees(t *testing.T) {
	l := startLimited(t)
	signed := 0
	for range 100 {
		if l.deliver(t, 1) == nil {
			signed++
		}
	}
	if most := 200_000_000 / (mostRefundsTotal + mostRent); signed != most {
		t.Errorf("%d transactions, want %d", signed, most)
	}
}

// TestThiefOfRefunds: refunds have ceilings of their own, and need limits.
func TestThiefOfRefunds(t *testing.T) {
	l := startLimited(t)
	pay := func(n byte, amount market.Amount) error {
		r := refundsOf(t, market.RailUSDC, 1)
		r.Items[0].Leg.Amount = amount
		r.Items[0].Memo, r.Items[0].Reference = binding.RefundMemo(paymentOf(n)), binding.RefundReference(paymentOf(n))
		return l.sign(t, Refund, built(t, r).Bytes())
	}
	for n := range byte(5) {
		if err := pay(n+1, 1000); err != nil {
			t.Fatal(err)
		}
	}
	if err := pay(6, 1); !isRefusal(err, RefusalHour) {
		t.Errorf("beyond the hour's: %v", err)
	}
	if err := l.sign(t, Refund, built(t, refundsOf(t, market.RailSOL, 1)).Bytes()); err != nil {
		t.Errorf("SOL has its own: %v", err)
	}
	for range 3 { // the same again costs nothing
		if err := pay(1, 1000); err != nil {
			t.Error(err)
		}
	}
	for n := range market.Amount(6) { // other messages for one payment
		l.clock.Add(24 * 3600)
		want := Refusal(0)
		if n >= MaxRefundAttempts-1 {
			want = RefusalRefunds
		}
		if err := pay(2, 2000+n); !isRefusal(err, want) {
			t.Errorf("message %d of a payment: %v", n+2, err)
		}
	}
	l.clock.Add(24 * 3600)
	l.o.Limits = nil
	l.again(t)
	if err := pay(1, 1000); !isRefusal(err, RefusalNoLimits) {
		t.Errorf("without limits: %v", err)
	}
	l.SetLimits(testLimits(t))
	if err := pay(40, 1000); err != nil {
		t.Errorf("with new limits: %v", err)
	}
}

// TestUses: the gateway reads how much of each ceiling is used.
func TestUses(t *testing.T) {
	l := startLimited(t)
	if err := l.deliver(t, 5); err != nil {
		t.Fatal(err)
	}
	list, err := l.dial.Uses(context.Background())
	if err != nil || len(list) != 4 {
		t.Fatalf("%+v, %v", list, err)
	}
	if want := (LimitUse{LimitToken, baseMint, 5, 1_000_000_000_000, 5, 3_000_000_000_000}); list[0] != want {
		t.Errorf("%+v, want %+v", list[0], want)
	}
	if n := list[3]; n.Class != LimitNetwork || n.Hour != mostRefundsTotal+mostRent || n.MaxDay != 1_000_000_000 {
		t.Errorf("%+v", n)
	}
	var tokens []string
	for i := range MaxLimitTokens {
		tokens = append(tokens, fmt.Sprintf(`{"mint": %q, "max_hour": "1", "max_day": "2"}`, solana.Base58(solana.Address{byte(i + 1), 1})))
	}
	many, err := ParseLimits([]byte(`{"version": 1, "tokens": [` + strings.Join(tokens, ",") + `], "network": {"max_hour": "1", "max_day": "1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	l.SetLimits(many)
	if list, err := l.dial.Uses(context.Background()); err != nil || len(list) != MaxLimitTokens+1 {
		t.Errorf("%d ceilings, %v", len(list), err)
	}
	l.SetLimits(nil)
	if list, err := l.dial.Uses(context.Background()); err != nil || len(list) != 0 {
		t.Errorf("%d ceilings of none, %v", len(list), err)
	}
}

// TestGoldenSpent freezes the file of what has left.
func TestGoldenSpent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spent")
	s, err := openSpent(path, deskAddress, 100)
	if err != nil {
		t.Fatal(err)
	}
	d := &departure{asset{LimitToken, solana.Address{0xa1, 31: 0xaf}}, 0x1112131415161718, 0x2122232425262728, 0x31323334}
	if refusal := s.leave(nil, d); refusal != 0 {
		t.Fatal(refusal)
	}
	closeSpent(t, s)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "42445350454e542e" + "01000000" + "00000000" + hex.EncodeToString(deskAddress[:]) + zeros(12)
	entry := "a1" + zeros(30) + "af" + "01" + zeros(3) + "34333231" + "1817161514131211" + "2827262524232221" + zeros(4)
	if len(text) != 2*blockSize || hex.EncodeToString(text[:crcAt]) != want || hex.EncodeToString(text[blockSize:blockSize+crcAt]) != entry {
		t.Errorf("%x", text)
	}
	// An incomplete end is cut off, damage refuses to open.
	for name, c := range map[string]struct {
		text []byte
		ok   bool
	}{
		"cut":    {text[:100], true},
		"zeros":  {append(append([]byte(nil), text...), make([]byte, 200)...), true},
		"header": {text[:10], true},
		"bit":    {append(append([]byte(nil), text[:70]...), append([]byte{text[70] ^ 1}, text[71:]...)...), false},
		"hole":   {append(append([]byte(nil), text[:blockSize]...), append(make([]byte, blockSize), text[blockSize:]...)...), false},
		"other":  {[]byte("something else altogether"), false},
	} {
		if err := os.WriteFile(path, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := openSpent(path, deskAddress, 100)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrSpent) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			closeSpent(t, s)
		}
	}
}

func closeSpent(t testing.TB, s *spent) {
	t.Helper()
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

// TestSpentLimit: a full file is written anew without what no window needs, and refuses if
// all of it is needed.
func TestSpentLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spent")
	s, err := openSpent(path, deskAddress, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeSpent(t, s)
	s.most = 4
	at := func(hours int64) *departure {
		return &departure{asset{LimitToken, baseMint}, hours * int64(time.Hour), 1, 1}
	}
	for h := range int64(4) {
		if refusal := s.leave(nil, at(h+1)); refusal != 0 {
			t.Fatal(refusal)
		}
	}
	if refusal := s.leave(nil, at(5)); refusal != RefusalFull {
		t.Errorf("one more: %v", refusal)
	}
	if refusal := s.leave(nil, at(26)); refusal != 0 {
		t.Errorf("after a day: %v", refusal)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 4*blockSize || s.count != 3 {
		t.Errorf("%v, %d entries", err, s.count)
	}
	if hour, day := s.used(asset{LimitToken, baseMint}, 26*int64(time.Hour)); hour != 1 || day != 3 {
		t.Errorf("%d and %d", hour, day)
	}
}
