package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestNetworkOfDocuments: off mainnet no document names mainnet, and the market status says
// why it is degraded. On mainnet the field keeps its fixed value and is no reason.
func TestNetworkOfDocuments(t *testing.T) {
	for network, want := range map[string]string{
		"": ExecutionNetwork, "mainnet": ExecutionNetwork, "devnet": networkDevnet, "testnet": networkTestnet, "local": networkLocal,
	} {
		f := live()
		f.Service.Network, f.Service.NetworkUnknown = NetworkName(network), network == ""
		if f.Service.Network != want {
			t.Errorf("network %q is %s, want %s", network, f.Service.Network, want)
		}
		documents := map[string]any{}
		for _, d := range Documents() {
			documents[d.Name] = d.Render(f, d.Schema)
		}
		for _, w := range WellKnowns() {
			documents[w.File] = w.Render(f)
		}
		named := 0
		for name, d := range documents {
			body, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(body, []byte(want)) {
				named++
			}
			if want != ExecutionNetwork && bytes.Contains(body, []byte("mainnet-beta")) {
				t.Errorf("network %q: %s names mainnet", network, name)
			}
		}
		if named < 10 {
			t.Errorf("network %q: only %d documents name it", network, named)
		}
		reasons := degradedBy(f, f.canonical())
		if slices.Contains(reasons, reasonNotMainnet) != (want != ExecutionNetwork) || slices.Contains(reasons, reasonNetwork) != (network == "") {
			t.Errorf("network %q: reasons %v", network, reasons)
		}
		if words := WalletView(f).Network; strings.Contains(words, "no value") != (want != ExecutionNetwork) {
			t.Errorf("network %q: the wallet page says %q", network, words)
		}
	}
}
