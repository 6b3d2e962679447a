package service

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/e2e/programtest"
	"blockdesk/service/config"
)

// TestTokenOverACrash: a client gets a token by the handshake, an operator sees and
// revokes it, and so it stays.
func TestTokenOverACrash(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, programtest.DeskConfig))
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key := base58.Encode(public)
	handshake := func(more string) (map[string]any, programtest.Reply) {
		t.Helper()
		r := programtest.Post(t, s.Addresses.Base+"/api/v1/dvp/handshake", "", `{"pubkey":"`+key+`"`+more+`}`)
		var fields map[string]any
		if err := json.Unmarshal([]byte(r.Body), &fields); err != nil {
			t.Fatal(err)
		}
		return fields, r
	}
	prove := func() (map[string]any, programtest.Reply) {
		t.Helper()
		challenge, _ := handshake("")
		nonce, _ := challenge["nonce"].(string)
		signature := base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(nonce)))
		return handshake(`,"nonce":"` + nonce + `","signature":"` + signature + `"`)
	}
	token, r := prove()
	secret, _ := token["access_token"].(string)
	if r.Status != http.StatusCreated || secret == "" {
		t.Fatalf("handshake: %d %s", r.Status, r.Body)
	}
	admitted := func() bool {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.Addresses.Base+"/api/v1/dvp/submit", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+secret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode != http.StatusForbidden
	}
	type item struct {
		ID        string `json:"token_id"`
		Key       string `json:"pubkey"`
		State     string `json:"state"`
		ExpiresAt string `json:"expires_at"`
		RevokedBy string `json:"revoked_by"`
	}
	type answer struct{ Tokens []item }
	list := func() answer {
		t.Helper()
		var a answer
		text := programtest.CLI(t, s, "token", "list", "--json")
		if err := json.Unmarshal([]byte(text), &a); err != nil || strings.Contains(text, secret) {
			t.Fatalf("%v: %s", err, text)
		}
		return a
	}
	a := list()
	if len(a.Tokens) != 1 || a.Tokens[0].Key != key || a.Tokens[0].State != "valid" || a.Tokens[0].ExpiresAt != token["expires_at"] || !admitted() {
		t.Fatalf("%+v for %s", a, r.Body)
	}
	if out := programtest.CLI(t, s, "token", "revoke", a.Tokens[0].ID); !strings.Contains(out, "revoked") {
		t.Errorf("revoked: %s", out)
	}
	if err := errors.Join(s.Kill(), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	if k := list().Tokens; len(k) != 1 || k[0].State != "revoked" || k[0].RevokedBy != config.LocalOperator || admitted() {
		t.Errorf("after a crash: %+v", k)
	}
	if _, r := prove(); r.Status != http.StatusTooManyRequests || r.Fields.Code != "EMISSION_PAR_IP_TROP_RECENTE" {
		t.Errorf("a second one after the crash: %d %s", r.Status, r.Body)
	}
	programtest.CLIRefused(t, s, []string{"UNKNOWN_TOKEN"}, "token", "revoke", "K0000000000000001")
}
