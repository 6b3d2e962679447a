package settle

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

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
)

// attackRig is a desk under attack. Each attack leaves the build as it was. Slots pass
// only where the test opens them, so that no blockhash expires meanwhile.
type attackRig struct {
	*chaintest.Rig
	taker, other, mallory *chaintest.Buyer
	build                 *chaintest.Built
	cases                 int
}

var attackDeal = chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "USDC", Payer: "desk"}

func newAttackRig(t *testing.T) *attackRig {
	t.Helper()
	a := &attackRig{Rig: chaintest.Start(t, chaintest.Options{Wallets: 3, BlockhashSlots: chaintest.MainnetBlockhash, Chain: func(o *sandbox.Options) { o.ManualSlots = true }})}
	a.taker, a.other = a.Wallet(1).Handshake(), a.Wallet(2).Handshake()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.mallory = a.Buyer("mallory", key).Handshake()
	return a
}

// with is a for a part of the test.
func (a *attackRig) with(t *testing.T) *attackRig {
	part, r := *a, *a.Rig
	part.Rig, r.T = &r, t
	for _, b := range []**chaintest.Buyer{&part.taker, &part.other, &part.mallory} {
		c := **b
		c.Rig = &r
		*b = &c
	}
	return &part
}

// target returns the build that is attacked.
func (a *attackRig) target() *chaintest.Built {
	a.T.Helper()
	if a.build == nil {
		a.build = a.taker.Build(attackDeal, chaintest.PathBuild)
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
func (a *attackRig) refused(name string, x *chaintest.Built, want wanted, attack func() *chaintest.Answer) {
	a.T.Helper()
	a.cases++
	was, landed := a.Holdings(a.mallory), len(a.TransactionsOf(a.Desk))
	got := attack()
	if got.Status != want.status && want.status != 0 || want.code != "" && got.Code != want.code || want.reason != "" && got.Reason != want.reason {
		a.T.Errorf("%s: %s, want %+v", name, got, want)
	}
	if bytes.Contains(got.Body, []byte("panic")) || strings.Contains(string(got.Body), a.taker.Token) {
		a.T.Errorf("%s: the answer reveals too much: %s", name, got)
	}
	if moved := a.Holdings(a.mallory).Minus(was); len(moved) > 0 {
		a.T.Errorf("%s: moved %v", name, moved)
	}
	if now := len(a.TransactionsOf(a.Desk)); now != landed {
		a.T.Errorf("%s: %d transactions of the desk's, there were %d", name, now, landed)
	}
	if x != nil {
		a.unsigned(name, x)
	}
}

// buildShown is the response of GET builds/{id}.
type buildShown struct {
	State     string  `json:"state"`
	Signature *string `json:"signature"`
}

// unsigned fails where the desk has signed a build.
func (a *attackRig) unsigned(name string, x *chaintest.Built) {
	a.T.Helper()
	var b buildShown
	a.taker.Want(200, "GET", chaintest.PathBuilds+x.BuildID, nil).Into(a.T, &b)
	if b.Signature != nil || b.State == "broadcast" || b.State == "finalized" {
		a.T.Errorf("%s: the build is %+v", name, b)
	}
}

// submitRaw submits bytes for the target.
func (a *attackRig) submitRaw(x *chaintest.Built, raw []byte) *chaintest.Answer {
	a.T.Helper()
	return a.taker.Call("POST", chaintest.PathSubmit, chaintest.Submission(x, raw), a.taker.Bearer()...)
}

// tryRaw is submitRaw for goroutines: what has no answer has status 0.
func (a *attackRig) tryRaw(x *chaintest.Built, raw []byte) *chaintest.Answer {
	got, err := post(a.T.Context(), a.taker, chaintest.PathSubmit, chaintest.Submission(x, raw))
	if err != nil {
		return &chaintest.Answer{Body: []byte(err.Error())}
	}
	return got
}

// TestSubmitAttacks: whatever is submitted but the build itself with its taker's
// signature, the desk does not sign. Each part ends with the right submission,
// which must settle, so that no attack was refused for a reason of its own.
func TestSubmitAttacks(t *testing.T) {
	runtest.SkipUnderRace(t, "it waits for a chain most of the time, and the tests of settle race the same code")
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
func (a *attackRig) settles(x *chaintest.Built) {
	a.T.Helper()
	was := a.Holdings(a.mallory)
	settles(a.taker, x, a.taker.Submit(x))
	moved := a.Holdings(a.mallory).Minus(was)
	if moved["desk SLUSD"] >= 0 || moved["desk SLUSD"] != -moved["wallet-1 SLUSD"] ||
		moved["treasury USDC"] <= 0 || moved["treasury USDC"] != -moved["wallet-1 USDC"] {
		a.T.Errorf("the right submission moved %v", moved)
	}
}

// settles waits until what was submitted has settled.
func settles(b *chaintest.Buyer, x *chaintest.Built, submitted *chaintest.Answer) {
	b.Rig.T.Helper()
	var s struct {
		Signature string `json:"signature"`
	}
	submitted.Into(b.Rig.T, &s)
	if submitted.Status != 200 || s.Signature == "" {
		b.Rig.T.Fatalf("the right submission: %s", submitted)
	}
	await.True(b.Rig.T, s.Signature+" to land", func() bool { return succeeded(b.Rig, s.Signature) })
	b.Rig.Finalize()
	b.AwaitClaim(x.ClaimID, "settled")
}

// messages submits each tampering, signed by all whose keys the attackers have.
func (a *attackRig) messages() {
	for i := range tamperings {
		c := &tamperings[i]
		x := a.target()
		changed := c.apply(a.T, x.Raw, parties{a.Desk, a.taker.Address, a.mallory.Address})
		message, err := changed.Message.Append(nil)
		if err != nil {
			a.T.Fatal(err)
		}
		for slot, signer := range changed.Message.Signers() {
			for _, b := range []*chaintest.Buyer{a.taker, a.mallory} {
				if signer == b.Address {
					changed.Signatures[slot] = solana.Signature(ed25519.Sign(b.Key, message))
				}
			}
		}
		raw := encoded(a.T, changed)
		a.refused(c.name, x, mismatch, func() *chaintest.Answer { return a.submitRaw(x, raw) })
	}
	a.settles(a.target())
}

// bytes submits what is not a transaction of the build's form any more.
func (a *attackRig) bytes() {
	x := a.target()
	slots := len(x.Slots)
	message := 1 + 64*slots
	keys := int(x.Message[4])
	blockhash := message + 5 + 32*keys
	for name, at := range map[string]int{
		"nothing but the count": 1, "in the first slot": 40, "in the second slot": 100, "at the message": message,
		"in the header": message + 2, "at the keys": message + 5, "in the keys": message + 50, "in the blockhash": blockhash + 7,
		"at the instructions": blockhash + 32, "in an instruction": blockhash + 60, "at the memo": len(x.Raw) - 8, "at the last byte": len(x.Raw) - 1,
	} {
		signed := a.taker.Signed(x)
		a.refused("truncated "+name, x, mismatch, func() *chaintest.Answer { return a.submitRaw(x, signed[:at]) })
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
		"desk's slot a one":   func(s []byte) []byte { s[1+64*slices.Index(x.Slots, a.Desk)] = 1; return s },
		"desk's slot random":  func(s []byte) []byte { copy(s[1+64*slices.Index(x.Slots, a.Desk):][:64], randomBytes(64)); return s },
		"taker in both slots": func(s []byte) []byte {
			copy(s[1:], slices.Concat(ed25519.Sign(a.taker.Key, x.Message), ed25519.Sign(a.taker.Key, x.Message)))
			return s
		},
		"instructions doubled": func(s []byte) []byte { return slices.Concat(s, s[blockhash+32:]) },
	} {
		raw := change(a.taker.Signed(x))
		a.refused(name, x, mismatch, func() *chaintest.Answer { return a.submitRaw(x, raw) })
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
	second := a.taker.Build(attackDeal, chaintest.PathBuild)
	others := a.other.Build(attackDeal, chaintest.PathBuild)
	right := ed25519.Sign(a.taker.Key, x.Message)
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
		"mallory's key":                {ed25519.Sign(a.mallory.Key, x.Message), badSigned},
		"another taker's key":          {ed25519.Sign(a.other.Key, x.Message), badSigned},
		"over another build":           {ed25519.Sign(a.taker.Key, second.Message), badSigned},
		"over another taker's build":   {ed25519.Sign(a.taker.Key, others.Message), badSigned},
		"over the whole transaction":   {ed25519.Sign(a.taker.Key, x.Raw), badSigned},
		"over the digest":              {ed25519.Sign(a.taker.Key, programtest.Must(hex.DecodeString(x.Digest))), badSigned},
		"over the base64":              {ed25519.Sign(a.taker.Key, []byte(x.Transaction)), badSigned},
		"over the build's id":          {ed25519.Sign(a.taker.Key, []byte(x.BuildID)), badSigned},
		"over nothing":                 {ed25519.Sign(a.taker.Key, nil), badSigned},
		"halves exchanged":             {slices.Concat(right[32:], right[:32]), badSigned},
		"over a message cut by a byte": {ed25519.Sign(a.taker.Key, x.Message[:len(x.Message)-1]), badSigned},
	} {
		raw := slices.Clone(x.Raw)
		copy(raw[1+64*slices.Index(x.Slots, a.taker.Address):], c.signature)
		a.refused(name+", in the transaction", x, c.want, func() *chaintest.Answer { return a.submitRaw(x, raw) })
		a.refused(name+", alone", x, c.want, func() *chaintest.Answer {
			return a.taker.Call("POST", chaintest.PathSubmit, map[string]string{"build_id": x.BuildID, "signature": base58.Encode(c.signature)}, a.taker.Bearer()...)
		})
	}
	a.smallOrder()
	// The right one, alone, is taken.
	was := a.Holdings()
	got := a.taker.Call("POST", chaintest.PathSubmit, map[string]string{"build_id": x.BuildID, "signature": base58.Encode(right)}, a.taker.Bearer()...)
	settles(a.taker, x, got)
	if moved := a.Holdings().Minus(was); moved["wallet-1 SLUSD"] <= 0 {
		a.T.Errorf("the right signature alone moved %v", moved)
	}
	a.settles(second)
}

// smallOrder: a key of small order, for which signatures can be forged, gets no
// token and no build.
func (a *attackRig) smallOrder() {
	key := make([]byte, 32)
	key[0] = 1 // the identity: R = identity, S = 0 verifies for any message in a lax verifier
	for name, pubkey := range map[string][]byte{
		"the identity": key, "zero": make([]byte, 32),
		"order 8": programtest.Must(hex.DecodeString("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")),
		"p":       programtest.Must(hex.DecodeString("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")),
	} {
		a.refused("challenge for a key of small order: "+name, nil, wanted{400, "INVALID_FIELD", "not_a_key"}, func() *chaintest.Answer {
			return a.mallory.Call("POST", chaintest.PathHandshake, map[string]string{"pubkey": base58.Encode(pubkey)})
		})
		body := a.taker.Order(attackDeal, chaintest.PathBuild)
		body["taker"] = base58.Encode(pubkey)
		want := anothers
		if name == "zero" {
			want = notSigned
		}
		a.refused("build for a key of small order: "+name, nil, want, func() *chaintest.Answer {
			return a.taker.Call("POST", chaintest.PathBuild, body, a.taker.Bearer()...)
		})
	}
}

// bodies submits what is no right request.
func (a *attackRig) bodies() {
	x := a.target()
	signed := a.taker.Signed(x)
	text := base64.StdEncoding.EncodeToString(signed)
	signature := base58.Encode(ed25519.Sign(a.taker.Key, x.Message))
	body := func(members ...any) string {
		out := map[string]any{}
		for i := 0; i < len(members); i += 2 {
			out[members[i].(string)] = members[i+1]
		}
		return string(programtest.Must(json.Marshal(out)))
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
		a.refused(name, x, c.want, func() *chaintest.Answer {
			return a.taker.Call("POST", chaintest.PathSubmit, c.body, a.taker.Bearer()...)
		})
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

// tokens submits the right bytes with wrong tokens.
func (a *attackRig) tokens() {
	x := a.target()
	right := chaintest.Submission(x, a.taker.Signed(x))
	revoked := a.Wallet(1).Handshake()
	a.revokeNewest()
	for name, c := range map[string]struct {
		headers []string
		want    wanted
	}{
		"no token":             {nil, notAToken},
		"an empty token":       {[]string{"Authorization", "Bearer "}, notAToken},
		"another scheme":       {[]string{"Authorization", "Basic " + a.taker.Token}, notAToken},
		"the token alone":      {[]string{"Authorization", a.taker.Token}, notAToken},
		"an unknown token":     {[]string{"Authorization", "Bearer " + strings.Repeat("A", len(a.taker.Token))}, notAToken},
		"a token cut short":    {[]string{"Authorization", "Bearer " + a.taker.Token[:len(a.taker.Token)-1]}, notAToken},
		"a token and more":     {[]string{"Authorization", "Bearer " + a.taker.Token + "A"}, notAToken},
		"a revoked token":      {revoked.Bearer(), notAToken},
		"somebody else's":      {a.other.Bearer(), anothers},
		"mallory's":            {a.mallory.Bearer(), anothers},
		"a very long token":    {[]string{"Authorization", "Bearer " + strings.Repeat("x", 3000)}, notAToken},
		"a token in the query": {[]string{"X-Token", a.taker.Token}, notAToken},
	} {
		a.refused(name, x, c.want, func() *chaintest.Answer { return a.taker.Call("POST", chaintest.PathSubmit, right, c.headers...) })
	}
	for name, c := range map[string]struct {
		headers []string
		want    wanted
	}{
		"build without a token":             {nil, notAToken},
		"build by a revoked token":          {revoked.Bearer(), notAToken},
		"build for somebody else's address": {a.mallory.Bearer(), anothers},
	} {
		a.refused(name, x, c.want, func() *chaintest.Answer {
			return a.taker.Call("POST", chaintest.PathBuild, a.taker.Order(attackDeal, chaintest.PathBuild), c.headers...)
		})
	}
	a.settles(x)
}

// revokeNewest revokes the token that was issued last.
func (a *attackRig) revokeNewest() {
	a.T.Helper()
	type token struct {
		ID       string `json:"token_id"`
		IssuedAt string `json:"issued_at"`
	}
	var list struct {
		Tokens []token `json:"tokens"`
	}
	if err := json.Unmarshal([]byte(programtest.CLI(a.T, a.Server, "token", "list", "--json")), &list); err != nil {
		a.T.Fatal(err)
	}
	newest := slices.MaxFunc(list.Tokens, func(x, y token) int { return strings.Compare(x.IssuedAt, y.IssuedAt) })
	programtest.CLI(a.T, a.Server, "token", "revoke", newest.ID)
}

// guards trips the desk's own, one by one, between build and submit.
func (a *attackRig) guards() {
	for _, c := range []struct {
		name, reason string
		trip, mend   []string
	}{
		{"the desk is locked", "locked", []string{"lock", "--reason", "test"}, []string{"unlock"}},
		{"the pair is locked", "locked", []string{"lock", "--pair", programtest.Symbol, "--reason", "test"}, []string{"unlock", "--pair", programtest.Symbol}},
		{"the rail is locked", "locked", []string{"lock", "--rail", "USDC", "--reason", "test"}, []string{"unlock", "--rail", "USDC"}},
		{ // within the pair's corridor, and beyond firm_bps
			"the price has moved up by 1.1 per cent", "price_corridor",
			[]string{"price", "set", "--pair", programtest.Symbol, "--usd", "1.01"},
			[]string{"price", "set", "--pair", programtest.Symbol, "--usd", "0.999"},
		},
		{
			"the inventory was lowered", "inventory",
			[]string{"inventory", "set", "--pair", programtest.Symbol, "--amount", "1"},
			[]string{"inventory", "set", "--pair", programtest.Symbol, "--amount", "50000000"},
		},
	} {
		x := a.target()
		programtest.CLI(a.T, a.Server, c.trip...)
		a.refused(c.name, x, refus(c.reason), func() *chaintest.Answer { return a.taker.Submit(x) })
		a.refused(c.name+", and the signature is bad", x, wanted{409, "REFUS_DVP", ""}, func() *chaintest.Answer { return a.submitRaw(x, x.Raw) })
		programtest.CLI(a.T, a.Server, c.mend...)
	}
	// A move in the desk's favour refuses nothing, nor one within firm_bps.
	for _, price := range []string{"0.97", "0.979"} {
		x := a.target()
		programtest.CLI(a.T, a.Server, "price", "set", "--pair", programtest.Symbol, "--usd", price)
		a.settles(x)
		a.build = nil
	}
	programtest.CLI(a.T, a.Server, "price", "set", "--pair", programtest.Symbol, "--usd", "0.999")
	a.build = nil
	a.settles(a.target())
	// A build that its blockhash has outlived can never land.
	old := a.taker.Build(attackDeal, chaintest.PathBuild)
	a.Control("advance", map[string]any{"slots": 200})
	a.refused("the blockhash has expired", old, refus("expired"), func() *chaintest.Answer { return a.taker.Submit(old) })
	a.AwaitBlockhash()
	a.refused("the blockhash has expired, and the desk knows", old, refus("expired"), func() *chaintest.Answer { return a.taker.Submit(old) })
	a.build = nil
	a.settles(a.target())
}

// A submission that comes too late for the prices that it was made at is refused too.
func TestSubmitTooLate(t *testing.T) {
	runtest.SkipUnderRace(t, "it waits for a chain most of the time, and the tests of settle race the same code")
	t.Parallel()
	const maxAge = 4 // seconds
	l := newLateRig(t, chaintest.Options{Wallets: 1, MaxAge: maxAge})
	usdc, sol := chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "USDC", Payer: "desk"}, chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "SOL", Payer: "desk"}
	x := l.builds(usdc)
	l.awaitStale()
	l.refused("the price is too old", x, refus("price_stale"), func() *chaintest.Answer { return l.taker.Submit(x) })
	x = l.builds(sol)
	l.awaitStaleSOL()
	l.prices("price", "set", "--pair", programtest.Symbol, "--usd", "0.999")
	l.refused("SOL's price is too old", x, refus("price_stale"), func() *chaintest.Answer { return l.taker.Submit(x) })
	x = l.builds(sol)
	l.refused("SOL has fallen", x, refus("price_corridor"), func() *chaintest.Answer {
		return await.Value(t, "a refusal while the pair's price is young", func() *chaintest.Answer {
			l.prices("price", "set", "--pair", programtest.Symbol, "--usd", "0.999")
			l.prices("price", "set", "--rail", "SOL", "--usd", "120")
			return l.taker.Submit(x)
		}, func(got *chaintest.Answer) bool { return got.Reason != "price_stale" })
	})
	l.sells(usdc)
}

// Nor does a submission count that comes after its reservation.
func TestSubmitAfterReservation(t *testing.T) {
	runtest.SkipUnderRace(t, "it waits for a chain most of the time, and the tests of settle race the same code")
	t.Parallel()
	l := newLateRig(t, chaintest.Options{Wallets: 1, ClaimTTL: 5})
	usdc := chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "USDC", Payer: "desk"}
	x := l.builds(usdc)
	l.taker.AwaitClaim(x.ClaimID, "expired")
	l.refused("the reservation is over", x, wanted{409, "", ""}, func() *chaintest.Answer { return l.taker.Submit(x) })
	l.sells(usdc)
}

// lateRig is a desk whose prices or reservations soon end.
type lateRig struct{ *attackRig }

func newLateRig(t *testing.T, o chaintest.Options) *lateRig {
	t.Helper()
	r := chaintest.Start(t, o)
	return &lateRig{&attackRig{Rig: r, taker: r.Wallet(1).Handshake(), mallory: r.Wallet(1)}}
}

func refus(reason string) wanted { return wanted{409, "REFUS_DVP", reason} }

func (l *lateRig) prices(args ...string) {
	l.T.Helper()
	programtest.CLI(l.T, l.Server, args...)
}

// builds sets both prices and takes a claim at these, again where they have aged
// meanwhile.
func (l *lateRig) builds(d chaintest.Deal) *chaintest.Built {
	l.T.Helper()
	got := await.Value(l.T, "a build at young prices", func() *chaintest.Answer {
		l.prices("price", "set", "--pair", programtest.Symbol, "--usd", "0.999")
		l.prices("price", "set", "--rail", "SOL", "--usd", "150")
		return l.taker.Call("POST", chaintest.PathBuild, l.taker.Order(d, chaintest.PathBuild), l.taker.Bearer()...)
	}, func(got *chaintest.Answer) bool { return got.Reason != "price_stale" })
	if got.Status != 200 {
		l.T.Fatalf("build: %s", got)
	}
	x := &chaintest.Built{}
	got.Into(l.T, x)
	return x.Open(l.T)
}

// quoted returns the reason for which nothing is quoted over a rail; "" = a quote is.
func (l *lateRig) quoted(rail string) string {
	l.T.Helper()
	order := map[string]string{"order_id": "T1", "tranche_id": "T1-1", "fill_usd": "1000", "rail": rail}
	return l.taker.Call("POST", "/api/v1/rfq/quote", order).Reason
}

// awaitStale waits until the pair's price is too old.
func (l *lateRig) awaitStale() {
	l.T.Helper()
	await.Equal(l.T, "the reason that nothing is quoted", "price_stale", func() string { return l.quoted("USDC") })
}

// awaitStaleSOL waits until SOL's price is too old, while the pair's is young: a quote
// over USDC comes after the refusal over SOL.
func (l *lateRig) awaitStaleSOL() {
	l.T.Helper()
	await.Equal(l.T, "the reasons that SOL and USDC are not quoted", [2]string{"price_stale", ""}, func() [2]string {
		l.prices("price", "set", "--pair", programtest.Symbol, "--usd", "0.999")
		return [2]string{l.quoted("SOL"), l.quoted("USDC")}
	})
}

// sells has the taker buy rightly. A transaction that expires meanwhile is built again.
func (l *lateRig) sells(d chaintest.Deal) {
	l.T.Helper()
	was := l.Holdings()
	var x *chaintest.Built
	got := await.Value(l.T, "a submission in time", func() *chaintest.Answer {
		x = l.builds(d)
		return l.taker.Submit(x)
	}, func(got *chaintest.Answer) bool { return got.Status != 409 })
	settles(l.taker, x, got)
	if moved := l.Holdings().Minus(was); moved["desk SLUSD"] >= 0 || moved["desk SLUSD"] != -moved["wallet-1 SLUSD"] {
		l.T.Errorf("the right submission moved %v", moved)
	}
}

// funds: takers that cannot pay or cannot receive.
func (a *attackRig) funds() {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		a.T.Fatal(err)
	}
	poor := a.Buyer("poor", key).Handshake()
	try := func(name string, d chaintest.Deal, reasons ...string) {
		a.T.Helper()
		got := poor.Call("POST", chaintest.PathBuild, poor.Order(d, chaintest.PathBuild), poor.Bearer()...)
		var x *chaintest.Built
		if got.Status == 200 {
			x = &chaintest.Built{}
			got.Into(a.T, x)
			x.Open(a.T)
		}
		a.refused(name, x, wanted{409, "REFUS_DVP", ""}, func() *chaintest.Answer {
			if x != nil {
				got = poor.Submit(x)
			}
			if !slices.Contains(reasons, got.Reason) {
				a.T.Errorf("%s: %s, want one of %v", name, got, reasons)
			}
			return got
		})
	}
	const taker, desk = "taker", "desk"
	try("nothing at all, the taker pays the fee", chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "USDC", Payer: taker}, "taker_funds")
	try("nothing at all, the desk pays the fee", chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "USDC", Payer: desk}, "taker_funds")
	try("no SOL to pay with", chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "SOL", Payer: desk}, "taker_funds")
	a.Query("requestAirdrop", nil, solana.Base58(poor.Address), 1_000_000_000)
	try("SOL, and no USDC", chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "USDC", Payer: desk}, "taker_funds")
	try("not enough SOL", chaintest.Deal{Ticket: "T1", Fill: "25000", Rail: "SOL", Payer: desk}, "taker_funds")
	a.Control("fund", map[string]any{"wallet": solana.Base58(poor.Address), "symbol": "USDC", "amount": "100000000"})
	try("not enough USDC", chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "USDC", Payer: desk}, "taker_funds")
	a.Control("fund", map[string]any{"wallet": solana.Base58(poor.Address), "symbol": "USDC", "amount": "10000000000"})
	freeze(a.Rig, a.TokenAccount(poor.Address, "USDC"), true)
	try("its USDC frozen", chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "USDC", Payer: desk}, "simulation_failed", "taker_funds")
	freeze(a.Rig, a.TokenAccount(poor.Address, "USDC"), false)
	// After all that he buys.
	x := poor.Build(chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "USDC", Payer: desk}, chaintest.PathBuild)
	settles(poor, x, poor.Submit(x))
	freeze(a.Rig, a.TokenAccount(poor.Address, "SLUSD"), true)
	try("its account that receives frozen", chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "USDC", Payer: desk}, "simulation_failed", "taker_funds")
}

