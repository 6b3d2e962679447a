package main

import (
	"log/slog"

	"blockdesk/fixgw"
	"blockdesk/httpgw"
	"blockdesk/sdk"
)

// program is what a process reads of itself once, for the services that it runs
// one after the other: the clients of a new leader do not wait for it.
type program struct {
	downloads  *httpgw.Downloads
	dictionary *fixgw.Dictionary
	hash       string // of the file that runs; empty: it cannot be read
}

func readProgram(log *slog.Logger) (p program, err error) {
	if p.downloads, err = httpgw.ReadDownloads(sdk.Files); err != nil {
		return p, err
	}
	if p.dictionary, err = fixgw.ReadDictionary(); err != nil {
		return p, err
	}
	if p.hash, err = executableHash(); err != nil {
		log.Warn("documents do not tell the program's hash", "error", err)
	}
	return p, nil
}
