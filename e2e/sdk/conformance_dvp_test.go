package sdk

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/sdk/openapitest"
	"blockdesk/service/demo"
)

const handshakePath = "/api/v1/dvp/handshake"

// handshake takes every step of the handshake and each wrong one, and returns the
// one token that an address gets in an hour.
func (c *conformance) handshake() string {
	address, key := c.all[0], demo.Key("wallet-1")
	pubkey := demo.Address("wallet-1")
	post := func(status int, code, reason, body string) *openapitest.Answer {
		c.t.Helper()
		c.request("POST", handshakePath, body, status < 400 || reason == "bad_nonce" || reason == "bad_signature" || reason == "issuance")
		return c.expect(status, code, reason, "POST", address, handshakePath, handshakePath, body)
	}
	nonce := func() string {
		a := post(200, "", "", `{"pubkey":"`+pubkey+`"}`)
		c.mutants(a)
		var challenge struct{ Nonce string }
		if err := json.Unmarshal(a.Body, &challenge); err != nil {
			c.t.Fatal(err)
		}
		return challenge.Nonce
	}
	proof := func(nonce, signed string, encode func([]byte) string) string {
		return `{"pubkey":"` + pubkey + `","nonce":"` + nonce + `","signature":"` + encode(ed25519.Sign(key, []byte(signed))) + `"}`
	}
	inBase64 := base64.StdEncoding.EncodeToString
	for _, wrong := range []string{"9", strings.Repeat("1", 32), "0" + pubkey[1:]} {
		c.expect(400, "INVALID_FIELD", "not_a_key", "POST", address, handshakePath, handshakePath, `{"pubkey":"`+wrong+`"}`)
	}
	n := nonce()
	post(400, "MISSING_FIELD", "", `{"pubkey":"`+pubkey+`","nonce":"`+n+`"}`)
	post(400, "INVALID_FIELD", "not_a_signature", proof(n, n, func(s []byte) string { return "!" + base58.Encode(s)[1:] }))
	other := nonce()
	post(400, "INVALID_FIELD", "bad_signature", proof(n, other, base58.Encode))
	post(400, "INVALID_FIELD", "bad_nonce", proof(n, n, base58.Encode)) // its first proof has burnt it
	a := post(201, "", "", proof(other, other, inBase64))
	c.mutants(a)
	var grant struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(a.Body, &grant); err != nil || grant.Token == "" {
		c.t.Fatalf("%v: %s", err, a.Body)
	}
	n = nonce()
	post(429, "EMISSION_PAR_IP_TROP_RECENTE", "issuance", proof(n, n, base58.Encode))
	return grant.Token
}

// Bodies of DvP that are right: the token is the demo's first wallet's.
var (
	rightBuild  = `{"order_id":"T1","tranche_id":"T1-1","fill_usd":"1000","rail":"USDC","taker":"` + demo.Address("wallet-1") + `"}`
	rightSubmit = `{"build_id":"B0000000000001","signature":"` + base58.Encode([]byte(strings.Repeat("s", 64))) + `"}`
)

// dvp drives a POST of DvP: faults of any request, tokens that are refused, each member, and
// what is right, which says that there is no chain.
func (c *conformance) dvp(o *openapitest.Operation, address string) {
	c.methods(o, address, o.Path)
	post := func(status int, code, reason, body string, headers ...string) {
		c.t.Helper()
		headers = append([]string{"Authorization", "Bearer " + c.token}, headers...)
		c.expect(status, code, reason, "POST", address, o.Path, o.Path, body, headers...)
	}
	if o.Path == handshakePath { // the rest of it is what handshake does
		right := `{"pubkey":"` + demo.Address("wallet-1") + `"}`
		c.broken(right, post)
		c.members(o, right, post)
		return
	}
	right, free, wrong := rightBuild, "taker", wrongBuilds
	if strings.HasSuffix(o.Path, "submit") {
		right, free, wrong = rightSubmit, "signature", wrongSubmits
	}
	for token, reason := range map[string]string{
		"": "token_missing", "Basic x": "token_malformed", "Bearer": "token_malformed", "Bearer x": "token_unknown",
		"Bearer " + strings.Repeat("A", len(c.token)): "token_unknown",
	} {
		var headers []string
		if token != "" {
			headers = []string{"Authorization", token}
		}
		c.expect(403, "TAKER_NON_ADMIS_JETON", reason, "POST", address, o.Path, o.Path, right, headers...)
	}
	c.request("POST", o.Path, right, true)
	post(503, "CHAIN_UNAVAILABLE", "", right)
	c.broken(right, post)
	c.members(o, right, post, free)
	for _, w := range wrong {
		body := strings.Replace(right, w.from, w.to, 1)
		post(w.status, w.code, w.reason, body)
		c.request("POST", o.Path, body, !w.schema)
	}
}

