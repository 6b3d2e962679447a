package service

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/demo"
	"blockdesk/service/servicetest"
	"blockdesk/service/wallet"
)

// TestDemoPaysRefunds: the desk of `make run` has the USDC to pay back with. A claim is paid
// twice, and `money refund` returns the second payment.
func TestDemoPaysRefunds(t *testing.T) {
	runtest.SkipUnderRace(t, "it types commands one after the other; settle's tests of refunds race the same code")
	t.Parallel()
	d := programtest.StartDemo(t, append(programtest.LongLived, "--set", "http.rfq_writes_per_minute=0", "--set", "http.dvp_per_minute=0", "--set", programtest.WithChain(servicetest.LocalChain(t)))...)
	await.True(t, "a ready service", func() bool { return programtest.Status(t, d.At.Admin+"/readyz") == http.StatusOK })
	buyer := demo.Wallet(1)
	r := programtest.Post(t, d.At.Base+"/rfq-native/modular-claim-take", "",
		`{"bot_wallet":"`+demo.Address(buyer)+`","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`)
	var claim struct {
		ID          string `json:"claim_id"`
		Transaction string
	}
	if err := json.Unmarshal([]byte(r.Body), &claim); err != nil || claim.Transaction == "" {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	second := await.Value(t, "a transaction with a newer blockhash", func() string {
		body, _ := strings.CutPrefix(programtest.Answered(d.At.Base+"/api/v1/rfq/claims/"+claim.ID+"/transaction"), "200 ")
		return body
	}, func(body string) bool {
		var fresh struct{ Transaction string }
		return json.Unmarshal([]byte(body), &fresh) == nil && fresh.Transaction != "" && fresh.Transaction != claim.Transaction
	})
	w := &wallet.Wallet{Key: demo.Key(buyer), Chain: d.At.Chain}
	var both errgroup.Group
	for _, body := range []string{r.Body, second} {
		both.Go(func() error {
			_, err := w.Pay(t.Context(), strings.NewReader(body))
			return err
		})
	}
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	money := func(args ...string) (string, error) {
		return programtest.Run(t, "", nil, append([]string{"money", "--data", d.Data}, args...)...)
	}
	awaitListed := func(kind, want string) {
		t.Helper()
		await.True(t, kind, func() bool {
			out, err := money("list", "--kind", kind) // an error: polled too often
			return err == nil && strings.Contains(out, want)
		})
	}
	awaitListed("refunds_due", claim.ID)
	await.NoError(t, "the refund to be ordered", func() error {
		_, err := money("refund", "--all", "--under", "1000")
		return err
	})
	awaitListed("refunded", claim.ID)
	awaitListed("refunds_due", "nothing needs an operator")
}
