package persist

import "fmt"

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
	return fmt.Sprintf("journal %s is damaged at %s: %v. Nothing was changed. To recover: %s", e.Dir, e.Where, e.Err, advice)
}

// Unwrap returns Err.
func (e *DamageError) Unwrap() error { return e.Err }
