package fix

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/runtest"
)

// claimant is a firm that buys from the desk by FIX alone, and pays on the chain.
type claimant struct {
	*chaintest.Rig
	wallet         *chaintest.Buyer
	client         *fixclient.Client
	in             chan map[int]string
	ended          chan error
	sender, target int
	received       []map[int]string // application messages, in their order
}

func newClaimant(r *chaintest.Rig) *claimant {
	c := &claimant{Rig: r, wallet: r.Wallet(1)}
	c.logOn()
	return c
}

// logOn logs on, with continued numbers where there were any.
func (c *claimant) logOn() {
	c.T.Helper()
	var err error
	c.client, err = fixclient.Dial(c.T.Context(), fixclient.Options{
		Addr: c.Server.Addresses.FIX, SenderCompID: programtest.FirmA, TargetCompID: "BLOCKDESK", Username: programtest.FirmA, Password: programtest.Password,
		KeepSequence: c.sender > 0, NextSender: c.sender, NextTarget: c.target, Timeout: runtest.HangTimeout,
	})
	if err != nil {
		c.T.Fatal(err)
	}
	c.in, c.ended = make(chan map[int]string, 1000), make(chan error, 1)
	go func(in chan map[int]string, client *fixclient.Client, ended chan error) {
		ended <- client.Run(context.Background(), func(m *fixclient.Message) error {
			fields := map[int]string{}
			m.Fields(func(tag int, value []byte) bool {
				if fields[tag] == "" {
					fields[tag] = string(value)
				}
				return true
			})
			in <- fields
			return nil
		})
	}(c.in, c.client, c.ended)
	c.T.Cleanup(func() { c.client.Close() })
}

// kill kills the service, starts it again and logs on again.
func (c *claimant) kill() {
	c.T.Helper()
	if err := c.Server.Kill(); err != nil {
		c.T.Fatal(err)
	}
	<-c.ended
	for len(c.in) > 0 {
		c.received = append(c.received, <-c.in)
	}
	c.sender, c.target = c.client.NextSequence()
	if err := c.Server.Restart(context.Background()); err != nil {
		c.T.Fatal(err)
	}
	c.logOn()
}

func (c *claimant) send(msgType, body string) {
	c.T.Helper()
	if err := c.client.Send(msgType, []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
		c.T.Fatal(err)
	}
}

// await waits for a message that has these fields, whatever else comes before it.
func (c *claimant) await(want map[int]string) map[int]string {
	c.T.Helper()
	has := func(m map[int]string) bool {
		for tag, value := range want {
			if m[tag] != value {
				return false
			}
		}
		return true
	}
	for _, m := range c.received {
		if has(m) {
			return m
		}
	}
	for deadline := time.After(runtest.HangTimeout); ; {
		select {
		case m := <-c.in:
			c.received = append(c.received, m)
			if has(m) {
				return m
			}
		case <-deadline:
			c.T.Fatalf("no %v among %v", want, c.received)
		}
	}
}

// claim takes a quote of 250 dollars and returns the report of the reservation.
func (c *claimant) claim(id string) map[int]string {
	c.T.Helper()
	c.send("R", "131="+id+"|146=1|55="+programtest.Symbol+"|152=250|15=USDC|")
	quote := c.await(map[int]string{35: "S", 131: id})
	c.send("D", "11="+id+"|40=D|117="+quote[117]+"|55="+programtest.Symbol+"|54=1|152=250|60=20260101-00:00:00|")
	return c.await(map[int]string{35: "8", 11: id, 150: "A", 39: "A", 58: "AWAIT_PAYMENT"})
}

// pay signs the transaction of a claim's News, sends it to the chain, waits until
// it is final, and returns its signature.
func (c *claimant) pay(report map[int]string) string {
	c.T.Helper()
	news := c.await(map[int]string{35: "B", 148: "CLAIM " + report[37]})
	payment := c.wallet.Sign(programtest.Must(base64.StdEncoding.DecodeString(news[96])))
	c.MustBroadcast(payment.Raw)
	return payment.Signature
}

// prove reports a payment.
func (c *claimant) prove(id string, report map[int]string, signature string) {
	c.T.Helper()
	c.send("AE", fmt.Sprintf("571=%s|572=%s|818=%s|570=N|55=%s|32=%s|31=%s|75=20260101|60=20260101-00:00:00|552=1|54=1|37=%s|",
		id, report[37], signature, programtest.Symbol, report[38], report[44], report[37]))
}

