package settle_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/persist/kv"
	"blockdesk/settle"
	"blockdesk/settle/cosign"
)

// errDead is what a process that has died does: nothing.
var errDead = errors.New("the process is dead")

// doom kills a life at a step: before or after something that it does to the
// world. A dead life does nothing more, as after a kill -9; what it was in the
// midst of has happened or has not. A nil doom kills nobody.
type doom struct {
	mu    sync.Mutex
	at    func(step string, n int) bool // n counts all steps, from 1
	steps []string
	died  string
	dead  chan struct{}
}

func newDoom(at func(step string, n int) bool) *doom { return &doom{at: at, dead: make(chan struct{})} }

// pass goes by a step, unless it is the last one.
func (d *doom) pass(step string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.died != "" {
		return errDead
	}
	d.steps = append(d.steps, step)
	if d.at(step, len(d.steps)) {
		d.died = step
		close(d.dead)
		return errDead
	}
	return nil
}

func (d *doom) isDead() bool {
	select {
	case <-d.dead:
		return true
	default:
		return false
	}
}

// around does something between its two steps.
func around[T any](d *doom, name string, do func() (T, error)) (v T, err error) {
	if err := d.pass("before " + name); err != nil {
		return v, err
	}
	if v, err = do(); err != nil {
		return v, err
	}
	if err := d.pass("after " + name); err != nil {
		var none T
		return none, err
	}
	return v, nil
}

func (d *doom) desk(of settle.Desk) settle.Desk {
	if d == nil {
		return of
	}
	return doomedDesk{of, d}
}

type doomedDesk struct {
	settle.Desk
	doom *doom
}

func (d doomedDesk) Do(r rfq.Request) (*desk.Result, error) {
	return around(d.doom, fmt.Sprintf("%T", r), func() (*desk.Result, error) { return d.Desk.Do(r) })
}

func (d *doom) signer(of cosign.Signer) cosign.Signer {
	if d == nil {
		return of
	}
	return doomedSigner{of, d}
}

type doomedSigner struct {
	cosign.Signer
	doom *doom
}

func (s doomedSigner) Sign(ctx context.Context, j cosign.Job) (solana.Signature, error) {
	return around(s.doom, "sign "+j.Kind().String(), func() (solana.Signature, error) { return s.Signer.Sign(ctx, j) })
}

func (d *doom) node(of settle.Node) settle.Node {
	if d == nil {
		return of
	}
	return doomedNode{of, d}
}

type doomedNode struct {
	settle.Node
	doom *doom
}

func (n doomedNode) Send(ctx context.Context, raw []byte, o rpc.SendOptions) (solana.Signature, error) {
	return around(n.doom, "send", func() (solana.Signature, error) { return n.Node.Send(ctx, raw, o) })
}

func (n doomedNode) Simulate(ctx context.Context, raw []byte, o rpc.SimulateOptions) (rpc.Simulation, error) {
	return around(n.doom, "simulate", func() (rpc.Simulation, error) { return n.Node.Simulate(ctx, raw, o) })
}

func (d *doom) kv(of kv.Store) kv.Store {
	if d == nil {
		return of
	}
	return doomedKV{of, d}
}

type doomedKV struct {
	kv.Store
	doom *doom
}

// kvNames says what is written, by the first byte of the first key.
var kvNames = map[byte]string{1: "layout", 2: "build", 3: "kept", 5: "stray", 6: "stray", 7: "cursor"}

func (k doomedKV) Commit(fill kv.Fill, sync bool) error {
	name := ""
	fill(func(key, _ []byte) {
		if name == "" {
			name = kvNames[key[0]]
		}
	}, func(_, _ []byte) {})
	_, err := around(k.doom, "keep "+name, func() (struct{}, error) { return struct{}{}, k.Store.Commit(fill, sync) })
	return err
}
