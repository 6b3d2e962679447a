package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
)

// attackRig is a desk under attack. Each attack leaves the build as it was. Slots pass
// only where the test opens them, so that no blockhash expires meanwhile.
type attackRig struct {
	*rig
	taker, other, mallory *buyer
	build                 *built
	cases                 int
}

var attackDeal = deal{"T1", "1000", "USDC", "desk"}

func newAttackRig(t *testing.T) *attackRig {
	t.Helper()
	a := &attackRig{rig: newRig(t, rigOptions{wallets: 3, blockhashSlots: mainnetBlockhash, chain: func(o *sandbox.Options) { o.ManualSlots = true }})}
	a.taker, a.other = a.wallet(1).handshake(), a.wallet(2).handshake()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.mallory = a.buyer("mallory", key).handshake()
	return a
}

// with is a for a part of the test.
func (a *attackRig) with(t *testing.T) *attackRig {
	part, r := *a, *a.rig
	part.rig, r.t = &r, t
	for _, b := range []**buyer{&part.taker, &part.other, &part.mallory} {
		c := **b
		c.r = &r
		*b = &c
	}
	return &part
}

// target returns the build that is attacked.
func (a *attackRig) target() *built {
	a.t.Helper()
	if a.build == nil {
		a.build = a.taker.build(attackDeal, pathBuild)
	}
	return a.build
}

// wanted is what an attack must meet; what is zero is left open.
type wanted struct {
	status       int
	code, reason string
}

var (
	mismatch  = wanted{409, "REFUS_DVP", "message_mismatch"}
	badSigned = wanted{409, "REFUS_DVP", "bad_signature"}
	notSigned = wanted{409, "REFUS_DVP", "empty_counterparty"}
	notAToken = wanted{403, "TAKER_NON_ADMIS_JETON", ""}
	anothers  = wanted{403, "TAKER_NON_ADMIS_JETON", "taker_mismatch"}
)

// refused holds an answer to what it must be, and the desk to having done
// nothing: no balance has moved, no transaction of the desk's has landed, and the
// build has no signature of the desk's.
func (a *attackRig) refused(name string, x *built, want wanted, attack func() *answer) {
	a.t.Helper()
	a.cases++
	was, landed := a.holdings(a.mallory), len(a.transactionsOf(a.desk))
	got := attack()
	if got.status != want.status && want.status != 0 || want.code != "" && got.Code != want.code || want.reason != "" && got.Reason != want.reason {
		a.t.Errorf("%s: %s, want %+v", name, got, want)
	}
	if bytes.Contains(got.body, []byte("panic")) || strings.Contains(string(got.body), a.taker.token) {
		a.t.Errorf("%s: the answer tells too much: %s", name, got)
	}
	if moved := a.holdings(a.mallory).minus(was); len(moved) > 0 {
		a.t.Errorf("%s: moved %v", name, moved)
	}
	if now := len(a.transactionsOf(a.desk)); now != landed {
		a.t.Errorf("%s: %d transactions of the desk's, there were %d", name, now, landed)
	}
	if x != nil {
		a.unsigned(name, x)
	}
}

// buildShown is what GET builds/{id} tells.
type buildShown struct {
	State     string  `json:"state"`
	Signature *string `json:"signature"`
}

// unsigned fails where the desk has signed a build.
func (a *attackRig) unsigned(name string, x *built) {
	a.t.Helper()
	var b buildShown
	a.taker.want(200, "GET", pathBuilds+x.BuildID, nil).into(a.t, &b)
	if b.Signature != nil || b.State == "broadcast" || b.State == "finalized" {
		a.t.Errorf("%s: the build is %+v", name, b)
	}
}

// submitRaw submits bytes for the target.
func (a *attackRig) submitRaw(x *built, raw []byte) *answer {
	a.t.Helper()
	return a.taker.call("POST", pathSubmit, submission(x, raw), a.taker.bearer()...)
}

// tryRaw is submitRaw for goroutines: what has no answer has status 0.
func (a *attackRig) tryRaw(x *built, raw []byte) *answer {
	got, err := a.taker.post(a.t.Context(), pathSubmit, submission(x, raw))
	if err != nil {
		return &answer{body: []byte(err.Error())}
	}
	return got
}

