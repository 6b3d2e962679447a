package sandbox

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/memo"
	"github.com/gagliardetto/solana-go/rpc"
)

// exchanges are delivery against payment with a memo, two signers each, every
// message another. The accounts exist.
func (c *chain) exchanges(n int) []*solana.Transaction {
	c.t.Helper()
	desk, taker := c.key(c.setup.Desk), c.key(c.setup.Wallets[0])
	treasury := solana.MustPublicKeyFromBase58(c.setup.Treasury.Address)
	c.mustSend(c.sign(c.blockhash().Blockhash, []solana.Instruction{
		c.makeAccount(taker.PublicKey(), taker.PublicKey(), "SLUSD"),
	}, taker))
	hash := c.blockhash().Blockhash
	list := make([]*solana.Transaction, n)
	for i := range list {
		list[i] = c.sign(hash, []solana.Instruction{
			c.transferTokens("USDC", 1000, taker.PublicKey(), treasury),
			c.transferTokens("SLUSD", 1001, desk.PublicKey(), taker.PublicKey()),
			memo.NewMemoInstruction(fmt.Appendf(nil, "claim:%d", i)).Build(),
		}, desk, taker)
	}
	return list
}

// BenchmarkSettle sends exchanges with preflight, 16 in flight on two cores.
func BenchmarkSettle(b *testing.B) {
	for _, skip := range []bool{false, true} {
		b.Run(fmt.Sprintf("skipPreflight=%t", skip), func(b *testing.B) {
			c := start(b, nil)
			list := c.exchanges(b.N)
			var next atomic.Int64
			b.SetParallelism(8)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					tx := list[next.Add(1)-1]
					if _, err := c.client.SendTransactionWithOpts(b.Context(), tx, rpc.TransactionOpts{SkipPreflight: skip}); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
			b.StopTimer()
			c.finalize()
			if s := c.status(list[b.N-1].Signatures[0]); s == nil || s.Err != nil || s.ConfirmationStatus != rpc.ConfirmationStatusFinalized {
				b.Errorf("the last one is %+v", s)
			}
		})
	}
}

// BenchmarkRead is one call after the other over one connection.
func BenchmarkRead(b *testing.B) {
	c := start(b, nil)
	signature := c.mustSend(c.exchanges(1)[0])
	c.finalize()
	for name, call := range map[string]func() error{
		"getSlot": func() error {
			_, err := c.client.GetSlot(b.Context(), rpc.CommitmentProcessed)
			return err
		},
		"getSignatureStatuses": func() error {
			_, err := c.client.GetSignatureStatuses(b.Context(), false, signature)
			return err
		},
		"getTransaction": func() error {
			_, err := c.client.GetTransaction(b.Context(), signature,
				&rpc.GetTransactionOpts{Encoding: solana.EncodingBase64, MaxSupportedTransactionVersion: ptr(0)})
			return err
		},
		"getLatestBlockhash": func() error {
			_, err := c.client.GetLatestBlockhash(b.Context(), rpc.CommitmentFinalized)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
