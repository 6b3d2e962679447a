package persist

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"blockdesk/engine"
)

// Dump writes the commands with Seq from..to, one JSON object a line, to w. All
// fields of a command are there that are not zero; "time" is "at" made readable.
// A request to the RFQ desk stands with the last of its commands, its fields by
// name (see appendRequest), and a refresh of a mirrored book too. It stops at the first error, of the journal or of w.
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
	first, last := max(from, begin.next), min(to, end.last())
	p := &progress{report: o.Progress, total: last + 1 - min(first, last+1)}
	var commands []engine.Command
	var joiner engine.Assembler
	var line []byte
	// Keys are first Seqs: the frame that holds from may begin before it. The
	// pieces of its first request may be in frames before that.
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
			torn := false
			if c.IsPiece() {
				request, torn = joiner.Add(c)
			}
			if c.Seq < from || c.Seq > to {
				continue
			}
			line = appendHead(line[:0], f, c)
			if c.IsPiece() {
				line = appendPieceJSON(line, c, request, torn)
			} else {
				line = appendCommandJSON(line, c)
			}
			if _, err := w.Write(line); err != nil {
				return fmt.Errorf("writing: %w", err)
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
	switch k {
	case engine.NewOrder:
		return "new_order"
	case engine.AmendOrder:
		return "amend_order"
	case engine.CancelOrder:
		return "cancel_order"
	case engine.MassCancel:
		return "mass_cancel"
	case engine.Tick:
		return "tick"
	case engine.DefineInstrument:
		return "define_instrument"
	case engine.SetRisk:
		return "set_risk"
	case engine.SetInstrument:
		return "set_instrument"
	case engine.SetParticipant:
		return "set_participant"
	case engine.StartEpoch:
		return "start_epoch"
	case engine.Fragment:
		return "attach"
	case engine.Desk:
		return "desk"
	case engine.MirrorRefresh:
		return "mirror_refresh"
	case engine.MirrorTrade:
		return "mirror_trade"
	default:
		return "kind_" + strconv.Itoa(int(k))
	}
}

// appendHead begins the line of a command with what every one has.
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

// appendCommandJSON ends the line of a command.
func appendCommandJSON(dst []byte, c *engine.Command) []byte {
	o := &c.Order
	id, expiry, arg := "order_id", "expire_at", "arg"
	if c.Kind == engine.MirrorTrade {
		id, expiry, arg = "ordinal", "block_at", "slot"
	}
	number := func(name string, v int64) {
		if v != 0 {
			dst = append(append(append(dst, `,"`...), name...), `":`...)
			dst = strconv.AppendInt(dst, v, 10)
		}
	}
	// Instrument 0 is an instrument, so it is always written.
	dst = append(dst, `,"instrument":`...)
	dst = strconv.AppendUint(dst, uint64(c.Instrument), 10)
	unsigned := func(name string, v uint64) {
		if v != 0 {
			dst = append(append(append(dst, `,"`...), name...), `":`...)
			dst = strconv.AppendUint(dst, v, 10)
		}
	}
	unsigned(id, uint64(o.ID))
	number("participant", int64(o.Participant))
	number("side", int64(o.Side))
	number("type", int64(o.Type))
	number("tif", int64(o.TIF))
	number("stp", int64(o.STP))
	number("flags", int64(o.Flags))
	number("price_ticks", int64(o.Price))
	number("stop_ticks", int64(o.Stop))
	number("qty_lots", int64(o.Qty))
	number("display_lots", int64(o.Display))
	number(expiry, o.ExpireAt)
	number("status", int64(c.Status))
	number("origin", int64(c.Origin))
	unsigned(arg, c.Arg)
	if c.RefLen > 0 {
		dst = append(dst, `,"ref":`...)
		dst = appendJSONText(dst, c.RefText())
	}
	return append(dst, '}', '\n')
}

// appendJSONText writes bytes as a JSON string, every byte outside printable
// ASCII as the code point of its value, so that no id is lost or misread.
func appendJSONText(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, b := range text {
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b < ' ' || b > '~':
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}
