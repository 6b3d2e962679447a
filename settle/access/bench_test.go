package access_test

import (
	"crypto/ed25519"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/desk"
	"blockdesk/internal/solana"
	"blockdesk/settle/access"
)

func openAccess(b *testing.B, fs vfs.FS, dir string, tokens int) (*access.Access, []desk.Grant) {
	b.Helper()
	kv := openKV(b, fs, dir)
	b.Cleanup(func() { kv.Close() })
	a, err := access.Open(access.Options{MaxTokens: 1 << 30}, kv)
	if err != nil {
		b.Fatal(err)
	}
	private, key := keyPair(1)
	var all []desk.Grant
	for n := range tokens {
		g, err := prove(a, private, key, client(uint32(n)))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, g)
	}
	return a, all
}

func BenchmarkChallenge(b *testing.B) {
	a, _ := openAccess(b, vfs.NewMem(), "kv", 0)
	_, key := keyPair(1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Challenge(key); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIssue takes a proof and commits: "memory" without a disk's sync.
func BenchmarkIssue(b *testing.B) {
	for _, c := range []struct {
		name string
		fs   vfs.FS
	}{{"disk", vfs.Default}, {"memory", vfs.NewMem()}} {
		b.Run(c.name, func(b *testing.B) {
			a, _ := openAccess(b, c.fs, b.TempDir(), 0)
			private, key := keyPair(1)
			b.ReportAllocs()
			for n := uint32(0); b.Loop(); n++ {
				b.StopTimer()
				challenge, err := a.Challenge(key)
				if err != nil {
					b.Fatal(err)
				}
				signature := solana.Signature(ed25519.Sign(private, []byte(challenge.Nonce)))
				b.StartTimer()
				if _, err := a.Issue(key, challenge.Nonce, signature, client(n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRefused is what a presentation costs that is not ours, and one whose
// proof is wrong.
func BenchmarkRefused(b *testing.B) {
	a, _ := openAccess(b, vfs.NewMem(), "kv", 0)
	_, key := keyPair(1)
	challenge, err := a.Challenge(key)
	if err != nil {
		b.Fatal(err)
	}
	forged := []byte(challenge.Nonce)
	forged[100] ^= 1
	for _, c := range []struct{ name, nonce string }{{"forged", string(forged)}, {"used", challenge.Nonce}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Issue(key, c.nonce, solana.Signature{}, client(1)); err == nil {
					b.Fatal("granted")
				}
			}
		})
	}
}

func BenchmarkAdmit(b *testing.B) {
	a, all := openAccess(b, vfs.NewMem(), "kv", 10_000)
	secrets := make([][]byte, len(all))
	for i := range all {
		secrets[i] = []byte(all[i].Secret)
	}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, ok := a.Admit(secrets[i%len(secrets)]); !ok {
				b.Fatal("refused")
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for i := 0; p.Next(); i++ {
				if _, ok := a.Admit(secrets[i%len(secrets)]); !ok {
					b.Fatal("refused")
				}
			}
		})
	})
	b.Run("stranger", func(b *testing.B) {
		b.ReportAllocs()
		stranger := make([]byte, len(secrets[0]))
		for b.Loop() {
			if _, ok := a.Admit(stranger); ok {
				b.Fatal("admitted")
			}
		}
	})
}
