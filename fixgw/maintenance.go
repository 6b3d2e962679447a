package fixgw

import (
	"context"
	"time"

	"blockdesk/fixgw/history"
	"blockdesk/fixgw/orders"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/rfq"
)

// maintenanceTick is the pause between two rounds of maintenance.
const maintenanceTick = 100 * time.Millisecond

// dropOldEvery is the pause between two searches for messages that are too old.
const dropOldEvery = 10 * time.Minute

// maintenance reserves sequence numbers ahead of their use, commits messages that no
// commit of reports has stored, makes the cursor durable, and deletes messages that are too
// old and records older than yesterday.
type maintenance struct {
	gateway *Gateway
	synced  time.Time
	pruned  uint32 // day up to which buckets have been deleted
	dropped time.Time
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
		if err := g.reporter.Store().Sync(); err != nil {
			return err
		}
	}
	if time.Since(k.dropped) >= dropOldEvery {
		k.dropped = time.Now()
		if err := g.DropOld(); err != nil {
			return err
		}
	}
	if today := reports.DayOf(g.options.Now().UnixNano()); today > 1 && k.pruned < today-1 {
		k.pruned = today - 1
		return k.prune()
	}
	return nil
}

// prune deletes the records of the days before pruned.
func (k *maintenance) prune() error {
	return k.gateway.reporter.Store().Store.Commit(func(_ func(key, value []byte), deleteRange func(lo, hi []byte)) {
		for _, expired := range [...]func(day uint32) (lo, hi []byte){reports.Expired, orders.Expired, rfq.Expired, history.Expired} {
			deleteRange(expired(k.pruned))
		}
	}, false)
}
