package bench

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

	"blockdesk/bench/server"
	"blockdesk/fixgw/fixclient"
)

// DoorOptions of the benchmarks that talk to a running server.
type DoorOptions struct {
	Exe    string // the program; required
	Dir    string // scratch folder; required
	Orders int    // round trips of the FIX benchmark; default 20,000
}

const (
	benchSymbol   = "SLUSD/USDC"
	benchPassword = "bench"
)

// serverConfig writes a participants file into dir and returns a configuration
// with the limits of a client out of the way and the limits of risk on.
func serverConfig(dir, mode string, compIDs ...string) (string, error) {
	path, err := server.WriteParticipants(dir, benchPassword, compIDs...)
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

func session(addr, compID string) fixclient.Options {
	return fixclient.Options{Addr: addr, SenderCompID: compID, TargetCompID: "BLOCKDESK", Username: compID, Password: benchPassword}
}

// orderBody is a limit order that rests far from the other side.
func orderBody(id string, side byte, price string) []byte {
	b := append([]byte("11="), id...)
	b = append(b, "\x0155="+benchSymbol+"\x0154="...)
	b = append(b, side)
	b = time.Now().UTC().AppendFormat(append(b, "\x0160="...), "20060102-15:04:05.000")
	b = append(b, "\x0138=10\x0140=2\x0159=1\x0144="...)
	return append(append(b, price...), '\x01')
}

// startBenchServer runs a server in a scratch folder; stop ends it and removes
// the folder.
func startBenchServer(ctx context.Context, o DoorOptions, name, mode string) (_ *server.Server, stop func() error, err error) {
	dir := filepath.Join(o.Dir, name)
	config, err := serverConfig(dir, mode, "BENCH")
	if err != nil {
		return nil, nil, err
	}
	srv, err := server.Start(ctx, o.Exe, dir, config)
	if err != nil {
		return nil, nil, err
	}
	return srv, func() error { return errors.Join(srv.Stop(), os.RemoveAll(dir)) }, nil
}

// driver is one FIX session that sends up to 1,000 orders, each better than the
// one before.
type driver struct {
	client  *fixclient.Client
	stop    context.CancelFunc
	ended   chan error
	refused atomic.Int64
	sent    int
}

func dialDriver(ctx context.Context, addr string) (*driver, error) {
	client, err := fixclient.Dial(ctx, session(addr, "BENCH"))
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(ctx)
	d := &driver{client: client, stop: stop, ended: make(chan error, 1)}
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

// next sends order number sent, at the price of its number.
func (d *driver) next() error {
	n := strconv.Itoa(d.sent)
	price := fmt.Sprintf("%s%03d", driverPrice, d.sent)
	d.sent++
	return d.client.Send("D", orderBody("R"+n, '1', price))
}

// driverPrice begins the prices of a driver's orders; three digits follow.
const driverPrice = "0.500"

func (d *driver) close() error {
	d.stop()
	err := <-d.ended
	if n := d.refused.Load(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d messages were refused", n))
	}
	return err
}

func fillBook(ctx context.Context, addr string, levels int) error {
	client, err := fixclient.Dial(ctx, fixclient.Options{Addr: addr, SenderCompID: "BENCH", TargetCompID: "BLOCKDESK", Username: "BENCH", Password: benchPassword, LogonFields: "8013=N\x01"})
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
		if err := errors.Join(client.Send("D", orderBody("B"+n, '1', bid)), client.Send("D", orderBody("S"+n, '2', ask))); err != nil {
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
