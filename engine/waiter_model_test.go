package engine

import (
	"fmt"
	"testing"
)

// The model of inline matching: the steps of waiter.wait, disarm, wake, takeOver and handBack,
// each atomic operation one step, for one goroutine that owns the role, two producers that may
// take it over, and a stop. TestInlineModel visits every state that any order of their steps
// can reach.

// inlineModel is one state. It is comparable, so that a state is visited once.
type inlineModel struct {
	state   uint32 // of the waiter
	token   int
	work    int  // queued by producers, not yet done
	stop    bool // closed
	role    inlineRole
	writers [2]inlineProducer
}

type inlineRole struct {
	at     roleStep
	loaded uint32 // by disarm
	ending bool   // disarm is that of a stop
}

type roleStep int

const (
	roleReady   roleStep = iota // check for work
	roleArm                     // store armed
	roleRecheck                 // check again
	roleSleep                   // armed to asleep
	roleWait                    // for the token or the stop
	roleDisarm                  // load
	roleSwap                    // compare and swap what was loaded
	roleToken                   // take the token, or load again
	roleWork                    // the critical section
	roleEnded
)

type inlineProducer struct {
	at     producerStep
	left   int // commands to queue
	loaded uint32
}

type producerStep int

const (
	producerQueue producerStep = iota
	producerLoad               // takeOver
	producerSwap
	producerWork  // the critical section
	producerArm   // handBack
	producerMore  // is there more work?
	producerSleep // armed to asleep
	wakeLoad
	wakeSwap
	wakeSend
	producerDone
)

// roleStep returns the states that a step of the role's goroutine leads to; none if it waits.
func (m inlineModel) roleStep() (next []inlineModel) {
	r := &m.role
	worked := func(step roleStep) { r.at, r.loaded = step, 0 }
	switch r.at {
	case roleReady:
		r.at = roleArm
		if m.work > 0 {
			r.at = roleWork
		}
	case roleArm:
		m.state, r.at = waiterArmed, roleRecheck
	case roleRecheck:
		r.at = roleSleep
		if m.work > 0 {
			r.at = roleDisarm
		}
	case roleSleep:
		if m.state == waiterArmed {
			m.state = waiterAsleep
		}
		r.at = roleWait
	case roleWait:
		if m.token > 0 {
			taken := m
			taken.token, taken.role.at = 0, roleReady
			next = append(next, taken)
		}
		if m.stop {
			stopped := m
			stopped.role.at, stopped.role.ending = roleDisarm, true
			next = append(next, stopped)
		}
		return next
	case roleDisarm:
		r.loaded, r.at = m.state, roleSwap
		if m.state == waiterAwake {
			r.at = roleToken
		}
	case roleSwap:
		if m.state == r.loaded {
			m.state = waiterAwake
			worked(m.afterDisarm())
		} else {
			r.at = roleToken
		}
	case roleToken:
		if m.token > 0 {
			m.token = 0
			worked(m.afterDisarm())
		} else {
			r.at = roleDisarm
		}
	case roleWork:
		m.work, r.at = 0, roleReady
	case roleEnded:
		return nil
	}
	return []inlineModel{m}
}

func (m *inlineModel) afterDisarm() roleStep {
	if m.role.ending {
		return roleEnded
	}
	return roleWork
}

// producerStep is roleStep of producer i.
func (m inlineModel) producerStep(i int) []inlineModel {
	p := &m.writers[i]
	finish := func() {
		p.at, p.loaded = producerQueue, 0
		if p.left == 0 {
			p.at = producerDone
		}
	}
	switch p.at {
	case producerQueue:
		m.work++
		p.left--
		p.at = producerLoad
	case producerLoad:
		p.at = wakeLoad
		if m.state == waiterAsleep {
			p.at = producerSwap
		}
	case producerSwap:
		p.at = wakeLoad
		if m.state == waiterAsleep {
			m.state, p.at = waiterAwake, producerWork
		}
	case producerWork:
		m.work, p.at = 0, producerArm
	case producerArm:
		m.state, p.at = waiterArmed, producerMore
	case producerMore:
		p.at = producerSleep
		if m.work > 0 {
			p.at = wakeLoad
		}
	case producerSleep:
		if m.state == waiterArmed {
			m.state = waiterAsleep
		}
		finish()
	case wakeLoad:
		if p.loaded, p.at = m.state, wakeSwap; m.state == waiterAwake {
			finish()
		}
	case wakeSwap:
		if m.state == p.loaded {
			m.state, p.at = waiterAwake, wakeSend
		} else {
			p.at = wakeLoad
		}
	case wakeSend:
		if m.token > 0 {
			return nil // the channel is full: it must never be
		}
		m.token = 1
		finish()
	case producerDone:
		return nil
	}
	return []inlineModel{m}
}

// check returns what is wrong with a state.
func (m *inlineModel) check() error {
	owners := 0
	if m.role.at == roleWork {
		owners++
	}
	for i := range m.writers {
		switch m.writers[i].at {
		case producerWork:
			owners++
		case wakeSend:
			if m.token > 0 {
				return fmt.Errorf("a wake blocks: %+v", *m)
			}
		}
	}
	if owners > 1 {
		return fmt.Errorf("%d owners: %+v", owners, *m)
	}
	return nil
}

// quiet reports that the producers are done.
func (m *inlineModel) quiet() bool {
	return m.writers[0].at == producerDone && m.writers[1].at == producerDone
}

func TestInlineModel(t *testing.T) {
	for _, stops := range []bool{false, true} {
		t.Run(fmt.Sprintf("stop %v", stops), func(t *testing.T) {
			begin := inlineModel{writers: [2]inlineProducer{{left: 2}, {left: 2}}}
			seen := map[inlineModel]bool{begin: true}
			ends := 0
			for open := []inlineModel{begin}; len(open) > 0; {
				m := open[len(open)-1]
				open = open[:len(open)-1]
				if err := m.check(); err != nil {
					t.Fatal(err)
				}
				next := m.roleStep()
				for i := range m.writers {
					next = append(next, m.producerStep(i)...)
				}
				if stops && !m.stop {
					stopped := m
					stopped.stop = true
					next = append(next, stopped)
				}
				if len(next) == 0 {
					ends++
					// Without a stop the role sleeps and nothing is left to do.
					if !m.quiet() || m.token > 0 && m.role.at != roleEnded || !m.stop && (m.work > 0 || m.role.at != roleWait || m.state != waiterAsleep) {
						t.Fatalf("stuck, or work is forgotten: %+v", m)
					}
				}
				for _, n := range next {
					if !seen[n] {
						seen[n] = true
						open = append(open, n)
					}
				}
			}
			if ends == 0 || len(seen) < 1000 {
				t.Fatalf("%d states, %d ends: the model does not run", len(seen), ends)
			}
			t.Logf("%d states, %d ends", len(seen), ends)
		})
	}
}
