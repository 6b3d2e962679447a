package mirror_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/mirror"
)

// checkTrace checks that a trace's movements are exactly the balance changes.
func checkTrace(t *testing.T, trace *mirror.Trace, err error) {
	t.Helper()
	if err != nil {
		if trace.Movements != nil || trace.Base.Named || trace.Quote.Named {
			t.Fatalf("%+v with %v", trace, err)
		}
		return
	}
	// Unsigned overflow cancels out.
	var sums [2]market.Amount
	for i := range trace.Movements {
		m := &trace.Movements[i]
		if m.Calls < 1 || m.Kind < mirror.Swap || m.Kind > mirror.OneSided || m.Kind == mirror.Swap && (m.Base.Atoms == 0 || m.Quote.Atoms == 0 || m.Base.Out == m.Quote.Out) {
			t.Fatalf("movement %+v", m)
		}
		for j := range i {
			if trace.Movements[j].Key == m.Key {
				t.Fatalf("key %+v twice", m.Key)
			}
		}
		for side, d := range [2]mirror.Delta{m.Base, m.Quote} {
			if d.Out {
				sums[side] -= d.Atoms
			} else {
				sums[side] += d.Atoms
			}
		}
	}
	if sums[0] != trace.Base.After-trace.Base.Before || sums[1] != trace.Quote.After-trace.Quote.Before {
		t.Fatalf("movements of %d and %d: %+v", sums[0], sums[1], trace)
	}
}

// FuzzSwapScript decodes transactions of any instructions and any balances.
func FuzzSwapScript(f *testing.F) {
	f.Add([]byte{0, 70, 0, 10, 2, 1, 12, 11, 2, 3, 3, 70, 7, 12, 2, 3, 3, 10, 11, 6})
	f.Add([]byte{255, 255, 1, 1, 1, 2, 12, 11, 3, 4, 12, 9, 6, 11, 0, 3, 17, 12})
	f.Add([]byte{9, 9, 9, 9, 2, 1, 12, 11, 2, 3, 255, 1, 3, 9, 3, 70, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		s := newScene()
		take := func() (b byte) {
			if len(script) > 0 {
				b, script = script[0], script[1:]
			}
			return b
		}
		for _, vault := range []int{keyBaseVault, keyQuoteVault} {
			s.before[vault], s.amount[vault] = 1<<(take()%64), 0
			s.amount[vault] = s.before[vault] + market.Amount(int8(take()))
			if take()&1 == 1 {
				s.programs[vault] = keyToken2022
			}
		}
		for len(script) > 0 && len(s.c.Inner) < 100 {
			depth, program := int(take()%4), take()%keyCount
			data := []byte{take()}
			amount := market.Amount(take())
			if amount == 255 {
				amount <<= take() % 64
			}
			for n := int(take() % 4); n > 0; n-- {
				data = append(append(data, amountBytes(amount)...), take())
			}
			var accounts []uint8
			for n := int(take() % 5); n > 0; n-- {
				accounts = append(accounts, take()%keyCount)
			}
			if len(s.c.Tx.Message.Instructions) == 0 {
				depth = 1
			}
			s.do(depth, program, data, accounts...)
		}
		pair := scenePair()
		trace, err := pair.Decode(s.confirmed())
		checkTrace(t, &trace, err)
	})
}

