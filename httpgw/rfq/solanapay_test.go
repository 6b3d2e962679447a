package rfq

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/terms"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

// payCase is a case of internal/clients/solanapay/check.mjs.
type payCase struct {
	Name        string `json:"name"`
	URL         string `json:"url"`
	Transaction string `json:"transaction"`
	Atoms       string `json:"atoms"`
	Decimals    int    `json:"decimals"`
}

// TestSolanaPayAccepts: Solana Pay's own library reads the URL of a claim, and accepts the
// payment that the desk builds for it, as the transfer that the URL asks for; it refuses one
// with another memo.
func TestSolanaPayAccepts(t *testing.T) {
	t.Parallel()
	const folder = "../../internal/clients/solanapay"
	node, err := exec.LookPath("node")
	if err != nil {
		runtest.SkipMissing(t, "Node", "make tools, or install Node 22 or newer: https://nodejs.org")
	}
	if _, err := os.Stat(folder + "/node_modules/@solana/pay"); err != nil {
		runtest.SkipMissing(t, "npm's @solana/pay", "npm --prefix internal/clients/solanapay ci --ignore-scripts")
	}
	v := gatewaytest.FixedView()
	mint := token.Mint{Address: v.Policy.USDCMint, Program: solana.TokenProgram, Decimals: 6}
	usdc, err := mint.Check(0)
	if err != nil {
		t.Fatal(err)
	}
	var cases []payCase
	for rail, leg := range map[market.Rail]build.Leg{
		market.RailUSDC: {Rail: market.RailUSDC, Mint: usdc, Amount: 250_000_001, To: v.Policy.PayTo[market.RailUSDC]},
		market.RailSOL:  {Rail: market.RailSOL, Amount: 1_666_666_667, To: v.Policy.PayTo[market.RailSOL]},
	} {
		c := &rfq.Claim{ID: 78, Mode: rfq.Modular, Terms: rfq.Terms{Rail: rail, Payment: uint64(leg.Amount), PayTo: leg.To}}
		pack := &desk.Package{Reference: gatewaytest.Address(200), Memo: gatewaytest.ClaimText(78)}
		for name, memo := range map[string]string{"right": pack.Memo, "another memo": gatewaytest.ClaimText(79)} {
			p := build.Payment{
				Common: build.Common{Blockhash: solana.Hash{1}, Budget: build.Budget{Units: 120_000, MicroLamports: 50_000}, Memo: memo, Reference: pack.Reference},
				Wallet: gatewaytest.Address(60), Leg: leg,
			}
			u, err := p.Build(&solana.AccountCache{})
			if err != nil {
				t.Fatal(err)
			}
			cases = append(cases, payCase{
				Name: rail.String() + " " + name, URL: transferRequest(&terms.Writer{View: v}, c, "spring block & more", pack),
				Transaction: base64.StdEncoding.EncodeToString(u.Bytes()), Atoms: strconv.FormatUint(uint64(leg.Amount), 10), Decimals: rail.Decimals(),
			})
		}
	}
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, folder+"/check.mjs")
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"USDC right: accepted\n", "SOL right: accepted\n", "USDC another memo: refused: invalid memo\n", "SOL another memo: refused: invalid memo\n",
	} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
