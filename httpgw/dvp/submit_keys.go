package dvp

import (
	"container/list"
	"sync"
	"time"

	"blockdesk/engine/rfq"
)

const (
	// MaxSubmitKeys bounds the Idempotency-Keys of submissions that are remembered;
	// past it the oldest goes.
	MaxSubmitKeys = 65_536
	// submitKeyLife is how long one is (contract, section B), in nanoseconds.
	submitKeyLife = int64(24 * time.Hour)
)

// submitKeys remembers which body came with which Idempotency-Key to DvP submit.
// The desk does that for the others, with their answers; a submission needs none
// kept, so this may forget at a restart: then a key is new, and nothing is signed
// twice by that. Any goroutine may use it.
type submitKeys struct {
	now func() int64 // Unix nanoseconds

	mu   sync.Mutex
	byID map[[16]byte]*list.Element
	age  list.List // of *submitKey, oldest first
}

type submitKey struct {
	rfq.IdempotencyKey
	at   int64
	kept bool // a submission with it has been answered
}

func newSubmitKeys(now func() int64) *submitKeys {
	return &submitKeys{now: now, byID: make(map[[16]byte]*list.Element)}
}

// hold takes a key for a body; false means that another body has it. The zero
// key is none.
func (k *submitKeys) claim(key rfq.IdempotencyKey) bool {
	if key == (rfq.IdempotencyKey{}) {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	for e := k.age.Front(); e != nil && now-e.Value.(*submitKey).at >= submitKeyLife; e = k.age.Front() {
		k.drop(e)
	}
	if e := k.byID[key.ID]; e != nil {
		return e.Value.(*submitKey).IdempotencyKey == key
	}
	if len(k.byID) == MaxSubmitKeys {
		k.drop(k.age.Front())
	}
	k.byID[key.ID] = k.age.PushBack(&submitKey{IdempotencyKey: key, at: now})
	return true
}

// end records the outcome of a submission that hold was called for: kept, its key
// stays with its body; else it is free again, unless the same body has been
// answered meanwhile.
func (k *submitKeys) finish(key rfq.IdempotencyKey, kept bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.byID[key.ID]
	if e == nil || e.Value.(*submitKey).IdempotencyKey != key {
		return
	}
	if held := e.Value.(*submitKey); kept {
		held.kept = true
	} else if !held.kept {
		k.drop(e)
	}
}

func (k *submitKeys) drop(e *list.Element) {
	delete(k.byID, k.age.Remove(e).(*submitKey).ID)
}
