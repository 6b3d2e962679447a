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
}

// Error says where, what, and what to do.
func (e *DamageError) Error() string {
	return fmt.Sprintf("journal %s is damaged at %s: %v. Nothing was changed. To go on: keep a copy of this folder, "+
		"run `blockdesk journal verify` to see all of it, then `blockdesk restore` the newest backup into an empty folder",
		e.Dir, e.Where, e.Err)
}

// Unwrap is Err.
func (e *DamageError) Unwrap() error { return e.Err }
