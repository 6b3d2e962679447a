package settle

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

// solanaClient returns Node and the script of the client that is not ours, or
// skips the test.
func solanaClient(t *testing.T) (node, script string) {
	t.Helper()
	node = programtest.Tool(t, "node")
	dir := programtest.ClientDir(t, "solana")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@solana", "kit")); err != nil {
		runtest.SkipMissing(t, "@solana/kit of npm", "npm --prefix internal/clients/solana ci")
	}
	return node, filepath.Join(dir, "trade.mjs")
}

// runSolanaClient runs a mode of the client and decodes its last line into
// result. ok is whether all was as it should be; said is what it says otherwise.
func runSolanaClient(t *testing.T, stdin string, result any, args ...string) (ok bool, output string) {
	t.Helper()
	node, script := solanaClient(t)
	ctx, cancel := context.WithTimeout(t.Context(), programtest.ClientTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, append([]string{"--disable-warning=ExperimentalWarning", script}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("the client: %v (%v)\n%s", err, ctx.Err(), &complaints)
	}
	if err := json.Unmarshal(out, result); err != nil {
		t.Fatalf("the client says %q: %v\n%s", out, err, &complaints)
	}
	return err == nil, complaints.String()
}

// clientLeg and clientTerms are what the client holds a transaction to; see its
// inspect.mjs.
type clientLeg struct {
	Mint      *string `json:"mint"`
	Program   string  `json:"program,omitempty"`
	Decimals  uint8   `json:"decimals,omitempty"`
	Atoms     string  `json:"atoms"`
	To        string  `json:"to"`
	Reference string  `json:"reference,omitempty"`
}

type clientTerms struct {
	Wallet     string     `json:"wallet"`
	Desk       string     `json:"desk"`
	FeePayer   string     `json:"feePayer"`
	Pay        *clientLeg `json:"pay"`
	Deliver    *clientLeg `json:"deliver"`
	RentPayers []string   `json:"rentPayers"`
	Memo       string     `json:"memo"`
	Reference  *string    `json:"reference"`
	Blockhash  *string    `json:"blockhash"`
	Signed     bool       `json:"signed"`
}

// inspection is one transaction for the client to look at.
type inspection struct {
	name        string
	fee         string      // that it sees, in lamports; empty: it refuses
	Transaction string      `json:"transaction"`
	Terms       clientTerms `json:"terms"`
}

// Addresses that stand for people in transactions that never see a chain.
var (
	testDesk     = solana.Address{2, 2}
	testTaker    = solana.Address{1, 1}
	testTreasury = solana.Address{3, 3}
	testMallory  = solana.Address{9, 9}
)

func ref[T any](v T) *T { return &v }

// The client reads what the desk's builders make as we mean it, and signs nothing
// that was changed.
func TestSolanaClientReads(t *testing.T) {
	t.Parallel()
	var list []inspection
	add := func(name, fee string, raw []byte, terms clientTerms) {
		list = append(list, inspection{name, fee, base64.StdEncoding.EncodeToString(raw), terms})
	}
	for _, rail := range []market.Rail{market.RailUSDC, market.RailSOL} {
		for _, program := range []solana.Address{solana.TokenProgram, solana.Token2022Program} {
			for _, payer := range []build.Party{build.Desk, build.Taker} {
				raw, terms := sampleAtomic(t, rail, program, payer)
				name := rail.String() + " " + solana.Base58(program)[:8] + " " + map[build.Party]string{build.Desk: "desk", build.Taker: "taker"}[payer]
				add(name, feeOfTwo, raw, terms)
			}
		}
		raw, terms := samplePayment(t, rail)
		add("payment "+rail.String(), feeOfOne, raw, terms)
	}
	raw, terms := sampleDelivery(t)
	add("delivery", feeOfOne, raw, terms)
	raw, terms = sampleAtomic(t, market.RailUSDC, solana.TokenProgram, build.Desk)
	add("trailing byte", "", append(slices.Clone(raw), 0), terms)
	add("truncated", "", raw[:len(raw)-1], terms)
	add("count in two bytes", "", slices.Concat([]byte{raw[0] | 0x80, 0}, raw[1:]), terms)
	signed := slices.Clone(raw)
	signed[1] = 1 // the first byte of the first slot
	add("signed already", "", signed, terms)
	for i := range tamperings {
		c := &tamperings[i]
		changed := c.apply(t, raw, parties{testDesk, testTaker, testMallory})
		add(c.name, "", encoded(t, changed), terms)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Results []struct {
			Refused string            `json:"refused"`
			Shown   []json.RawMessage `json:"shown"`
			Fee     string            `json:"fee"`
		}
	}
	if ok, output := runSolanaClient(t, string(text), &answer, "inspect"); !ok || len(answer.Results) != len(list) {
		t.Fatalf("%d of %d results: %s", len(answer.Results), len(list), output)
	}
	for i, r := range answer.Results {
		if c := &list[i]; r.Fee != c.fee || (r.Refused == "") != (c.fee != "") {
			t.Errorf("%s: refused %q, fee %s, want %q; shown %s", c.name, r.Refused, r.Fee, c.fee, r.Shown)
		}
	}
}

// Terms of the samples.
const (
	sampleClaim  = "C0000000000017"
	samplePaid   = 996_502_500
	sampleBase   = 1_000_000_000_000
	sampleBudget = 200_000 // units at 5,000 micro-lamports: 1,000 lamports

	feeOfOne = "6000" // lamports, by the number of signatures
	feeOfTwo = "11000"
)

func checkedMint(t *testing.T, at solana.Address, program solana.Address, decimals uint8) token.Checked {
	t.Helper()
	m := token.Mint{Address: at, Program: program, Decimals: decimals}
	c, err := m.Check(0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sampleCommon() (build.Common, clientTerms) {
	c := build.Common{
		Blockhash: solana.Hash{5, 5}, Budget: build.Budget{Units: sampleBudget, MicroLamports: 5_000},
		Memo: sampleClaim, Reference: solana.Address{4, 4},
	}
	return c, clientTerms{
		Wallet: solana.Base58(testTaker), Desk: solana.Base58(testDesk), Memo: c.Memo, Reference: ref(solana.Base58(c.Reference)),
		Blockhash: ref(solana.Base58(c.Blockhash)), RentPayers: []string{solana.Base58(testTaker)},
	}
}

func samplePay(t *testing.T, rail market.Rail) (build.Leg, *clientLeg) {
	leg := build.Leg{Rail: rail, Amount: samplePaid, To: testTreasury}
	want := &clientLeg{Atoms: "996502500", To: solana.Base58(testTreasury)}
	if rail == market.RailUSDC {
		leg.Mint = checkedMint(t, solana.Address{6, 6}, solana.TokenProgram, 6)
		want.Mint, want.Program, want.Decimals = ref(solana.Base58(leg.Mint.Address())), solana.Base58(solana.TokenProgram), 6
	}
	return leg, want
}

func sampleDeliver(base token.Checked) *clientLeg {
	return &clientLeg{
		Mint: ref(solana.Base58(base.Address())), Program: solana.Base58(base.Program()), Decimals: base.Decimals(),
		Atoms: "1000000000000", To: solana.Base58(testTaker),
	}
}

// raw builds a sample.
func raw(t *testing.T, b interface {
	Build(*solana.AccountCache) (*build.Unsigned, error)
},
) []byte {
	t.Helper()
	u, err := b.Build(&solana.AccountCache{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(u.Bytes())
}

func sampleAtomic(t *testing.T, rail market.Rail, program solana.Address, payer build.Party) ([]byte, clientTerms) {
	t.Helper()
	base := checkedMint(t, solana.Address{7, 7}, program, 9)
	common, terms := sampleCommon()
	a := build.Atomic{
		Common: common, Taker: testTaker, Desk: testDesk, Base: base, BaseAmount: sampleBase,
		FeePayer: payer, RentPayer: build.Taker,
	}
	a.Payment, terms.Pay = samplePay(t, rail)
	terms.Deliver = sampleDeliver(base)
	terms.FeePayer = terms.Wallet
	if payer == build.Desk {
		terms.FeePayer = terms.Desk
	}
	return raw(t, &a), terms
}

func samplePayment(t *testing.T, rail market.Rail) ([]byte, clientTerms) {
	t.Helper()
	p := build.Payment{Wallet: testTaker}
	var terms clientTerms
	p.Common, terms = sampleCommon()
	p.Leg, terms.Pay = samplePay(t, rail)
	terms.FeePayer, terms.RentPayers = terms.Wallet, []string{}
	return raw(t, &p), terms
}

func sampleDelivery(t *testing.T) ([]byte, clientTerms) {
	t.Helper()
	base := checkedMint(t, solana.Address{7, 7}, solana.Token2022Program, 9)
	common, terms := sampleCommon()
	d := build.Delivery{Common: common, Desk: testDesk, Wallet: testTaker, Base: base, Amount: sampleBase}
	terms.Deliver = sampleDeliver(base)
	terms.Deliver.Reference = *terms.Reference
	terms.Reference = nil
	terms.FeePayer, terms.RentPayers = terms.Desk, []string{terms.Desk}
	return raw(t, &d), terms
}
