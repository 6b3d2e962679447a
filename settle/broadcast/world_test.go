package broadcast_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
)

// world is a simulated chain, and nodes that report it, truthfully or not. Its clock
// is the process's, which testing/synctest controls.
type world struct {
	start time.Time
	// skips says which slots have no block.
	skips func(slot uint64) bool
	nodes []*upstream

	mu  sync.Mutex
	rng *rand.Rand
	// made is every transaction there is, by signature.
	made map[solana.Signature]*made
	// named are the landed transactions that name a reference.
	named map[solana.Address][]*made
	// heights counts blocks up to each slot, as far as was asked.
	heights []uint64
	// Nothing more is finalized from heldFrom to heldTill.
	heldFrom, heldTill time.Duration

	// outcome decides the outcome of a send: whether it lands, how many slots later,
	// whether in a fork that is dropped, and the error of the answer. nil lands at
	// once.
	outcome func(m *made) outcome

	sends []sent
	// examined counts questions to all nodes, searched and read those for histories and for
	// transactions.
	examined, searched, read int
	// beforeHistory, if set, is called before the nodes list the transactions of a reference.
	beforeHistory func()
}

type outcome struct {
	lost, forked bool
	slots        uint64
	err          error
}

type sent struct {
	at        time.Duration
	signature solana.Signature
}

// made is a transaction, and what becomes of it.
type made struct {
	raw       []byte
	signature solana.Signature
	lastValid uint64
	fails     bool
	reference solana.Address
	decoded   *tx.Transaction

	// slot is that of its block, 0 if there is none. One in a fork is seen till
	// droppedAt.
	slot, droppedAt uint64
}

const (
	slotTime      = 400 * time.Millisecond
	firstSlot     = 10_000 // the first one that there is
	startSlot     = 10_100 // when the world is made
	firstHeight   = 9_000
	finalizeSlots = 31
	invented      = firstSlot + 7 // the block that a liar reports
	// recent is how many slots old a status is known without searching.
	recent = 150
)

func newWorld(seed uint64, nodes int) *world {
	w := &world{
		start: time.Now(), rng: rand.New(rand.NewPCG(seed, 7)), made: map[solana.Signature]*made{}, named: map[solana.Address][]*made{},
		skips: func(slot uint64) bool { return (slot*2654435761+seed)%17 < 2 },
	}
	for i := range nodes {
		w.nodes = append(w.nodes, &upstream{world: w, name: string(rune('a' + i))})
	}
	return w
}

func (w *world) age() time.Duration { return time.Since(w.start) }

// tip is the newest slot.
func (w *world) tip() uint64 { return startSlot + uint64(w.age()/slotTime) }

// height is how many blocks there are up to a slot. The caller holds mu.
func (w *world) height(slot uint64) uint64 {
	for uint64(len(w.heights)) <= slot-firstSlot {
		h := uint64(firstHeight)
		if n := len(w.heights); n > 0 {
			h = w.heights[n-1]
		}
		if !w.skips(firstSlot + uint64(len(w.heights))) {
			h++
		}
		w.heights = append(w.heights, h)
	}
	return w.heights[slot-firstSlot]
}

// finalized is the newest finalized slot as of a tip.
func (w *world) finalized(tip uint64) uint64 {
	slot := tip - min(finalizeSlots, tip-firstSlot)
	if age := w.age(); age >= w.heldFrom && age < w.heldTill {
		slot = min(slot, startSlot+uint64(w.heldFrom/slotTime)-finalizeSlots)
	}
	for slot > firstSlot && w.skips(slot) {
		slot--
	}
	return slot
}

// add enters a transaction.
func (w *world) add(m *made) {
	var err error
	if m.decoded, err = tx.Decode(m.raw); err != nil {
		panic(err) // the test made it
	}
	m.signature = m.decoded.Signatures[0]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made[m.signature] = m
}

// land puts a transaction into the first block from a slot on, if it may be there.
func (w *world) land(m *made, slot uint64, forked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.landLocked(m, slot, forked)
}

func (w *world) landLocked(m *made, slot uint64, forked bool) {
	if m.slot != 0 && (m.droppedAt == 0 || m.droppedAt > slot) {
		return // once only
	}
	for w.skips(slot) {
		slot++
	}
	if w.height(slot) > m.lastValid {
		return
	}
	m.slot, m.droppedAt = slot, 0
	if forked {
		m.droppedAt = slot + 4
		return
	}
	w.named[m.reference] = append([]*made{m}, w.named[m.reference]...)
}

// landed reports whether a transaction is in the chain for good.
func (w *world) landed(m *made) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return m.slot != 0 && m.droppedAt == 0
}