// TestSubmitAttacks: whatever is submitted but the build itself with its taker's
// signature, the desk does not sign. Each part ends with the right submission,
// which must settle, so that no attack was refused for a reason of its own.
func TestSubmitAttacks(t *testing.T) {
	runtest.NotRaced(t, "it waits for a chain most of the time, and the tests of settle race the same code")
	t.Parallel()
	a := newAttackRig(t)
	for _, part := range []struct {
		name string
		run  func(*attackRig)
	}{
		{"messages", (*attackRig).messages},
		{"bytes", (*attackRig).bytes},
		{"signatures", (*attackRig).signatures},
		{"bodies", (*attackRig).bodies},
		{"tokens", (*attackRig).tokens},
		{"guards", (*attackRig).guards},
		{"funds", (*attackRig).funds},
		{"repeats", (*attackRig).repeats},
		{"bits", (*attackRig).bits},
	} {
		t.Run(part.name, func(t *testing.T) {
			p := a.with(t)
			part.run(p)
			a.build, a.cases = nil, p.cases
		})
	}
	const least = 60
	if a.cases < least && !t.Failed() {
		t.Errorf("%d named attacks, want at least %d", a.cases, least)
	}
	t.Logf("%d named attacks", a.cases)
}

// settles submits the target rightly and holds all balances to its terms.
func (a *attackRig) settles(x *built) {
	a.t.Helper()
	was := a.holdings(a.mallory)
	a.taker.settles(x, a.taker.submit(x))
	moved := a.holdings(a.mallory).minus(was)
	if moved["desk SLUSD"] >= 0 || moved["desk SLUSD"] != -moved["wallet-1 SLUSD"] ||
		moved["treasury USDC"] <= 0 || moved["treasury USDC"] != -moved["wallet-1 USDC"] {
		a.t.Errorf("the right submission moved %v", moved)
	}
}

// settles waits until what was submitted has settled.
func (b *buyer) settles(x *built, submitted *answer) {
	b.r.t.Helper()
	var s struct {
		Signature string `json:"signature"`
	}
	submitted.into(b.r.t, &s)
	if submitted.status != 200 || s.Signature == "" {
		b.r.t.Fatalf("the right submission: %s", submitted)
	}
	await.True(b.r.t, s.Signature+" to land", func() bool { return b.r.succeeded(s.Signature) })
	b.r.finalize()
	b.awaitClaim(x.ClaimID, "settled")
}

// finalize moves the chain on until what has landed is finalized.
func (r *rig) finalize() {
	r.t.Helper()
	r.control("advance", map[string]any{"slots": testFinalizeSlots + 1})
}

// messages submits each tampering, signed by all whose keys the attackers have.
func (a *attackRig) messages() {
	for i := range tamperings {
		c := &tamperings[i]
		x := a.target()
		changed := c.apply(a.t, x.raw, parties{a.desk, a.taker.address, a.mallory.address})
		message, err := changed.Message.Append(nil)
		if err != nil {
			a.t.Fatal(err)
		}
		for slot, signer := range changed.Message.Signers() {
			for _, b := range []*buyer{a.taker, a.mallory} {
				if signer == b.address {
					changed.Signatures[slot] = solana.Signature(ed25519.Sign(b.key, message))
				}
			}
		}
		raw := encoded(a.t, changed)
		a.refused(c.name, x, mismatch, func() *answer { return a.submitRaw(x, raw) })
	}
	a.settles(a.target())
}

// bytes submits what is not a transaction of the build's form any more.
func (a *attackRig) bytes() {
	x := a.target()
	slots := len(x.slots)
	message := 1 + 64*slots
	keys := int(x.message[4])
	blockhash := message + 5 + 32*keys
	for name, at := range map[string]int{
		"nothing but the count": 1, "in the first slot": 40, "in the second slot": 100, "at the message": message,
		"in the header": message + 2, "at the keys": message + 5, "in the keys": message + 50, "in the blockhash": blockhash + 7,
		"at the instructions": blockhash + 32, "in an instruction": blockhash + 60, "at the memo": len(x.raw) - 8, "at the last byte": len(x.raw) - 1,
	} {
		signed := a.taker.signed(x)
		a.refused("truncated "+name, x, mismatch, func() *answer { return a.submitRaw(x, signed[:at]) })
	}
	for name, change := range map[string]func(signed []byte) []byte{
		"a zero behind":              func(s []byte) []byte { return append(s, 0) },
		"itself behind":              func(s []byte) []byte { return append(s, s...)[:min(2*len(s), tx.MaxSize)] },
		"filled to the largest size": func(s []byte) []byte { return append(s, make([]byte, tx.MaxSize-len(s))...) },
		"count in two bytes":         func(s []byte) []byte { return slices.Concat([]byte{s[0] | 0x80, 0}, s[1:]) },
		"count in three bytes":       func(s []byte) []byte { return slices.Concat([]byte{s[0] | 0x80, 0x80, 0}, s[1:]) },
		"keys counted in two bytes": func(s []byte) []byte {
			at := message + 4
			return slices.Concat(s[:at], []byte{s[at] | 0x80, 0}, s[at+1:])
		},
		"one slot more": func(s []byte) []byte {
			return slices.Concat([]byte{s[0] + 1}, s[1:message], make([]byte, 64), s[message:])
		},
		"one slot less":       func(s []byte) []byte { return slices.Concat([]byte{s[0] - 1}, s[1:message-64], s[message:]) },
		"no slot":             func(s []byte) []byte { return slices.Concat([]byte{0}, s[message:]) },
		"the message alone":   func(s []byte) []byte { return s[message:] },
		"all zero":            func(s []byte) []byte { return make([]byte, len(s)) },
		"another version":     func(s []byte) []byte { s[message] = 0x82; return s },
		"the slots exchanged": func(s []byte) []byte { return slices.Concat(s[:1], s[65:129], s[1:65], s[129:]) },
		"desk's slot a one":   func(s []byte) []byte { s[1+64*slices.Index(x.slots, a.desk)] = 1; return s },
		"desk's slot random":  func(s []byte) []byte { copy(s[1+64*slices.Index(x.slots, a.desk):][:64], randomBytes(64)); return s },
		"taker in both slots": func(s []byte) []byte {
			copy(s[1:], slices.Concat(ed25519.Sign(a.taker.key, x.message), ed25519.Sign(a.taker.key, x.message)))
			return s
		},
		"instructions doubled": func(s []byte) []byte { return slices.Concat(s, s[blockhash+32:]) },
	} {
		raw := change(a.taker.signed(x))
		a.refused(name, x, mismatch, func() *answer { return a.submitRaw(x, raw) })
	}
	a.settles(x)
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		panic(err)
	}
	return b
}

