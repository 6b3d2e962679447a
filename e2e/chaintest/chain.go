package chaintest

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
)

// Try sends the chain a control request. It retries if the chain closes the
// connection.
func (r *Rig) Try(method string, params map[string]any) (err error) {
	const tries = 5
	for range tries {
		err = r.Chain.Call(context.WithoutCancel(r.T.Context()), "sandbox_"+method, params, nil)
		if refused := new(sandbox.Error); err == nil || errors.As(err, &refused) {
			return err
		}
	}
	return err
}

// Control is Try that must succeed.
func (r *Rig) Control(method string, params map[string]any) {
	r.T.Helper()
	if err := r.Try(method, params); err != nil {
		r.T.Fatal(err)
	}
}

// Query sends the chain a client's request.
func (r *Rig) Query(method string, result any, params ...any) {
	r.T.Helper()
	if err := r.Chain.Call(r.T.Context(), method, params, result); err != nil {
		r.T.Fatal(err)
	}
}

// Holdings are balances by "NAME SYMBOL", in atoms; SOL in lamports.
type Holdings map[string]uint64

// Minus returns the changes since was, as "name symbol": difference.
func (h Holdings) Minus(was Holdings) map[string]int64 {
	out := map[string]int64{}
	for key := range h {
		if d := int64(h[key] - was[key]); d != 0 {
			out[key] = d
		}
	}
	return out
}

// Parties returns all whose balances count, by name.
func (r *Rig) Parties(more ...*Buyer) map[string]solana.Address {
	out := map[string]solana.Address{"desk": r.Desk, "treasury": r.address(r.Setup.Treasury.Address)}
	for i, w := range r.Setup.Wallets {
		out[fmt.Sprintf("wallet-%d", i+1)] = r.address(w.Address)
	}
	for _, b := range more {
		out[b.name] = b.Address
	}
	return out
}

// TokenAccount returns the associated account of one of the setup's mints.
func (r *Rig) TokenAccount(owner solana.Address, symbol string) solana.Address {
	r.T.Helper()
	m := r.Setup.Mints[symbol]
	a, err := solana.TokenAccount(owner, r.address(m.Address), r.address(m.Program))
	if err != nil {
		r.T.Fatal(err)
	}
	return a
}

// Holdings reads all balances from the chain.
func (r *Rig) Holdings(more ...*Buyer) Holdings {
	r.T.Helper()
	out := Holdings{}
	var names, keys []string
	for name, address := range r.Parties(more...) {
		names, keys = append(names, name+" SOL"), append(keys, solana.Base58(address))
		for symbol := range r.Setup.Mints {
			names, keys = append(names, name+" "+symbol), append(keys, solana.Base58(r.TokenAccount(address, symbol)))
		}
	}
	const accountsACall = 100
	for len(names) > 0 {
		n := min(len(names), accountsACall)
		r.readHoldings(out, names[:n], keys[:n])
		names, keys = names[n:], keys[n:]
	}
	return out
}

func (r *Rig) readHoldings(out Holdings, names, keys []string) {
	r.T.Helper()
	var answer struct {
		Value []*struct {
			Lamports uint64   `json:"lamports"`
			Data     []string `json:"data"`
		} `json:"value"`
	}
	r.Query("getMultipleAccounts", &answer, keys, map[string]any{"encoding": "base64", "commitment": "processed"})
	for i, account := range answer.Value {
		switch {
		case account == nil:
			out[names[i]] = 0
		case strings.HasSuffix(names[i], " SOL"):
			out[names[i]] = account.Lamports
		default:
			data, err := base64.StdEncoding.DecodeString(account.Data[0])
			if err != nil || len(data) < 165 {
				r.T.Fatalf("%s: %d bytes: %v", names[i], len(data), err)
			}
			out[names[i]] = binary.LittleEndian.Uint64(data[64:])
		}
	}
}

// Landed is a transaction as the list of an address has it.
type Landed struct {
	Signature string          `json:"signature"`
	Err       json.RawMessage `json:"err"`
	Memo      *string         `json:"memo"`
}

// TransactionsOf lists what has landed with an address in it, newest first.
func (r *Rig) TransactionsOf(address solana.Address) (out []Landed) {
	r.T.Helper()
	for before := ""; ; {
		options := map[string]any{"commitment": "confirmed", "limit": 1000}
		if before != "" {
			options["before"] = before
		}
		var page []Landed
		r.Query("getSignaturesForAddress", &page, solana.Base58(address), options)
		out = append(out, page...)
		if len(page) < 1000 {
			return out
		}
		before = page[len(page)-1].Signature
	}
}

// AwaitBlockhash waits until the desk builds with a blockhash that is as new as what
// is finalized now. After many slots at once, what it builds before has expired
// already.
func (r *Rig) AwaitBlockhash() {
	r.T.Helper()
	r.awaitSlot("finalized", "the desk to have a blockhash", "blockdesk_settlement_blockhash_slot")
}

// AwaitSlot waits until the desk has heard of the slot that is confirmed now.
func (r *Rig) AwaitSlot() {
	r.T.Helper()
	r.awaitSlot("confirmed", "the desk to hear", fmt.Sprintf("blockdesk_settlement_node_slot{node=%q}", strings.TrimPrefix(r.Chain.URL(), "http://")))
}

func (r *Rig) awaitSlot(commitment, what, metric string) {
	r.T.Helper()
	var wanted uint64
	r.Query("getSlot", &wanted, map[string]any{"commitment": commitment})
	await.Value(r.T, fmt.Sprintf("%s of slot %d", what, wanted), func() uint64 {
		return uint64(programtest.Metric(r.T, r.Server, metric))
	}, func(slot uint64) bool { return slot >= wanted })
}

// Moved fails unless exactly these balances have changed, to the atom.
func (r *Rig) Moved(was, now Holdings, want map[string]int64) {
	r.T.Helper()
	if got := now.Minus(was); !maps.Equal(got, want) {
		r.T.Errorf("moved: %v, want %v", got, want)
	}
}

// Finalize advances the chain until what has landed is finalized.
func (r *Rig) Finalize() {
	r.T.Helper()
	r.Control("advance", map[string]any{"slots": FinalizeSlots + 1})
}
