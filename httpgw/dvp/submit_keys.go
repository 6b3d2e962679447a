package dvp

import (
	"container/list"
	"sync"
	"time"

	"blockdesk/engine/rfq"
)

const (
	// MaxSubmitKeys bounds the stored Idempotency-Keys of submissions. Above it, the
	// oldest is dropped.
	MaxSubmitKeys = 65_536
	// submitKeyLife is the lifetime of a key in nanoseconds (docs/specification.md C.2).
	submitKeyLife = int64(24 * time.Hour)
)

// submitKeys stores the body hash of each Idempotency-Key of a submission. The desk stores
// the keys of other requests with their answers. Submissions are idempotent without a
// stored answer, so these keys need not survive a restart. It is safe for concurrent use.
type submitKeys struct {
	now func() int64 // Unix nanoseconds

	mu   sync.Mutex
	byID map[[16]byte]*list.Element
	age  list.List // of *submitKey, oldest first
}

type submitKey struct {
	rfq.IdempotencyKey
	at       int64
	answered bool // a submission with the key has been answered
}

func newSubmitKeys(now func() int64) *submitKeys {
	return &submitKeys{now: now, byID: make(map[[16]byte]*list.Element)}
}

// claim stores a key with its body. It returns false if the key has another body. The
// zero key means none.
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

// finish records the outcome of a submission after claim. If it was answered, its key
// stays; otherwise the key is free again, unless a repetition was answered meanwhile.
func (k *submitKeys) finish(key rfq.IdempotencyKey, answered bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.byID[key.ID]
	if e == nil || e.Value.(*submitKey).IdempotencyKey != key {
		return
	}
	if stored := e.Value.(*submitKey); answered {
		stored.answered = true
	} else if !stored.answered {
		k.drop(e)
	}
}

func (k *submitKeys) drop(e *list.Element) {
	delete(k.byID, k.age.Remove(e).(*submitKey).ID)
}
