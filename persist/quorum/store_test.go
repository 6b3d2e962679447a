package quorum

import (
	"testing"

	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
)

// TestStore: a replicated store passes the tests of kv.Store, and the stores of one
// term are separate.
func TestStore(t *testing.T) {
	c := newCluster(t, 3, nil)
	_, term := c.lead()
	opened := 0
	kvtest.Run(t, func(*testing.T) kv.Store {
		opened++
		return term.Store("store" + string(rune(0x60+opened)))
	})
}
