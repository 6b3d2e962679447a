package broadcast_test

import (
	"fmt"
	"testing"
	"time"

	"blockdesk/internal/await"
	"blockdesk/settle/broadcast"
)

// TestInvented: a node that has a transaction in a final block that is not there is
// not believed. It goes on being sent, its wait shows,
// and it ends as the chain has it once the node is well.
func TestInvented(t *testing.T) {
	for _, nodes := range []int{2, 3} {
		for _, lands := range []bool{false, true} {
			name := fmt.Sprintf("one of %d, lands %v", nodes, lands)
			inBubble(t, nodes, broadcast.Options{}, func(t *testing.T, b *bench) {
				b.world.nodes[0].set(faults{invents: true})
				k, m := b.forge(1, 100)
				b.world.outcome = func(*made) outcome { return outcome{lost: !lands || b.world.age() < 10*time.Second} }
				b.track(k)
				shown := false
				for range 60 {
					await.VirtualSleep(t, time.Second)
					for _, s := range b.Unresolved(10) {
						shown = shown || s.Claim == 1 && s.Problem == broadcast.ProblemNodesDisagree
					}
				}
				// Two honest nodes of three are a majority about what they have.
				most := 0
				if lands && nodes == 3 {
					most = 1
				}
				if list := b.results(); len(list) != most || !shown {
					t.Errorf("%s: reported %+v, shown %v", name, list, shown)
				}
				if n := len(b.world.sendsOf(k.Signature())); n < 5 {
					t.Errorf("%s: sent %d times", name, n)
				}
				b.world.nodes[0].set(faults{})
				await.VirtualSleep(t, time.Minute)
				end, slot := broadcast.Expired, uint64(0)
				if lands {
					end, slot = broadcast.Finalized, m.slot
				}
				if r := b.one(); r.End != end || r.Slot != slot {
					t.Errorf("%s: %+v, want %v in %d", name, r, end, slot)
				}
			})
		}
	}
}

// TestInventedAlone: if the other nodes fail, the liar's word still decides nothing. Only
// the one node of a configuration with one is believed alone, so this test can fail.
func TestInventedAlone(t *testing.T) {
	for nodes, believed := range map[int]bool{1: true, 2: false, 3: false, 5: false} {
		inBubble(t, nodes, broadcast.Options{}, func(t *testing.T, b *bench) {
			b.world.outcome = func(*made) outcome { return outcome{lost: true} }
			b.world.nodes[0].set(faults{invents: true})
			for _, u := range b.world.nodes[1:] {
				u.set(faults{down: true})
			}
			k, _ := b.forge(1, 100)
			b.track(k)
			await.VirtualSleep(t, 10*time.Second)
			if believed {
				if r := b.one(); r.End != broadcast.Finalized || r.Slot != invented {
					t.Errorf("of %d: %+v", nodes, r)
				}
				return
			}
			if list := b.results(); len(list) != 0 {
				t.Errorf("of %d: reported %+v", nodes, list)
			}
			for _, u := range b.world.nodes {
				u.set(faults{})
			}
			await.VirtualSleep(t, 2*time.Minute)
			if r := b.one(); r.End != broadcast.Expired {
				t.Errorf("of %d, all well again: %+v", nodes, r)
			}
		})
	}
}

// TestFinalizedByMost: a majority that has it as final is believed: one that is down, lags,
// denies it or has it in another block does not hold it up.
func TestFinalizedByMost(t *testing.T) {
	for name, bad := range map[string]faults{
		"down": {down: true}, "behind": {lag: 50}, "denies": {blind: true}, "elsewhere": {invents: true}, "not final": {confirms: true},
		"pruned": {first: startSlot + 1000},
	} {
		inBubble(t, 3, broadcast.Options{}, func(t *testing.T, b *bench) {
			b.world.nodes[0].set(bad)
			k, m := b.forge(1, 150)
			b.track(k)
			await.VirtualSleep(t, 40*time.Second)
			if r := b.one(); r.End != broadcast.Finalized || r.Slot != m.slot {
				t.Errorf("%s: %+v", name, r)
			}
		})
	}
	inBubble(t, 3, broadcast.Options{}, func(t *testing.T, b *bench) {
		b.world.nodes[0].set(faults{down: true})
		b.world.nodes[1].set(faults{lag: 50}) // 20 s
		k, m := b.forge(1, 150)
		b.track(k)
		await.VirtualSleep(t, 30*time.Second)
		if list := b.results(); len(list) != 0 {
			t.Errorf("too early: %+v", list)
		}
		await.VirtualSleep(t, 15*time.Second)
		if r := b.one(); r.End != broadcast.Finalized || r.Slot != m.slot {
			t.Errorf("%+v", r)
		}
	})
}

// TestOneNode: with one node configured its word ends a transaction without an
// examination; with several there is one.
func TestOneNode(t *testing.T) {
	for nodes, want := range map[int]int{1: 0, 2: 1, 3: 1} {
		inBubble(t, nodes, broadcast.Options{}, func(t *testing.T, b *bench) {
			k, _ := b.forge(1, 150)
			b.track(k)
			await.VirtualSleep(t, 30*time.Second)
			if r := b.one(); r.End != broadcast.Finalized || b.world.examined != want {
				t.Errorf("%d nodes: %+v after %d examinations", nodes, r, b.world.examined)
			}
		})
	}
}
