package mirror

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/mirror/mirrortest"
)

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// farBehind is by how many slots a node may be behind and still be believed where
// it answers alone. The slots of a real chain are three times as long, so that the
// clock of a node that is further behind gives it away. Here it would not, and the
// service would take the other nodes for ahead of time until some has passed.
const farBehind = 140

// troubles are the faults of a node, by name.
func (r *mirrorRig) troubles() map[string]trouble {
	answers := func(status int, body string) trouble {
		return trouble{answer: func(_ context.Context, w http.ResponseWriter) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body) // the client may have closed the connection
		}}
	}
	return map[string]trouble{
		"down":         {answer: hangUp},
		"unavailable":  answers(http.StatusServiceUnavailable, "not now"),
		"rate limited": answers(http.StatusTooManyRequests, "slow down"),
		"a page":       answers(http.StatusOK, "<html>welcome</html>"),
		"wrong types":  answers(http.StatusOK, `{"jsonrpc":"2.0","id":1,"result":{"context":{"slot":"many"},"value":[5,{}]}}`),
		"no answer":    {answer: func(ctx context.Context, _ http.ResponseWriter) { <-ctx.Done() }},
		"slow drip":    {answer: drip},
		"huge":         {answer: huge},
		"behind":       {lag: 25},
		"far behind":   {lag: farBehind},
		"far ahead":    {lie: func(b *bank) *bank { return b.at(b.slot+100_000, b.unix) }},
		"ahead":        {lie: func(b *bank) *bank { return r.m.forged(b, 1).at(b.slot+20, b.unix) }},
		"of tomorrow":  {lie: func(b *bank) *bank { return b.at(b.slot, b.unix+86_400) }},
		"of yesterday": {lie: func(b *bank) *bank { return b.at(b.slot, b.unix-86_400) }},
		"two clocks":   {lie: func(b *bank) *bank { c := *b; c.slot += 3; return &c }},
		"another book": {lie: func(b *bank) *bank { return r.m.forged(b, 2) }},
		"no accounts":  {lie: func(b *bank) *bank { c := *b; c.accounts = nil; return &c }},
		"broken book": {lie: func(b *bank) *bank {
			return b.with(map[solana.Address][]byte{r.m.book.at: bytes.Repeat([]byte{0xff}, 700)})
		}},
		"other swaps": {altered: true},
		"more swaps":  {invents: true},
		"fewer swaps": {hides: true},
	}
}

// hangUp ends the connection without an answer.
func hangUp(context.Context, http.ResponseWriter) { panic(http.ErrAbortHandler) }

// drip writes an answer byte by byte without end.
func drip(ctx context.Context, w http.ResponseWriter) {
	for ctx.Err() == nil {
		if _, err := io.WriteString(w, " "); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// huge writes more than any client should read.
func huge(ctx context.Context, w http.ResponseWriter) {
	const most = 64 << 20
	chunk := bytes.Repeat([]byte("[[[[[[[["), 8<<10)
	for written := 0; written < most && ctx.Err() == nil; written += len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// forged returns a bank with a false book and vaults: prices without orders, of a size
// that identifies the forger.
func (m *chainMarket) forged(b *bank, mark uint64) *bank {
	p := m.pools[0]
	orders := []mirrortest.Order{
		{Bid: true, Price: pricedAt(1_500_000, 0), Size: 1_000_000 * mark},
		{Price: pricedAt(1_600_000, 0), Size: 3_000_000 * mark},
	}
	forged := chainBook{orders: orders}
	c := b.with(map[solana.Address][]byte{
		m.book.at:       mirrortest.Manifest(p.base.coin, p.quote.coin, orders),
		p.base.account:  b.richer(p.base.account, mark),
		p.quote.account: b.richer(p.quote.account, mark),
	})
	c.bids, c.asks = forged.shown(b.slot, true), forged.shown(b.slot, false)
	return c
}

// richer returns a token account with some more atoms.
func (b *bank) richer(at solana.Address, by uint64) []byte {
	data, err := b.data(solana.Base58(at))
	if err != nil {
		return nil
	}
	binary.LittleEndian.PutUint64(data[64:], le64(data[64:])+by)
	return data
}
