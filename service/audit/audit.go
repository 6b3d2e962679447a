// Package audit lists the commands to the desk with their operators: the requests of
// operators, and those of the configuration and of the settlement, in the journal of a
// stopped service. `blockdesk journal audit` prints them.
//
// It only reads, in the order of the journal, and holds one line at a time, so a journal
// of any length costs the same memory. Names come from the journal itself; an operator
// that neither the journal nor the configuration names is listed by its number. Clients'
// requests are left out.
package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"blockdesk/market"
	"blockdesk/persist"
)

// configuration is the operator of a request that the service made at its start, settlement
// that of one about a refund that it followed to its end.
const (
	configuration = "(configuration)"
	settlement    = "(settlement)"
)

// deskKinds are the requests that run the desk; the others are clients' and the
// settlement's.
var deskKinds = map[string]bool{
	"set_policy": true, "set_pair": true, "set_operator": true, "set_anchor": true, "set_rail_price": true,
	"set_inventory": true, "set_lock": true, "post_ticket": true, "amend_ticket": true, "set_tranche": true,
	"withdraw_ticket": true, "refund_payment": true, "begin_refund": true, "set_instrument": true,
}

// Entry is one request of an operator, whether the desk took it or refused it.
type Entry struct {
	Seq      uint64          `json:"seq"`
	Time     string          `json:"time"`
	Operator string          `json:"operator"`
	Command  string          `json:"command"`
	Text     string          `json:"-"` // the request on one line
	Request  json.RawMessage `json:"request"`
}

// Read calls each for the requests with Seq from..to in the order of the journal.
// operators has the numbers that the journal does not name itself, symbols are those of
// the instruments by ID. Read stops at the first error, of the journal or of each.
func Read(o persist.ToolOptions, from, to uint64, operators map[string]market.OperatorID, symbols []string, each func(*Entry) error) error {
	f := &filter{names: map[market.OperatorID]string{}, symbols: symbols, each: each}
	for name, id := range operators {
		f.names[id] = name
	}
	return persist.Dump(o, from, to, f)
}

// filter calls each for the lines of a dump that are operators' requests.
type filter struct {
	names   map[market.OperatorID]string
	symbols []string // of the instruments, by ID
	each    func(*Entry) error
	partial []byte // line
}

// Write implements io.Writer.
func (f *filter) Write(p []byte) (int, error) {
	f.partial = append(f.partial, p...)
	for {
		line, rest, complete := bytes.Cut(f.partial, []byte{'\n'})
		if !complete {
			return len(p), nil
		}
		// Few of a million commands are operators': decode those only.
		if bytes.Contains(line, []byte(`"request":{`)) || bytes.Contains(line, []byte(`"kind":"set_instrument"`)) {
			if err := f.line(line); err != nil {
				return 0, err
			}
		}
		f.partial = append(f.partial[:0], rest...)
	}
}

func (f *filter) line(text []byte) error {
	var e Entry
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("journal dump: %w", err)
	}
	if e.Request == nil {
		var err error
		if e.Request, err = setInstrument(text); err != nil {
			return fmt.Errorf("journal dump: seq %d: %w", e.Seq, err)
		}
	}
	var head struct {
		Kind     string            `json:"kind"`
		Operator market.OperatorID `json:"operator"`
		ID       market.OperatorID `json:"id"`
		Name     string            `json:"name"`
	}
	if err := json.Unmarshal(e.Request, &head); err != nil {
		return fmt.Errorf("journal dump: seq %d: %w", e.Seq, err)
	}
	if !deskKinds[head.Kind] {
		return nil
	}
	if head.Kind == "set_operator" {
		f.names[head.ID] = head.Name
	}
	e.Command = strings.ReplaceAll(head.Kind, "_", " ")
	switch name, known := f.names[head.Operator]; {
	case head.Operator == 0 && (head.Kind == "refund_payment" || head.Kind == "begin_refund"):
		e.Operator = settlement
	case head.Operator == 0:
		e.Operator = configuration
	case known:
		e.Operator = name
	default:
		e.Operator = fmt.Sprint("operator ", head.Operator)
	}
	var err error
	if e.Text, err = f.describe(e.Request); err != nil {
		return fmt.Errorf("journal dump: seq %d: %w", e.Seq, err)
	}
	return f.each(&e)
}

// statusWords are the statuses of an instrument by their numbers in the journal.
var statusWords = [...]string{0: "unknown", 1: "trading", 2: "halted", 3: "auction"}

// setInstrument makes a request of a line with a set_instrument, which is a command by itself.
func setInstrument(line []byte) (json.RawMessage, error) {
	var c struct {
		Kind       string `json:"kind"`
		Operator   uint64 `json:"operator_id"`
		Instrument uint64 `json:"instrument"`
		Status     uint8  `json:"status"`
		CallNS     uint64 `json:"call_ns"`
	}
	if err := json.Unmarshal(line, &c); err != nil {
		return nil, err
	}
	status := "unknown"
	if int(c.Status) < len(statusWords) {
		status = statusWords[c.Status]
	}
	text := fmt.Sprintf(`{"kind":%q,"operator":%d,"instrument":%d,"status":%q`, c.Kind, c.Operator, c.Instrument, status)
	if c.CallNS != 0 {
		text += fmt.Sprintf(`,"call":%q`, time.Duration(c.CallNS))
	}
	return json.RawMessage(text + "}"), nil
}

// describe puts a request's own members on one line, in their order.
func (f *filter) describe(request []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(request))
	if _, err := d.Token(); err != nil {
		return "", err
	}
	var parts []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return "", err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return "", err
		}
		switch name {
		case "kind", "token", "operator", "key", "body":
		case "instrument", "via":
			parts = append(parts, fmt.Sprint(name, "=", f.symbol(value)))
		default:
			parts = append(parts, fmt.Sprint(name, "=", strings.ReplaceAll(string(value), `"`, "")))
		}
	}
	return strings.Join(parts, " "), nil
}

func (f *filter) symbol(number []byte) string {
	var id int
	if err := json.Unmarshal(number, &id); err != nil || id < 0 || id >= len(f.symbols) {
		return string(number)
	}
	return f.symbols[id]
}
