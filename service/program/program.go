// Package program has the version, source commit and hash of the running program, and the
// documents that are compiled into it: downloads and the FIX dictionary.
//
// All of it is read once at the start and never changes. Services that follow each other
// in one process (the terms of a node) share it, because reading and packing the documents
// takes longer than a client of a new leader should wait. An executable that cannot be
// read is logged; then the published documents lack its hash.
package program

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"blockdesk/fixgw/session"
	"blockdesk/httpgw/site"
	"blockdesk/sdk"
)

// Version is the version of the program; that of the API is catalog.APIVersion.
const Version = "0.2.0"

// Program is read once a process for all services that it runs one after the other, so
// that clients of a new leader do not wait for it. It does not change.
type Program struct {
	Downloads  *site.Downloads
	Dictionary *session.Dictionary
	Hash       string // SHA-256 of the executable, "sha256:…"; empty if it cannot be read
}

// Read reads the compiled-in documents and hashes the executable. An executable
// that cannot be read is logged and is no error.
func Read(log *slog.Logger) (p Program, err error) {
	if p.Downloads, err = site.ReadDownloads(sdk.Files); err != nil {
		return p, err
	}
	if p.Dictionary, err = session.ReadDictionary(); err != nil {
		return p, err
	}
	if p.Hash, err = executableHash(); err != nil {
		log.Warn("executable not readable: documents lack its hash", "error", err)
	}
	return p, nil
}

// SourceCommit returns the commit that the program was built from, as the Go tool
// recorded it; empty if it did not, or if the source had uncommitted changes.
func SourceCommit() string {
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

// executableHash returns the SHA-256 of the executable.
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
