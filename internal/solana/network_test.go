package solana_test

import (
	"testing"

	"blockdesk/internal/solana"
)

func TestNetworkOf(t *testing.T) {
	for text, want := range map[string]solana.Network{
		"5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d": solana.Mainnet,
		"EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG": solana.Devnet,
		"4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY": solana.Testnet,
		"11111111111111111111111111111111":             solana.Local,
	} {
		hash, err := solana.ParseHash(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := solana.NetworkOf(hash); got != want || got.Public() != (want != solana.Local) {
			t.Errorf("%s is of %s, want %s", text, got, want)
		}
	}
}
