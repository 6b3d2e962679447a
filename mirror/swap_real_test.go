package mirror_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// cpmmTransactions is the recorded pool's number of transactions: a deposit and 20 swaps.
const cpmmTransactions = 21

// recordedPool returns the recorded pool's vaults.
func recordedPool(t testing.TB) (pool solana.Address, pair mirror.VaultPair) {
	t.Helper()
	a, _ := recordedAccount(t, "cpmm/pool.json", "4tVL3ZRf1vkCHDZcvDiZJFpp5UfW9wuJ9uVRzxtkuJrP")
	at := func(offset int) solana.Address { return solana.Address(a.Data[offset : offset+32]) }
	return a.Address, mirror.VaultPair{
		Base:  mirror.Vault{Account: at(72), Mint: at(168)},
		Quote: mirror.Vault{Account: at(104), Mint: at(200)},
	}
}

// recordedSwap reads a transaction of the recorded pool; 0 is the oldest.
func recordedSwap(t testing.TB, i int) *ledger.Confirmed {
	t.Helper()
	var answer struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(recordedFile(t, fmt.Sprintf("cpmm/tx_%02d.json", i)), &answer); err != nil {
		t.Fatal(err)
	}
	c, err := ledger.Parse(answer.Result)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// swapEvent is the pool program's log of a swap, which the decoder does not read.
func swapEvent(c *ledger.Confirmed) (inBefore, outBefore, in, out uint64, found bool) {
	for _, line := range c.Logs {
		text, ok := strings.CutPrefix(line, "Program data: ")
		if !ok {
			continue
		}
		if b, err := base64.StdEncoding.DecodeString(text); err == nil && len(b) >= 72 {
			at := func(i int) uint64 { return binary.LittleEndian.Uint64(b[40+8*i:]) }
			return at(0), at(1), at(2), at(3), true
		}
	}
	return 0, 0, 0, 0, false
}

// TestRecordedPool decodes the pool's history: one deposit and 20 swaps, each as logged
// by the program, without a gap.
func TestRecordedPool(t *testing.T) {
	_, pair := recordedPool(t)
	var last mirror.Trace
	for i := range cpmmTransactions {
		c := recordedSwap(t, i)
		trace, err := pair.Decode(c)
		if err != nil || len(trace.Movements) != 1 || trace.Slot != c.Slot || trace.Time != c.BlockTime {
			t.Fatalf("%d: %+v, %v", i, trace, err)
		}
		m := &trace.Movements[0]
		if i == 0 {
			if got := describe(trace.Movements); len(got) != 1 || got[0] != "0.0 deposit 1000000000000000 2000000000000" && got[0] != "0.0 deposit 2000000000000 1000000000000000" {
				t.Errorf("the deposit: %q", got)
			}
			if !trace.Base.Created || !trace.Quote.Created {
				t.Error("the deposit does not make the vaults")
			}
			last = trace
			continue
		}
		_, _, in, out, found := swapEvent(c)
		if gained, paid := m.Base, m.Quote; !found || m.Kind != mirror.Swap {
			t.Fatalf("%d: %v, event %t", i, m.Kind, found)
		} else if gained.Out {
			gained, paid = paid, gained
			if uint64(gained.Atoms) != in || uint64(paid.Atoms) != out || m.Side() != market.Buy {
				t.Errorf("%d: %+v, the program says %d in, %d out", i, m, in, out)
			}
		} else if uint64(gained.Atoms) != in || uint64(paid.Atoms) != out || m.Side() != market.Sell {
			t.Errorf("%d: %+v, the program says %d in, %d out", i, m, in, out)
		}
		if trace.Base.Before != last.Base.After || trace.Quote.Before != last.Quote.After {
			t.Errorf("%d: does not join the one before", i)
		}
		last = trace
	}
	for name, after := range map[string]market.Amount{"cpmm/vault0.json": last.Base.After, "cpmm/vault1.json": last.Quote.After} {
		a, _ := recordedAccount(t, name, solana.Base58(pair.Base.Account))
		if held := binary.LittleEndian.Uint64(a.Data[64:]); held != uint64(after) {
			t.Errorf("%s holds %d, the swaps leave %d", name, held, after)
		}
	}
}

// jsonTransaction is a transaction in the interface's "json" encoding.
type jsonTransaction struct {
	Signatures []string
	Message    struct {
		AccountKeys []string
		Header      struct {
			NumRequiredSignatures, NumReadonlySignedAccounts, NumReadonlyUnsignedAccounts uint8
		}
		RecentBlockhash string
		Instructions    []struct {
			Accounts       []int
			Data           string
			ProgramIDIndex uint8 `json:"programIdIndex"`
		}
		AddressTableLookups *[]struct {
			AccountKey                       string
			WritableIndexes, ReadonlyIndexes []int
		}
	}
}

// recordedMainnet reads a recorded mainnet answer in the "json" encoding and serializes
// it.
func recordedMainnet(t testing.TB, name string) *ledger.Confirmed {
	t.Helper()
	var answer struct {
		Result map[string]json.RawMessage `json:"result"`
	}
	var parts jsonTransaction
	if err := json.Unmarshal(recordedFile(t, name), &answer); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer.Result["transaction"], &parts); err != nil {
		t.Fatal(err)
	}
	raw, err := assembled(t, &parts).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Result["transaction"] = json.RawMessage(`["` + base64.StdEncoding.EncodeToString(raw) + `","base64"]`)
	text, err := json.Marshal(answer.Result)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ledger.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func assembled(t testing.TB, parts *jsonTransaction) *tx.Transaction {
	t.Helper()
	out := &tx.Transaction{Signatures: make([]solana.Signature, len(parts.Signatures))}
	for i, text := range parts.Signatures {
		s, err := solana.ParseSignature(text)
		if err != nil {
			t.Fatal(err)
		}
		out.Signatures[i] = s
	}
	octets := func(numbers []int) (b []byte) {
		for _, n := range numbers {
			b = append(b, byte(n))
		}
		return b
	}
	m, h := &out.Message, parts.Message.Header
	m.Version = tx.Legacy
	m.Header = tx.Header{Required: h.NumRequiredSignatures, ReadonlySigned: h.NumReadonlySignedAccounts, ReadonlyUnsigned: h.NumReadonlyUnsignedAccounts}
	for _, text := range parts.Message.AccountKeys {
		m.Keys = append(m.Keys, addressOf(t, text))
	}
	m.Blockhash = solana.Hash(addressOf(t, parts.Message.RecentBlockhash))
	for _, in := range parts.Message.Instructions {
		data, err := base58.Decode(in.Data)
		if err != nil {
			t.Fatal(err)
		}
		m.Instructions = append(m.Instructions, tx.Instruction{Program: in.ProgramIDIndex, Accounts: octets(in.Accounts), Data: data})
	}
	// Only a version 0 transaction has the member, whatever its version says.
	if lookups := parts.Message.AddressTableLookups; lookups != nil {
		m.Version = tx.V0
		for _, l := range *lookups {
			m.Lookups = append(m.Lookups, tx.Lookup{Table: addressOf(t, l.AccountKey), Writable: octets(l.WritableIndexes), Readonly: octets(l.ReadonlyIndexes)})
		}
	}
	return out
}

// mainnetSwaps are transactions of pools of several programs, with the figures of their
// balances.
var mainnetSwaps = []struct {
	file, base, baseMint, quote, quoteMint string
	want                                   []string
}{
	{ // concentrated liquidity, called directly
		"transactions/mainnet_0_2cd7QQSByK.json",
		"5HMSx5AdqusgT2hwjhESQthABVytczNqiGftTCWNNfCL", "7eR1yv7pUzhaqQneKJ2fmVTRuzY61ja5KwfbBrLsq1Gu",
		"Dsg513cScwc1u4RZUBzemzBeX1CNrxcXx44XPC1Fs13p", "So11111111111111111111111111111111111111112",
		[]string{"4.0 swap -807769528641 300000000"},
	},
	{ // a Token-2022 mint, of which a part goes elsewhere
		"transactions/mainnet_1_5bvyp1nob5.json",
		"CKFjAt7uNWgV1zzj2TnGDMn2BLENS8KghDzi3PFZJkEM", "EWV6bjhKF5zkXANCdWPvDs7dofRVk4pKyVTitqgEWj8E",
		"Amf6jEUXpAB1Psmhfo5t9U9cYHLRL1MfsfF3HjL5HD4U", "So11111111111111111111111111111111111111112",
		[]string{"1.0 swap 468700510855632 -201692493"},
	},
	{ // version 0, the vaults from an address table, called by a router
		"transactions/mainnet_2_2zNeSn8cJp.json",
		"4S6TTBXn5P19WBon1qn4DMSFFP7pTBRGUZpkY4NjYLJQ", "8k1DvnFBsbuWJw2t4JqTibR7cAgqadMveqiykMr1pump",
		"iAK6XqgM64VHq8xbiffXTEUnu5u74ToT4tFK8PqbqVu", "So11111111111111111111111111111111111111112",
		[]string{"7.3 swap -4374143343 3615608"},
	},
	{ // a payment with a memo
		"transactions/mainnet_3_2E9Ddokz6H.json",
		"4S6TTBXn5P19WBon1qn4DMSFFP7pTBRGUZpkY4NjYLJQ", "8k1DvnFBsbuWJw2t4JqTibR7cAgqadMveqiykMr1pump",
		"iAK6XqgM64VHq8xbiffXTEUnu5u74ToT4tFK8PqbqVu", "So11111111111111111111111111111111111111112",
		nil,
	},
}

func TestMainnetSwaps(t *testing.T) {
	for _, c := range mainnetSwaps {
		confirmed := recordedMainnet(t, c.file)
		pair := mirror.VaultPair{
			Base:  mirror.Vault{Account: addressOf(t, c.base), Mint: addressOf(t, c.baseMint)},
			Quote: mirror.Vault{Account: addressOf(t, c.quote), Mint: addressOf(t, c.quoteMint)},
		}
		for _, depths := range []string{"reported", "not reported"} {
			if trace, err := pair.Decode(confirmed); err != nil || !slices.Equal(describe(trace.Movements), c.want) {
				t.Errorf("%s, depths %s: %q, %v", c.file, depths, describe(trace.Movements), err)
			}
			for i := range confirmed.Inner {
				confirmed.Inner[i].Depth = 0
			}
		}
	}
}

// recordedHistory is a node with the recorded pool's files.
type recordedHistory struct {
	list         []rpc.SignatureInfo // newest first
	transactions map[solana.Signature]*ledger.Confirmed
}

func newRecordedHistory(t *testing.T) *recordedHistory {
	t.Helper()
	h := &recordedHistory{transactions: map[solana.Signature]*ledger.Confirmed{}}
	for i := range cpmmTransactions {
		c := recordedSwap(t, i)
		h.transactions[c.Signature()] = c
	}
	var answer struct {
		Result []struct {
			Signature string
			Slot      uint64
			BlockTime int64
		}
	}
	if err := json.Unmarshal(recordedFile(t, "cpmm/signatures.json"), &answer); err != nil {
		t.Fatal(err)
	}
	for _, l := range answer.Result {
		s, err := solana.ParseSignature(l.Signature)
		if err != nil {
			t.Fatal(err)
		}
		h.list = append(h.list, rpc.SignatureInfo{Signature: s, Slot: l.Slot, BlockTime: l.BlockTime})
	}
	return h
}

func (h *recordedHistory) List(_ context.Context, _ solana.Address, page rpc.Page) (mirror.List, error) {
	list := h.list
	for i := range list {
		if list[i].Signature == page.Before {
			list = list[i+1:]
			break
		}
	}
	for i := range list {
		if list[i].Signature == page.Until {
			list = list[:i]
			break
		}
	}
	return listOf(list[:min(len(list), page.Limit)], page), nil
}

func (h *recordedHistory) Transaction(_ context.Context, s solana.Signature, _ rpc.Commitment) (*ledger.Confirmed, bool, error) {
	c, found := h.transactions[s]
	return c, found, nil
}

// TestRecordedWindows follows the recorded pool with several page sizes: the figures are
// the sums of its program's logs.
func TestRecordedWindows(t *testing.T) {
	pool, pair := recordedPool(t)
	h := newRecordedHistory(t)
	var volume [2]uint64 // of the base, of the quote
	for _, c := range h.transactions {
		if _, _, in, out, found := swapEvent(c); found && len(c.Inner) == 2 {
			trace, err := pair.Decode(c)
			if err != nil {
				t.Fatal(err)
			}
			if trace.Movements[0].Base.Out {
				in, out = out, in
			}
			volume[0], volume[1] = volume[0]+in, volume[1]+out
		}
	}
	newest := h.list[0].BlockTime
	for _, size := range []int{2, 3, 20, 21, 22, 0} {
		b, err := mirror.NewBackfill(mirror.BackfillOptions{Pair: pair, Account: pool, PageSize: size}, mirror.Cursor{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := mirror.NewWindows(mirror.WindowOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(newest+5, 0)
		b.Poll(now, 0)
		for b.Next().Kind != 0 {
			p, err := b.Step(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Apply(&p); err != nil {
				t.Fatal(err)
			}
		}
		r := w.At(now)
		if !b.Cursor().Complete || r.Day != r.Week || r.Day.Status != mirror.Exact || r.Day.Swaps != 20 ||
			r.Day.Base != (market.Uint128{Lo: volume[0]}) || r.Day.Quote != (market.Uint128{Lo: volume[1]}) {
			t.Errorf("pages of %d: %+v; want 20 swaps of %d", size, r, volume)
		}
		if r.Totals != (mirror.Totals{Swaps: 20, Base: r.Day.Base, Quote: r.Day.Quote, Complete: true}) || r.Last.Key.Signature != h.list[0].Signature || r.Day.Reference.Time != 0 {
			t.Errorf("pages of %d: %+v", size, r)
		}
	}
}