// settled waits until a claim is reported as paid, settled and captured.
func (c *claimant) settled(report map[int]string) {
	c.T.Helper()
	c.await(map[int]string{35: "8", 37: report[37], 150: "0", 39: "0", 58: "PAID"})
	fill := c.await(map[int]string{35: "8", 37: report[37], 150: "F", 39: "2", 32: report[38], 31: report[44], 151: "0.000000"})
	c.await(map[int]string{35: "AE", 37: report[37], 571: fill[17], 32: report[38], 31: report[44]})
}

// tokensMoved fails unless the wallet has paid for exactly this many claims of this
// report's kind, and got what they brought. SOL goes into fees and rent.
func (c *claimant) tokensMoved(was chaintest.Holdings, report map[int]string, claims uint64) {
	c.T.Helper()
	base := claims * chaintest.ParseAtoms(strings.Replace(report[38], ".", "", 1))
	paid := claims * 250_000_000
	want := map[string]uint64{
		"wallet-1 SLUSD": base, "desk SLUSD": -base, "wallet-1 USDC": -paid, "treasury USDC": paid,
	}
	for key, d := range c.Holdings().Minus(was) {
		if _, symbol, _ := strings.Cut(key, " "); symbol == "SOL" {
			continue
		}
		if uint64(d) != want[key] {
			c.T.Errorf("%s has changed by %d, want %d", key, d, int64(want[key]))
		}
		delete(want, key)
	}
	if len(want) > 0 {
		c.T.Errorf("not moved: %v", want)
	}
}

// A claim's whole life by FIX: quote, claim, package, payment, its proof, its
// settlement and its capture; and the same if the payment is not reported.
func TestFIXClaim(t *testing.T) {
	t.Parallel()
	r := chaintest.Start(t, chaintest.Options{Wallets: 1, FirmWallet: true})
	c := newClaimant(r)
	was := r.Holdings()
	report := c.claim("c1")
	signature := c.pay(report)
	c.prove("p1", report, signature)
	c.await(map[int]string{35: "AR", 571: "p1", 572: report[37], 818: signature, 939: "0"})
	c.settled(report)
	c.tokensMoved(was, report, 1)

	// The watch finds a payment that is not reported; a late report is answered.
	unreported := c.claim("c2")
	signature2 := c.pay(unreported)
	r.Finalize()
	c.settled(unreported)
	c.prove("p2", unreported, signature2)
	c.await(map[int]string{35: "AR", 571: "p2", 939: "0"})
	// A payment is one claim's.
	c.prove("p3", unreported, signature)
	refused := c.await(map[int]string{35: "AR", 571: "p3", 939: "1", 751: "99"})
	if !strings.HasPrefix(refused[58], "PAYMENT_ALREADY_USED: ") {
		t.Errorf("58=%s", refused[58])
	}
	c.tokensMoved(was, report, 2)
}

// kill -9 between any two steps loses none of them.
func TestFIXClaimKilled(t *testing.T) {
	t.Parallel()
	// A package is good for 150 slots, and has to outlive a restart.
	r := chaintest.Start(t, chaintest.Options{Wallets: 1, FirmWallet: true})
	c := newClaimant(r)
	was := r.Holdings()
	report := c.claim("c1")
	c.kill() // before or after its News
	signature := c.pay(report)
	c.kill() // before its report
	c.prove("p1", report, signature)
	c.kill() // before or after its answer
	c.prove("p1", report, signature)
	c.await(map[int]string{35: "AR", 571: "p1", 939: "0"})
	c.kill() // while it is delivered
	c.settled(report)
	c.tokensMoved(was, report, 1)
}

// While the chain is away a report waits for it, and nothing else does.
func TestFIXClaimWithoutChain(t *testing.T) {
	t.Parallel()
	r := chaintest.Start(t, chaintest.Options{Wallets: 1, FirmWallet: true})
	c := newClaimant(r)
	was := r.Holdings()
	report := c.claim("c1")
	signature := c.pay(report)
	r.Control("setNode", map[string]any{"mode": "503"})
	c.prove("p1", report, signature)
	c.send("H", "11=c1|55="+programtest.Symbol+"|54=1|")
	c.await(map[int]string{35: "8", 150: "I", 37: report[37]}) // the session does not wait for it
	r.Control("heal", map[string]any{})
	c.await(map[int]string{35: "AR", 571: "p1", 939: "0"})
	c.settled(report)
	c.tokensMoved(was, report, 1)
}
