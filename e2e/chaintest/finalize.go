package chaintest

// Finalize moves the chain on until what has landed is finalized.
func (r *Rig) Finalize() {
	r.T.Helper()
	r.Control("advance", map[string]any{"slots": FinalizeSlots + 1})
}
