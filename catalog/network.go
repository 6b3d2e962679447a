package catalog

// Values of execution_network. The first is that of docs/specification.md 1.7, the others
// are our choice.
const (
	ExecutionNetwork = "solana-mainnet-beta"
	networkDevnet    = "solana-devnet"
	networkTestnet   = "solana-testnet"
	networkLocal     = "solana-local"
)

// NetworkName returns execution_network of a network as chain.network names it. The empty
// name, of a network that is not known, has the fixed value; see [Service.NetworkUnknown].
func NetworkName(network string) string {
	switch network {
	case "devnet":
		return networkDevnet
	case "testnet":
		return networkTestnet
	case "local":
		return networkLocal
	}
	return ExecutionNetwork
}

// networkWords returns what pages say of a network.
func networkWords(name string) string {
	switch name {
	case networkDevnet, networkTestnet:
		return name + ", a test network: its tokens have no value"
	case networkLocal:
		return "a local chain, not mainnet: its tokens have no value"
	}
	return name
}
