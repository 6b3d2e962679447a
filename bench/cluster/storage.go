package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"blockdesk/bench"
	"blockdesk/bench/server"
	"blockdesk/fixgw/fixclient"
)

const (
	storageRounds = 4000 // of each of two sessions
	storageBatch  = 50   // orders of a round that are cancelled again, and as many cancels
	storageTrades = 10   // orders of a round that trade with the other session's
)

// measureStorage measures what a command over FIX leaves on the disk. Of its commands 45 in
// a hundred are orders that are cancelled, 45 their cancels, and 10 orders that trade.
func measureStorage(ctx context.Context, b *clusterBench) (err error) {
	var ends bench.Closers
	defer func() { err = errors.Join(err, ends.Close()) }()
	dir := filepath.Join(b.o.Dir, "storage")
	config, err := server.Config(dir, "interval", "ONE", "TWO")
	if err != nil {
		return err
	}
	srv, err := server.Start(ctx, b.o.Exe, dir, config)
	if err != nil {
		return err
	}
	ends.Add(srv.Stop)
	before, err := storeSizes(srv.Addresses.Admin)
	if err != nil {
		return err
	}
	var group errgroup.Group
	for name, side := range map[string]byte{"ONE": '1', "TWO": '2'} {
		group.Go(func() error { return storageFlow(ctx, srv.Addresses.FIX, name, side) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	after, err := storeSizes(srv.Addresses.Admin)
	if err != nil {
		return err
	}
	const commands = 2 * storageRounds * (2*storageBatch + storageTrades)
	var note strings.Builder
	fmt.Fprintf(&note, "storage: %d commands over 2 FIX sessions, bytes a command on the disk:", commands)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		fmt.Fprintf(&note, " %s %.1f", name, (after[name]-before[name])/commands)
	}
	b.report.Notes = append(b.report.Notes, note.String())
	return nil
}

// storageFlow sends the orders of one session, a round at a time.
func storageFlow(ctx context.Context, addr, name string, side byte) error {
	c, err := fixclient.Dial(ctx, server.Session(addr, name))
	if err != nil {
		return err
	}
	reports := make(chan struct{}, 8*storageBatch)
	group, ctx := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(ctx)
	defer stop()
	group.Go(func() error {
		return c.Run(running, func(m *fixclient.Message) error {
			// Each command has one report that is no fill: accepted or cancelled.
			if kind := string(m.Get(150)); m.Type() == "8" && (kind == "0" || kind == "4") {
				select {
				case reports <- struct{}{}:
				case <-running.Done():
				}
			} else if m.Type() != "8" || kind == "8" {
				return fmt.Errorf("unexpected message: %s", m.Raw())
			}
			return nil
		})
	})
	group.Go(func() error {
		defer stop()
		return sendStorageOrders(ctx, c, name, side, reports)
	})
	return group.Wait()
}

func sendStorageOrders(ctx context.Context, c *fixclient.Client, name string, side byte, reports <-chan struct{}) error {
	far := map[byte]string{'1': "0.9", '2': "1.1"}[side]
	for round := range storageRounds {
		orders, rest := make([][]byte, 0, storageBatch+storageTrades), make([][]byte, 0, storageBatch)
		for i := range storageBatch {
			id := fmt.Sprintf("%s-%d-%d", name, round, i)
			orders = append(orders, server.OrderBody(id, side, far))
			rest = append(rest, fmt.Appendf(nil, "11=%s-c\x0141=%s\x0155=%s\x0154=%c\x0160=20260101-00:00:00\x01", id, id, server.Symbol, side))
		}
		for i := range storageTrades {
			orders = append(orders, server.OrderBody(fmt.Sprintf("%s-%d-t%d", name, round, i), side, "1.0"))
		}
		if err := errors.Join(c.SendAll("D", orders), c.SendAll("F", rest)); err != nil {
			return err
		}
		for range len(orders) + len(rest) {
			select {
			case <-reports:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// storeSizes reads blockdesk_store_bytes.
func storeSizes(admin string) (map[string]float64, error) {
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	sizes := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, `blockdesk_store_bytes{store="`); found {
			name, value, _ := strings.Cut(strings.TrimSpace(rest), `"} `)
			if sizes[name], err = strconv.ParseFloat(value, 64); err != nil {
				return nil, err
			}
		}
	}
	if len(sizes) == 0 {
		return nil, errors.New("the service has no metric blockdesk_store_bytes")
	}
	return sizes, nil
}
