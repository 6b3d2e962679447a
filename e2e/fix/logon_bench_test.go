package fix

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/atomicfile"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/servicetest"
)

// BenchmarkLogon measures a logon to the running program, from the connection to
// the answer, of a CompID that came with a reload: by password, whose hash is meant
// to cost, and by signature. Sequence numbers go on, as a client's do. Each logon
// ends with a Logout; one begins when the one before has been let go.
func BenchmarkLogon(b *testing.B) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	hash, err := servicetest.PasswordHash()
	if err != nil {
		b.Fatal(err)
	}
	config := programtest.Config(b, "rfq:\n  enabled: false\n")
	file := strings.Split(config, `"`)[1]
	text, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	s := programtest.Start(b, config)
	text = fmt.Appendf(text, "  - {name: PW, number: 8, comp_ids: [PW], password_hash: %q}\n  - {name: KEY, number: 9, comp_ids: [KEY], ed25519: %q}\n",
		hash, base58.Encode(key[ed25519.SeedSize:]))
	if err := atomicfile.Write(file, text); err != nil {
		b.Fatal(err)
	}
	if err := syscall.Kill(s.PID(), syscall.SIGHUP); err != nil {
		b.Fatal(err)
	}
	for _, way := range []string{"PW", "KEY"} {
		b.Run(way, func(b *testing.B) {
			o := fixclient.Options{Addr: s.Addresses.FIX, SenderCompID: way, TargetCompID: "BLOCKDESK", KeepSequence: true, Timeout: runtest.HangTimeout}
			if way == "KEY" {
				o.Key = key
			} else {
				o.Username, o.Password = way, programtest.Password
			}
			logOn := func() time.Duration {
				began := time.Now()
				c, err := fixclient.Dial(b.Context(), o)
				took := time.Since(began)
				if err != nil {
					return 0
				}
				if err := c.Logout(); err != nil {
					b.Fatal(err)
				}
				_ = c.Run(b.Context(), func(*fixclient.Message) error { return nil }) // to its Logout
				o.NextSender, o.NextTarget = c.NextSequence()
				_ = c.Close()
				time.Sleep(20 * time.Millisecond) // sleep: logons come one at a time, not at once
				return took
			}
			await.True(b, "the reload to come in force", func() bool { return logOn() > 0 })
			times := make([]time.Duration, 0, b.N)
			for b.Loop() {
				took := logOn()
				if took == 0 {
					b.Fatal("not logged on")
				}
				times = append(times, took)
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(times[len(times)-1].Microseconds())/1000, "max-ms")
		})
	}
}
