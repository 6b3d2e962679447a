package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"blockdesk/fixgw/fixclient"
)

const (
	Symbol   = "SLUSD/USDC"
	Password = "bench"
)

// Config writes a participants file into dir and returns a configuration that raises the
// limits on clients out of reach and keeps the risk limits.
func Config(dir, mode string, compIDs ...string) (string, error) {
	path, err := WriteParticipants(dir, Password, compIDs...)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`log: {level: warn}
durability: {mode: %s, interval_ms: 5}
fix: {participants_file: %q, messages_per_second: 1000000}
feed: {connections_per_ip: 20000, max_connections: 20000}
http: {market_data_per_minute: 0}
`, mode, path), nil
}

// Session returns the options of a FIX session of one of the participants.
func Session(addr, compID string) fixclient.Options {
	return fixclient.Options{Addr: addr, SenderCompID: compID, TargetCompID: "BLOCKDESK", Username: compID, Password: Password}
}

// OrderBody is a limit order that rests far from the other side.
func OrderBody(id string, side byte, price string) []byte {
	b := append([]byte("11="), id...)
	b = append(b, "\x0155="+Symbol+"\x0154="...)
	b = append(b, side)
	b = time.Now().UTC().AppendFormat(append(b, "\x0160="...), "20060102-15:04:05.000")
	b = append(b, "\x0138=10\x0140=2\x0159=1\x0144="...)
	return append(append(b, price...), '\x01')
}

// StartBook runs a server in a scratch folder; stop ends it and removes
// the folder.
func StartBook(ctx context.Context, exe, parent, name, mode string) (_ *Server, stop func() error, err error) {
	dir := filepath.Join(parent, name)
	config, err := Config(dir, mode, "BENCH")
	if err != nil {
		return nil, nil, err
	}
	srv, err := Start(ctx, exe, dir, config)
	if err != nil {
		return nil, nil, err
	}
	return srv, func() error { return errors.Join(srv.Stop(), os.RemoveAll(dir)) }, nil
}

// Driver is one FIX session that sends up to 1,000 orders, each better than the
// one before.
type Driver struct {
	client  *fixclient.Client
	stop    context.CancelFunc
	ended   chan error
	refused atomic.Int64
	sent    int
}

// DialDriver logs a driver on.
func DialDriver(ctx context.Context, addr string) (*Driver, error) {
	client, err := fixclient.Dial(ctx, Session(addr, "BENCH"))
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(ctx)
	d := &Driver{client: client, stop: stop, ended: make(chan error, 1)}
	go func() {
		d.ended <- client.Run(run, func(m *fixclient.Message) error {
			if m.Type() != "8" || string(m.Get(150)) == "8" {
				d.refused.Add(1)
			}
			return nil
		})
	}()
	return d, nil
}

// Next sends order number sent, at the price of its number.
func (d *Driver) Next() error {
	n := strconv.Itoa(d.sent)
	price := fmt.Sprintf("%s%03d", DriverPrice, d.sent)
	d.sent++
	return d.client.Send("D", OrderBody("R"+n, '1', price))
}

// DriverPrice is the beginning of the prices of a Driver's orders; three digits follow.
const DriverPrice = "0.500"

// Close ends the session. It fails if an order was refused.
func (d *Driver) Close() error {
	d.stop()
	err := <-d.ended
	if n := d.refused.Load(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d messages were refused", n))
	}
	return err
}

// FillBook places orders at so many levels of both sides and waits until all are acknowledged.
func FillBook(ctx context.Context, addr string, levels int) error {
	client, err := fixclient.Dial(ctx, fixclient.Options{Addr: addr, SenderCompID: "BENCH", TargetCompID: "BLOCKDESK", Username: "BENCH", Password: Password, LogonFields: "8013=N\x01"})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	left := make(chan struct{}, 2*levels)
	ended := make(chan error, 1)
	go func() {
		ended <- client.Run(run, func(m *fixclient.Message) error {
			if string(m.Get(150)) != "0" {
				return fmt.Errorf("order not taken: %s", strings.ReplaceAll(string(m.Raw()), "\x01", "|"))
			}
			left <- struct{}{}
			return nil
		})
	}()
	for i := range levels {
		bid := fmt.Sprintf("0.%06d", 999_000-i*100)
		ask := fmt.Sprintf("1.%06d", 1_000+i*100)
		n := strconv.Itoa(i)
		if err := errors.Join(client.Send("D", OrderBody("B"+n, '1', bid)), client.Send("D", OrderBody("S"+n, '2', ask))); err != nil {
			return err
		}
	}
	for range 2 * levels {
		select {
		case <-left:
		case err := <-ended:
			return err
		case <-time.After(10 * time.Second):
			return errors.New("orders not acknowledged in 10 s")
		}
	}
	return nil
}
