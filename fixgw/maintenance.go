package fixgw

import (
	"context"
	"encoding/binary"
	"time"

	"blockdesk/fixgw/history"
)

// maintenanceTick is the pause between two rounds of maintenance.
const maintenanceTick = 100 * time.Millisecond

// maintenance reserves sequence numbers ahead of their use, commits messages that no
// commit of reports has stored, makes the cursor durable, and deletes records older than
// yesterday.
type maintenance struct {
	gateway *Gateway
	synced  time.Time
	pruned  uint32 // day up to which buckets have been deleted
}

// Run works until ctx ends or the store fails.
func (k *maintenance) Run(ctx context.Context) error {
	tick := time.NewTicker(maintenanceTick)
	defer tick.Stop()
	for {
		if err := k.keep(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (k *maintenance) keep() error {
	g := k.gateway
	if err := g.SaveMessages(); err != nil {
		return err
	}
	if time.Since(k.synced) >= g.options.SyncEvery {
		k.synced = time.Now()
		if err := g.reporter.store.Sync(); err != nil {
			return err
		}
	}
	if today := dayOf(g.options.Now().UnixNano()); today > 1 && k.pruned < today-1 {
		k.pruned = today - 1
		return k.prune()
	}
	return nil
}

// prune deletes the records of the days before pruned.
func (k *maintenance) prune() error {
	return k.gateway.store.Commit(func(_ func(key, value []byte), deleteRange func(lo, hi []byte)) {
		for _, kind := range [...]byte{keyAnswer, keyClosed, keyPacked, history.KeyFill} {
			deleteRange([]byte{kind}, binary.BigEndian.AppendUint32([]byte{kind}, k.pruned))
		}
	}, false)
}
