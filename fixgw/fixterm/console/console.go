// Package console runs a fixterm.Terminal over a FIX session: it reads commands from a
// person or a script, sends them, and shows what the gateway answers. It owns the screen and
// the connection; fixterm owns the session's state.
//
// A lost connection is dialed again, at most redials times, and the subscriptions that the
// terminal had are sent again. Requests without an answer count as refused. A script waits
// for the answer of each command before the next; a person does not. The screen redraws a
// book where it was and keeps the line that is being typed below it.
package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/fixterm"
)

// A connection that is lost is dialed again, a little later each time.
const (
	redialFirst = 500 * time.Millisecond
	redialMost  = 15 * time.Second
	redials     = 40
)

// Options of a session.
type Options struct {
	Client      fixclient.Options // Trace is the console's
	Wait        time.Duration     // for the answer to a command of a script
	Strict      bool              // Run fails if a command was refused or not answered
	Interactive bool              // a person types; else each line waits for its answer
	Out         io.Writer
	JSON        bool // reports as JSON lines
	Raw         bool // show every message too, without secrets
}

// console joins a FIX session, the lines that are typed, and the screen.
type console struct {
	o       Options
	screen  *screen
	client  *fixclient.Client
	changed chan struct{} // capacity 1: a message has arrived

	mu        sync.Mutex // guards the fields below; taken before the client's own
	term      *fixterm.Terminal
	connected bool
	leaving   bool
	refused   int // commands refused, not understood or not answered
}

// errNotConnected answers commands while the connection is dialed again.
var errNotConnected = errors.New("not connected")

// Run logs on and runs the commands of in until in, the session or ctx ends.
func Run(ctx context.Context, o Options, in io.Reader) error {
	// ClOrdIDs must differ from those of every earlier start.
	prefix := strconv.FormatInt(time.Now().UnixMilli(), 36) + "-"
	c := &console{
		o: o, term: fixterm.New(prefix, time.Now), changed: make(chan struct{}, 1),
		screen: &screen{out: o.Out, json: o.JSON, raw: o.Raw, live: o.Interactive && !o.JSON},
	}
	c.o.Client.Trace = c.screen.trace
	var err error
	if c.client, err = fixclient.Dial(ctx, c.o.Client); err != nil {
		return explainLogon(err)
	}
	c.connected = true
	c.sayLogon()
	ctx, cancel := context.WithCancel(ctx)
	ended, stopped := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- c.serve(ctx)
		close(stopped)
	}()
	lines := make(chan string)
	// A read from a terminal cannot be interrupted: this goroutine may outlive Run
	// and ends with the program.
	go readLines(ctx, in, lines)
	c.screen.prompt()
	err = c.take(ctx, lines, ended)
	cancel()
	<-stopped
	if err == nil && c.o.Strict && c.refused > 0 {
		return fmt.Errorf("%d commands were refused or not answered", c.refused)
	}
	return err
}

// explainLogon adds the way out to a refused logon.
func explainLogon(err error) error {
	if errors.Is(err, fixclient.ErrSequence) {
		return fmt.Errorf("%w; use --reset to start both sequence numbers at 1", err)
	}
	return err
}

func readLines(ctx context.Context, in io.Reader, lines chan<- string) {
	defer close(lines)
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, fixterm.MaxLine+2)
	for scan.Scan() {
		select {
		case lines <- scan.Text():
		case <-ctx.Done():
			return
		}
	}
}

// take runs the commands and logs out after the last one.
func (c *console) take(ctx context.Context, lines <-chan string, ended <-chan error) error {
	for quit := false; !quit; {
		select {
		case line, more := <-lines:
			if !more {
				quit = true
				break
			}
			var pause time.Duration
			quit, pause = c.command(line)
			if !c.o.Interactive {
				if err := c.awaitAnswers(ctx, ended, pause); err != nil {
					return err
				}
			}
			c.screen.prompt()
		case err := <-ended:
			return endOf(err)
		case <-ctx.Done():
			return c.logout(ended)
		}
	}
	return c.logout(ended)
}

// errEnded means that the gateway ended the session before the script was done.
var errEnded = errors.New("the session has ended")

