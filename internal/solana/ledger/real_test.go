package ledger_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/tx"
)

// TestRealAnswers reads what a Solana VM's node answers about real swaps: the wallet that
// lost lamports paid the fee, and each mint's balances add up.
func TestRealAnswers(t *testing.T) {
	root := os.Getenv("BLOCKDESK_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	files, err := filepath.Glob(filepath.Join(root, "solana", "cpmm", "tx_*.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("skipped: no recorded transactions here (set BLOCKDESK_TESTDATA): %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var a struct {
			Params []any           `json:"params"`
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatal(err)
		}
		c, err := ledger.Parse(a.Result)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if c.Signature().String() != a.Params[0] || c.Tx.Message.Version != tx.V0 || c.Slot == 0 || c.BlockTime == 0 || c.Failed {
			t.Errorf("%s: %s version %v slot %d", file, c.Signature(), c.Tx.Message.Version, c.Slot)
		}
		var before, after uint64
		for i := range c.Keys {
			before, after = before+uint64(c.Before[i]), after+uint64(c.After[i])
		}
		if before != after+uint64(c.Fee) {
			t.Errorf("%s: %d lamports before, %d after, fee %d", file, before, after, c.Fee)
		}
		if !strings.HasSuffix(file, "tx_00.json") { // the deposit mints
			checkSums(t, file, c)
		}
		if len(c.Inner) < 2 {
			t.Errorf("%s: %d inner instructions", file, len(c.Inner))
		}
		for i := range c.Inner {
			if in := &c.Inner[i]; solana.IsTokenProgram(c.Program(&in.Instruction)) && len(in.Data) == 0 {
				t.Errorf("%s: a token instruction without data", file)
			}
			if c.Inner[i].Depth < 2 || c.Inner[i].Depth > 3 {
				t.Errorf("%s: an inner instruction at depth %d", file, c.Inner[i].Depth)
			}
		}
	}
}

// TestDepth: an answer may leave the stack height out, and may not invent one.
func TestDepth(t *testing.T) {
	for height, want := range map[string]int{"": 0, `,"stackHeight":null`: 0, `,"stackHeight":2`: 2, `,"stackHeight":64`: 64, `,"stackHeight":1`: -1, `,"stackHeight":65`: -1} {
		raw, err := (&tx.Transaction{Signatures: []solana.Signature{{1}}, Message: tx.Message{
			Version: tx.Legacy, Header: tx.Header{Required: 1, ReadonlyUnsigned: 1},
			Keys: []solana.Address{{1}, {2}}, Instructions: []tx.Instruction{{Program: 1}},
		}}).Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ledger.Parse([]byte(`{"slot":1,"transaction":["` + base64.StdEncoding.EncodeToString(raw) + `","base64"],"meta":{"err":null,"fee":0,` +
			`"preBalances":[0,0],"postBalances":[0,0],"preTokenBalances":[],"postTokenBalances":[],` +
			`"innerInstructions":[{"index":0,"instructions":[{"programIdIndex":1,"accounts":[],"data":""` + height + `}]}]}}`))
		switch {
		case want < 0:
			if !errors.Is(err, ledger.ErrInconsistent) {
				t.Errorf("%s: %v", height, err)
			}
		case err != nil || int(c.Inner[0].Depth) != want:
			t.Errorf("%s: %v", height, err)
		}
	}
}

func checkSums(t *testing.T, file string, c *ledger.Confirmed) {
	t.Helper()
	sums := map[solana.Address]uint64{}
	for _, b := range c.TokensBefore {
		sums[b.Mint] += uint64(b.Amount)
	}
	for _, b := range c.TokensAfter {
		sums[b.Mint] -= uint64(b.Amount)
	}
	for mint, sum := range sums {
		if sum != 0 {
			t.Errorf("%s: %d atoms of %s came or went", file, sum, solana.Base58(mint))
		}
	}
}
