package rpc

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
)

// ErrUnsigned says that a transaction's first signature is missing.
var ErrUnsigned = errors.New("rpc: the transaction is not signed")

// SendOptions are the options of Send.
type SendOptions struct {
	// SkipPreflight broadcasts without simulating first: for a transaction that has
	// passed once.
	SkipPreflight bool
	// Level is the commitment that the simulation builds on; 0 means Confirmed.
	Level Commitment
	// MinSlot, if not 0, refuses a node that is behind it.
	MinSlot uint64
}

// Send sends a signed transaction's exact bytes to one of the available nodes, another one
// in each call, and to the next one if that fails, which is safe because the same bytes can land only once. The node does
// not retry by itself: the caller sends again until the transaction is finalized or has
// expired. After an error of kind [Down] or [WrongAnswer] the transaction may still
// land. Errors: [Error], [ErrUnsigned], those of tx.Decode.
func (c *Client) Send(ctx context.Context, raw []byte, o SendOptions) (solana.Signature, error) {
	t, err := tx.Decode(raw)
	if err != nil {
		return solana.Signature{}, fmt.Errorf("rpc: sending a transaction: %w", err)
	}
	want := t.Signatures[0]
	if want == (solana.Signature{}) {
		return want, ErrUnsigned
	}
	o.Level = cmp.Or(o.Level, Confirmed)
	options := object{"encoding": "base64", "skipPreflight": o.SkipPreflight, "preflightCommitment": o.Level, "maxRetries": 0}
	if o.MinSlot > 0 {
		options["minContextSlot"] = o.MinSlot
	}
	return callOn(ctx, c, c.planAtRandom(), false, "sendTransaction", func(result json.RawMessage) (solana.Signature, error) {
		text, err := into[string](result)
		if err != nil {
			return want, err
		}
		if text != want.String() {
			return want, fmt.Errorf("signature %q: %w", truncate(text, maxMessage), errMismatch)
		}
		return want, nil
	}, base64.StdEncoding.EncodeToString(raw), options)
}

// SimulateOptions are the options of Simulate.
type SimulateOptions struct {
	// Verify checks the signatures too, which a node does not do by default.
	Verify bool
	// ReplaceBlockhash simulates as if the blockhash were recent. Not with Verify.
	ReplaceBlockhash bool
	// Level is the commitment that it builds on; 0 means Confirmed.
	Level Commitment
}

// Simulation is the result of a simulated transaction.
type Simulation struct {
	// Failed, and Error, the runtime's as JSON.
	Failed bool
	Error  string
	Logs   []string
	Units  uint64
	Slot   uint64
}

// Simulate runs a transaction without effect, on one of the available nodes. Success proves nothing about its
// signatures, unless they are verified.
func (c *Client) Simulate(ctx context.Context, raw []byte, o SimulateOptions) (Simulation, error) {
	o.Level = cmp.Or(o.Level, Confirmed)
	options := object{"encoding": "base64", "commitment": o.Level, "sigVerify": o.Verify, "replaceRecentBlockhash": o.ReplaceBlockhash}
	return callOn(ctx, c, c.planAtRandom(), true, "simulateTransaction", func(result json.RawMessage) (s Simulation, err error) {
		v, err := withContext[*struct {
			Err   json.RawMessage `json:"err"`
			Logs  []string        `json:"logs"`
			Units uint64          `json:"unitsConsumed"`
		}](result)
		if err != nil {
			return s, err
		}
		if v.Value == nil || v.Value.Err == nil {
			return s, errMissing
		}
		s = Simulation{Failed: failed(v.Value.Err), Logs: trimLogs(v.Value.Logs), Units: v.Value.Units, Slot: v.Context.Slot}
		if s.Failed {
			s.Error = truncate(string(v.Value.Err), maxMessage)
		}
		return s, nil
	}, base64.StdEncoding.EncodeToString(raw), options)
}

// Status is the status of a transaction.
type Status struct {
	// Known is false if the node has not seen it in a block.
	Known bool
	Slot  uint64
	// Level is the commitment of its block.
	Level Commitment
	// Failed, and Error, the runtime's as JSON.
	Failed bool
	Error  string
}

// Statuses returns the status of up to MaxStatusesPerCall transactions, in the same
// order, and their slot, from one of the available nodes. search includes old ones, which is slow. Errors: [Error],
// [ErrTooMany].
func (c *Client) Statuses(ctx context.Context, list []solana.Signature, search bool) ([]Status, uint64, error) {
	if len(list) > MaxStatusesPerCall {
		return nil, 0, fmt.Errorf("%w: %d signatures", ErrTooMany, len(list))
	}
	a, err := callOn(ctx, c, c.planAtRandom(), true, "getSignatureStatuses", statusesOf(len(list)), texts(list), object{"searchTransactionHistory": search})
	return a.statuses, a.slot, err
}

func texts(list []solana.Signature) []string {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = list[i].String()
	}
	return texts
}

// statuses is a result of getSignatureStatuses and its slot.
type statuses struct {
	statuses []Status
	slot     uint64
}

// statusesOf returns the parser of the result for n transactions.
func statusesOf(n int) func(json.RawMessage) (statuses, error) {
	return func(result json.RawMessage) (a statuses, err error) {
		v, err := withContext[[]*wireStatus](result)
		if err != nil {
			return a, err
		}
		if len(v.Value) != n {
			return a, fmt.Errorf("%d statuses: %w", len(v.Value), errCount)
		}
		a = statuses{make([]Status, n), v.Context.Slot}
		for i, w := range v.Value {
			if w == nil {
				continue
			}
			if a.statuses[i], err = w.read(); err != nil {
				return a, err
			}
		}
		return a, nil
	}
}

type wireStatus struct {
	Slot  *uint64         `json:"slot"`
	Err   json.RawMessage `json:"err"`
	Level string          `json:"confirmationStatus"`
}

func (w *wireStatus) read() (Status, error) {
	s := Status{Known: true, Failed: failed(w.Err)}
	for s.Level = Processed; s.Level.String() != w.Level; s.Level++ {
		if s.Level == Finalized {
			return s, fmt.Errorf("confirmation status %q: %w", truncate(w.Level, maxMessage), errMismatch)
		}
	}
	if w.Slot == nil {
		return s, fmt.Errorf("slot: %w", errMissing)
	}
	s.Slot = *w.Slot
	if s.Failed {
		s.Error = truncate(string(w.Err), maxMessage)
	}
	return s, nil
}
