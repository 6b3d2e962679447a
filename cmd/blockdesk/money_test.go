package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func TestShowMoney(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   []string
	}{
		"nothing":      {`{"counts":{"stuck_deliveries":0,"refunds_due":0,"strays":0},"lists":{}}`, []string{"nothing needs an operator"}},
		"another kind": {`{"counts":{"stuck_deliveries":0,"refunds_due":0,"strays":1},"lists":{"refunding":{"items":[],"next":null}}}`, []string{"none of this kind"}},
		"all": {
			`{"counts":{"stuck_deliveries":1,"refunds_due":1,"strays":7,"doubtful":1},"lists":{
			"doubtful":{"items":[{"l1_signature":null,"claim_id":"C3","reason":"history_too_long","rail":"SOL","amount":"2.000000000","amount_atoms":"2000000000","payer":"PaY","at":"2030-01-02T03:04:05.6Z","delivery_signature":"4tX"}],"next":"C3"},
			"strays":{"items":[{"l1_signature":"3xP","claim_id":null,"reason":"wrong_mint","rail":null,"amount":null,"amount_atoms":"5","payer":"PaY","at":"2030-01-02T03:04:05.6Z"}],"next":"3xP"},
			"refunds_due":{"items":[{"l1_signature":"5Kd","claim_id":"C1","reason":"late_payment","rail":"USDC","amount":"250.500000","amount_atoms":"250500000","payer":"PaY","at":"2030-01-02T03:04:05.6Z"}],"next":null},
			"stuck_deliveries":{"items":[{"l1_signature":"2nL","claim_id":"C2","reason":"no_funds","rail":"SOL","amount":"1.000000000","amount_atoms":"1000000000","payer":"PaY","at":"2030-01-02T03:04:05.6Z","attempts":3}],"next":null}}}`,
			[]string{
				"stuck_deliveries  2030-01-02 03:04:05Z  C2", "1 SOL", "no_funds", "3 ", "doubtful  ", "C3", "2 SOL", "history_too_long", "4tX", "more of 1: --kind doubtful --after C3",
				"refunds_due", "250.5 USDC", "late_payment", "strays", "5 atoms", "wrong_mint", "more of 7: --kind strays --after 3xP",
			},
		},
	} {
		var a moneyAnswer
		if err := json.Unmarshal([]byte(c.answer), &a); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := showMoney(&out, &a); err != nil {
			t.Fatal(err)
		}
		rest := out.String()
		for _, word := range c.want { // in this order
			at := strings.Index(rest, word)
			if at < 0 {
				t.Errorf("%s: no %q in the rest of:\n%s", name, word, &out)
				continue
			}
			rest = rest[at+len(word):]
		}
	}
}

// TestReleaseNeedsALook: nothing is sent before the operator says that he has
// looked.
func TestReleaseNeedsALook(t *testing.T) {
	for _, args := range [][]string{{"C1"}, {"C1", "--i-have-looked=false"}} {
		cmd := moneyReleaseCommand(&settings{}, new(operatorFlags))
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "look") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
