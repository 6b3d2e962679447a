package fixterm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxLevels limits the levels a side of a book.
const maxLevels = 1000

// defaultDepth is the number of levels a side without DEPTH.
const defaultDepth = 5

// book is a followed order book; prices and quantities as FIX writes them.
type book struct {
	symbol, id  string
	depth       int
	bids, asks  []level // best first
	hasSnapshot bool    // a snapshot has come
}

type level struct{ price, qty string }

// request makes a V that begins (1) or ends (2) the subscription.
func (k *book) request(action string) []byte {
	var b body
	b.add(262, k.id)
	b.add(263, action)
	b.add(264, strconv.Itoa(k.depth))
	b.add(265, "1")
	b.add(267, "3")
	b.add(269, "0")
	b.add(269, "1")
	b.add(269, "2")
	b.add(146, "1")
	b.add(55, k.symbol)
	return b
}

// change applies one entry to a side of the book.
func change(side []level, e message, order func(a, b string) int) []level {
	price := e.get(270)
	i, there := slices.BinarySearchFunc(side, price, func(l level, p string) int { return order(l.price, p) })
	switch {
	case e.get(279) == "2":
		if there {
			side = slices.Delete(side, i, i+1)
		}
	case there:
		side[i].qty = e.get(271)
	case len(side) < maxLevels:
		side = slices.Insert(side, i, level{price, e.get(271)})
	}
	return side
}

// compare orders two plain decimals that are not negative.
func compare(a, b string) int {
	wholeA, fracA, _ := strings.Cut(a, ".")
	wholeB, fracB, _ := strings.Cut(b, ".")
	wholeA, wholeB = strings.TrimLeft(wholeA, "0"), strings.TrimLeft(wholeB, "0")
	return cmp.Or(
		cmp.Compare(len(wholeA), len(wholeB)),
		cmp.Compare(wholeA, wholeB),
		cmp.Compare(strings.TrimRight(fracA, "0"), strings.TrimRight(fracB, "0")),
	)
}

// report renders the book: the best of each side in the sentence, the ladder below.
func (k *book) report(m message) Report {
	r := Report{Event: "book", Time: m.get(52), Ladder: true}
	r.sentence = fmt.Sprintf("%s bid %s, ask %s", k.symbol, best(k.bids), best(k.asks))
	r.add("msg_type", m.typ())
	r.add("symbol", k.symbol)
	side := func(name string, levels []level) {
		if len(levels) > 0 {
			r.add(name, levels[0].price)
			r.add(name+"_qty", levels[0].qty)
		}
	}
	side("bid", k.bids)
	side("ask", k.asks)
	for i := k.depth - 1; i >= 0; i-- {
		r.Lines = append(r.Lines, ladderLine("ask", k.asks, i))
	}
	for i := range k.depth {
		r.Lines = append(r.Lines, ladderLine("bid", k.bids, i))
	}
	return r
}

func best(side []level) string {
	if len(side) == 0 {
		return "none"
	}
	return short(side[0].price) + " x " + short(side[0].qty)
}

// ladderLine returns one line of a ladder, which always has the same number of lines.
func ladderLine(name string, side []level, i int) string {
	if i >= len(side) {
		return "  " + name
	}
	return fmt.Sprintf("  %s %16s %20s", name, side[i].price, side[i].qty)
}
