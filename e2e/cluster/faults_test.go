package cluster

import (
	"syscall"
	"time"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/service/operator"
)

// fault is something that happens to a node while clients trade.
type fault struct {
	name     string
	leader   bool // it is the leader's; else one of the others', or either's
	follower bool
	kills    bool // a leader's failover is measured by it
	do       func(p *trial, n *groupNode)
}

// stopped is how long a process is not run: longer than an election takes, so that
// it wakes up as a leader of the past.
const stopped = 2500 * time.Millisecond

// clusterFaults are all of them.
func clusterFaults() []fault {
	return []fault{
		{name: "SIGKILL of the leader", leader: true, kills: true, do: func(p *trial, n *groupNode) {
			p.kill(n)
			p.progress(calmAcks)
			p.start(n)
		}},
		{name: "SIGKILL of the leader, back at once", leader: true, kills: true, do: func(p *trial, n *groupNode) {
			p.kill(n)
			p.start(n)
		}},
		{name: "SIGKILL of a follower", follower: true, do: func(p *trial, n *groupNode) {
			p.kill(n)
			p.progress(calmAcks)
			p.start(n)
		}},
		{name: "SIGKILL of all", leader: true, do: func(p *trial, _ *groupNode) {
			for _, n := range p.nodes {
				p.kill(n)
			}
			for _, n := range p.nodes {
				p.start(n)
			}
		}},
		{name: "SIGSTOP of the leader", leader: true, do: func(p *trial, n *groupNode) { p.freeze(n) }},
		{name: "SIGSTOP of a follower", follower: true, do: func(p *trial, n *groupNode) { p.freeze(n) }},
		{name: "the leader is cut off", leader: true, do: func(p *trial, n *groupNode) { p.cutOff(n, true, true) }},
		{name: "the leader's words are held", leader: true, do: func(p *trial, n *groupNode) { p.cutOff(n, true, false) }},
		{name: "what the leader hears is held", leader: true, do: func(p *trial, n *groupNode) { p.cutOff(n, false, true) }},
		{name: "a follower is cut off", follower: true, do: func(p *trial, n *groupNode) { p.cutOff(n, true, true) }},
		{name: "slow lines", do: func(p *trial, n *groupNode) {
			for _, m := range p.others(n) {
				p.net.set(weather{delay: 20 * time.Millisecond}, way{n.id, m.id}, way{m.id, n.id})
			}
			p.progress(calmAcks)
			p.net.heal()
		}},
		{name: "resets", do: func(p *trial, n *groupNode) {
			for range 10 {
				for _, m := range p.others(n) {
					p.net.reset(n.id, m.id)
				}
				time.Sleep(30 * time.Millisecond) // sleep: the pace of the resets
			}
		}},
		{name: "a slow disk at the leader's", leader: true, do: func(p *trial, n *groupNode) { p.slowDisk(n) }},
		{name: "a slow disk at a follower's", follower: true, do: func(p *trial, n *groupNode) { p.slowDisk(n) }},
		{name: "a full disk at the leader's", leader: true, do: func(p *trial, n *groupNode) { p.fullDisk(n) }},
		{name: "a full disk at a follower's", follower: true, do: func(p *trial, n *groupNode) { p.fullDisk(n) }},
		{name: "the leader's clock jumps ahead", leader: true, do: func(p *trial, n *groupNode) { p.jumpClock(n, clockJump) }},
		{name: "the leader's clock jumps back", leader: true, do: func(p *trial, n *groupNode) { p.jumpClock(n, -clockJump) }},
		{name: "two of three are killed", leader: true, do: func(p *trial, n *groupNode) { p.loseQuorum(n) }},
		{name: "the lead is handed over", leader: true, do: func(p *trial, n *groupNode) {
			// It may be deposed before, or find no successor.
			_, _, _ = p.tryCommand(n, "/desk/cluster/transfer", operator.NewToken(), []byte("{}"))
		}},
		{name: "rolling restart", do: func(p *trial, _ *groupNode) {
			for _, n := range p.nodes {
				if err := n.stop(); err != nil {
					p.T.Fatalf("%s: %v\n%s", n.id, err, n.tail())
				}
				p.start(n)
				p.level(false)
				p.progress(calmAcks)
			}
		}},
	}
}