// wrongDvP is what replaces what in a right body, and what comes of it.
type wrongDvP struct {
	from, to     string
	status       int
	code, reason string
	schema       bool // the document refuses it too
}

var wrongBuilds = []wrongDvP{
	{`}`, `,"quote_id":"Q0000100000001","fee_payer":"taker"}`, 503, "CHAIN_UNAVAILABLE", "", false},
	{`}`, `,"fee_payer":"desk"}`, 503, "CHAIN_UNAVAILABLE", "", false},
	{`}`, `,"fee_payer":"us"}`, 400, "INVALID_FIELD", "unknown_fee_payer", true},
	{`}`, `,"quote_id":"q1"}`, 400, "INVALID_FIELD", "not_an_id", true},
	{`"USDC"`, `"usdc"`, 400, "INVALID_FIELD", "unknown_rail", true},
	{`"1000"`, `"7"`, 400, "INVALID_FIELD", "not_on_ladder", true},
	{demo.Address("wallet-1"), demo.Address("wallet-2"), 403, "TAKER_NON_ADMIS_JETON", "taker_mismatch", false},
	{demo.Address("wallet-1"), "", 409, "REFUS_DVP", "empty_counterparty", true},
	{demo.Address("wallet-1"), strings.Repeat("1", 32), 409, "REFUS_DVP", "empty_counterparty", false},
	{demo.Address("wallet-1"), "abc", 400, "INVALID_FIELD", "not_an_address", true},
	{`,"taker":"` + demo.Address("wallet-1") + `"`, "", 409, "REFUS_DVP", "empty_counterparty", true},
	{`"T1"`, `"T99"`, 404, "UNKNOWN_TICKET", "unknown_ticket", false},
	{`"T1-1"`, `"T1-99"`, 404, "UNKNOWN_TICKET", "unknown_tranche", false},
}

var wrongSubmits = []wrongDvP{
	{`"signature":"`, `"transaction":"AAAA","signature":"`, 400, "INVALID_FIELD", "one_of_two", true},
	{rightSubmit[strings.Index(rightSubmit, `"signature"`):], `"transaction":"AA"}`, 400, "INVALID_FIELD", "not_base64", true},
	{rightSubmit[strings.Index(rightSubmit, `"signature"`):], `"transaction":"AAAA"}`, 503, "CHAIN_UNAVAILABLE", "", false},
	{rightSubmit[strings.Index(rightSubmit, `,"signature"`):], `}`, 409, "REFUS_DVP", "empty_counterparty", true},
	{`"signature":"3`, `"signature":"!`, 400, "INVALID_FIELD", "not_a_signature", true},
	{"B0000000000001", "B1", 404, "UNKNOWN_CLAIM", "unknown_build", true},
}

// builds asks for builds: without a chain there is none.
func (c *conformance) builds(o *openapitest.Operation, address string) {
	path := strings.TrimSuffix(o.Path, "{build_id}")
	c.methods(o, address, path+"B0000000000001")
	c.expect(503, "CHAIN_UNAVAILABLE", "", "GET", address, o.Path, path+"B0000000000001", "")
	for _, id := range []string{"b0000000000001", "B1", "C0000000000001", strings.Repeat("x", 64)} {
		c.expect(404, "UNKNOWN_CLAIM", "unknown_build", "GET", address, o.Path, path+id, "")
	}
	for _, id := range []string{"", ".", "B%31", strings.Repeat("x", 65)} {
		if err := c.d.CheckUnknown(c.exchange("GET", address, o.Path, path+id, "")); err != nil {
			c.t.Errorf("%s%s: %v", path, id, err)
		}
	}
}