// send is what happens to bytes that reach the network.
func (w *world) send(raw []byte) error {
	decoded, err := tx.Decode(raw)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.made[decoded.Signatures[0]]
	if m == nil || !bytes.Equal(m.raw, raw) {
		return errors.New("these bytes were never made")
	}
	w.sends = append(w.sends, sent{w.age(), m.signature})
	var f outcome
	if w.outcome != nil {
		f = w.outcome(m)
	}
	if !f.lost {
		w.landLocked(m, w.tip()+f.slots, f.forked)
	}
	return f.err
}

// sendsOf are the times at which a transaction was sent.
func (w *world) sendsOf(s solana.Signature) (list []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.sends {
		if x.signature == s {
			list = append(list, x.at)
		}
	}
	return list
}

// upstream is one node: it reports the world, except for its faults, which a test may
// set at any time.
type upstream struct {
	*world
	name string
	// faults says how it is, if it is not well; mu guards it.
	faults func(age time.Duration) faults
	calls  int
}

type faults struct {
	down bool
	// delay comes before each answer.
	delay time.Duration
	// lag is the age of its answers in slots; flaky takes another lag up to it for
	// each call.
	lag   uint64
	flaky bool
	// lie is added to every height. blind knows no transaction.
	lie   uint64
	blind bool
	// invents has every transaction that there is in some final block.
	invents bool
	// hides returns no transaction, and lists none.
	hides bool
	// forges is the transaction whose message it returns under every signature.
	forges *made
	// mute returns no histories.
	mute bool
	// first is the slot of the first block that it has, 0: it has all. It knows no
	// transaction of older ones.
	first uint64
	// lists are signatures that it lists beside those that there are, of every reference.
	lists []solana.Signature
	// crowded lists too many transactions of every reference.
	crowded bool
	// confirms has every transaction that there is in a block that is not final.
	confirms bool
}

var errDown = &rpc.Error{Kind: rpc.Down, Message: "made up"}

// set has the node be so from now on.
func (u *upstream) set(f faults) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.faults = func(time.Duration) faults { return f }
}

func (u *upstream) now() (f faults) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.faults != nil {
		f = u.faults(u.age())
	}
	return f
}

