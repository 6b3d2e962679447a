package broadcast_test

import (
	"errors"
	"testing"
	"time"

	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/settle/binding"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
	"blockdesk/settle/store/storetest"
)

// await loses the bytes of a forged transaction.
func (b *bench) await(k store.Transaction, m *made, lastValid uint64, allowedAt int64) {
	b.t.Helper()
	missing := broadcast.Missing{
		Claim: k.Claim(), Kind: k.Kind(), Hash: k.Hash(), Reference: m.reference, LastValid: lastValid, AllowedAt: allowedAt,
	}
	if err := b.Await(missing); err != nil {
		b.t.Fatal(err)
	}
}

// strangers lands strangers' transactions that name a reference.
func (b *bench) strangers(reference solana.Address, n int) []*made {
	b.t.Helper()
	var list []*made
	for range n {
		b.world.mu.Lock()
		number := uint64(1_000_000 + len(b.world.made))
		b.world.mu.Unlock()
		m := &made{raw: storetest.ForgedBytes(b.t, number), lastValid: 1 << 60, reference: reference}
		b.world.add(m)
		b.world.land(m, startSlot, false)
		list = append(list, m)
	}
	return list
}

// TestMissing: without its bytes, a transaction is found by its message among
// those that name its reference, or is nowhere and can be nowhere.
func TestMissing(t *testing.T) {
	for name, c := range map[string]struct {
		known, landed, fails bool
		want                 broadcast.End
		after                time.Duration // not before, in fake time
	}{
		"known, nowhere":     {known: true, want: broadcast.Expired, after: 50 * time.Second},
		"known, landed":      {known: true, landed: true, want: broadcast.Finalized, after: 50 * time.Second},
		"known, failed":      {known: true, landed: true, fails: true, want: broadcast.Failed, after: 50 * time.Second},
		"not known, nowhere": {want: broadcast.Expired, after: 120 * time.Second},
		"not known, landed":  {landed: true, want: broadcast.Finalized, after: 30 * time.Second}, // found as soon as it is final
	} {
		inBubble(t, 3, broadcast.Options{}, func(t *testing.T, b *bench) {
			k, m := b.forge(1, 100)
			m.fails = c.fails
			b.strangers(m.reference, 3)
			if c.landed {
				b.world.land(m, startSlot+50, false)
			}
			var height uint64
			if c.known {
				height = k.LastValid()
			}
			b.await(k, m, height, time.Now().UnixNano())
			await.VirtualSleep(t, c.after)
			if list := b.results(); len(list) != 0 {
				t.Errorf("%s: too early: %+v", name, list)
			}
			if !c.known {
				if list := b.Unresolved(10); len(list) != 1 || list[0].Claim != 1 || list[0].LastValid < k.LastValid() {
					t.Errorf("%s: unresolved: %+v", name, list)
				}
			}
			await.VirtualSleep(t, 90*time.Second)
			r := b.one()
			want := broadcast.Result{Claim: 1, Kind: k.Kind(), Hash: k.Hash(), End: c.want, Error: r.Error}
			if c.landed {
				want.Signature, want.Slot = k.Signature(), m.slot
			}
			if r != want || (r.Error != "") != c.fails {
				t.Errorf("%s: %+v, want %+v", name, r, want)
			}
			if len(b.world.sends) != 0 {
				t.Errorf("%s: sent %+v", name, b.world.sends)
			}
		})
	}
}

// TestMissingTooOld: what nodes may never have had does not expire, but is found.
func TestMissingTooOld(t *testing.T) {
	inBubble(t, 2, broadcast.Options{}, func(t *testing.T, b *bench) {
		for _, u := range b.world.nodes {
			u.set(faults{first: startSlot})
		}
		nowhere, m := b.forge(1, 100)
		b.await(nowhere, m, 0, time.Now().UnixNano())
		unknown, m := b.forge(2, 100)
		b.await(unknown, m, 0, 0)
		found, m := b.forge(3, 100)
		b.world.land(m, startSlot, false)
		b.await(found, m, 0, time.Now().UnixNano())
		await.VirtualSleep(t, 10*time.Minute)
		if r := b.one(); r.Claim != 3 || r.End != broadcast.Finalized {
			t.Errorf("reported %+v", r)
		}
		for _, s := range b.Unresolved(10) {
			if s.Problem != broadcast.ProblemTooOld {
				t.Errorf("%+v", s)
			}
		}
		if n, all := len(b.Unresolved(1)), len(b.Unresolved(10)); n != 1 || all != 2 {
			t.Errorf("%d and %d are unresolved", n, all)
		}
		// Nodes with all blocks know.
		for _, u := range b.world.nodes {
			u.set(faults{})
		}
		await.VirtualSleep(t, time.Minute)
		ends := map[market.ClaimID]broadcast.End{}
		for _, r := range b.results() {
			ends[r.Claim] = r.End
		}
		if len(ends) != 3 || ends[1] != broadcast.Expired || ends[2] != broadcast.Expired || ends[3] != broadcast.Finalized {
			t.Errorf("%v", ends)
		}
	})
}

