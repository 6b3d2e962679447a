package fixterm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Action has the steps that the caller must take for a command.
type Action struct {
	// MsgType and Body are the message to send, in fixclient's form; "" = none. Call
	// Sent afterwards.
	MsgType string
	Body    []byte
	// Reports are shown at once.
	Reports []Report
	Quit    bool
	// From and To are the sequence numbers to request again; From 0 = none, To 0 = the
	// newest.
	From, To int
	// Pause is the wait before the next command.
	Pause time.Duration

	request *pendingRequest
}

// ErrUsage is wrapped in the error of a malformed command.
var ErrUsage = errors.New("invalid command")

// command is the first word of a line.
type command struct {
	name, usage, help string
	run               func(*Terminal, []string) (Action, error)
}

func commands() []command {
	trade := "buy|sell SYMBOL QTY [at] PRICE [gtc|ioc|fok|day] [post]"
	return []command{
		{"buy", trade, "a limit order", func(t *Terminal, w []string) (Action, error) { return t.limit("1", w) }},
		{"sell", trade, "a limit order", func(t *Terminal, w []string) (Action, error) { return t.limit("2", w) }},
		{"market", "market buy|sell SYMBOL QTY [ioc|fok]", "an order at any price", (*Terminal).marketOrder},
		{"amend", "amend ID [qty=QTY] [price=PRICE]", "change an order", (*Terminal).amend},
		{"cancel", "cancel ID", "cancel an order", (*Terminal).cancel},
		{"cancel-all", "cancel-all [SYMBOL]", "cancel all orders of the participant", (*Terminal).cancelAll},
		{"status", "status ID [SYMBOL]", "ask for the status of an order", (*Terminal).askStatus},
		{"orders", "orders", "list the live orders that this session has reported", (*Terminal).listOrders},
		{"quote", "quote SYMBOL FILL_USD [USDC|SOL] [TICKET/TRANCHE]", "ask the desk for a price", (*Terminal).askQuote},
		{"take", "take [QUOTE]", "claim what a quote offers", (*Terminal).take},
		{"pass", "pass [QUOTE]", "decline a quote", (*Terminal).pass},
		{"paid", "paid CLAIM SIGNATURE", "prove a claim's payment", (*Terminal).paid},
		{"claims", "claims", "list the claims that this session has reported", (*Terminal).listClaims},
		{"book", "book SYMBOL [DEPTH]", "follow an order book", (*Terminal).follow},
		{"unsubscribe", "unsubscribe [SYMBOL]", "stop following a book; without SYMBOL, the newest", (*Terminal).unsubscribe},
		{"instruments", "instruments", "list the instruments", (*Terminal).instruments},
		{"define", "define SYMBOL", "ask for an instrument's rules", (*Terminal).define},
		{"halted", "halted SYMBOL", "ask whether an instrument trades", (*Terminal).halted},
		{"resend", "resend FROM [TO]", "ask for messages again, by sequence number", (*Terminal).resend},
		{"raw", "raw 35=TYPE|TAG=VALUE|…", "send a message; header and trailer are made", (*Terminal).raw},
		{"wait", "wait SECONDS", "wait before the next command", (*Terminal).pause},
		{"help", "help [COMMAND]", "this list", (*Terminal).help},
		{"quit", "quit", "log out", func(*Terminal, []string) (Action, error) { return Action{Quit: true}, nil }},
	}
}

// Command reads one line. An empty line, and one that begins with '#', does nothing. A
// command may be abbreviated to an unambiguous prefix. Errors that wrap ErrUsage have the
// usage of the command.
func (t *Terminal) Command(line string) (Action, error) {
	if len(line) > MaxLine {
		return Action{}, fmt.Errorf("%w: a line of more than %d bytes", ErrUsage, MaxLine)
	}
	if strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }) {
		return Action{}, fmt.Errorf("%w: a line must be printable ASCII", ErrUsage)
	}
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return Action{}, nil
	}
	c, err := lookup(words[0])
	if err != nil {
		return Action{}, err
	}
	a, err := c.run(t, words[1:])
	if errors.Is(err, ErrUsage) {
		return Action{}, fmt.Errorf("%w; usage: %s", err, c.usage)
	}
	return a, err
}

func lookup(word string) (*command, error) {
	if word == "halted?" { // its name in version 0.1
		word = "halted"
	}
	all := commands()
	var near []string
	for i := range all {
		if all[i].name == word {
			return &all[i], nil
		}
		if strings.HasPrefix(all[i].name, word) {
			near = append(near, all[i].name)
		}
	}
	switch len(near) {
	case 0:
		return nil, fmt.Errorf("%w: unknown command %.40q; `help` lists them", ErrUsage, word)
	case 1:
		return lookup(near[0])
	}
	return nil, fmt.Errorf("%w: %s may be %s", ErrUsage, word, strings.Join(near, " or "))
}

