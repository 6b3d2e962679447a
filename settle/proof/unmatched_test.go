package proof

import (
	"sync"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/settle/store"
)

func newStore(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(kvtest.New())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// memStore is a Store in memory, for failures that store.Store cannot be made to have.
type memStore struct {
	mu      sync.Mutex
	list    map[solana.Signature]store.UnmatchedPayment
	ours    map[solana.Signature]market.ClaimID
	cursors map[solana.Address]solana.Signature
	failing error
}

func newMemStore() *memStore {
	return &memStore{
		list: map[solana.Signature]store.UnmatchedPayment{}, ours: map[solana.Signature]market.ClaimID{}, cursors: map[solana.Address]solana.Signature{},
	}
}

func (m *memStore) AddUnmatched(x *store.UnmatchedPayment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.list[x.Signature]; !ok && m.failing == nil {
		m.list[x.Signature] = *x
	}
	return m.failing
}

func (m *memStore) ClaimOf(s solana.Signature) (market.ClaimID, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok := m.ours[s]
	return id, ok, nil
}

func (m *memStore) Cursor(a solana.Address) (solana.Signature, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.cursors[a]
	return s, ok, nil
}

func (m *memStore) SetCursor(a solana.Address, s solana.Signature) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cursors[a] = s
	return nil
}

// own notes a transaction that the desk has signed.
func (m *memStore) own(s solana.Signature, id market.ClaimID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ours[s] = id
}

func (m *memStore) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = err
}

func (m *memStore) unmatched(s solana.Signature) (store.UnmatchedPayment, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x, ok := m.list[s]
	return x, ok
}
