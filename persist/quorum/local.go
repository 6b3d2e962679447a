package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"

	"blockdesk/persist"
)

// localStores is this node's copy of all replicated stores, in one KV: a store's keys
// begin with its name and a zero byte; indexKey has the log entry up to which the copy
// is complete. Commits are not synced, because the log still has what a crash loses.
type localStores struct {
	kv    *persist.KV
	index uint64 // last entry in the copy; 0: the copy is incomplete
}

// indexKey sorts before the keys of all stores, whose names are letters.
func indexKey() []byte { return []byte{0} }

func openLocal(o *Options) (*localStores, error) {
	kv, err := persist.OpenKV(o.path(storesFolder), o.FS, o.Logger)
	if err != nil {
		return nil, err
	}
	l := &localStores{kv: kv}
	value, ok, err := kv.Get(indexKey())
	if err == nil && ok && len(value) == 8 {
		l.index = binary.LittleEndian.Uint64(value)
	}
	if err == nil && l.index == 0 {
		err = l.clear() // a restore was interrupted, or the store is new
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("replicated stores: %w", err), kv.Close())
	}
	return l, nil
}

func prefixed(store string, key []byte) []byte {
	p := make([]byte, 0, len(store)+1+len(key))
	return append(append(append(p, store...), 0), key...)
}

// apply writes the commit of entry index unless the copy has it.
func (l *localStores) apply(index uint64, store string, ops []byte) error {
	if index <= l.index {
		return nil
	}
	err := l.kv.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		for len(ops) > 0 {
			op, a, b, rest, _ := nextOp(ops) // parseCommit has checked them
			if op == opSet {
				set(prefixed(store, a), b)
			} else {
				deleteRange(prefixed(store, a), prefixed(store, b))
			}
			ops = rest
		}
		set(indexKey(), binary.LittleEndian.AppendUint64(nil, index))
	}, false)
	if err == nil {
		l.index = index
	}
	return err
}

// clear empties the copy, which is incomplete until seal.
func (l *localStores) clear() error {
	l.index = 0
	return l.kv.Commit(func(_ func(key, value []byte), deleteRange func(lo, hi []byte)) {
		deleteRange([]byte{0}, []byte{0xff})
	}, true)
}

// write writes entries of a snapshot, whose keys have their stores' names.
func (l *localStores) write(each func(set func(key, value []byte))) error {
	return l.kv.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { each(set) }, false)
}

// seal ends a restore: the copy is complete up to entry index.
func (l *localStores) seal(index uint64) error {
	err := l.kv.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(indexKey(), binary.LittleEndian.AppendUint64(nil, index))
	}, true)
	if err == nil {
		l.index = index
	}
	return err
}