// TestMissingByTime: without a height, nodes that have all blocks since an hour before the
// transaction was allowed know that it is nowhere.
func TestMissingByTime(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		b.world.nodes[0].set(faults{first: startSlot})
		await.VirtualSleep(t, time.Hour-time.Minute)
		early, m := b.forge(1, 100)
		b.await(early, m, 0, time.Now().UnixNano())
		await.VirtualSleep(t, 2*time.Minute)
		late, m := b.forge(2, 100)
		b.await(late, m, 0, time.Now().UnixNano())
		await.VirtualSleep(t, 10*time.Minute)
		if r := b.one(); r.Claim != 2 || r.End != broadcast.Expired {
			t.Errorf("reported %+v", r)
		}
		if list := b.Unresolved(10); len(list) != 1 || list[0].Claim != 1 || list[0].Problem != broadcast.ProblemTooOld {
			t.Errorf("%+v", list)
		}
	})
}

// TestSnapshot: a node that was begun from a snapshot after a transaction landed does not
// know it, and has no vote, however young both are. Enough nodes with its blocks decide.
func TestSnapshot(t *testing.T) {
	for name, kind := range map[string]cosign.Kind{"own signature": cosign.Deliver, "any signature": cosign.Cosign} {
		for _, lands := range []bool{false, true} {
			inBubble(t, 3, broadcast.Options{}, func(t *testing.T, b *bench) {
				k, m := b.forgeKind(kind, 1, 100)
				young := faults{first: startSlot + 20}
				b.world.nodes[0].set(young)
				b.world.nodes[1].set(young)
				b.world.outcome = func(*made) outcome { return outcome{lost: true} }
				if lands {
					b.world.land(m, startSlot+5, false)
				}
				b.track(k)
				await.VirtualSleep(t, 5*time.Minute)
				if list := b.Unresolved(1); len(b.results()) != 0 || len(list) != 1 || list[0].Problem != broadcast.ProblemTooOld || !list[0].Past {
					t.Errorf("%s: reported %+v, unresolved %+v", name, b.results(), list)
				}
				// A second node with its blocks, and the one that lacks them does not hold it up.
				b.world.nodes[1].set(faults{})
				await.VirtualSleep(t, time.Minute)
				want := broadcast.Expired
				if lands {
					want = broadcast.Finalized
				}
				if r := b.one(); r.End != want {
					t.Errorf("%s: %+v, want %v", name, r, want)
				}
			})
		}
	}
}

// TestSnapshotLater: nodes that lose their blocks between their answers about the signature
// and about the reference have no vote either.
func TestSnapshotLater(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, _ := b.forgeKind(cosign.Cosign, 1, 100)
		b.world.outcome = func(*made) outcome { return outcome{lost: true} }
		b.world.beforeHistory = func() { b.world.nodes[0].set(faults{first: startSlot + 20}) }
		b.track(k)
		await.VirtualSleep(t, 2*time.Minute)
		if list := b.Unresolved(1); len(b.results()) != 0 || len(list) != 1 || list[0].Problem != broadcast.ProblemTooOld {
			t.Errorf("reported %+v, unresolved %+v", b.results(), list)
		}
	})
}