// body is a message's fields.
type body []byte

func (b *body) add(tag int, value string) {
	*b = strconv.AppendInt(*b, int64(tag), 10)
	*b = append(append(append(*b, '='), value...), 1)
}

// stamp returns TransactTime, a UTCTimestamp.
func (t *Terminal) stamp() string { return t.now().UTC().Format("20060102-15:04:05.000") }

// decimal reports whether text is a plain positive decimal.
func decimal(text string) bool {
	digits := false
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digits = true
		case c != '.' || strings.Contains(text[i+1:], "."):
			return false
		}
	}
	return digits && len(text) <= 40
}

func usage(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUsage}, args...)...)
}

// tifOf returns the TimeInForce (59) of a word.
func tifOf(word string) string {
	return map[string]string{
		"day": "0", "gtc": "1", "ioc": "3", "fok": "4",
	}[word]
}

func (t *Terminal) limit(side string, words []string) (Action, error) {
	if len(words) > 2 && words[2] == "at" {
		words = slices.Delete(slices.Clone(words), 2, 3)
	}
	if len(words) < 3 {
		return Action{}, usage("SYMBOL, QTY and PRICE are needed")
	}
	o := &order{symbol: t.symbol(words[0]), side: side, qty: words[1], price: words[2], ordType: "2"}
	return t.place(o, words[3:], true)
}

func (t *Terminal) marketOrder(words []string) (Action, error) {
	if len(words) < 3 || words[0] != "buy" && words[0] != "sell" {
		return Action{}, usage("buy or sell, SYMBOL and QTY are needed")
	}
	o := &order{symbol: t.symbol(words[1]), side: "1", qty: words[2], ordType: "1", market: true}
	if words[0] == "sell" {
		o.side = "2"
	}
	return t.place(o, words[3:], false)
}

// place makes the NewOrderSingle (D) of an order.
func (t *Terminal) place(o *order, options []string, limit bool) (Action, error) {
	if !decimal(o.qty) {
		return Action{}, usage("QTY %q is not a number", o.qty)
	}
	if limit && !decimal(o.price) {
		return Action{}, usage("PRICE %q is not a number", o.price)
	}
	post := false
	for _, word := range options {
		tif := tifOf(word)
		switch {
		case word == "post" && limit && !post:
			post = true
		case tif != "" && o.tif == "" && (limit || word == "ioc" || word == "fok"):
			o.tif = tif
		default:
			return Action{}, usage("unexpected word %q", word)
		}
	}
	o.clOrdID = t.newID()
	o.immediate = !limit || o.tif == "3" || o.tif == "4"
	var b body
	b.add(11, o.clOrdID)
	b.add(55, o.symbol)
	b.add(54, o.side)
	b.add(60, t.stamp())
	b.add(38, o.qty)
	b.add(40, o.ordType)
	if limit {
		b.add(44, o.price)
	}
	if o.tif != "" {
		b.add(59, o.tif)
	}
	if post {
		b.add(18, "6")
	}
	t.addOrder(o)
	t.addName(o, o.clOrdID)
	return Action{MsgType: "D", Body: b, request: &pendingRequest{values: []string{o.clOrdID}, final: o.immediate}}, nil
}

func (t *Terminal) amend(words []string) (Action, error) {
	if len(words) < 2 {
		return Action{}, usage("ID and qty or price are needed")
	}
	o, err := t.order(words[0])
	if err != nil {
		return Action{}, err
	}
	qty, price := o.qty, o.price
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case !decimal(value):
			return Action{}, usage("%q", word)
		case key == "qty":
			qty = value
		case key == "price":
			price = value
		default:
			return Action{}, usage("%q: only qty and price change", word)
		}
	}
	id := t.newID()
	b := t.about(o, id, qty)
	b.add(40, o.ordType)
	if price != "" {
		b.add(44, price)
	}
	if o.tif != "" {
		b.add(59, o.tif)
	}
	t.addName(o, id)
	return Action{MsgType: "G", Body: b, request: &pendingRequest{values: []string{id}}}, nil
}

// about returns the first fields of an F or G of an order.
func (t *Terminal) about(o *order, id, qty string) body {
	var b body
	b.add(41, o.clOrdID)
	if o.id != "" {
		b.add(37, o.id)
	}
	b.add(11, id)
	b.add(55, o.symbol)
	b.add(54, o.side)
	b.add(60, t.stamp())
	b.add(38, qty)
	return b
}

