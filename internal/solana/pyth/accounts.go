package pyth

import (
	"encoding/binary"

	"blockdesk/internal/solana"
)

// feeds are the ids of the feeds that are known by the symbol of their asset.
var feeds = map[string]Feed{
	"SOL":  mustFeed("ef0d8b6fda2ceba41da15d4095d1da392a0d2f8ed0c6c7bc0f4cfac8c280b56d"),
	"USDC": mustFeed("eaa020c61cc479712813461ce153894a96a6c00b21ed0cfc2798d1f9a9e9c94a"),
}

// FeedOf returns the dollar feed of a well-known asset: SOL and USDC.
func FeedOf(symbol string) (Feed, bool) {
	f, ok := feeds[symbol]
	return f, ok
}

func mustFeed(text string) Feed {
	f, err := ParseFeed(text)
	if err != nil {
		panic(err) // a constant above is misspelt
	}
	return f
}

// AccountOf returns the account in which the push oracle keeps the newest update of a
// feed. Anybody may update it, with a newer update only. shard distinguishes the accounts
// of different sponsors; Pyth itself sponsors shard 0.
func AccountOf(feed Feed, shard uint16) (solana.Address, error) {
	account, _, err := solana.FindProgramAddress(solana.PythPushOracleProgram, binary.LittleEndian.AppendUint16(nil, shard), feed[:])
	return account, err
}
