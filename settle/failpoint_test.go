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

// failpoint kills a life at a step: before or after an effect on the outside. A dead life
// does nothing more, as after kill -9; an effect that it was in the middle of has
// happened or has not. A nil failpoint kills nothing.
type failpoint struct {
	mu    sync.Mutex
	at    func(step string, n int) bool // n counts all steps, from 1
	steps []string
	died  string
	dead  chan struct{}
}

func newFailpoint(at func(step string, n int) bool) *failpoint {
	return &failpoint{at: at, dead: make(chan struct{})}
}

// pass goes by a step, unless it is the last one.
func (d *failpoint) pass(step string) error {
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

func (d *failpoint) isDead() bool {
	select {
	case <-d.dead:
		return true
	default:
		return false
	}
}

// around does something between its two steps.
func around[T any](d *failpoint, name string, do func() (T, error)) (v T, err error) {
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

func (d *failpoint) desk(of settle.Desk) settle.Desk {
	if d == nil {
		return of
	}
	return failingDesk{of, d}
}

type failingDesk struct {
	settle.Desk
	failpoint *failpoint
}

func (d failingDesk) Do(r rfq.Request) (*desk.Result, error) {
	return around(d.failpoint, fmt.Sprintf("%T", r), func() (*desk.Result, error) { return d.Desk.Do(r) })
}

func (d *failpoint) signer(of cosign.Signer) cosign.Signer {
	if d == nil {
		return of
	}
	return failingSigner{of, d}
}

type failingSigner struct {
	cosign.Signer
	failpoint *failpoint
}

func (s failingSigner) Sign(ctx context.Context, j cosign.Job) (solana.Signature, error) {
	return around(s.failpoint, "sign "+j.Kind().String(), func() (solana.Signature, error) { return s.Signer.Sign(ctx, j) })
}

func (d *failpoint) node(of settle.Node) settle.Node {
	if d == nil {
		return of
	}
	return failingNode{of, d}
}

type failingNode struct {
	settle.Node
	failpoint *failpoint
}

func (n failingNode) Send(ctx context.Context, raw []byte, o rpc.SendOptions) (solana.Signature, error) {
	return around(n.failpoint, "send", func() (solana.Signature, error) { return n.Node.Send(ctx, raw, o) })
}

func (n failingNode) Simulate(ctx context.Context, raw []byte, o rpc.SimulateOptions) (rpc.Simulation, error) {
	return around(n.failpoint, "simulate", func() (rpc.Simulation, error) { return n.Node.Simulate(ctx, raw, o) })
}

func (d *failpoint) kv(of kv.Store) kv.Store {
	if d == nil {
		return of
	}
	return failingKV{of, d}
}

type failingKV struct {
	kv.Store
	failpoint *failpoint
}

// kvNames says what is written, by the first byte of the first key.
var kvNames = map[byte]string{1: "layout", 2: "build", 3: "transaction", 5: "unmatched", 6: "unmatched", 7: "cursor", 9: "refund", 12: "order"}

func (k failingKV) Commit(fill kv.Fill, sync bool) error {
	name := ""
	fill(func(key, _ []byte) {
		if name == "" {
			name = kvNames[key[0]]
		}
	}, func(_, _ []byte) {})
	_, err := around(k.failpoint, "keep "+name, func() (struct{}, error) { return struct{}{}, k.Store.Commit(fill, sync) })
	return err
}