// groupOrder is that of the curve: a signature's S is below it.
var groupOrder, _ = new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)

// malleate adds the group's order to a signature's S: a lax verifier takes both.
func malleate(signature []byte) []byte {
	s := slices.Clone(signature[32:])
	slices.Reverse(s)
	sum := new(big.Int).Add(new(big.Int).SetBytes(s), groupOrder).FillBytes(make([]byte, 32))
	slices.Reverse(sum)
	return slices.Concat(signature[:32], sum)
}

// signatures submits the right message under signatures that are not the taker's,
// in the transaction and alone.
func (a *attackRig) signatures() {
	x := a.target()
	second := a.taker.build(attackDeal, pathBuild)
	others := a.other.build(attackDeal, pathBuild)
	right := ed25519.Sign(a.taker.key, x.message)
	flipped := slices.Clone(right)
	flipped[10] ^= 4
	identity := make([]byte, 32)
	identity[0] = 1
	for name, c := range map[string]struct {
		signature []byte
		want      wanted
	}{
		"no signature":                 {make([]byte, 64), notSigned},
		"one bit of it":                {flipped, badSigned},
		"S without R":                  {slices.Concat(make([]byte, 32), right[32:]), badSigned},
		"R without S":                  {slices.Concat(right[:32], make([]byte, 32)), badSigned},
		"S past the group's order":     {malleate(right), badSigned},
		"R the identity, S zero":       {slices.Concat(identity, make([]byte, 32)), badSigned},
		"all ones":                     {bytes.Repeat([]byte{255}, 64), badSigned},
		"mallory's key":                {ed25519.Sign(a.mallory.key, x.message), badSigned},
		"another taker's key":          {ed25519.Sign(a.other.key, x.message), badSigned},
		"over another build":           {ed25519.Sign(a.taker.key, second.message), badSigned},
		"over another taker's build":   {ed25519.Sign(a.taker.key, others.message), badSigned},
		"over the whole transaction":   {ed25519.Sign(a.taker.key, x.raw), badSigned},
		"over the digest":              {ed25519.Sign(a.taker.key, must(hex.DecodeString(x.Digest))), badSigned},
		"over the base64":              {ed25519.Sign(a.taker.key, []byte(x.Transaction)), badSigned},
		"over the build's id":          {ed25519.Sign(a.taker.key, []byte(x.BuildID)), badSigned},
		"over nothing":                 {ed25519.Sign(a.taker.key, nil), badSigned},
		"halves exchanged":             {slices.Concat(right[32:], right[:32]), badSigned},
		"over a message cut by a byte": {ed25519.Sign(a.taker.key, x.message[:len(x.message)-1]), badSigned},
	} {
		raw := slices.Clone(x.raw)
		copy(raw[1+64*slices.Index(x.slots, a.taker.address):], c.signature)
		a.refused(name+", in the transaction", x, c.want, func() *answer { return a.submitRaw(x, raw) })
		a.refused(name+", alone", x, c.want, func() *answer {
			return a.taker.call("POST", pathSubmit, map[string]string{"build_id": x.BuildID, "signature": base58.Encode(c.signature)}, a.taker.bearer()...)
		})
	}
	a.smallOrder()
	// The right one, alone, is taken.
	was := a.holdings()
	got := a.taker.call("POST", pathSubmit, map[string]string{"build_id": x.BuildID, "signature": base58.Encode(right)}, a.taker.bearer()...)
	a.taker.settles(x, got)
	if moved := a.holdings().minus(was); moved["wallet-1 SLUSD"] <= 0 {
		a.t.Errorf("the right signature alone moved %v", moved)
	}
	a.settles(second)
}

