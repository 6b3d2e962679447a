package access

import (
	"errors"
	"testing"

	"blockdesk/desk"

	"pgregory.net/rapid"
)

// model is what the rules say, by the time that really passes.
type model struct {
	t       *rapid.T
	kv      *memKV
	w       *watch
	a       *Access
	real    int64 // nanoseconds
	faulted bool  // a process began with the clock behind: what is under way may take longer
	hours   map[byte]int64
	held    []held
	nonces  []string
	fresh   map[string]bool // unused nonces of this life
	born    map[string]int64
	person  person
}

type held struct {
	desk.Grant
	at      int64
	revoked bool
}

func (m *model) pass(d int64) {
	m.real += d
	m.w.pass(d)
}

// prove checks that a client gets a token exactly when an hour has passed.
func (m *model) prove() {
	number := rapid.ByteRange(1, 3).Draw(m.t, "client")
	nonce := m.a.mustChallenge(m.t, m.person.key)
	m.nonces, m.fresh[nonce], m.born[nonce] = append(m.nonces, nonce), false, m.real
	g, err := m.a.Issue(m.person.key, nonce, m.person.sign(nonce), client(number))
	at, issued := m.hours[number]
	due := !issued || m.real-at >= hour
	var soon *desk.TooSoon
	switch {
	case err == nil && due:
		m.hours[number] = m.real
		m.hold(g)
	case err == nil:
		m.t.Fatalf("client %d is issued a second token after %d s", number, (m.real-at)/second)
	case !errors.As(err, &soon):
		m.t.Fatal(err)
	case due && !m.faulted:
		m.t.Fatalf("client %d waits %s after its hour", number, soon.RetryAfter)
	}
}

// again presents a nonce of before: from a client that never proves anything, or
// rightly, from one whose hour is never over. Only the first time does it get as far
// as that.
func (m *model) again() {
	if len(m.nonces) == 0 {
		return
	}
	nonce := rapid.SampledFrom(m.nonces).Draw(m.t, "nonce")
	first := m.fresh[nonce] && m.real-m.born[nonce] < int64(NonceTTL)-second/500
	m.fresh[nonce] = false
	signature, from := m.person.sign(nonce), client(9)
	spoil := rapid.Bool().Draw(m.t, "spoil")
	if spoil {
		signature[7] ^= 1
		from = client(8)
	}
	_, err := m.a.Issue(m.person.key, nonce, signature, from)
	var soon *desk.TooSoon
	if !first && !errors.Is(err, desk.ErrBadNonce) || first && spoil && !errors.Is(err, desk.ErrBadProof) || first && !spoil && !errors.As(err, &soon) {
		m.t.Fatalf("presented, first %v, spoilt %v: %v", first, spoil, err)
	}
}

// keepWaiting issues client 9 a token as soon as it may have one.
func (m *model) keepWaiting() {
	if m.a.checkInterval(client(9), m.a.clock.now()) == nil {
		m.hold(m.a.mustProve(m.t, m.person, client(9)))
	}
}

// hold notes a token, and lets the nanosecond pass that is its number.
func (m *model) hold(g desk.Grant) {
	m.held = append(m.held, held{Grant: g, at: m.real})
	m.pass(1)
}

func (m *model) challenge() {
	nonce := m.a.mustChallenge(m.t, m.person.key)
	m.nonces, m.fresh[nonce], m.born[nonce] = append(m.nonces, nonce), true, m.real
}

func (m *model) revoke() {
	if len(m.held) == 0 {
		return
	}
	h := &m.held[rapid.IntRange(0, len(m.held)-1).Draw(m.t, "token")]
	if _, err := m.a.Revoke(h.ID, "ann"); err != nil {
		m.t.Fatal(err)
	}
	h.revoked = true
}

// restart opens the store again, some time later, and maybe with the clock set back.
func (m *model) restart() {
	m.pass(rapid.Int64Range(0, 2*hour).Draw(m.t, "down"))
	m.w = m.w.rebooted()
	if back := rapid.Int64Range(-2*hour, 2*hour).Draw(m.t, "set back"); back > 0 {
		m.w.set(-back)
	}
	m.faulted = m.faulted || m.w.wall.Load()-day0 < m.real
	m.open()
}

func (m *model) open() {
	a, err := Open(m.w.options(), m.kv)
	if err != nil {
		m.t.Fatal(err)
	}
	m.a = a
	clear(m.fresh)
}

func (m *model) check() {
	live := 0
	for _, h := range m.held {
		key, ok := m.a.Admit([]byte(h.Secret))
		over := m.real-h.at >= week
		if ok && (h.revoked || over && !m.faulted || key != h.Key) || !ok && !h.revoked && !over {
			m.t.Fatalf("token of %d s, revoked %v: admitted %v", (m.real-h.at)/second, h.revoked, ok)
		}
		if !h.revoked && !over {
			live++
		}
	}
	list, err := m.a.List("", MaxPage, false)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range list {
		if e.RevokedAt == 0 {
			live--
		}
	}
	if live > 0 || live < 0 && !m.faulted {
		m.t.Fatalf("the list has %d tokens more than there are", -live)
	}
}

// TestOneTokenAnHour: under any schedule of proofs, forgeries, revocations,
// restarts and clocks that are set back, a client is never issued a second token
// within an hour of the time that passes; and always after it, unless a process has
// begun with the clock behind.
func TestOneTokenAnHour(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{
			t: rt, kv: newMemKV(), w: newWatch(), hours: map[byte]int64{},
			fresh: map[string]bool{}, born: map[string]int64{}, person: newPerson(1),
		}
		m.open()
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {
				m.keepWaiting()
				m.check()
			},
			"prove":     func(*rapid.T) { m.prove() },
			"prove too": func(*rapid.T) { m.prove() },
			"again":     func(*rapid.T) { m.again() },
			"challenge": func(*rapid.T) { m.challenge() },
			"revoke":    func(*rapid.T) { m.revoke() },
			"restart":   func(*rapid.T) { m.restart() },
			"tend": func(*rapid.T) {
				if err := m.a.maintain(); err != nil {
					rt.Fatal(err)
				}
			},
			"pass": func(rt *rapid.T) {
				m.pass(rapid.SampledFrom([]int64{1, second, 59 * second, 10 * 60 * second, hour - 1, hour, hour + 1, week}).Draw(rt, "pass"))
			},
			"set back": func(rt *rapid.T) { m.w.set(-rapid.Int64Range(1, week).Draw(rt, "back")) },
		})
	})
}
