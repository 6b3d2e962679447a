package tx_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/eddsa"
	"blockdesk/internal/solana/tx"
)

// testdata returns the files of one folder of the real inputs, or skips.
func testdata(t *testing.T, pattern string) []string {
	t.Helper()
	root := os.Getenv("BLOCKDESK_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	files, err := filepath.Glob(filepath.Join(root, "solana", pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skipf("skipped: no recorded transactions here: %s is absent (set BLOCKDESK_TESTDATA)", filepath.Join("solana", pattern))
	}
	return files
}

// answer is as much of getTransaction's answer as these tests read.
type answer struct {
	Result struct {
		Transaction json.RawMessage `json:"transaction"`
		Version     json.RawMessage `json:"version"`
	} `json:"result"`
}

func readAnswer(t *testing.T, file string) (a answer) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestRealBytes decodes what a Solana VM has run, and holds it against
// solana-go's decoder.
func TestRealBytes(t *testing.T) {
	for _, file := range testdata(t, "cpmm/tx_*.json") {
		var pair [2]string
		if err := json.Unmarshal(readAnswer(t, file).Result.Transaction, &pair); err != nil {
			t.Fatal(err)
		}
		raw, err := base64.StdEncoding.DecodeString(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		verified(t, filepath.Base(file), raw)
	}
}

// verified holds the bytes of a transaction that a chain took to what solana-go
// decodes, and its signatures to what ours says was signed.
func verified(t *testing.T, name string, raw []byte) {
	t.Helper()
	same(t, name, raw)
	decoded, err := tx.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range decoded.Message.Signers() {
		if !eddsa.Verify(key, decoded.Signed, decoded.Signatures[i]) {
			t.Errorf("%s: signature %d does not verify", name, i)
		}
	}
}

// same holds our decoder against solana-go's on bytes that both must take.
func same(t *testing.T, name string, raw []byte) {
	t.Helper()
	ours, err := tx.Decode(raw)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	theirs, err := sdk.TransactionFromBytes(raw)
	if err != nil {
		t.Fatalf("%s: solana-go: %v", name, err)
	}
	signed, err := theirs.Message.MarshalBinary()
	if err != nil || string(signed) != string(ours.Signed) {
		t.Errorf("%s: solana-go's message differs (%v)", name, err)
	}
	again, err := ours.Append(nil)
	if err != nil || string(again) != string(raw) {
		t.Errorf("%s: other bytes after a round trip (%v)", name, err)
	}
	m, h := &ours.Message, theirs.Message.Header
	if want := (tx.Header{Required: h.NumRequiredSignatures, ReadonlySigned: h.NumReadonlySignedAccounts, ReadonlyUnsigned: h.NumReadonlyUnsignedAccounts}); m.Header != want {
		t.Errorf("%s: header %v, solana-go %v", name, m.Header, want)
	}
	if len(m.Keys) != len(theirs.Message.AccountKeys) || len(m.Instructions) != len(theirs.Message.Instructions) || len(m.Lookups) != len(theirs.Message.AddressTableLookups) {
		t.Fatalf("%s: %d keys, %d instructions, %d lookups", name, len(m.Keys), len(m.Instructions), len(m.Lookups))
	}
	for i, key := range theirs.Message.AccountKeys {
		if solana.Address(key) != m.Keys[i] {
			t.Errorf("%s: key %d differs", name, i)
		}
		if m.Lookups == nil {
			if w, err := theirs.Message.IsWritable(key); err != nil || w != m.Writable(i) {
				t.Errorf("%s: key %d writable %t, solana-go %t (%v)", name, i, m.Writable(i), w, err)
			}
		}
	}
	for i, in := range theirs.Message.Instructions {
		our := m.Instructions[i]
		if int(in.ProgramIDIndex) != int(our.Program) || string(in.Data) != string(our.Data) || len(in.Accounts) != len(our.Accounts) {
			t.Errorf("%s: instruction %d differs", name, i)
		}
	}
}

// jsonTransaction is a transaction in getTransaction's "json" encoding.
type jsonTransaction struct {
	Signatures []string `json:"signatures"`
	Message    struct {
		AccountKeys []string `json:"accountKeys"`
		Header      struct {
			Required         uint8 `json:"numRequiredSignatures"`
			ReadonlySigned   uint8 `json:"numReadonlySignedAccounts"`
			ReadonlyUnsigned uint8 `json:"numReadonlyUnsignedAccounts"`
		} `json:"header"`
		Blockhash    string `json:"recentBlockhash"`
		Instructions []struct {
			Accounts []int  `json:"accounts"`
			Data     string `json:"data"`
			Program  uint8  `json:"programIdIndex"`
		} `json:"instructions"`
		Lookups *[]struct {
			AccountKey      string `json:"accountKey"`
			WritableIndexes []int  `json:"writableIndexes"`
			ReadonlyIndexes []int  `json:"readonlyIndexes"`
		} `json:"addressTableLookups"`
	} `json:"message"`
}

// TestMainnetSignatures encodes transactions of the real chain from their parts.
// One wrong bit, and the signatures that the chain took would not verify.
func TestMainnetSignatures(t *testing.T) {
	for _, file := range testdata(t, "transactions/mainnet_*.json") {
		a := readAnswer(t, file)
		var parts jsonTransaction
		if err := json.Unmarshal(a.Result.Transaction, &parts); err != nil {
			t.Fatal(err)
		}
		transaction := assemble(t, &parts, string(a.Result.Version))
		raw, err := transaction.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		verified(t, filepath.Base(file), raw)
	}
}

func assemble(t *testing.T, parts *jsonTransaction, version string) *tx.Transaction {
	t.Helper()
	out := &tx.Transaction{}
	for _, text := range parts.Signatures {
		s, err := solana.ParseSignature(text)
		if err != nil {
			t.Fatal(err)
		}
		out.Signatures = append(out.Signatures, s)
	}
	m := &out.Message
	m.Version = tx.Legacy
	// One node labels a legacy transaction 0: only a version 0 one has the
	// member for lookups.
	if version == "0" && parts.Message.Lookups != nil {
		m.Version = tx.V0
	}
	h := parts.Message.Header
	m.Header = tx.Header{Required: h.Required, ReadonlySigned: h.ReadonlySigned, ReadonlyUnsigned: h.ReadonlyUnsigned}
	for _, text := range parts.Message.AccountKeys {
		m.Keys = append(m.Keys, address(t, text))
	}
	blockhash, err := solana.ParseHash(parts.Message.Blockhash)
	if err != nil {
		t.Fatal(err)
	}
	m.Blockhash = blockhash
	for _, in := range parts.Message.Instructions {
		data, err := base58.Decode(in.Data)
		if err != nil {
			t.Fatal(err)
		}
		m.Instructions = append(m.Instructions, tx.Instruction{Program: in.Program, Accounts: octets(in.Accounts), Data: data})
	}
	if m.Version == tx.Legacy {
		return out
	}
	for _, l := range *parts.Message.Lookups {
		m.Lookups = append(m.Lookups, tx.Lookup{Table: address(t, l.AccountKey), Writable: octets(l.WritableIndexes), Readonly: octets(l.ReadonlyIndexes)})
	}
	return out
}

func address(t *testing.T, text string) solana.Address {
	t.Helper()
	a, err := solana.ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func octets(numbers []int) []byte {
	var b []byte
	for _, n := range numbers {
		b = append(b, byte(n))
	}
	return b
}
