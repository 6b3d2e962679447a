package persist

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/market"
)

// goldenCommands is one of each shape that the record has.
func goldenCommands() []engine.Command {
	order := engine.Command{
		Seq: 7, At: 1_700_000_000_000_000_000, Kind: engine.NewOrder, Instrument: 1, Origin: 3,
		Order: book.Order{
			ID: 0x0102030405060708, Price: 999, Qty: 5000, Participant: 2,
			Side: market.Buy, Type: book.Limit, TIF: book.GTC, STP: book.STPCancelOldest,
		},
	}
	order.SetRef([]byte("ord-1"))
	cancel := engine.Command{
		Seq: 8, At: order.At, Kind: engine.CancelOrder, Instrument: 1, Origin: 3,
		Order: book.Order{ID: order.Order.ID, Participant: 2},
	}
	full := engine.Command{
		Seq: 9, At: order.At + 1, Kind: engine.NewOrder, Status: 1, Arg: 11, Instrument: 65535, Origin: 65535,
		Order: book.Order{
			ID: 1<<63 + 1, Price: -1, Stop: 1, Qty: 2, Display: 3, ExpireAt: 4, Participant: 65535,
			Side: market.Sell, Type: book.StopLimit, TIF: book.Day, Flags: 255, STP: book.STPDecrement,
		},
	}
	full.SetRef([]byte(strings.Repeat("r", engine.MaxRef)))
	epoch := engine.Command{Seq: 10, At: full.At, Kind: engine.StartEpoch, Arg: 4}
	return []engine.Command{order, cancel, full, epoch}
}

func goldenFrame(t testing.TB) []byte {
	f := Frame{Epoch: 3, Previous: 0x1112131415161718, EventHash: 0x2122232425262728}
	commands := goldenCommands()
	data, err := AppendFrame(nil, &f, commands[:1], commands[1:])
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// golden is the encoding of goldenFrame by schema version 1: frozen.
const golden = "" +
	"4244464a010030000400000000000000070000000000000004000000dd00000018171615141312112827262524232221" +
	"3517010001010100020502000100030000002a36fe9c97170807060504030201e70300000000000088130000000000006f72642d31" +
	"180203000000000000000200010003000807060504030201" +
	"78ff0101020405ff0428ffffffffffff01002a36fe9c97170100000000000080ffffffffffffffff01000000000000000200000000000000030000000000000004000000000000000b0000000000000072727272727272727272727272727272727272727272727272727272727272727272727272727272" +
	"18800a000000000000000000000000000400000000000000" +
	"fd98f645"

func TestFrameGolden(t *testing.T) {
	if got := hex.EncodeToString(goldenFrame(t)); got != golden {
		t.Errorf("the encoding of schema version 1 has changed:\n got %s\nwant %s", got, golden)
	}
}

func TestFrameRoundTrip(t *testing.T) {
	data := goldenFrame(t)
	f, err := ParseFrame(data)
	if err != nil {
		t.Fatal(err)
	}
	if f.Epoch != 4 || f.First != 7 || f.Count != 4 || f.Last() != 10 ||
		f.Previous != 0x1112131415161718 || f.EventHash != 0x2122232425262728 {
		t.Errorf("header: %+v", f)
	}
	got, err := f.AppendCommands(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range goldenCommands() {
		if got[i] != want {
			t.Errorf("command %d:\n got %+v\nwant %+v", i, got[i], want)
		}
	}
}

// drawCommands draws commands that the engine could have stamped.
func drawCommands(t *rapid.T, first uint64) []engine.Command {
	n := rapid.IntRange(1, 40).Draw(t, "commands")
	commands := make([]engine.Command, n)
	at := int64(rapid.IntRange(0, 1<<40).Draw(t, "at"))
	sparse := func(name string) int64 {
		if rapid.Bool().Draw(t, name+" present") {
			return rapid.Int64().Draw(t, name)
		}
		return 0
	}
	for i := range commands {
		at += int64(rapid.IntRange(0, 1).Draw(t, "step"))
		c := &commands[i]
		*c = engine.Command{
			Seq: first + uint64(i), At: at, Arg: uint64(sparse("arg")),
			Kind:       engine.Kind(rapid.Uint8().Draw(t, "kind")),
			Status:     rapid.Uint8().Draw(t, "status"),
			Instrument: market.InstrumentID(rapid.Uint16().Draw(t, "instrument")),
			Origin:     rapid.Uint16().Draw(t, "origin"),
			Order: book.Order{
				ID: market.OrderID(sparse("id")), Price: market.Price(sparse("price")),
				Stop: market.Price(sparse("stop")), Qty: market.Qty(sparse("qty")),
				Display: market.Qty(sparse("display")), ExpireAt: sparse("expire"),
				Participant: market.ParticipantID(rapid.Uint16().Draw(t, "participant")),
				Side:        market.Side(rapid.Uint8().Draw(t, "side")),
				Type:        book.Type(rapid.Uint8().Draw(t, "type")),
				TIF:         book.TIF(rapid.Uint8().Draw(t, "tif")),
				Flags:       book.Flag(rapid.Uint8().Draw(t, "flags")),
				STP:         book.STP(rapid.Uint8().Draw(t, "stp")),
			},
		}
		c.SetRef(rapid.SliceOfN(rapid.Byte(), 0, engine.MaxRef).Draw(t, "ref"))
	}
	return commands
}

// TestFrameLaws: decoding returns what was encoded, in any split of the two slices, and
// the epoch is that of the last StartEpoch.
func TestFrameLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint64Range(1, 1<<60).Draw(t, "first")
		commands := drawCommands(t, first)
		cut := rapid.IntRange(0, len(commands)).Draw(t, "cut")
		in := Frame{Epoch: 5, Previous: rapid.Uint64().Draw(t, "previous"), EventHash: rapid.Uint64().Draw(t, "events")}
		prefix := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "prefix")
		data, err := AppendFrame(prefix, &in, commands[:cut], commands[cut:])
		if err != nil {
			t.Fatal(err)
		}
		data = data[len(prefix):]
		out, err := ParseFrame(data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := out.AppendCommands(nil)
		if err != nil {
			t.Fatal(err)
		}
		epoch := uint64(5)
		for i := range commands {
			if got[i] != commands[i] {
				t.Fatalf("command %d: got %+v, want %+v", i, got[i], commands[i])
			}
			if commands[i].Kind == engine.StartEpoch {
				epoch = commands[i].Arg
			}
		}
		if out.Epoch != epoch || out.First != first || out.Previous != in.Previous || out.EventHash != in.EventHash {
			t.Fatalf("header: %+v, want epoch %d and %+v", out, epoch, in)
		}
	})
}