// TestInventedHistory: one node of three that lists transactions which do not exist, or far
// too many, does not hold a claim up, and a search reads a limited number of them. If most
// list what none returns, the desk waits.
func TestInventedHistory(t *testing.T) {
	inventions := make([]solana.Signature, broadcast.MaxHistory)
	for i := range inventions {
		inventions[i] = solana.Signature{9, byte(i), byte(i >> 8)}
	}
	const strangers = 2
	for name, liar := range map[string]faults{
		"one": {lists: inventions[:1]}, "as many as are read": {lists: inventions[:broadcast.MaxDoubted]},
		"as many as are listed": {lists: inventions[strangers:]}, "too many": {crowded: true},
	} {
		for at := range 3 {
			inBubble(t, 3, broadcast.Options{}, func(t *testing.T, b *bench) {
				k, m := b.forgeKind(cosign.Cosign, 1, 100)
				b.strangers(m.reference, strangers)
				b.world.nodes[at].set(liar)
				b.world.outcome = func(*made) outcome { return outcome{lost: true} }
				b.track(k)
				await.VirtualSleep(t, 2*time.Minute)
				if r := b.one(); r.End != broadcast.Expired {
					t.Errorf("%s by node %d: %+v", name, at, r)
				}
				if w := b.world; w.searched == 0 || w.read != w.searched*(strangers+min(len(liar.lists), broadcast.MaxDoubted)) {
					t.Errorf("%s by node %d: %d reads in %d searches", name, at, w.read, w.searched)
				}
			})
		}
	}
	inBubble(t, 3, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, _ := b.forgeKind(cosign.Cosign, 1, 100)
		b.world.nodes[0].set(faults{lists: inventions[:1]})
		b.world.nodes[1].set(faults{lists: inventions[:1]})
		b.world.outcome = func(*made) outcome { return outcome{lost: true} }
		b.track(k)
		await.VirtualSleep(t, 2*time.Minute)
		if s, _ := b.State(k.Signature()); s.Problem != broadcast.ProblemUnread || len(b.results()) != 0 {
			t.Errorf("two of three: %+v, reported %+v", s, b.results())
		}
	})
}

// TestHiddenFromMost: a transaction under another signature that only one node lists is
// found, because that node returns it.
func TestHiddenFromMost(t *testing.T) {
	inBubble(t, 3, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, m := b.forge(1, 100)
		b.strangers(m.reference, 3)
		b.world.land(m, startSlot+50, false)
		b.world.nodes[0].set(faults{hides: true})
		b.world.nodes[1].set(faults{hides: true})
		b.await(k, m, k.LastValid(), time.Now().UnixNano())
		await.VirtualSleep(t, 3*time.Minute)
		if r := b.one(); r.End != broadcast.Finalized {
			t.Errorf("%+v", r)
		}
	})
}

// TestConfirmedForEver: a node that has a transaction in a block that never becomes final
// keeps it neither from being sent again nor, once its last block is past, from being
// examined.
func TestConfirmedForEver(t *testing.T) {
	inBubble(t, 3, broadcast.Options{}, func(t *testing.T, b *bench) {
		b.world.nodes[0].set(faults{confirms: true})
		k, m := b.forge(1, 100)
		b.world.outcome = func(*made) outcome { return outcome{lost: b.world.age() < 20*time.Second} }
		b.track(k)
		await.VirtualSleep(t, time.Minute)
		if r := b.one(); r.End != broadcast.Finalized || r.Slot != m.slot {
			t.Errorf("%+v", r)
		}
	})
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		b.world.nodes[0].set(faults{confirms: true})
		b.world.outcome = func(*made) outcome { return outcome{lost: true} }
		k, _ := b.forge(1, 100)
		b.track(k)
		await.VirtualSleep(t, 2*time.Minute)
		if s, _ := b.State(k.Signature()); s.Problem != broadcast.ProblemLanding || b.world.examined == 0 {
			t.Errorf("%+v after %d examinations", s, b.world.examined)
		}
	})
}

// TestHistory: transactions of strangers that name the reference are read, up to a
// limit; while one of them cannot be read, no end is reported.
func TestHistory(t *testing.T) {
	for name, c := range map[string]struct {
		kind      cosign.Kind
		strangers int
		word      string
	}{
		"at the limit": {cosign.Cosign, broadcast.MaxHistory, ""}, "one more": {cosign.Cosign, broadcast.MaxHistory + 1, broadcast.ProblemHistoryLong},
		"one more, and it has one name": {cosign.Deliver, broadcast.MaxHistory + 1, ""},
	} {
		inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
			b.world.outcome = func(*made) outcome { return outcome{lost: true} }
			k, m := b.forgeKind(c.kind, 1, 100)
			b.strangers(m.reference, c.strangers)
			b.track(k)
			await.VirtualSleep(t, 2*time.Minute)
			s, waits := b.State(k.Signature())
			if waits != (c.word != "") || s.Problem != c.word {
				t.Errorf("%s: waits %v, %+v", name, waits, s)
			}
		})
	}
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		b.world.outcome = func(*made) outcome { return outcome{lost: true} }
		k, m := b.forgeKind(cosign.Cosign, 1, 100)
		stranger := b.strangers(m.reference, 2)[1]
		b.world.mu.Lock()
		delete(b.world.made, stranger.signature) // listed, and not to be had
		b.world.mu.Unlock()
		b.track(k)
		await.VirtualSleep(t, 2*time.Minute)
		if s, _ := b.State(k.Signature()); s.Problem != broadcast.ProblemUnread {
			t.Errorf("%+v", s)
		}
		b.world.add(stranger)
		await.VirtualSleep(t, 10*time.Second)
		if r := b.one(); r.End != broadcast.Expired {
			t.Errorf("%+v", r)
		}
	})
}

