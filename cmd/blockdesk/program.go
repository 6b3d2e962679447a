package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"blockdesk/fixgw"
	"blockdesk/httpgw/site"
	"blockdesk/sdk"
)

// program is what a process reads of itself once, for the services that it runs
// one after the other: the clients of a new leader do not wait for it.
type program struct {
	downloads  *site.Downloads
	dictionary *fixgw.Dictionary
	hash       string // of the file that runs; empty: it cannot be read
}

func readProgram(log *slog.Logger) (p program, err error) {
	if p.downloads, err = site.ReadDownloads(sdk.Files); err != nil {
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

// sourceCommit is the commit that the program was built from, as the Go tool
// recorded it; empty if it did not, or if the source had uncommitted changes.
func sourceCommit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			return ""
		}
	}
	return commit
}

// executableHash is the hash of the running file.
func executableHash() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
