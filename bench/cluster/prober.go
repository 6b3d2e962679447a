package cluster

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/server"
	"blockdesk/fixgw/fixclient"
)

const (
	// proberPause is how long the prober waits after each acknowledgement, and
	// after a round of nodes none of which took it.
	proberPause = time.Millisecond
	// proberTimeout bounds one connection and logon: a node that has just been
	// killed refuses at once.
	proberTimeout = time.Second
)

// probe is one node's service to the prober: when it was logged on, and when the
// first order after that was acknowledged.
type probe struct {
	addr          string
	logon, answer time.Time
}

// prober is a FIX client that sends orders without end, one in flight, and goes on
// at whichever node takes it when a connection is lost.
type prober struct {
	addrs []string
	key   ed25519.PrivateKey

	sender, target int // numbers to continue with
	orders         int

	mu    sync.Mutex
	last  probe
	acked int           // orders in all
	calm  *bench.Series // of every order but the first at a node, and the one that a kill cut off
}

// run sends orders until ctx ends.
func (p *prober) run(ctx context.Context) error {
	for i := 0; ctx.Err() == nil; i++ {
		addr := p.addrs[i%len(p.addrs)]
		c, err := fixclient.Dial(ctx, fixclient.Options{
			Addr: addr, SenderCompID: proberID, TargetCompID: "BLOCKDESK", Key: p.key, Timeout: proberTimeout,
			KeepSequence: true, Reset: p.sender == 0, NextSender: p.sender, NextTarget: p.target,
		})
		if err == nil {
			err = p.order(ctx, c, addr)
			p.sender, p.target = c.NextSequence()
			i-- // it may be back already
		}
		if errors.Is(err, fixclient.ErrSequence) {
			return err // the node has lost messages of the session
		}
		if (i+1)%len(p.addrs) == 0 {
			time.Sleep(proberPause)
		}
	}
	return nil
}

// proberID is the prober's CompID.
const proberID = "PROBE"

// order sends an order after the other until the connection is lost.
func (p *prober) order(ctx context.Context, c *fixclient.Client, addr string) error {
	now := probe{addr: addr, logon: time.Now()}
	var id string
	var sent time.Time
	next := func() error {
		p.orders++
		sent, id = time.Now(), "P"+strconv.Itoa(p.orders)
		return c.Send("D", probeBody(id))
	}
	if err := next(); err != nil {
		return err
	}
	return c.Run(ctx, func(m *fixclient.Message) error {
		if m.Type() != "8" || string(m.Get(11)) != id {
			return nil // a report of an earlier order, or of this one's end
		}
		if string(m.Get(150)) == "8" {
			return fmt.Errorf("order %s refused: %s", id, m.Get(58))
		}
		p.mu.Lock()
		if now.answer.IsZero() {
			now.answer = time.Now()
		} else {
			p.calm.Add(int64(time.Since(sent)))
		}
		p.last, p.acked = now, p.acked+1
		p.mu.Unlock()
		time.Sleep(proberPause)
		return next()
	})
}

// probeBody is an order that neither trades nor rests.
func probeBody(id string) []byte {
	b := append([]byte("11="), id...)
	b = append(b, "\x0155="+server.Symbol+"\x0154=1\x0160="...)
	b = time.Now().UTC().AppendFormat(b, "20060102-15:04:05.000")
	return append(b, "\x0138=10\x0140=2\x0159=3\x0144=0.500000\x01"...)
}

// seen returns the probe of the last acknowledgement, and the number of acknowledgements.
func (p *prober) seen() (last probe, acked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, p.acked
}