// TestHistoryByFeePayer: naming the reference too often holds up only transactions
// whose fee the taker pays, which may have landed under another signature.
func TestHistoryByFeePayer(t *testing.T) {
	for payer, waits := range map[build.Party]bool{build.Desk: false, build.Taker: true} {
		inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
			b.world.outcome = func(*made) outcome { return outcome{lost: true} }
			s, err := store.Open(kvtest.New())
			if err != nil {
				t.Fatal(err)
			}
			k, err := s.PutTransaction(storetest.Atomic(t, 1, 1, payer), b.world.height(startSlot)+100, time.Now().UnixNano())
			if err != nil {
				t.Fatal(err)
			}
			b.world.add(&made{raw: k.Bytes(), lastValid: k.LastValid(), reference: binding.Reference(1)})
			b.strangers(binding.Reference(1), broadcast.MaxHistory+1)
			b.track(k)
			await.VirtualSleep(t, 2*time.Minute)
			if _, still := b.State(k.Signature()); still != waits {
				t.Errorf("fee payer %d: waits %v", payer, still)
			}
		})
	}
}

// TestHistoryQuorum: as many nodes as must answer must return their histories.
func TestHistoryQuorum(t *testing.T) {
	inBubble(t, 3, broadcast.Options{}, func(t *testing.T, b *bench) {
		b.world.outcome = func(*made) outcome { return outcome{lost: true} }
		k, _ := b.forge(1, 100)
		b.world.nodes[0].set(faults{mute: true})
		b.world.nodes[2].set(faults{mute: true})
		b.track(k)
		await.VirtualSleep(t, 2*time.Minute)
		if s, _ := b.State(k.Signature()); s.Problem != broadcast.ProblemNodesDown {
			t.Errorf("%+v", s)
		}
		b.world.nodes[2].set(faults{})
		await.VirtualSleep(t, 10*time.Second)
		if r := b.one(); r.End != broadcast.Expired {
			t.Errorf("%+v", r)
		}
	})
}

// TestFoundOld: what landed so long ago that only a search knows its status.
func TestFoundOld(t *testing.T) {
	inBubble(t, 2, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, m := b.forge(1, 100)
		b.world.land(m, startSlot, false)
		await.VirtualSleep(t, (recent+50)*slotTime)
		b.await(k, m, 0, time.Now().UnixNano())
		await.VirtualSleep(t, 10*time.Second)
		if r := b.one(); r.End != broadcast.Finalized || r.Slot != m.slot {
			t.Errorf("%+v", r)
		}
	})
}

// TestListed: a node that lists a transaction, and denies its status, keeps it
// from expiring.
func TestListed(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, m := b.forge(1, 100)
		b.world.outcome = func(*made) outcome { return outcome{lost: true} }
		listed := *m
		b.world.land(&listed, startSlot+5, false) // in the history alone
		b.track(k)
		await.VirtualSleep(t, 3*time.Minute)
		if s, ok := b.State(k.Signature()); !ok || s.Problem != broadcast.ProblemLanding {
			t.Errorf("%v %+v", ok, s)
		}
	})
}

// TestUpgrade: bytes that come while the nodes are being asked are used, and what
// was asked before them decides nothing.
func TestUpgrade(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		b.world.nodes[0].set(faults{delay: 300 * time.Millisecond})
		for n := range 50 {
			k, m := b.forge(market.ClaimID(n+1), 150)
			b.await(k, m, 0, time.Now().UnixNano())
			await.VirtualSleep(t, time.Duration(n)*37*time.Millisecond)
			b.track(k)
			await.VirtualSleep(t, time.Second)
			if s, ok := b.State(k.Signature()); !ok || s.LastValid != k.LastValid() {
				t.Errorf("%v %+v, and it lives to %d", ok, s, k.LastValid())
			}
		}
		await.VirtualSleep(t, time.Minute)
		list := b.results()
		for _, r := range list {
			if r.End != broadcast.Finalized {
				t.Errorf("%+v", r)
			}
		}
		if len(list) != 50 {
			t.Errorf("reported %d", len(list))
		}
	})
}

