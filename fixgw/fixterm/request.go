package fixterm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func (t *Terminal) requestQuote(words []string) (Action, error) {
	if len(words) < 2 || len(words) > 4 {
		return Action{}, usage("SYMBOL and FILL_USD are needed")
	}
	if !decimal(words[1]) {
		return Action{}, usage("FILL_USD %q is not a number", words[1])
	}
	rail, ticket := "", ""
	for _, word := range words[2:] {
		switch upper := strings.ToUpper(word); {
		case (upper == "USDC" || upper == "SOL") && rail == "":
			rail = upper
		case strings.Contains(word, "/") && ticket == "":
			ticket = word
		default:
			return Action{}, usage("unexpected word %q", word)
		}
	}
	id := t.newID()
	var b body
	b.add(131, id)
	b.add(146, "1")
	b.add(55, t.symbol(words[0]))
	if ticket != "" {
		b.add(48, ticket)
		b.add(22, "8")
	}
	b.add(54, "1")
	b.add(152, words[1])
	if rail != "" {
		b.add(15, rail)
	}
	if len(t.fills) >= MaxQuotes {
		clear(t.fills)
	}
	t.fills[id] = words[1]
	return Action{MsgType: "R", Body: b, request: &pendingRequest{values: []string{id}}}, nil
}

// quoteArgument returns the quote of a command; without a word, the newest.
func (t *Terminal) quoteArgument(words []string) (*quote, error) {
	if len(words) > 1 {
		return nil, usage("one QUOTE at most")
	}
	return t.quote(append(words, "last")[0])
}

func (t *Terminal) take(words []string) (Action, error) {
	q, err := t.quoteArgument(words)
	if err != nil {
		return Action{}, err
	}
	id := t.newID()
	var b body
	b.add(11, id)
	b.add(117, q.id)
	b.add(55, q.symbol)
	b.add(54, "1")
	b.add(60, t.stamp())
	if q.fill != "" {
		b.add(152, q.fill)
	} else {
		b.add(38, q.size)
	}
	b.add(40, "D")
	return Action{MsgType: "D", Body: b, request: &pendingRequest{values: []string{id}, pack: true}}, nil
}

func (t *Terminal) pass(words []string) (Action, error) {
	q, err := t.quoteArgument(words)
	if err != nil {
		return Action{}, err
	}
	id := t.newID()
	var b body
	b.add(693, id)
	b.add(117, q.id)
	b.add(694, "6")
	b.add(55, q.symbol)
	return Action{MsgType: "AJ", Body: b, request: &pendingRequest{values: []string{id, q.id}}}, nil
}

func (t *Terminal) paid(words []string) (Action, error) {
	if len(words) != 2 {
		return Action{}, usage("CLAIM and SIGNATURE are needed")
	}
	c, err := t.claim(words[0])
	if err != nil {
		// Taken before this start of the program: the desk knows it by its id alone.
		c = &claim{id: words[0], symbol: unknownSymbol, price: "0", qty: "0"}
	}
	id := t.newID()
	var b body
	b.add(571, id)
	b.add(570, "N")
	b.add(572, c.id)
	b.add(818, words[1])
	b.add(55, c.symbol)
	b.add(32, c.qty)
	b.add(31, c.price)
	b.add(75, t.now().UTC().Format("20060102"))
	b.add(60, t.stamp())
	b.add(552, "1")
	b.add(54, "1")
	b.add(37, c.id)
	return Action{MsgType: "AE", Body: b, request: &pendingRequest{values: []string{id}}}, nil
}

func (t *Terminal) follow(words []string) (Action, error) {
	if len(words) < 1 || len(words) > 2 {
		return Action{}, usage("SYMBOL is needed")
	}
	depth := defaultDepth
	if len(words) == 2 {
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 1 || n > maxLevels {
			return Action{}, usage("DEPTH %q: must be 1 to %d", words[1], maxLevels)
		}
		depth = n
	}
	bk := &book{symbol: t.symbol(words[0]), id: t.newID(), depth: depth}
	switch {
	case t.following(bk.symbol) != nil:
		return Action{}, fmt.Errorf("%s is followed already", bk.symbol)
	case len(t.books) >= MaxSubscriptions:
		return Action{}, fmt.Errorf("%d books are followed already, the maximum", MaxSubscriptions)
	}
	t.books = append(t.books, bk)
	return Action{MsgType: "V", Body: bk.request("1"), request: &pendingRequest{values: []string{bk.id}}}, nil
}

func (t *Terminal) following(symbol string) *book {
	for _, b := range t.books {
		if b.symbol == symbol {
			return b
		}
	}
	return nil
}

// unsubscribe ends one book; without a word, the newest.
func (t *Terminal) unsubscribe(words []string) (Action, error) {
	if len(words) > 1 {
		return Action{}, usage("one SYMBOL at most")
	}
	if len(t.books) == 0 {
		return Action{}, fmt.Errorf("no book is followed")
	}
	b := t.books[len(t.books)-1]
	if len(words) == 1 {
		if b = t.following(t.symbol(words[0])); b == nil {
			return Action{}, fmt.Errorf("%s is not followed", words[0])
		}
	}
	t.books = slices.DeleteFunc(t.books, func(o *book) bool { return o == b })
	if len(t.ended) >= MaxSubscriptions {
		clear(t.ended)
	}
	t.ended[b.id] = true
	return Action{MsgType: "V", Body: b.request("2")}, nil
}

func (t *Terminal) instruments(words []string) (Action, error) {
	if len(words) > 0 {
		return Action{}, usage("no arguments expected")
	}
	id := t.newID()
	var b body
	b.add(320, id)
	b.add(559, "4")
	return Action{MsgType: "x", Body: b, request: &pendingRequest{values: []string{id}}}, nil
}

func (t *Terminal) define(words []string) (Action, error) {
	if len(words) != 1 {
		return Action{}, usage("SYMBOL is needed")
	}
	id := t.newID()
	var b body
	b.add(320, id)
	b.add(321, "0")
	b.add(55, t.symbol(words[0]))
	return Action{MsgType: "c", Body: b, request: &pendingRequest{values: []string{id}}}, nil
}

func (t *Terminal) halted(words []string) (Action, error) {
	if len(words) != 1 {
		return Action{}, usage("SYMBOL is needed")
	}
	id := t.newID()
	var b body
	b.add(324, id)
	b.add(55, t.symbol(words[0]))
	b.add(263, "0")
	return Action{MsgType: "e", Body: b, request: &pendingRequest{values: []string{id}}}, nil
}
