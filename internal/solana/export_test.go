package solana

// Len returns the number of entries.
func (c *AccountCache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.new) + len(c.old)
}