// answerOf writes a transaction as getTransaction answers it.
func answerOf(t testing.TB, c *ledger.Confirmed) []byte {
	t.Helper()
	raw, err := c.Tx.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	type object map[string]any
	balances := func(list []ledger.TokenBalance) []object {
		out := []object{}
		for i := range list {
			b := &list[i]
			out = append(out, object{
				"accountIndex": b.Account, "mint": solana.Base58(b.Mint), "owner": solana.Base58(b.Owner), "programId": solana.Base58(b.Program),
				"uiTokenAmount": object{"amount": fmt.Sprint(uint64(b.Amount)), "decimals": b.Decimals},
			})
		}
		return out
	}
	inner := []object{}
	for i := range c.Inner {
		in := &c.Inner[i]
		accounts := []int{}
		for _, a := range in.Accounts {
			accounts = append(accounts, int(a))
		}
		inner = append(inner, object{"index": in.Outer, "instructions": []object{{"programIdIndex": in.Program, "accounts": accounts, "data": base58.Encode(in.Data), "stackHeight": in.Depth}}})
	}
	text, err := json.Marshal(object{
		"slot": c.Slot, "blockTime": c.BlockTime, "transaction": []string{base64.StdEncoding.EncodeToString(raw), "base64"},
		"meta": object{
			"err": nil, "fee": 5000, "preBalances": c.Before, "postBalances": c.After, "innerInstructions": inner,
			"preTokenBalances": balances(c.TokensBefore), "postTokenBalances": balances(c.TokensAfter),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// FuzzSwapAnswer decodes mutated answers: a made one, and the recorded ones if available.
func FuzzSwapAnswer(f *testing.F) {
	made := newScene().router(bothVaults...).buy(2, 10, 70).sell(2, 4, 20).confirmed()
	made.Tx.Message.Header.ReadonlyUnsigned = 4
	made.Tx.Message.Version = tx.Legacy
	f.Add(answerOf(f, made))
	root := os.Getenv("BLOCKDESK_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "data")
	}
	files, err := filepath.Glob(filepath.Join(root, "solana", "cpmm", "tx_*.json"))
	if err != nil {
		f.Fatal(err)
	}
	pairs := []mirror.VaultPair{scenePair()}
	for i := range files {
		f.Add(answerOf(f, recordedSwap(f, i)))
	}
	if len(files) > 0 {
		_, pair := recordedPool(f)
		pairs = append(pairs, pair)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ledger.Parse(text)
		if err != nil {
			return
		}
		for i := range pairs {
			trace, err := pairs[i].Decode(c)
			checkTrace(t, &trace, err)
		}
	})
}

// FuzzBackfill answers a backfill with anything and checks its limits, and that unproven
// windows are zero.
func FuzzBackfill(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789"))
	f.Add([]byte{0, 3, 9, 9, 9, 8, 8, 8, 7, 7, 7, 1, 1, 1, 1, 1, 0, 4, 11, 11, 11, 10, 10, 9, 9, 9})
	f.Fuzz(func(t *testing.T, script []byte) {
		take := func() (b byte) {
			if len(script) > 0 {
				b, script = script[0], script[1:]
			}
			return b
		}
		const page, pending, most = 3, 8, 4
		b, err := mirror.NewBackfill(mirror.BackfillOptions{Pair: scenePair(), Account: sceneKey(keyPool), PageSize: page, MaxPending: pending}, mirror.Cursor{})
		if err != nil {
			t.Fatal(err)
		}
		w := newWindows(t, mirror.WindowOptions{MaxSwaps: most})
		now, contested := int64(epoch), false
		for len(script) > 0 {
			var p mirror.Progress
			switch b.Next().Kind {
			case mirror.RequestList:
				var list mirror.List
				for range min(take()%5, page) {
					info := rpc.SignatureInfo{Signature: solana.Signature{take()}, Slot: uint64(take()), BlockTime: epoch + int64(int8(take()))*40}
					kind := take()
					info.Failed = kind%5 == 0
					list.Entries = append(list.Entries, mirror.Entry{SignatureInfo: info, Contested: kind%7 == 0})
					contested = contested || kind%7 == 0
				}
				list.More = len(list.Entries) == page
				p, _ = b.Listed(list)
			case mirror.RequestTransaction:
				s := newScene().buy(1, 1+market.Amount(take()), 9)
				s.c.Tx.Signatures[0] = b.Next().Transaction
				s.c.Slot, s.c.BlockTime = uint64(take()), 0
				if p, err = b.Read(s.confirmed()); err != nil {
					p, _ = b.Unavailable(err)
				}
			case mirror.RequestSkip:
				p, _ = b.Skip()
			default:
				now += int64(take())
				b.Poll(time.Unix(now, 0), uint64(take()))
			}
			if _, err := w.Apply(&p); contested && errors.Is(err, mirror.ErrOrder) {
				return // what was passed over may have been anything
			} else if err != nil {
				t.Fatal(err)
			}
			if b.Pending() > pending+2*page {
				t.Fatalf("%d pending", b.Pending())
			}
			r := w.At(time.Unix(now, 0))
			for _, o := range []mirror.Window{r.Day, r.Week} {
				if o.Swaps > most || !o.Status.Proven() && o != (mirror.Window{Status: o.Status}) || (o.Status == mirror.Exact) != (o.Swaps > 0) {
					t.Fatalf("%+v", o)
				}
			}
		}
	})
}

// BenchmarkDecodeSwap decodes a routed transaction of two swaps.
func BenchmarkDecodeSwap(b *testing.B) {
	c := newScene().router(bothVaults...).buy(2, 10, 70).sell(2, 4, 20).confirmed()
	pair := scenePair()
	b.ReportAllocs()
	for b.Loop() {
		if trace, err := pair.Decode(c); err != nil || len(trace.Movements) != 2 {
			b.Fatal(err)
		}
	}
}

// BenchmarkWindows computes full windows.
func BenchmarkWindows(b *testing.B) {
	w := newWindows(b, mirror.WindowOptions{})
	for i := range mirror.MaxWindowSwaps {
		p := read(mirror.ReadNewer, 0, uint64(i), epoch+int64(i), -1, 10)
		binary.LittleEndian.PutUint64(p.Trace.Signature[:], uint64(i))
		if i == 0 {
			p = created(p)
		}
		if _, err := w.Apply(p); err != nil {
			b.Fatal(err)
		}
	}
	now := int64(epoch + mirror.MaxWindowSwaps)
	if _, err := w.Apply(asOf(now)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r := w.At(time.Unix(now, 0)); r.Week.Swaps != mirror.MaxWindowSwaps {
			b.Fatal(r.Week)
		}
	}
}
