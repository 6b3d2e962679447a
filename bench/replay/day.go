package replay

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"blockdesk/bench/flow"
	"blockdesk/bench/server"
	"blockdesk/fixgw/fixclient"
)

// Days are the recorded days that a Day can play.
var Days = []string{"amzn", "aapl", "own"}

// Day plays a recorded day through a server of its own.
type Day struct {
	Exe, Dir   string // the program, and a scratch folder
	Testdata   string // folder of the recorded order flow
	Name       string // one of Days; own is generated
	Durability string // sync or interval
	Rows       int    // stop after so many; 0 = all
	RESTEvery  int    // see Options
	CrashAt    []int  // see Options: the server is killed and started again
	Progress   func(done, total int)
}

// Run plays the day. It returns the data folder of the stopped server too.
func (d *Day) Run(ctx context.Context) (result Result, dataDir string, err error) {
	rows, levels, err := d.load()
	if err != nil {
		return result, "", err
	}
	config, err := d.config()
	if err != nil {
		return result, "", err
	}
	srv, err := server.Start(ctx, d.Exe, d.Dir, config)
	if err != nil {
		return result, "", err
	}
	trader := func(name string) fixclient.Options {
		return fixclient.Options{Addr: srv.Addresses.FIX, SenderCompID: name, TargetCompID: "BLOCKDESK", Username: name, Password: "play", LogonFields: "8013=N\x01"}
	}
	result, err = Run(ctx, Options{
		Buyer: trader("BUYER"), Seller: trader("SELLER"), Symbol: "STOCK/USD", PriceDecimals: 4,
		WSURL: srv.Addresses.WS + "/ws/rfq", RESTURL: srv.Addresses.Base, Rows: rows, Levels: levels,
		RESTEvery: d.RESTEvery, CrashAt: d.CrashAt,
		Crash:    func(int) error { return errors.Join(srv.Kill(), srv.Restart(ctx)) },
		Progress: func(n int) { d.Progress(n, len(rows)) },
	})
	return result, srv.DataDir(), errors.Join(err, srv.Stop())
}

// load returns the rows and how many levels of the book each of them has.
func (d *Day) load() (rows []flow.LobsterRow, levels int, err error) {
	recorded := func(name string) string { return filepath.Join(d.Testdata, "lobster", name) }
	switch d.Name {
	case "amzn":
		levels = 5
		rows, err = flow.OpenLobsterZip(recorded("LOBSTER_SampleFile_AMZN_2012-06-21_5.zip"), levels)
	case "aapl":
		levels = 10
		rows, err = flow.OpenLobsterCSV(recorded("AAPL_2012-06-21_34200000_57600000_message_10.csv"),
			recorded("AAPL_2012-06-21_34200000_57600000_orderbook_10.csv"), levels)
	default:
		levels = 5
		rows = flow.NewLobster(1, 2000, levels)
	}
	if d.Rows > 0 && d.Rows < len(rows) {
		rows = rows[:d.Rows]
	}
	return rows, levels, err
}

// config is that of the server: prices in cents, whole shares, two participants, a side
// each.
func (d *Day) config() (string, error) {
	participants, err := server.WriteParticipants(d.Dir, "play", "BUYER", "SELLER")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`log: {level: warn}
durability: {mode: %s, interval_ms: 5}
fix: {participants_file: %q, messages_per_second: 1000000}
http: {market_data_per_minute: 0}
risk: {max_qty: "10000000", max_notional: "1000000000", max_open_orders: 100000, band_bps: 10000}
instruments:
  - {symbol: STOCK/USD, price_decimals: 4, qty_decimals: 0, tick: "0.01", lot: "1", min_qty: "1", max_qty: "100000000", max_price: "100000", book_source: matched}
`, d.Durability, participants), nil
}
