package solana

// Network is a cluster of Solana, as configured in chain.network.
type Network string

const (
	Mainnet Network = "mainnet"
	Devnet  Network = "devnet"
	Testnet Network = "testnet"
	// Local is every other cluster: a chain on this machine, or somebody's own.
	Local Network = "local"
)

// Public reports whether strangers run the network's nodes.
func (n Network) Public() bool { return n == Mainnet || n == Devnet || n == Testnet }

// The hashes of the public networks' first blocks.
const (
	mainnetGenesis = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
	devnetGenesis  = "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG"
	testnetGenesis = "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY"
)

// NetworkOf returns the network of a first block's hash.
func NetworkOf(genesis Hash) Network {
	switch genesis.String() {
	case mainnetGenesis:
		return Mainnet
	case devnetGenesis:
		return Devnet
	case testnetGenesis:
		return Testnet
	}
	return Local
}