// TestFrameSeesEveryFlip: every flipped bit of a frame is detected.
func TestFrameSeesEveryFlip(t *testing.T) {
	data := goldenFrame(t)
	for i := range len(data) * 8 {
		data[i/8] ^= 1 << (i % 8)
		if f, err := ParseFrame(data); !errors.Is(err, ErrFrame) {
			t.Fatalf("bit %d: %v, %+v", i, err, f)
		}
		data[i/8] ^= 1 << (i % 8)
	}
	for n := range data {
		if _, err := ParseFrame(data[:n]); !errors.Is(err, ErrFrame) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
}

// reseal gives changed bytes a valid checksum, so that tests and fuzzing reach the code
// behind it.
func reseal(data []byte) {
	if body := len(data) - frameTrailerSize; body >= 0 {
		binary.LittleEndian.PutUint32(data[body:], crc32.Checksum(data[:body], castagnoli))
	}
}

func TestFrameRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func([]byte)
		want   string
	}{
		{"magic", func(p []byte) { p[0] = 0 }, "magic"},
		{"version", func(p []byte) { p[4] = 2 }, "schema version 2"},
		{"header size", func(p []byte) { p[6] = 47 }, "header of 47"},
		{"no command", func(p []byte) { clear(p[24:28]) }, "0 commands"},
		{"limit plus one", func(p []byte) { binary.LittleEndian.PutUint32(p[24:], MaxFrameCommands+1) }, "131073 commands"},
		{"lying count", func(p []byte) { binary.LittleEndian.PutUint32(p[24:], 1000) }, "cannot fit"},
		{"payload length", func(p []byte) { p[28]++ }, "payload of"},
		{"first seq", func(p []byte) { clear(p[16:24]) }, "first seq 0"},
		{"seq wraps", func(p []byte) { binary.LittleEndian.PutUint64(p[16:], 1<<64-2) }, "first seq"},
		{"epoch", func(p []byte) { p[8] = 9 }, "epoch 9"},
		{"one command fewer", func(p []byte) { p[24] = 3 }, "bytes after"},
		{"one command more", func(p []byte) { p[24] = 5 }, "seq 11"},
		{"long ref", func(p []byte) { p[frameHeaderSize+9] = 41 }, "seq 7"},
		{"present zero", func(p []byte) { clear(p[frameHeaderSize+24 : frameHeaderSize+32]) }, "seq 7"},
		{"record length", func(p []byte) { p[frameHeaderSize]++ }, "seq 7"},
	} {
		data := goldenFrame(t)
		test.change(data)
		reseal(data)
		f, err := ParseFrame(data)
		if err == nil {
			_, err = f.AppendCommands(nil)
		}
		if !errors.Is(err, ErrFrame) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one that says %q", test.name, err, test.want)
		}
	}
}

func TestFrameRefusesCommands(t *testing.T) {
	good := goldenCommands()
	gap := goldenCommands()
	gap[2].Seq++
	falling := goldenCommands()
	falling[1].At--
	zero := []engine.Command{{Kind: engine.Tick}}
	tooMany := make([]engine.Command, MaxFrameCommands+1)
	for i := range tooMany {
		tooMany[i].Seq = uint64(i + 1)
	}
	for name, commands := range map[string][]engine.Command{
		"none": nil, "gap": gap, "falling time": falling, "seq 0": zero, "limit plus one": tooMany,
		"repeated": append(good[:1:1], good[0]),
	} {
		dst := []byte("kept")
		got, err := AppendFrame(dst, &Frame{}, commands, nil)
		if !errors.Is(err, ErrFrameCommands) || string(got) != "kept" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := AppendFrame(nil, &Frame{}, tooMany[:MaxFrameCommands], nil); err != nil {
		t.Errorf("at the limit: %v", err)
	}
}

func FuzzDecodeFrame(f *testing.F) {
	f.Add(goldenFrame(f), true)
	f.Add(goldenFrame(f)[:60], false)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if sealed {
			reseal(data)
		}
		frame, err := ParseFrame(data)
		if err != nil {
			return
		}
		commands, err := frame.AppendCommands(nil)
		if err != nil {
			return
		}
		if cap(commands) > 2*len(data) {
			t.Fatalf("%d commands of memory for %d bytes", cap(commands), len(data))
		}
		again, err := AppendFrame(nil, &Frame{Epoch: frame.Epoch, Previous: frame.Previous, EventHash: frame.EventHash}, commands, nil)
		if err != nil || string(again) != string(data) {
			t.Fatalf("encoding again: %v\n got %x\nwant %x", err, again, data)
		}
	})
}