func (t *Terminal) cancel(words []string) (Action, error) {
	if len(words) != 1 {
		return Action{}, usage("ID is needed")
	}
	o, err := t.order(words[0])
	if err != nil {
		return Action{}, err
	}
	id := t.newID()
	b := t.about(o, id, o.qty)
	t.addName(o, id)
	return Action{MsgType: "F", Body: b, request: &pendingRequest{values: []string{id}}}, nil
}

func (t *Terminal) cancelAll(words []string) (Action, error) {
	if len(words) > 1 {
		return Action{}, usage("one SYMBOL at most")
	}
	id := t.newID()
	var b body
	b.add(11, id)
	if len(words) == 1 {
		b.add(530, "1")
		b.add(55, t.symbol(words[0]))
	} else {
		b.add(530, "7")
	}
	b.add(60, t.stamp())
	return Action{MsgType: "q", Body: b, request: &pendingRequest{values: []string{id}}}, nil
}

// unknownSymbol is FIX's Symbol for an unknown one.
const unknownSymbol = "[N/A]"

func (t *Terminal) askStatus(words []string) (Action, error) {
	if len(words) < 1 || len(words) > 2 {
		return Action{}, usage("ID is needed")
	}
	id, orderID, symbol, side := words[0], "", unknownSymbol, "1"
	if o, err := t.order(id); err == nil {
		id, orderID, symbol, side = o.clOrdID, o.id, o.symbol, o.side
	} else if _, err := strconv.ParseUint(id, 10, 64); err == nil {
		orderID = id
	}
	if len(words) == 2 {
		symbol = t.symbol(words[1])
	}
	var b body
	values := []string{id}
	if orderID != "" {
		b.add(37, orderID)
		values = append(values, orderID)
	}
	b.add(11, id)
	b.add(55, symbol)
	b.add(54, side)
	return Action{MsgType: "H", Body: b, request: &pendingRequest{values: values, exec: "I"}}, nil
}

func (t *Terminal) resend(words []string) (Action, error) {
	if len(words) < 1 || len(words) > 2 {
		return Action{}, usage("FROM is needed")
	}
	var n [2]int
	for i, word := range words {
		v, err := strconv.Atoi(word)
		if err != nil || v < 0 || i == 0 && v == 0 {
			return Action{}, usage("%q is not a sequence number", word)
		}
		n[i] = v
	}
	return Action{From: n[0], To: n[1]}, nil
}

func (t *Terminal) raw(words []string) (Action, error) {
	a := Action{request: &pendingRequest{}}
	var b body
	for _, part := range strings.Split(strings.Join(words, " "), "|") {
		if part == "" {
			continue
		}
		number, value, ok := strings.Cut(part, "=")
		tag, err := strconv.Atoi(number)
		if !ok || err != nil || tag < 1 || value == "" {
			return Action{}, usage("%q is not TAG=VALUE", part)
		}
		switch tag {
		case 8, 9, 34, 49, 52, 56, 10: // the client adds them itself
		case 35:
			a.MsgType = value
		case 11, 131, 262, 320, 324, 571, 693:
			a.request.values = append(a.request.values, value)
			b.add(tag, value)
		default:
			b.add(tag, value)
		}
	}
	if a.MsgType == "" {
		return Action{}, usage("MsgType (35) is needed")
	}
	if len(a.request.values) == 0 {
		a.request = nil
	}
	a.Body = b
	return a, nil
}

// maxPause is the longest wait.
const maxPause = time.Hour

func (t *Terminal) pause(words []string) (Action, error) {
	if len(words) != 1 {
		return Action{}, usage("SECONDS is needed")
	}
	seconds, err := strconv.ParseFloat(words[0], 64)
	if err != nil || !(seconds >= 0 && seconds <= maxPause.Seconds()) {
		return Action{}, usage("%q must be 0 to 3600 seconds", words[0])
	}
	return Action{Pause: time.Duration(seconds * float64(time.Second))}, nil
}

func (t *Terminal) help(words []string) (Action, error) {
	r := Report{Event: "help"}
	for _, c := range commands() {
		if len(words) == 0 || strings.HasPrefix(c.name, words[0]) {
			r.Lines = append(r.Lines, fmt.Sprintf("%-54s %s", c.usage, c.help))
		}
	}
	r.Lines = slices.Compact(r.Lines)
	if len(r.Lines) == 0 {
		return Action{}, usage("unknown command %.40q", words[0])
	}
	return Action{Reports: []Report{r}}, nil
}
