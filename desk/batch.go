package desk

// batch gathers what the next commit writes. Later operations win over earlier
// ones.
type batch struct {
	data []byte
	ops  []op
}

// op is one set or deletion: the key is data[key:value], the value
// data[value:end].
type op struct {
	key, value, end int
	del             bool
}

func (b *batch) set(key, value []byte) {
	o := op{key: len(b.data)}
	b.data = append(b.data, key...)
	o.value = len(b.data)
	b.data = append(b.data, value...)
	o.end = len(b.data)
	b.ops = append(b.ops, o)
}

func (b *batch) del(key []byte) {
	b.set(key, nil)
	b.ops[len(b.ops)-1].del = true
}

// fill is what Store.Commit calls.
func (b *batch) fill(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
	for _, o := range b.ops {
		key := b.data[o.key:o.value]
		if o.del {
			deleteRange(key, after(key))
		} else {
			set(key, b.data[o.value:o.end])
		}
	}
}

// keptBytes bounds the memory that a batch keeps between commits.
const keptBytes = 4 << 20

func (b *batch) reset() {
	if cap(b.data) > keptBytes {
		b.data = nil
	}
	b.data, b.ops = b.data[:0], b.ops[:0]
}
