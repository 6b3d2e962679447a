package desk

import (
	"maps"
	"sync/atomic"

	"blockdesk/persist/kv/kvtest"
	"blockdesk/persist/projection"
)

// content is what matters of the store: all but the cursor and the marks.
func content(s *kvtest.Memory) map[string]string {
	all := s.Content()
	maps.DeleteFunc(all, func(k, _ string) bool { return k[0] == projection.KeyCursor || k[0] == keyMark })
	return all
}

// hookStore lets a test stop a reader.
type hookStore struct {
	*kvtest.Memory
	// gets, while it is not nil, gets a channel from each Get that found nothing
	// yet; it returns when the channel is closed.
	gets atomic.Pointer[chan chan struct{}]
}

func (s *hookStore) Get(key []byte) ([]byte, bool, error) {
	v, ok, err := s.Memory.Get(key)
	if hook := s.gets.Load(); hook != nil && !ok && key[0] == keyAnswer {
		c := make(chan struct{})
		*hook <- c
		<-c
	}
	return v, ok, err
}
