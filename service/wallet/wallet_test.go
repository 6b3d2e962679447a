package wallet

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/eddsa"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/service/demo"
)

func demoWalletNumber(n string) *Wallet {
	return &Wallet{Key: demo.Key("wallet-" + n), HTTP: http.DefaultClient}
}

// payment is an unsigned one of a wallet.
func payment(t *testing.T, from *Wallet) []byte {
	t.Helper()
	p := build.Payment{
		Common: build.Common{Blockhash: solana.Hash{1}, Budget: build.Budget{Units: 1000}, Memo: "C", Reference: solana.Address{2}},
		Wallet: from.address(), Leg: build.Leg{Rail: market.RailSOL, Amount: 5, To: solana.Address(demo.Key(demo.TreasurySOL)[ed25519.SeedSize:])},
	}
	u, err := p.Build(&solana.AccountCache{})
	if err != nil {
		t.Fatal(err)
	}
	return u.Bytes()
}

// The wallet signs its slot of the transaction and changes nothing else, whether
// a build or an atomic claim brought it.
func TestWalletSigns(t *testing.T) {
	w := demoWalletNumber("1")
	raw := payment(t, w)
	for name, answer := range map[string]any{
		"build":        map[string]any{"ok": true, "build_id": "B7", "transaction": raw},
		"atomic claim": map[string]any{"ok": true, "claim_id": "C7", "transaction": raw, "submit": map[string]string{"build_id": "B7"}},
	} {
		in, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.Sign(bytes.NewReader(in))
		if err != nil || got.BuildID != "B7" {
			t.Fatalf("%s: %+v: %v", name, got, err)
		}
		signed, err := tx.Decode(got.Transaction)
		if err != nil || !eddsa.Verify(w.address(), signed.Signed, signed.Signatures[0]) {
			t.Errorf("%s: not signed: %v", name, err)
		}
		if len(got.Transaction) != len(raw) || !bytes.Equal(got.Transaction[1+64:], raw[1+64:]) {
			t.Errorf("%s: the message has changed", name)
		}
	}
}

// A transaction that is not the wallet's is refused, and a refusal by the service
// is reported.
func TestWalletRefuses(t *testing.T) {
	w := demoWalletNumber("1")
	other := base64.StdEncoding.EncodeToString(payment(t, demoWalletNumber("2")))
	for in, want := range map[string]string{
		"": "want the JSON", "{}": "want the JSON", `{"transaction":"AAAA"}`: "tx:", `{"transaction":"` + other + `"}`: "not a signer",
		`{"ok":false,"code":"CHAIN_UNAVAILABLE","error":"No chain.","request_id":"9"}`: "CHAIN_UNAVAILABLE: No chain. [request 9]",
	} {
		if _, err := w.signed(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
	in := `{"transaction":"` + base64.StdEncoding.EncodeToString(payment(t, w)) + `"}`
	if _, err := w.Pay(t.Context(), strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), "--chain") {
		t.Errorf("paid without a chain: %v", err)
	}
}

// The handshake signs the nonce's text, and nothing that is no nonce.
func TestWalletLogsIn(t *testing.T) {
	w := demoWalletNumber("1")
	nonce := base64.StdEncoding.EncodeToString([]byte("svc_dvp_handshake_v1"))
	for given, want := range map[string]string{nonce: "", "pay 5 SOL": "base64"} {
		proofs := 0
		server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			var in map[string]string
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/api/v1/dvp/handshake" || in["pubkey"] != demo.Address("wallet-1") {
				t.Errorf("%s %v: %v", r.URL.Path, in, err)
			}
			if in["signature"] == "" {
				json.NewEncoder(out).Encode(map[string]string{"nonce": given})
				return
			}
			proofs++
			signature, err := base58.Decode(in["signature"])
			if err != nil || !ed25519.Verify(w.Key.Public().(ed25519.PublicKey), []byte(nonce), signature) || in["nonce"] != nonce {
				t.Errorf("proof %v: %v", in, err)
			}
			out.WriteHeader(http.StatusCreated)
			json.NewEncoder(out).Encode(map[string]string{"access_token": "secret"})
		}))
		w.Base = server.URL
		token, err := w.Login(t.Context())
		if want == "" && (err != nil || token != "secret") || want != "" && (err == nil || !strings.Contains(err.Error(), want) || proofs > 0) {
			t.Errorf("nonce %q: %q, %v, %d proofs", given, token, err, proofs)
		}
		server.Close()
	}
}