// smallOrder: a key of small order, whose signatures anybody can make, gets no
// token and no build.
func (a *attackRig) smallOrder() {
	key := make([]byte, 32)
	key[0] = 1 // the identity: R = identity, S = 0 verifies for any message in a lax verifier
	for name, pubkey := range map[string][]byte{
		"the identity": key, "zero": make([]byte, 32),
		"order 8": must(hex.DecodeString("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")),
		"p":       must(hex.DecodeString("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")),
	} {
		a.refused("challenge for a key of small order: "+name, nil, wanted{400, "INVALID_FIELD", "not_a_key"}, func() *answer {
			return a.mallory.call("POST", pathHandshake, map[string]string{"pubkey": base58.Encode(pubkey)})
		})
		body := a.taker.order(attackDeal, pathBuild)
		body["taker"] = base58.Encode(pubkey)
		want := anothers
		if name == "zero" {
			want = notSigned
		}
		a.refused("build for a key of small order: "+name, nil, want, func() *answer {
			return a.taker.call("POST", pathBuild, body, a.taker.bearer()...)
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// bodies submits what is no right request.
func (a *attackRig) bodies() {
	x := a.target()
	signed := a.taker.signed(x)
	text := base64.StdEncoding.EncodeToString(signed)
	signature := base58.Encode(ed25519.Sign(a.taker.key, x.message))
	body := func(members ...any) string {
		out := map[string]any{}
		for i := 0; i < len(members); i += 2 {
			out[members[i].(string)] = members[i+1]
		}
		return string(must(json.Marshal(out)))
	}
	field := func(reason string) wanted { return wanted{400, "INVALID_FIELD", reason} }
	notText, unknown := field("not_base64"), wanted{404, "UNKNOWN_CLAIM", "unknown_build"}
	const id, transaction, alone = "build_id", "transaction", "signature"
	for name, c := range map[string]struct {
		body string
		want wanted
	}{
		"both halves":                  {body(id, x.BuildID, transaction, text, alone, signature), field("one_of_two")},
		"neither":                      {body(id, x.BuildID), notSigned},
		"an empty transaction":         {body(id, x.BuildID, transaction, ""), notSigned},
		"an empty signature":           {body(id, x.BuildID, alone, ""), notSigned},
		"null":                         {body(id, x.BuildID, transaction, nil), notSigned},
		"a number":                     {body(id, x.BuildID, transaction, 7), field("wrong_type")},
		"a list":                       {body(id, x.BuildID, transaction, []string{text}), field("wrong_type")},
		"no build":                     {body(transaction, text), wanted{400, "MISSING_FIELD", ""}},
		"base64 without its padding":   {body(id, x.BuildID, transaction, strings.TrimRight(padded(signed), "=")), notText},
		"base64 for URLs":              {body(id, x.BuildID, transaction, urlText(signed)), notText},
		"base64 with a line break":     {body(id, x.BuildID, transaction, text[:76]+"\n"+text[76:]), notText},
		"base64 with a space":          {body(id, x.BuildID, transaction, " "+text), notText},
		"base64 with trailing bits":    {body(id, x.BuildID, transaction, trailingBits(signed)), notText},
		"base64 twice":                 {body(id, x.BuildID, transaction, base64.StdEncoding.EncodeToString([]byte(text))), mismatch},
		"hexadecimal":                  {body(id, x.BuildID, transaction, hex.EncodeToString(signed)), mismatch},
		"base58":                       {body(id, x.BuildID, transaction, oddText(signed)), notText},
		"a signature of 63 bytes":      {body(id, x.BuildID, alone, base58.Encode(bytes.Repeat([]byte{7}, 63))), field("not_a_signature")},
		"a signature of 65 bytes":      {body(id, x.BuildID, alone, base58.Encode(bytes.Repeat([]byte{7}, 65))), field("not_a_signature")},
		"a signature in hexadecimal":   {body(id, x.BuildID, alone, hex.EncodeToString(bytes.Repeat([]byte{7}, 64))), field("too_long")},
		"past the size of anything":    {body(id, x.BuildID, transaction, base64.StdEncoding.EncodeToString(make([]byte, 9_000))), field("too_long")},
		"an unknown build":             {body(id, "B0000000000001", transaction, text), unknown},
		"the claim's id":               {body(id, x.ClaimID, transaction, text), unknown},
		"the build's id in lower case": {body(id, strings.ToLower(x.BuildID), transaction, text), unknown},
		"the build's id and a space":   {body(id, x.BuildID+" ", transaction, text), unknown},
		"the build's id as a number":   {body(id, 7, transaction, text), field("wrong_type")},
		"a list as the body":           {`[]`, wanted{400, "INVALID_JSON", "not_an_object"}},
		"no JSON":                      {`{"build_id":`, wanted{400, "INVALID_JSON", "syntax"}},
		"a build named twice":          {`{"build_id":"` + x.BuildID + `","build_id":"B0000000000001","transaction":"` + text + `"}`, field("repeated")},
		"a transaction named twice": {
			`{"build_id":"` + x.BuildID + `","transaction":"` + x.Transaction + `","transaction":"` + text + `"}`, field("repeated"),
		},
	} {
		a.refused(name, x, c.want, func() *answer { return a.taker.call("POST", pathSubmit, c.body, a.taker.bearer()...) })
	}
	a.settles(x)
}

// padded is base64 that ends with "=", whatever the length.
func padded(raw []byte) string {
	for len(raw)%3 == 0 {
		raw = append(slices.Clone(raw), 0)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// oddText is base58 of a length that no base64 has.
func oddText(raw []byte) string {
	text := base58.Encode(raw)
	return text[:len(text)/4*4-1]
}

// urlText is base64 of a variant that differs from the standard's.
func urlText(raw []byte) string {
	text := base64.URLEncoding.EncodeToString(raw)
	if !strings.ContainsAny(text, "-_") {
		text = "-" + text[1:]
	}
	return text
}

// trailingBits is base64 whose last character has bits that belong to no byte.
func trailingBits(raw []byte) string {
	text := padded(raw)
	at := strings.IndexByte(text, '=') - 1
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	return text[:at] + string(alphabet[strings.IndexByte(alphabet, text[at])|1]) + text[at+1:]
}

// tokens submits the right bytes as somebody who may not.
func (a *attackRig) tokens() {
	x := a.target()
	right := submission(x, a.taker.signed(x))
	revoked := a.wallet(1).handshake()
	a.revokeNewest()
	for name, c := range map[string]struct {
		headers []string
		want    wanted
	}{
		"no token":             {nil, notAToken},
		"an empty token":       {[]string{"Authorization", "Bearer "}, notAToken},
		"another scheme":       {[]string{"Authorization", "Basic " + a.taker.token}, notAToken},
		"the token alone":      {[]string{"Authorization", a.taker.token}, notAToken},
		"an unknown token":     {[]string{"Authorization", "Bearer " + strings.Repeat("A", len(a.taker.token))}, notAToken},
		"a token cut short":    {[]string{"Authorization", "Bearer " + a.taker.token[:len(a.taker.token)-1]}, notAToken},
		"a token and more":     {[]string{"Authorization", "Bearer " + a.taker.token + "A"}, notAToken},
		"a revoked token":      {revoked.bearer(), notAToken},
		"somebody else's":      {a.other.bearer(), anothers},
		"mallory's":            {a.mallory.bearer(), anothers},
		"a very long token":    {[]string{"Authorization", "Bearer " + strings.Repeat("x", 3000)}, notAToken},
		"a token in the query": {[]string{"X-Token", a.taker.token}, notAToken},
	} {
		a.refused(name, x, c.want, func() *answer { return a.taker.call("POST", pathSubmit, right, c.headers...) })
	}
	for name, c := range map[string]struct {
		headers []string
		want    wanted
	}{
		"build without a token":             {nil, notAToken},
		"build by a revoked token":          {revoked.bearer(), notAToken},
		"build for somebody else's address": {a.mallory.bearer(), anothers},
	} {
		a.refused(name, x, c.want, func() *answer {
			return a.taker.call("POST", pathBuild, a.taker.order(attackDeal, pathBuild), c.headers...)
		})
	}
	a.settles(x)
}

// revokeNewest revokes the token that was issued last.
func (a *attackRig) revokeNewest() {
	a.t.Helper()
	type token struct {
		ID       string `json:"token_id"`
		IssuedAt string `json:"issued_at"`
	}
	var list struct {
		Tokens []token `json:"tokens"`
	}
	if err := json.Unmarshal([]byte(cli(a.t, a.s, "token", "list", "--json")), &list); err != nil {
		a.t.Fatal(err)
	}
	newest := slices.MaxFunc(list.Tokens, func(x, y token) int { return strings.Compare(x.IssuedAt, y.IssuedAt) })
	cli(a.t, a.s, "token", "revoke", newest.ID)
}

// guards trips the desk's own, one by one, between build and submit.
func (a *attackRig) guards() {
	for _, c := range []struct {
		name, reason string
		trip, mend   []string
	}{
		{"the desk is locked", "locked", []string{"lock", "--reason", "test"}, []string{"unlock"}},
		{"the pair is locked", "locked", []string{"lock", "--pair", testSymbol, "--reason", "test"}, []string{"unlock", "--pair", testSymbol}},
		{"the rail is locked", "locked", []string{"lock", "--rail", "USDC", "--reason", "test"}, []string{"unlock", "--rail", "USDC"}},
		{
			"the corridor has moved up", "price_corridor",
			[]string{"price", "set", "--pair", testSymbol, "--usd", "1.2"},
			[]string{"price", "set", "--pair", testSymbol, "--usd", "0.999"},
		},
		{
			"the corridor has moved down", "price_corridor",
			[]string{"price", "set", "--pair", testSymbol, "--usd", "0.8"},
			[]string{"price", "set", "--pair", testSymbol, "--usd", "0.999"},
		},
		{
			"the inventory was lowered", "inventory",
			[]string{"inventory", "set", "--pair", testSymbol, "--amount", "1"},
			[]string{"inventory", "set", "--pair", testSymbol, "--amount", "50000000"},
		},
	} {
		x := a.target()
		cli(a.t, a.s, c.trip...)
		a.refused(c.name, x, refus(c.reason), func() *answer { return a.taker.submit(x) })
		a.refused(c.name+", and the signature is bad", x, wanted{409, "REFUS_DVP", ""}, func() *answer { return a.submitRaw(x, x.raw) })
		cli(a.t, a.s, c.mend...)
	}
	a.settles(a.target())
	// A build that its blockhash has outlived can never land.
	old := a.taker.build(attackDeal, pathBuild)
	a.control("advance", map[string]any{"slots": 200})
	a.refused("the blockhash has expired", old, refus("expired"), func() *answer { return a.taker.submit(old) })
	a.awaitBlockhash()
	a.refused("the blockhash has expired, and the desk knows", old, refus("expired"), func() *answer { return a.taker.submit(old) })
	a.build = nil
	a.settles(a.target())
}

// A submission that comes too late for the prices that it was made at is refused too.
func TestSubmitTooLate(t *testing.T) {
	runtest.NotRaced(t, "it waits for a chain most of the time, and the tests of settle race the same code")
	t.Parallel()
	const maxAge = 4 // seconds
	l := newLateRig(t, rigOptions{wallets: 1, maxAge: maxAge})
	usdc, sol := deal{"T1", "1000", "USDC", "desk"}, deal{"T1", "1000", "SOL", "desk"}
	x := l.builds(usdc)
	l.awaitStale()
	l.refused("the price is too old", x, refus("price_stale"), func() *answer { return l.taker.submit(x) })
	x = l.builds(sol)
	l.awaitStaleSOL()
	l.prices("price", "set", "--pair", testSymbol, "--usd", "0.999")
	l.refused("SOL's price is too old", x, refus("price_stale"), func() *answer { return l.taker.submit(x) })
	x = l.builds(sol)
	l.refused("SOL has fallen", x, refus("price_corridor"), func() *answer {
		return await.Value(t, "a refusal while the pair's price is young", func() *answer {
			l.prices("price", "set", "--pair", testSymbol, "--usd", "0.999")
			l.prices("price", "set", "--rail", "SOL", "--usd", "120")
			return l.taker.submit(x)
		}, func(got *answer) bool { return got.Reason != "price_stale" })
	})
	l.sells(usdc)
}

// Nor does a submission count that comes after its reservation.
func TestSubmitAfterReservation(t *testing.T) {
	runtest.NotRaced(t, "it waits for a chain most of the time, and the tests of settle race the same code")
	t.Parallel()
	l := newLateRig(t, rigOptions{wallets: 1, claimTTL: 5})
	usdc := deal{"T1", "1000", "USDC", "desk"}
	x := l.builds(usdc)
	l.taker.awaitClaim(x.ClaimID, "expired")
	l.refused("the reservation is over", x, wanted{409, "", ""}, func() *answer { return l.taker.submit(x) })
	l.sells(usdc)
}

// lateRig is a desk whose prices or reservations soon end.
type lateRig struct{ *attackRig }

func newLateRig(t *testing.T, o rigOptions) *lateRig {
	t.Helper()
	r := newRig(t, o)
	return &lateRig{&attackRig{rig: r, taker: r.wallet(1).handshake(), mallory: r.wallet(1)}}
}

func refus(reason string) wanted { return wanted{409, "REFUS_DVP", reason} }

func (l *lateRig) prices(args ...string) {
	l.t.Helper()
	cli(l.t, l.s, args...)
}

// builds sets both prices and takes a claim at these, again where they have aged
// meanwhile.
func (l *lateRig) builds(d deal) *built {
	l.t.Helper()
	got := await.Value(l.t, "a build at young prices", func() *answer {
		l.prices("price", "set", "--pair", testSymbol, "--usd", "0.999")
		l.prices("price", "set", "--rail", "SOL", "--usd", "150")
		return l.taker.call("POST", pathBuild, l.taker.order(d, pathBuild), l.taker.bearer()...)
	}, func(got *answer) bool { return got.Reason != "price_stale" })
	if got.status != 200 {
		l.t.Fatalf("build: %s", got)
	}
	x := &built{}
	got.into(l.t, x)
	return x.open(l.t)
}

// quoted returns the reason for which nothing is quoted over a rail; "" = a quote is.
func (l *lateRig) quoted(rail string) string {
	l.t.Helper()
	order := map[string]string{"order_id": "T1", "tranche_id": "T1-1", "fill_usd": "1000", "rail": rail}
	return l.taker.call("POST", "/api/v1/rfq/quote", order).Reason
}

// awaitStale waits until the pair's price is too old.
func (l *lateRig) awaitStale() {
	l.t.Helper()
	await.Equal(l.t, "the reason that nothing is quoted", "price_stale", func() string { return l.quoted("USDC") })
}

// awaitStaleSOL waits until SOL's price is too old, while the pair's is young: a quote
// over USDC comes after the refusal over SOL.
func (l *lateRig) awaitStaleSOL() {
	l.t.Helper()
	await.Equal(l.t, "the reasons that SOL and USDC are not quoted", [2]string{"price_stale", ""}, func() [2]string {
		l.prices("price", "set", "--pair", testSymbol, "--usd", "0.999")
		return [2]string{l.quoted("SOL"), l.quoted("USDC")}
	})
}

// sells has the taker buy rightly. What has aged on the way is built again.
func (l *lateRig) sells(d deal) {
	l.t.Helper()
	was := l.holdings()
	var x *built
	got := await.Value(l.t, "a submission in time", func() *answer {
		x = l.builds(d)
		return l.taker.submit(x)
	}, func(got *answer) bool { return got.status != 409 })
	l.taker.settles(x, got)
	if moved := l.holdings().minus(was); moved["desk SLUSD"] >= 0 || moved["desk SLUSD"] != -moved["wallet-1 SLUSD"] {
		l.t.Errorf("the right submission moved %v", moved)
	}
}

// funds: takers who cannot pay, or not receive.
func (a *attackRig) funds() {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	poor := a.buyer("poor", key).handshake()
	try := func(name string, d deal, reasons ...string) {
		a.t.Helper()
		got := poor.call("POST", pathBuild, poor.order(d, pathBuild), poor.bearer()...)
		var x *built
		if got.status == 200 {
			x = &built{}
			got.into(a.t, x)
			x.open(a.t)
		}
		a.refused(name, x, wanted{409, "REFUS_DVP", ""}, func() *answer {
			if x != nil {
				got = poor.submit(x)
			}
			if !slices.Contains(reasons, got.Reason) {
				a.t.Errorf("%s: %s, want one of %v", name, got, reasons)
			}
			return got
		})
	}
	const taker, desk = "taker", "desk"
	try("nothing at all, the taker pays the fee", deal{"T1", "1000", "USDC", taker}, "taker_funds")
	try("nothing at all, the desk pays the fee", deal{"T1", "1000", "USDC", desk}, "taker_funds")
	try("no SOL to pay with", deal{"T1", "1000", "SOL", desk}, "taker_funds")
	a.ask("requestAirdrop", nil, solana.Text(poor.address), 1_000_000_000)
	try("SOL, and no USDC", deal{"T1", "1000", "USDC", desk}, "taker_funds")
	try("not enough SOL", deal{"T1", "25000", "SOL", desk}, "taker_funds")
	a.control("fund", map[string]any{"wallet": solana.Text(poor.address), "symbol": "USDC", "amount": "100000000"})
	try("not enough USDC", deal{"T1", "1000", "USDC", desk}, "taker_funds")
	a.control("fund", map[string]any{"wallet": solana.Text(poor.address), "symbol": "USDC", "amount": "10000000000"})
	a.freeze(a.tokenAccount(poor.address, "USDC"), true)
	try("its USDC frozen", deal{"T1", "1000", "USDC", desk}, "simulation_failed", "taker_funds")
	a.freeze(a.tokenAccount(poor.address, "USDC"), false)
	// After all that he buys.
	x := poor.build(deal{"T1", "1000", "USDC", desk}, pathBuild)
	poor.settles(x, poor.submit(x))
	a.freeze(a.tokenAccount(poor.address, "SLUSD"), true)
	try("its account that receives frozen", deal{"T1", "1000", "USDC", desk}, "simulation_failed", "taker_funds")
}

// freeze sets the state of a token account, as the authority of its mint would.
func (r *rig) freeze(account solana.Address, frozen bool) {
	r.t.Helper()
	var got struct {
		Value struct {
			Lamports uint64   `json:"lamports"`
			Owner    string   `json:"owner"`
			Data     []string `json:"data"`
		} `json:"value"`
	}
	r.ask("getAccountInfo", &got, solana.Text(account), map[string]any{"encoding": "base64"})
	data := must(base64.StdEncoding.DecodeString(got.Value.Data[0]))
	const stateAt, initialized, isFrozen = 108, 1, 2
	data[stateAt] = initialized
	if frozen {
		data[stateAt] = isFrozen
	}
	r.control("setAccount", map[string]any{
		"pubkey": solana.Text(account), "lamports": got.Value.Lamports, "owner": got.Value.Owner,
		"data": base64.StdEncoding.EncodeToString(data),
	})
}

// repeats: the right submission from many at once, again, and with something
// else after it.
func (a *attackRig) repeats() {
	x := a.target()
	was, landed := a.holdings(), len(a.transactionsOf(a.desk))
	const many = 24
	answers := make(chan *answer, 2*many)
	right := a.taker.signed(x)
	wrong := slices.Clone(right)
	wrong[len(wrong)-1] ^= 1
	for range many {
		for _, raw := range [][]byte{right, wrong} {
			go func() { answers <- a.tryRaw(x, raw) }()
		}
	}
	signatures := map[string]int{}
	var one *answer
	for range 2 * many {
		got := <-answers
		var s struct {
			Signature   string `json:"signature"`
			Transaction string `json:"transaction"`
		}
		switch {
		case got.status == 200:
			got.into(a.t, &s)
			one = got
			signatures[s.Signature+" "+s.Transaction]++
		case got.Reason != "message_mismatch":
			a.t.Errorf("one of many: %s", got)
		}
	}
	if len(signatures) != 1 || slices.Max(slices.Collect(maps.Values(signatures))) != many {
		a.t.Fatalf("%d different answers: %v", len(signatures), slices.Collect(maps.Values(signatures)))
	}
	a.taker.settles(x, one)
	if now := len(a.transactionsOf(a.desk)); now != landed+1 {
		a.t.Errorf("%d transactions of the desk's, there were %d", now, landed)
	}
	moved := a.holdings().minus(was)
	var first *answer
	for i := range 3 {
		again := a.taker.submit(x)
		if first == nil {
			first = again
		}
		if again.status != 200 || again.State != "finalized" || string(again.body) != string(first.body) {
			a.t.Errorf("again, %d: %s, it was %s", i, again, first)
		}
	}
	for name, raw := range map[string][]byte{"wrong bytes": wrong, "no signature": x.raw} {
		a.cases++
		if got := a.submitRaw(x, raw); got.status != 409 || got.Code != "REFUS_DVP" {
			a.t.Errorf("%s after it has settled: %s", name, got)
		}
	}
	if now := a.holdings().minus(was); !maps.Equal(now, moved) {
		a.t.Errorf("after it has settled, what has moved went from %v to %v", moved, now)
	}
}

// bits turns every single bit of the message, signed anew, and of the whole
// submitted transaction. None leads to a signature of the desk's.
func (a *attackRig) bits() {
	landed, was := len(a.transactionsOf(a.desk)), a.holdings()
	whole := a.target()
	count := a.flipAll(whole, len(whole.raw), func(x *built, bit int) []byte {
		raw := a.taker.signed(x)
		raw[bit/8] ^= 1 << (bit % 8)
		return raw
	})
	message := a.target()
	count += a.flipAll(message, len(message.message), func(x *built, bit int) []byte {
		raw := slices.Clone(x.raw)
		changed := raw[1+64*len(x.slots):]
		changed[bit/8] ^= 1 << (bit % 8)
		slot := slices.Index(x.slots, a.taker.address)
		copy(raw[1+64*slot:], ed25519.Sign(a.taker.key, changed))
		return raw
	})
	if now := len(a.transactionsOf(a.desk)); now != landed {
		a.t.Errorf("%d transactions of the desk's, there were %d", now, landed)
	}
	a.moved(was, a.holdings(), map[string]int64{})
	a.t.Logf("%d bits turned", count)
	a.settles(a.target())
}

// flipAll submits every variant of a build, a few at a time.
func (a *attackRig) flipAll(x *built, size int, variant func(x *built, bit int) []byte) int {
	const workers = 8
	bits := make(chan int)
	failed := make(chan string, 8*size)
	done := make(chan struct{})
	for range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			for bit := range bits {
				got := a.tryRaw(x, variant(x, bit))
				if got.status != 409 || got.Code != "REFUS_DVP" || got.Reason != "message_mismatch" && got.Reason != "bad_signature" {
					failed <- fmt.Sprintf("bit %d of byte %d: %s", bit%8, bit/8, got)
				}
			}
		}()
	}
	for bit := range 8 * size {
		bits <- bit
	}
	close(bits)
	for range workers {
		<-done
	}
	close(failed)
	for text := range failed {
		a.t.Error(text)
	}
	a.unsigned("every bit", x)
	return 8 * size
}
