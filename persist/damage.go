package persist

import "fmt"

// DamageError says that the disk does not hold what the journal was promised to
// hold, and where. A store that sees damage does not start and changes nothing.
type DamageError struct {
	// Dir is the store's folder.
	Dir string
	// Where names the file, the sequence number, or both.
	Where string
	// Err is what is wrong there.
	Err error
	// Advice is what to do; empty for a journal of one node.
	Advice string
}

// Error says where, what, and what to do.
func (e *DamageError) Error() string {
	advice := e.Advice
	if advice == "" {
		advice = "keep a copy of this folder, run `blockdesk journal verify` to see all of it, then `blockdesk restore` " +
			"the newest backup into an empty folder"
	}
	return fmt.Sprintf("journal %s is damaged at %s: %v. Nothing was changed. To go on: %s", e.Dir, e.Where, e.Err, advice)
}

// Unwrap is Err.
func (e *DamageError) Unwrap() error { return e.Err }
