package pyth

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

var (
	receiver = solana.PythReceiverProgram
	feed     = Feed{0xef, 0x0d}
	good     = Update{Feed: feed, Price: 150_250_000_001, Confidence: 75_000_000, PublishedAt: 1_790_000_000, PostedSlot: 9}
)

func account(change func(data []byte) []byte) *rpc.Account {
	data := Append(nil, good, solana.Address{7})
	if change != nil {
		data = change(data)
	}
	return &rpc.Account{Owner: receiver, Data: data}
}

func set64(at int, v uint64) func([]byte) []byte {
	return func(b []byte) []byte { binary.LittleEndian.PutUint64(b[at:], v); return b }
}

func TestRead(t *testing.T) {
	kind := sha256.Sum256([]byte("account:PriceUpdateV2"))
	if got := account(nil).Data[:8]; !bytes.Equal(got, kind[:8]) {
		t.Errorf("kind %x, want %x", got, kind[:8])
	}
	if u, err := Read(account(nil), receiver, feed); err != nil || u != good {
		t.Errorf("%+v, %v", u, err)
	}
	exponent := func(e int32) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[89:], uint32(e)); return b }
	}
	// A feed of eight decimals, as SOL/USD is: 150.25 dollars.
	u, err := Read(account(func(b []byte) []byte { return set64(81, 7_500_001)(set64(73, 15_025_000_000)(exponent(-8)(b))) }), receiver, feed)
	if err != nil || u.Price != 150_250_000_000 || u.Confidence != 75_000_010 {
		t.Errorf("%+v, %v", u, err)
	}
	// Ten decimals: the price is rounded down, the confidence up.
	u, err = Read(account(func(b []byte) []byte { return set64(81, 11)(set64(73, 19)(exponent(-10)(b))) }), receiver, feed)
	if err != nil || u.Price != 1 || u.Confidence != 2 {
		t.Errorf("%+v, %v", u, err)
	}
	for name, c := range map[string]struct {
		account *rpc.Account
		want    error
	}{
		"none":             {nil, ErrAccount},
		"another owner":    {&rpc.Account{Owner: solana.TokenProgram, Data: account(nil).Data}, ErrAccount},
		"no owner":         {&rpc.Account{Data: account(nil).Data}, ErrAccount},
		"another kind":     {account(set64(0, 1)), ErrAccount},
		"a byte less":      {account(func(b []byte) []byte { return b[:133] }), ErrAccount},
		"a byte more":      {account(func(b []byte) []byte { return append(b, 0) }), ErrAccount},
		"empty":            {account(func([]byte) []byte { return nil }), ErrAccount},
		"partial":          {account(func(b []byte) []byte { b[40] = 0; return b }), ErrUnverified},
		"an unknown level": {account(func(b []byte) []byte { b[40] = 2; return b }), ErrUnverified},
		"another feed":     {account(func(b []byte) []byte { b[41]++; return b }), ErrFeed},
		"no price":         {account(set64(73, 0)), ErrPrice},
		"negative":         {account(set64(73, 1<<63)), ErrPrice},
		"of no time":       {account(set64(93, 0)), ErrPrice},
		"too small a unit": {account(exponent(-19)), ErrPrice},
		"a positive unit":  {account(exponent(1)), ErrPrice},
		"too dear":         {account(func(b []byte) []byte { return set64(73, 1<<62)(exponent(0)(b)) }), ErrPrice},
		"less than a unit": {account(func(b []byte) []byte { return set64(73, 1)(exponent(-18)(b)) }), ErrPrice},
		"confidence":       {account(func(b []byte) []byte { return set64(81, 1<<63)(exponent(0)(b)) }), ErrPrice},
	} {
		if u, err := Read(c.account, receiver, feed); !errors.Is(err, c.want) || u != (Update{}) {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
}

func TestFeeds(t *testing.T) {
	const sol = "ef0d8b6fda2ceba41da15d4095d1da392a0d2f8ed0c6c7bc0f4cfac8c280b56d"
	for _, text := range []string{sol, "0x" + sol} {
		if f, err := ParseFeed(text); err != nil || f.String() != sol {
			t.Errorf("%s: %v, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "0x", sol[1:], sol + "00", "g" + sol[1:], "0x0x" + sol} {
		if _, err := ParseFeed(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestAccountOf compares the derived account of SOL/USD with the published one of mainnet.
func TestAccountOf(t *testing.T) {
	feed, ok := FeedOf("SOL")
	account, err := AccountOf(feed, 0)
	if got := solana.Base58(account); !ok || err != nil || got != "7UVimffxr9ow1uXYxsr4LHAcV58mLzhmwaeKvJ1pjLiE" {
		t.Errorf("%s, %v", got, err)
	}
	if _, ok := FeedOf("SLUSD"); ok {
		t.Error("SLUSD has a feed")
	}
}

// FuzzRead: no account makes Read panic, and what it returns is a price.
func FuzzRead(f *testing.F) {
	f.Add(account(nil).Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := Read(&rpc.Account{Owner: receiver, Data: data}, receiver, feed)
		if err == nil && (u.Price == 0 || u.Feed != feed || u.PublishedAt <= 0) {
			t.Errorf("%+v", u)
		}
	})
}
