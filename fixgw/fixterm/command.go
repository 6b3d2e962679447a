package fixterm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

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
		{"status", "status ID [SYMBOL]", "ask for the status of an order", (*Terminal).requestStatus},
		{"orders", "orders", "list the live orders that this session has reported", (*Terminal).listOrders},
		{"quote", "quote SYMBOL FILL_USD [USDC|SOL] [TICKET/TRANCHE]", "ask the desk for a price", (*Terminal).requestQuote},
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