// call returns the node's state for one call: its faults and its slot.
func (u *upstream) call(ctx context.Context) (f faults, tip uint64, err error) {
	f = u.now()
	if f.delay > 0 {
		select {
		case <-time.After(f.delay):
		case <-ctx.Done():
			return f, 0, ctx.Err()
		}
	}
	if f.down {
		return f, 0, errDown
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls++
	lag := f.lag
	if f.flaky {
		lag = u.rng.Uint64N(lag + 1)
	}
	tip = u.tip()
	return f, tip - min(lag, tip-firstSlot), nil
}

func (u *upstream) position(ctx context.Context) (p rpc.Position, tip uint64, err error) {
	f, slot, err := u.call(ctx)
	if err != nil {
		return p, 0, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	p.Slot = u.finalized(slot)
	p.Height = u.height(p.Slot) + f.lie
	return p, u.height(slot) + f.lie, nil
}

func (u *upstream) statuses(ctx context.Context, list []solana.Signature, search bool) ([]rpc.Status, uint64, error) {
	f, tip, err := u.call(ctx)
	if err != nil {
		return nil, 0, err
	}
	if len(list) > rpc.MaxStatusesPerCall {
		return nil, 0, rpc.ErrTooMany
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]rpc.Status, len(list))
	final := u.finalized(tip)
	for i := range list {
		m := u.made[list[i]]
		if m != nil && f.confirms {
			out[i] = rpc.Status{Known: true, Slot: tip - 3, Level: rpc.Confirmed}
			continue
		}
		if m != nil && f.invents {
			out[i] = rpc.Status{Known: true, Slot: invented, Level: rpc.Finalized}
			continue
		}
		if m == nil || f.blind || m.slot == 0 || m.slot < f.first || m.slot > tip || m.droppedAt != 0 && tip >= m.droppedAt || !search && tip-m.slot > recent {
			continue
		}
		s := rpc.Status{Known: true, Slot: m.slot, Level: rpc.Processed, Failed: m.fails}
		switch {
		case m.droppedAt != 0:
		case m.slot <= final:
			s.Level = rpc.Finalized
		case m.slot < tip:
			s.Level = rpc.Confirmed
		}
		if m.fails {
			s.Error = `{"InstructionError":[2,"Custom"]}`
		}
		out[i] = s
	}
	return out, tip, nil
}

func (u *upstream) view(ctx context.Context, list []solana.Signature) rpc.NodeStatuses {
	v := rpc.NodeStatuses{Upstream: u.name}
	if v.Finalized, v.Tip, v.Err = u.position(ctx); v.Err == nil {
		v.Statuses, v.Slot, v.Err = u.statuses(ctx, list, true)
	}
	v.First = u.firstBlock()
	if v.Err != nil {
		return rpc.NodeStatuses{Upstream: u.name, Err: v.Err}
	}
	return v
}

// firstBlock is the first block that the node has.
func (u *upstream) firstBlock() rpc.FirstBlock {
	slot := u.now().first
	if slot == 0 {
		return rpc.FirstBlock{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return rpc.FirstBlock{
		Slot: slot, Height: u.height(slot), Time: u.start.Add(time.Duration(int64(slot)-startSlot) * slotTime).Unix(),
	}
}

func (u *upstream) history(ctx context.Context, a solana.Address, least uint64, most int) (h rpc.NodeHistory) {
	h.Upstream = u.name
	f, tip, err := u.call(ctx)
	if f.mute {
		err = errDown
	}
	if h.Err = err; err != nil {
		return h
	}
	h.First = u.firstBlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	final := u.finalized(tip)
	if final < least {
		h.Err = &rpc.Error{Kind: rpc.Behind}
		return h
	}
	for _, m := range u.named[a] {
		if m.slot <= final && m.slot >= f.first && !f.blind && !f.hides {
			h.List = append(h.List, rpc.SignatureInfo{Signature: m.signature, Slot: m.slot, Failed: m.fails})
		}
	}
	for _, s := range f.lists {
		h.List = append(h.List, rpc.SignatureInfo{Signature: s, Slot: final})
	}
	if len(h.List) > most || f.crowded {
		h.List, h.Err = nil, rpc.ErrTooMany
	}
	return h
}

// any is a node of those that answer, as a client's order of preference gives.
func (w *world) any() *upstream {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[w.rng.IntN(len(w.nodes))]
}

// The world is a broadcast.Node.

func (w *world) Send(ctx context.Context, raw []byte, _ rpc.SendOptions) (s solana.Signature, err error) {
	if _, _, err := w.any().call(ctx); err != nil {
		return s, err
	}
	return s, w.send(raw)
}

func (w *world) Statuses(ctx context.Context, list []solana.Signature, search bool) ([]rpc.Status, uint64, error) {
	return w.any().statuses(ctx, list, search)
}

func (w *world) Position(ctx context.Context, level rpc.Commitment) (rpc.Position, error) {
	if level != rpc.Finalized {
		return rpc.Position{}, fmt.Errorf("asked for %v", level)
	}
	p, _, err := w.any().position(ctx)
	return p, err
}

func (w *world) TransactionFromEach(ctx context.Context, s solana.Signature, _ rpc.Commitment) ([]rpc.NodeTransaction, error) {
	views := make([]rpc.NodeTransaction, len(w.nodes))
	w.mu.Lock()
	w.read++
	w.mu.Unlock()
	for i, u := range w.nodes {
		f, tip, err := u.call(ctx)
		if views[i].Err = err; err != nil {
			continue
		}
		w.mu.Lock()
		if f.forges != nil {
			forged := *f.forges.decoded
			forged.Signatures = []solana.Signature{s}
			views[i].Transaction = &ledger.Confirmed{Slot: tip, Tx: &forged}
		} else if m := w.made[s]; m != nil && !f.blind && !f.hides && m.slot != 0 && m.slot >= f.first && m.droppedAt == 0 && m.slot <= w.finalized(tip) {
			views[i].Transaction = &ledger.Confirmed{Slot: m.slot, Tx: m.decoded, Failed: m.fails}
		}
		w.mu.Unlock()
	}
	return views, nil
}

func (w *world) Upstreams() int { return len(w.nodes) }

func (w *world) StatusesFromEach(ctx context.Context, list []solana.Signature) ([]rpc.NodeStatuses, error) {
	if len(list) > rpc.MaxStatusesPerCall {
		return nil, rpc.ErrTooMany
	}
	w.mu.Lock()
	w.examined++
	w.mu.Unlock()
	views := make([]rpc.NodeStatuses, len(w.nodes))
	for i, u := range w.nodes {
		views[i] = u.view(ctx, list)
	}
	return views, nil
}

func (w *world) SignaturesFromEach(ctx context.Context, a solana.Address, views []rpc.NodeStatuses, most int) []rpc.NodeHistory {
	list := make([]rpc.NodeHistory, len(w.nodes))
	w.mu.Lock()
	w.searched++
	w.mu.Unlock()
	if w.beforeHistory != nil {
		w.beforeHistory()
	}
	for i, u := range w.nodes {
		if list[i] = (rpc.NodeHistory{Upstream: u.name, Err: views[i].Err}); views[i].Err == nil {
			list[i] = u.history(ctx, a, views[i].Finalized.Slot, most)
		}
	}
	return list
}
