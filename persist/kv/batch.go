package kv

// Batch collects the changes of a commit; Batch.Fill is the argument of Store.Commit.
// Later changes win over earlier ones. The zero Batch is empty. One goroutine at a
// time.
type Batch struct {
	data    []byte
	changes []change
}

// change sets the key data[from:mid] to data[mid:end], or deletes the keys from
// data[from:mid] to before data[mid:end].
type change struct {
	from, mid, end int
	deletes        bool
}

// maxReused bounds the memory of an empty batch.
const maxReused = 4 << 20

// Set writes an entry. It copies key and value.
func (b *Batch) Set(key, value []byte) { b.add(key, value, false) }

// Delete deletes the entry of key, which it copies.
func (b *Batch) Delete(key []byte) {
	b.add(key, key, true)
	b.data = append(b.data, 0) // [key, After(key))
	b.changes[len(b.changes)-1].end++
}

// DeleteRange deletes the entries in [lo, hi). It copies both.
func (b *Batch) DeleteRange(lo, hi []byte) { b.add(lo, hi, true) }

func (b *Batch) add(first, second []byte, deletes bool) {
	c := change{from: len(b.data), deletes: deletes}
	b.data = append(b.data, first...)
	c.mid = len(b.data)
	b.data = append(b.data, second...)
	c.end = len(b.data)
	b.changes = append(b.changes, c)
}

// Len returns the number of changes.
func (b *Batch) Len() int { return len(b.changes) }

// Size returns the bytes of all keys and values.
func (b *Batch) Size() int { return len(b.data) }

// Fill is a kv.Fill with the changes in their order.
func (b *Batch) Fill(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
	for _, c := range b.changes {
		if c.deletes {
			deleteRange(b.data[c.from:c.mid], b.data[c.mid:c.end])
		} else {
			set(b.data[c.from:c.mid], b.data[c.mid:c.end])
		}
	}
}

// Reset empties the batch.
func (b *Batch) Reset() {
	if cap(b.data) > maxReused {
		b.data = nil
	}
	b.data, b.changes = b.data[:0], b.changes[:0]
}