// freeze sets the state of a token account, as the authority of its mint would.
func freeze(r *chaintest.Rig, account solana.Address, frozen bool) {
	r.T.Helper()
	var got struct {
		Value struct {
			Lamports uint64   `json:"lamports"`
			Owner    string   `json:"owner"`
			Data     []string `json:"data"`
		} `json:"value"`
	}
	r.Query("getAccountInfo", &got, solana.Base58(account), map[string]any{"encoding": "base64"})
	data := programtest.Must(base64.StdEncoding.DecodeString(got.Value.Data[0]))
	const stateAt, initialized, isFrozen = 108, 1, 2
	data[stateAt] = initialized
	if frozen {
		data[stateAt] = isFrozen
	}
	r.Control("setAccount", map[string]any{
		"pubkey": solana.Base58(account), "lamports": got.Value.Lamports, "owner": got.Value.Owner,
		"data": base64.StdEncoding.EncodeToString(data),
	})
}

// repeats: the right submission from many at once, again, and with something
// else after it.
func (a *attackRig) repeats() {
	x := a.target()
	was, landed := a.Holdings(), len(a.TransactionsOf(a.Desk))
	const many = 24
	answers := make(chan *chaintest.Answer, 2*many)
	right := a.taker.Signed(x)
	wrong := slices.Clone(right)
	wrong[len(wrong)-1] ^= 1
	for range many {
		for _, raw := range [][]byte{right, wrong} {
			go func() { answers <- a.tryRaw(x, raw) }()
		}
	}
	signatures := map[string]int{}
	var one *chaintest.Answer
	for range 2 * many {
		got := <-answers
		var s struct {
			Signature   string `json:"signature"`
			Transaction string `json:"transaction"`
		}
		switch {
		case got.Status == 200:
			got.Into(a.T, &s)
			one = got
			signatures[s.Signature+" "+s.Transaction]++
		case got.Reason != "message_mismatch":
			a.T.Errorf("one of many: %s", got)
		}
	}
	if len(signatures) != 1 || slices.Max(slices.Collect(maps.Values(signatures))) != many {
		a.T.Fatalf("%d different answers: %v", len(signatures), slices.Collect(maps.Values(signatures)))
	}
	settles(a.taker, x, one)
	if now := len(a.TransactionsOf(a.Desk)); now != landed+1 {
		a.T.Errorf("%d transactions of the desk's, there were %d", now, landed)
	}
	moved := a.Holdings().Minus(was)
	var first *chaintest.Answer
	for i := range 3 {
		again := a.taker.Submit(x)
		if first == nil {
			first = again
		}
		if again.Status != 200 || again.State != "finalized" || string(again.Body) != string(first.Body) {
			a.T.Errorf("again, %d: %s, it was %s", i, again, first)
		}
	}
	for name, raw := range map[string][]byte{"wrong bytes": wrong, "no signature": x.Raw} {
		a.cases++
		if got := a.submitRaw(x, raw); got.Status != 409 || got.Code != "REFUS_DVP" {
			a.T.Errorf("%s after it has settled: %s", name, got)
		}
	}
	if now := a.Holdings().Minus(was); !maps.Equal(now, moved) {
		a.T.Errorf("after it has settled, what has moved went from %v to %v", moved, now)
	}
}

