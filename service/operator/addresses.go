package operator

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"blockdesk/internal/atomicfile"
)

// AddressesFile, in the data folder, holds the Addresses of its service.
const AddressesFile = "addresses.json"

// Addresses is where a service listens: the content of AddressesFile and the answer
// of `serve --json`.
type Addresses struct {
	Base  string `json:"base_url"`
	API   string `json:"api_url"`
	WS    string `json:"ws_url"`
	FIX   string `json:"fix"`
	Admin string `json:"admin_url"`
	Chain string `json:"chain_url,omitempty"` // of the demo's local chain
	PID   int    `json:"pid"`
}

// Write writes AddressesFile in the data folder, for programs.
func (a *Addresses) Write(dataDir string) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dataDir, AddressesFile), append(text, '\n'))
}

// ReadAddresses returns where the service on a data folder listens, or listened
// last. The error wraps fs.ErrNotExist if none ever did.
func ReadAddresses(dataDir string) (a Addresses, err error) {
	path := filepath.Join(dataDir, AddressesFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}
