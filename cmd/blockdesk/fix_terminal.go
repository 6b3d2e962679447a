package main

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

// fixTerminal joins a FIX session, a person or a script, and the screen.
type fixTerminal struct {
	options fixclient.Options
	wait    time.Duration // for an answer
	strict  bool
	screen  *screen
	client  *fixclient.Client
	changed chan struct{} // capacity 1: a message has come

	mu        sync.Mutex // guards what follows; taken before the client's own
	term      *fixterm.Terminal
	connected bool
	leaving   bool
	refused   int // commands that were refused, not understood or not answered
}

// errNotConnected answers commands while the connection is being made anew.
var errNotConnected = errors.New("not connected")

// Run logs on, and takes commands from in until it ends, the session does, or ctx.
func (c *fixTerminal) Run(ctx context.Context, in io.Reader, interactive bool) error {
	// Ids must differ from those of every earlier start, for a day and more.
	prefix := strconv.FormatInt(time.Now().UnixMilli(), 36) + "-"
	c.term, c.changed = fixterm.New(prefix, time.Now), make(chan struct{}, 1)
	c.options.Trace = c.screen.trace
	client, err := fixclient.Dial(ctx, c.options)
	if err != nil {
		return explainLogon(err)
	}
	c.client, c.connected = client, true
	c.sayLogon()
	ctx, cancel := context.WithCancel(ctx)
	ended, stopped := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- c.serve(ctx)
		close(stopped)
	}()
	lines := make(chan string)
	// Nothing ends a read from a terminal: this goroutine may outlive Run, and
	// ends with the program.
	go readLines(ctx, in, lines)
	c.screen.prompt()
	err = c.take(ctx, lines, ended, interactive)
	cancel()
	<-stopped
	if err == nil && c.strict && c.refused > 0 {
		return fmt.Errorf("%d commands were refused or not answered", c.refused)
	}
	return err
}

// explainLogon adds to a refused logon what may help.
func explainLogon(err error) error {
	if errors.Is(err, fixclient.ErrSequence) {
		return fmt.Errorf("%w; --reset begins anew", err)
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

// take runs the commands, and ends the session when there are no more.
func (c *fixTerminal) take(ctx context.Context, lines <-chan string, ended <-chan error, interactive bool) error {
	for quit := false; !quit; {
		select {
		case line, more := <-lines:
			if !more {
				quit = true
				break
			}
			var pause time.Duration
			quit, pause = c.command(line)
			if !interactive {
				if err := c.settle(ctx, ended, pause); err != nil {
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

// errEnded is what a session that ends by itself leaves to a script.
var errEnded = errors.New("the session has ended")

func endOf(err error) error {
	if err == nil {
		return errEnded
	}
	return err
}

// logout ends the session in order, for as long as an answer may take.
func (c *fixTerminal) logout(ended <-chan error) error {
	c.mu.Lock()
	c.leaving = true
	asked := c.connected && c.client.Logout() == nil
	c.mu.Unlock()
	if !asked {
		return nil // there is nothing to log out of
	}
	var err error
	select {
	case err = <-ended:
	case <-time.After(c.wait):
		c.client.Close()
	}
	c.screen.say("logged out", "")
	return err
}

// settle waits until what was asked is answered, and then for pause.
func (c *fixTerminal) settle(ctx context.Context, ended <-chan error, pause time.Duration) error {
	limit := time.NewTimer(c.wait)
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
			c.screen.say("no answer", "after "+c.wait.String())
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

func (c *fixTerminal) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.term.Waiting()
}

// command does what one line asks for.
func (c *fixTerminal) command(line string) (quit bool, pause time.Duration) {
	c.screen.entered()
	c.mu.Lock()
	defer c.mu.Unlock()
	a, err := c.term.Command(line)
	if err == nil && (a.MsgType != "" || a.From > 0) {
		err = c.send(&a)
	}
	if err != nil {
		c.refused++
		c.screen.say("error", err.Error())
		return false, 0
	}
	for i := range a.Reports {
		c.screen.report(&a.Reports[i])
	}
	return a.Quit, a.Pause
}

// send sends what a command asks for. The caller holds mu.
func (c *fixTerminal) send(a *fixterm.Action) error {
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

// serve reads the session's messages, over reconnects, until it ends.
func (c *fixTerminal) serve(ctx context.Context) error {
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
		c.screen.say("cut off", err.Error())
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
func (c *fixTerminal) redial(ctx context.Context) error {
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
		c.screen.say("no session", err.Error())
		pause = min(2*pause, redialMost)
	}
}

func (c *fixTerminal) sayLogon() {
	sender, target := c.client.NextSequence()
	c.screen.say("logged on", fmt.Sprintf("%s to %s at %s; next numbers: %d out, %d in",
		c.options.SenderCompID, c.options.TargetCompID, c.options.Addr, sender, target))
}

// handle tells of one message. It runs on the client's goroutine.
func (c *fixTerminal) handle(m *fixclient.Message) error {
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
