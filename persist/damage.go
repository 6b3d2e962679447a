package persist

import (
	"fmt"
	"strings"
)

// DamageError says that the disk lacks something that the journal has acknowledged, and
// where. A store that finds damage does not start and changes nothing.
type DamageError struct {
	Dir    string
	Where  string // file, sequence number, or both
	Err    error
	Advice string // what to do; empty: the advice for a journal of one node
}

// Error says where the damage is, what it is and what to do.
func (e *DamageError) Error() string {
	advice := e.Advice
	if advice == "" {
		advice = "keep a copy of this folder, run `blockdesk journal verify` to see all of it, then `blockdesk restore` " +
			"the newest backup into an empty folder"
	}
	return fmt.Sprintf("journal %s is damaged at %s: %s. Nothing was changed. To recover: %s", e.Dir, e.Where, plainText(e.Err), advice)
}

// plainText returns the text of an error without the marker that Pebble puts where it keeps
// details for programs.
func plainText(err error) string {
	const marker = "<corruption detail carrier>"
	text := fmt.Sprint(err)
	for _, with := range []string{": " + marker, marker + ": ", marker} {
		text = strings.ReplaceAll(text, with, "")
	}
	return text
}

// Unwrap returns Err.
func (e *DamageError) Unwrap() error { return e.Err }