// bits flips every single bit of the message, signed anew, and of the whole
// submitted transaction. None leads to a signature of the desk's.
func (a *attackRig) bits() {
	landed, was := len(a.TransactionsOf(a.Desk)), a.Holdings()
	whole := a.target()
	count := a.flipAll(whole, len(whole.Raw), func(x *chaintest.Built, bit int) []byte {
		raw := a.taker.Signed(x)
		raw[bit/8] ^= 1 << (bit % 8)
		return raw
	})
	message := a.target()
	count += a.flipAll(message, len(message.Message), func(x *chaintest.Built, bit int) []byte {
		raw := slices.Clone(x.Raw)
		changed := raw[1+64*len(x.Slots):]
		changed[bit/8] ^= 1 << (bit % 8)
		slot := slices.Index(x.Slots, a.taker.Address)
		copy(raw[1+64*slot:], ed25519.Sign(a.taker.Key, changed))
		return raw
	})
	if now := len(a.TransactionsOf(a.Desk)); now != landed {
		a.T.Errorf("%d transactions of the desk's, there were %d", now, landed)
	}
	a.Moved(was, a.Holdings(), map[string]int64{})
	a.T.Logf("%d bits turned", count)
	a.settles(a.target())
}

// flipAll submits every variant of a build, a few at a time.
func (a *attackRig) flipAll(x *chaintest.Built, size int, variant func(x *chaintest.Built, bit int) []byte) int {
	const workers = 8
	bits := make(chan int)
	failed := make(chan string, 8*size)
	done := make(chan struct{})
	for range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			for bit := range bits {
				got := a.tryRaw(x, variant(x, bit))
				if got.Status != 409 || got.Code != "REFUS_DVP" || got.Reason != "message_mismatch" && got.Reason != "bad_signature" {
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
		a.T.Error(text)
	}
	a.unsigned("every bit", x)
	return 8 * size
}