func (p *trial) kill(n *groupNode) {
	p.T.Helper()
	if err := n.kill(); err != nil {
		p.T.Fatal(err)
	}
}

// freeze has a process not run for a while. The others go on.
func (p *trial) freeze(n *groupNode) {
	p.T.Helper()
	if err := n.signal(syscall.SIGSTOP); err != nil {
		p.T.Fatal(err)
	}
	began := time.Now()
	p.progress(calmAcks)
	time.Sleep(time.Until(began.Add(stopped))) // sleep: the node has to miss more than an election takes
	if err := n.signal(syscall.SIGCONT); err != nil {
		p.T.Fatal(err)
	}
}

const (
	slowSync  = 40 * time.Millisecond
	clockJump = 10 * time.Minute
)

func (p *trial) slowDisk(n *groupNode) {
	p.T.Helper()
	n.suffers(p.T, programtest.Faults{SlowMS: slowSync.Milliseconds()})
	p.progress(calmAcks)
	n.suffers(p.T, programtest.Faults{})
}

// fullDisk leaves no room at a node, which has to leave the group. It comes back
// when there is room again.
func (p *trial) fullDisk(n *groupNode) {
	p.T.Helper()
	n.suffers(p.T, programtest.Faults{Full: true})
	await.True(p.T, n.id+" ends on a full disk", func() bool { return n.exitedError() != nil })
	p.kill(n) // the process has ended
	p.progress(calmAcks)
	n.suffers(p.T, programtest.Faults{})
	p.start(n)
}

// jumpClock moves a node's clock, and then the node, so that another one leads
// whose clock is right.
func (p *trial) jumpClock(n *groupNode, by time.Duration) {
	p.T.Helper()
	n.suffers(p.T, programtest.Faults{SkewMS: by.Milliseconds()})
	p.progress(calmAcks)
	p.kill(n)
	p.progress(calmAcks)
	p.start(n)
	n.suffers(p.T, programtest.Faults{})
}

// loseQuorum kills two nodes: the one that is left acknowledges nothing, until
// another is back.
func (p *trial) loseQuorum(n *groupNode) {
	p.T.Helper()
	others := p.others(n)
	p.kill(n)
	p.kill(others[0])
	// A trader that is turned away has left its line, and so has read what was on it.
	// Once all nodes have turned it away, the one that is left does not lead any more.
	p.turnedAway(2 * len(p.nodes))
	before := p.acks.count.Load()
	p.turnedAway(10 * len(p.nodes))
	if now := p.acks.count.Load(); now != before {
		p.T.Fatalf("round %d: one node of three acknowledges %d orders", p.round, now-before)
	}
	p.start(n)
	p.progress(calmAcks)
	p.start(others[0])
}

// turnedAway waits until each trader has failed to log on so many times more.
func (p *trial) turnedAway(times int) {
	p.T.Helper()
	for _, tr := range p.traders {
		want := tr.turnedAway.Load() + int64(times)
		await.True(p.T, tr.Name+" to be turned away", func() bool { return tr.turnedAway.Load() >= want || p.broken() != nil })
	}
}

// cutOff holds what a node says, what it hears, or both. The others go on.
func (p *trial) cutOff(n *groupNode, sends, receives bool) {
	p.T.Helper()
	for _, m := range p.others(n) {
		if sends {
			p.net.set(weather{held: true}, way{n.id, m.id})
		}
		if receives {
			p.net.set(weather{held: true}, way{m.id, n.id})
		}
	}
	p.progress(calmAcks)
	p.net.heal()
}