// TestMissingAmongLiars: a node that hides a transaction does not hold up its end, and one
// that forges its message under a stranger's signature does not bring it about.
func TestMissingAmongLiars(t *testing.T) {
	for name, c := range map[string]struct {
		landed bool
		liar   func(m *made) faults
		want   broadcast.End
	}{
		"hidden": {true, func(*made) faults { return faults{hides: true} }, broadcast.Finalized},
		"forged": {false, func(m *made) faults { return faults{forges: m} }, broadcast.Expired},
	} {
		for liar := range 3 {
			inBubble(t, 3, broadcast.Options{}, func(t *testing.T, b *bench) {
				k, m := b.forge(1, 100)
				b.world.nodes[liar].set(c.liar(m))
				b.strangers(m.reference, 3)
				if c.landed {
					b.world.land(m, startSlot+50, false)
				}
				b.await(k, m, 0, time.Now().UnixNano()) // its block height is not known, so it is searched for at once
				await.VirtualSleep(t, 5*time.Minute)
				if r := b.one(); r.End != c.want {
					t.Errorf("%s by node %d: %+v", name, liar, r)
				}
			})
		}
	}
}

// TestBytesLate: bytes that come when all is over, or nearly so.
func TestBytesLate(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		b.world.nodes[0].set(faults{blind: true, delay: 300 * time.Millisecond})
		k, m := b.forge(1, 30)
		b.await(k, m, k.LastValid(), time.Now().UnixNano())
		refused := errors.New("refused")
		b.refuse = func(broadcast.Result) error { return refused }
		await.Equal(t, "transactions under examination", 1, func() int { return b.Stats().Past })
		b.track(k)
		await.VirtualSleep(t, time.Second)
		if s := b.Stats(); s.Past > 1 || s.Tracked != 1 {
			t.Errorf("%+v", s)
		}
		await.VirtualSleep(t, time.Minute)
		sends := len(b.world.sendsOf(k.Signature()))
		if list := b.results(); len(list) == 0 || list[0].End != broadcast.Expired || b.Stats().Past != 0 {
			t.Errorf("%+v, %+v", list, b.Stats())
		}
		lost, m := b.forge(2, 30)
		b.await(lost, m, lost.LastValid(), time.Now().UnixNano())
		await.Equal(t, "ends that are being reported", 2, func() int { return b.Stats().Reporting })
		b.track(lost) // it has ended, and that is not taken yet
		await.VirtualSleep(t, 20*time.Second)
		if n := len(b.world.sends); n != sends {
			t.Errorf("sent %d times, then %d", sends, n)
		}
	})
}

// TestGiveUp: a person ends only what the nodes never will: no end is reported, it is
// no longer sent or polled, and it may be tracked again.
func TestGiveUp(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		b.world.outcome = func(*made) outcome { return outcome{lost: true} }
		k, m := b.forgeKind(cosign.Cosign, 1, 100)
		b.strangers(m.reference, broadcast.MaxHistory+1)
		refused := func(when string, hash solana.Hash) {
			t.Helper()
			if _, err := b.GiveUp(1, hash); !errors.Is(err, broadcast.ErrOutcomeKnown) {
				t.Errorf("%s: %v", when, err)
			}
		}
		refused("not under way", k.Hash())
		b.track(k)
		refused("its blockhash lives", k.Hash())
		b.world.nodes[0].set(faults{mute: true})
		await.VirtualSleep(t, 2*time.Minute)
		if s, _ := b.State(k.Signature()); s.Problem != broadcast.ProblemNodesDown || !s.Past || s.OutcomeUnknown {
			t.Errorf("%+v", s)
		}
		refused("a node is down", k.Hash())
		b.world.nodes[0].set(faults{})
		await.VirtualSleep(t, time.Minute)
		refused("another message", solana.Hash{1})
		if list := b.Unresolved(9); len(list) != 1 || !list[0].OutcomeUnknown || b.OutcomesUnknown() != 1 {
			t.Errorf("%+v", list)
		}
		s, err := b.GiveUp(1, k.Hash())
		if err != nil || s.Signature != k.Signature() || s.Problem != broadcast.ProblemHistoryLong {
			t.Errorf("%+v, %v", s, err)
		}
		sends := len(b.world.sendsOf(k.Signature()))
		refused("given up", k.Hash())
		await.VirtualSleep(t, time.Minute)
		stats := b.Stats()
		if len(b.results()) != 0 || stats.Tracked != 0 || stats.Past != 0 || stats.GivenUp != 1 || b.OutcomesUnknown() != 0 || len(b.world.sendsOf(k.Signature())) != sends {
			t.Errorf("reported %+v, %+v", b.results(), stats)
		}
		b.world.mu.Lock()
		b.world.named[m.reference] = nil
		b.world.mu.Unlock()
		b.track(k)
		await.VirtualSleep(t, time.Minute)
		if r := b.one(); r.End != broadcast.Expired {
			t.Errorf("%+v", r)
		}
	})
}
