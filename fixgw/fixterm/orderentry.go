package fixterm

import (
	"slices"
	"strconv"
	"strings"
)

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
	return t.newOrder(o, words[3:], true)
}

func (t *Terminal) marketOrder(words []string) (Action, error) {
	if len(words) < 3 || words[0] != "buy" && words[0] != "sell" {
		return Action{}, usage("buy or sell, SYMBOL and QTY are needed")
	}
	o := &order{symbol: t.symbol(words[1]), side: "1", qty: words[2], ordType: "1", market: true}
	if words[0] == "sell" {
		o.side = "2"
	}
	return t.newOrder(o, words[3:], false)
}

// newOrder makes the NewOrderSingle (D) of an order.
func (t *Terminal) newOrder(o *order, options []string, limit bool) (Action, error) {
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

func (t *Terminal) requestStatus(words []string) (Action, error) {
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
