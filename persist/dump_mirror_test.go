package persist

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/market"
)

const wantMirrorDump = `{"seq":1,"frame":1,"at":5,"time":"1970-01-01T00:00:00.000000005Z","kind":"mirror_refresh","piece":0,"bytes":23,"refresh":{"instrument":3,"slot":18446744073709551615,"bids":[[100,5],[98,300]],"asks":[[101,7]]}}
{"seq":2,"frame":2,"at":5,"time":"1970-01-01T00:00:00.000000005Z","kind":"mirror_refresh","piece":0,"bytes":16,"refresh":{"instrument":3,"slot":7,"bids":[],"asks":[]}}
{"seq":3,"frame":3,"at":5,"time":"1970-01-01T00:00:00.000000005Z","kind":"mirror_refresh","piece":0,"bytes":16,"refresh":"0901030007000000000000000000ffff"}
{"seq":4,"frame":4,"at":5,"time":"1970-01-01T00:00:00.000000005Z","kind":"mirror_trade","instrument":3,"ordinal":9,"side":2,"price_ticks":100,"qty_lots":4,"block_at":3,"slot":8}
`

// TestDumpReportsMirrors: the dump shows refreshes and trades of a mirrored book, and
// bytes that no program of ours has written.
func TestDumpReportsMirrors(t *testing.T) {
	var commands []engine.Command
	for _, b := range []engine.MirrorBook{
		{
			Instrument: 3, Slot: 1<<64 - 1, Bids: []market.Level{{Price: 100, Qty: 5}, {Price: 98, Qty: 300}},
			Asks: []market.Level{{Price: 101, Qty: 7}},
		},
		{Instrument: 3, Slot: 7},
		{Instrument: 3, Slot: 7},
	} {
		var err error
		if commands, err = engine.MirrorRefreshCommands(commands, &b); err != nil {
			t.Fatal(err)
		}
	}
	wrong := &commands[len(commands)-1]
	wrong.Order.ID += 0x0108 // another version
	wrong.Order.Price |= -1 << 48
	trade, err := engine.MirrorTradeCommand(&engine.MirrorSwap{
		Instrument: 3, Ordinal: 9, Price: 100, Qty: 4, Side: market.Sell, At: 3, Slot: 8,
	})
	if err != nil {
		t.Fatal(err)
	}
	commands = append(commands, trade)
	for i := range commands {
		commands[i].Seq, commands[i].At = uint64(i+1), 5
	}
	o := testOptions(vfs.NewMem())
	w := mustOpen(t, o, 0, nil)
	w.mustAppend(t, commands, 1)
	w.mustClose(t)
	var out bytes.Buffer
	if err := Dump(toolsFor(o), 1, 100, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != wantMirrorDump {
		t.Errorf("dump:\n%s\nwant\n%s", out.String(), wantMirrorDump)
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}
