package quorum

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"blockdesk/persist/journaltest"
)

// groupRig is the journal of a group of nodes in this process.
type groupRig struct {
	c  *cluster
	id string // the leader
}

func (g *groupRig) MayRefuse() bool { return len(g.c.members) > 1 }

func (g *groupRig) Open() journaltest.Journal {
	for id, m := range g.c.members {
		if m.node == nil {
			g.c.start(id)
		}
	}
	id, term := g.c.lead()
	g.id = id
	return term
}

// Close stops the leader; another node, if there is one, takes over.
func (g *groupRig) Close() {
	if err := g.c.stop(g.id); err != nil {
		g.c.t.Fatal(err)
	}
}

func (g *groupRig) Kill(percent int) { g.c.kill(g.id, percent) }

// TestJournal: the journal of one node and of three keeps the promises.
func TestJournal(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("tcp %d", n), func(t *testing.T) {
			journaltest.Run(t, func(t *testing.T) journaltest.Rig {
				return &groupRig{c: newCluster(t, n, func(o *Options) { o.Timeout = quick })}
			})
		})
	}
	t.Run("memory 3", func(t *testing.T) {
		journaltest.Run(t, func(t *testing.T) journaltest.Rig { return &groupRig{c: newCluster(t, 3, inMemory())} })
	})
}

// inMemory connects nodes without a network.
func inMemory() func(*Options) {
	transports := map[string]*raft.InmemTransport{}
	return func(o *Options) {
		o.Timeout = quick
		_, own := raft.NewInmemTransportWithTimeout(raft.ServerAddress(o.Bind), time.Second)
		for address, other := range transports {
			other.Connect(raft.ServerAddress(o.Bind), own)
			own.Connect(raft.ServerAddress(address), other)
		}
		transports[o.Bind] = own
		o.transport = own
	}
}