func endOf(err error) error {
	if err == nil {
		return errEnded
	}
	return err
}

// logout logs out and waits for the answer.
func (c *console) logout(ended <-chan error) error {
	c.mu.Lock()
	c.leaving = true
	sent := c.connected && c.client.Logout() == nil
	c.mu.Unlock()
	if !sent {
		return nil // not logged on
	}
	var err error
	select {
	case err = <-ended:
	case <-time.After(c.o.Wait):
		c.client.Close()
	}
	c.screen.show("logged out", "")
	return err
}

// awaitAnswers waits until every command is answered, and then for pause.
func (c *console) awaitAnswers(ctx context.Context, ended <-chan error, pause time.Duration) error {
	limit := time.NewTimer(c.o.Wait)
	defer limit.Stop()
	for c.waiting() > 0 {
		select {
		case <-c.changed:
		case err := <-ended:
			return endOf(err)
		case <-ctx.Done():
			return nil
		case <-limit.C:
			c.mu.Lock()
			n := c.term.GiveUp()
			c.refused += n
			c.mu.Unlock()
			c.screen.show("no answer", "after "+c.o.Wait.String())
		}
	}
	select {
	case <-time.After(pause):
	case err := <-ended:
		return endOf(err)
	case <-ctx.Done():
	}
	return nil
}

func (c *console) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.term.Waiting()
}

// command runs one line.
func (c *console) command(line string) (quit bool, pause time.Duration) {
	c.screen.entered()
	c.mu.Lock()
	defer c.mu.Unlock()
	a, err := c.term.Command(line)
	if err == nil && (a.MsgType != "" || a.From > 0) {
		err = c.send(&a)
	}
	if err != nil {
		c.refused++
		c.screen.show("error", err.Error())
		return false, 0
	}
	for i := range a.Reports {
		c.screen.report(&a.Reports[i])
	}
	return a.Quit, a.Pause
}

// send sends the message of a command. The caller holds mu.
func (c *console) send(a *fixterm.Action) error {
	if !c.connected {
		return errNotConnected
	}
	if a.From > 0 {
		c.screen.expect(a.From, a.To)
		return c.client.Resend(a.From, a.To)
	}
	seq, err := c.client.SendNumbered(a.MsgType, a.Body)
	if err == nil {
		c.term.Sent(a, seq)
	}
	return err
}

// serve reads the session's messages, and dials again, until the session ends.
func (c *console) serve(ctx context.Context) error {
	for {
		err := c.client.Run(ctx, c.handle)
		c.mu.Lock()
		c.connected = false
		over := c.leaving || ctx.Err() != nil
		c.mu.Unlock()
		switch {
		case over:
			return nil
		case err == nil || errors.Is(err, fixclient.ErrLogout):
			return err
		}
		c.screen.show("cut off", err.Error())
		c.mu.Lock()
		again := c.term.Disconnected()
		c.refused += c.term.GiveUp()
		c.mu.Unlock()
		if err := c.redial(ctx); err != nil {
			return err
		}
		for _, line := range again {
			if ctx.Err() == nil {
				c.command(line)
			}
		}
	}
}

// redial logs on again.
func (c *console) redial(ctx context.Context) error {
	pause := redialFirst
	for try := 1; ; try++ {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		err := c.client.Redial(ctx)
		switch {
		case err == nil:
			c.mu.Lock()
			c.connected = true
			c.mu.Unlock()
			c.sayLogon()
			return nil
		case errors.Is(err, fixclient.ErrSequence) || try == redials:
			return explainLogon(err)
		}
		c.screen.show("no session", err.Error())
		pause = min(2*pause, redialMost)
	}
}

func (c *console) sayLogon() {
	sender, target := c.client.NextSequence()
	c.screen.show("logged on", fmt.Sprintf("%s to %s at %s; next numbers: %d out, %d in",
		c.o.Client.SenderCompID, c.o.Client.TargetCompID, c.o.Client.Addr, sender, target))
}

// handle shows one message. It runs on the client's goroutine.
func (c *console) handle(m *fixclient.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	reports := c.term.Message(m)
	for i := range reports {
		if reports[i].Refused {
			c.refused++
		}
		c.screen.report(&reports[i])
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}
