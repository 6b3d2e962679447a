package persist

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"blockdesk/engine"
)

// Dump writes the commands with Seq from..to to w, one JSON object a line, with all
// fields that are not zero; "time" is "at" in RFC 3339. A request to the RFQ desk, with
// its fields by name, and a refresh of a mirrored book are in the line of their last
// command. Dump stops at the first error of the journal or of w.
func Dump(o ToolOptions, from, to uint64, w io.Writer) (err error) {
	src, err := openSource(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.release()) }()
	begin, end, err := src.verifyFrames()
	if err != nil {
		return err
	}
	first, last := max(from, begin.Next), min(to, end.Last())
	p := &progress{report: o.Progress, total: last + 1 - min(first, last+1)}
	var commands []engine.Command
	var joiner engine.Assembler
	var line []byte
	// A key is the Seq of a frame's first command, so the frame that contains from may
	// begin before it. The pieces of its first request may be in earlier frames.
	err = walk(src.db, 0, func(f *Frame, _ []byte) (err error) {
		if f.Last()+engine.MaxPieces < from {
			return nil
		}
		if f.First > to {
			return errStop
		}
		if commands, err = f.AppendCommands(commands[:0]); err != nil {
			return err
		}
		for i := range commands {
			c := &commands[i]
			var request []byte
			incomplete := false
			if c.IsPiece() {
				request, incomplete = joiner.Add(c)
			}
			if c.Seq < from || c.Seq > to {
				continue
			}
			line = appendHead(line[:0], f, c)
			if c.IsPiece() {
				line = appendPieceJSON(line, c, request, incomplete)
			} else {
				line = appendCommandJSON(line, c)
			}
			if _, err := w.Write(line); err != nil {
				return fmt.Errorf("writing the dump: %w", err)
			}
			if err := p.add(1); err != nil {
				return err
			}
		}
		return nil
	})
	p.finish()
	return err
}

func kindName(k engine.Kind) string {
	names := [...]string{
		engine.NewOrder: "new_order", engine.AmendOrder: "amend_order", engine.CancelOrder: "cancel_order",
		engine.MassCancel: "mass_cancel", engine.Tick: "tick", engine.DefineInstrument: "define_instrument",
		engine.SetRisk: "set_risk", engine.SetInstrument: "set_instrument",
		engine.SetParticipant: "set_participant", engine.StartEpoch: "start_epoch", engine.Fragment: "attach",
		engine.Desk: "desk", engine.MirrorRefresh: "mirror_refresh", engine.MirrorTrade: "mirror_trade", engine.QuoteMass: "mass_quote", engine.OrderList: "order_list",
		engine.SetAuctions: "set_auctions",
	}
	if int(k) >= len(names) || names[k] == "" {
		return "kind_" + strconv.Itoa(int(k))
	}
	return names[k]
}

// appendHead begins a command's line with the fields of every kind.
func appendHead(dst []byte, f *Frame, c *engine.Command) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, c.Seq, 10)
	dst = append(dst, `,"frame":`...)
	dst = strconv.AppendUint(dst, f.First, 10)
	dst = append(dst, `,"at":`...)
	dst = strconv.AppendInt(dst, c.At, 10)
	dst = append(dst, `,"time":"`...)
	dst = time.Unix(0, c.At).UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, `","kind":"`...)
	dst = append(dst, kindName(c.Kind)...)
	return append(dst, '"')
}

// appendCommandJSON ends a command's line.
func appendCommandJSON(dst []byte, c *engine.Command) []byte {
	id, expiry, arg := "order_id", "expire_at", "arg"
	switch c.Kind {
	case engine.MirrorTrade:
		id, expiry, arg = "ordinal", "block_at", "slot"
	case engine.SetInstrument:
		id, arg = "operator_id", "call_ns"
	}
	o, order := object{dst}, &c.Order
	o.number("instrument", uint64(c.Instrument)) // 0 is a valid instrument
	o.present(id, uint64(order.ID))
	o.present("participant", uint64(order.Participant))
	o.present("side", uint64(order.Side))
	o.present("type", uint64(order.Type))
	o.present("tif", uint64(order.TIF))
	o.present("stp", uint64(order.STP))
	o.present("flags", uint64(order.Flags))
	o.signed("price_ticks", int64(order.Price))
	o.signed("stop_ticks", int64(order.Stop))
	o.signed("qty_lots", int64(order.Qty))
	o.signed("display_lots", int64(order.Display))
	o.signed(expiry, order.ExpireAt)
	o.present("status", uint64(c.Status))
	o.present("origin", uint64(c.Origin))
	o.present(arg, c.Arg)
	o.text("ref", string(c.RefText()))
	return append(o.dst, '}', '\n')
}
