package ladder

import "math"

// tree is an ordered map from int64 keys to int32 values: an AA tree in a slab without
// pointers. It holds what the window cannot: far price levels, stop triggers and expiry
// times. Every operation is O(log n) for all keys, so that no choice of prices can degrade
// it. Memory is proportional to the most keys held at once.
type tree struct {
	nodes []node // nodes[0] is the empty tree, of height 0
	root  int32
	free  int32 // list of unused nodes, by left
	size  int
}

type node struct {
	key         int64
	left, right int32
	value       int32
	height      int32 // AA level: 1 at the leaves
}

func newTree() tree { return tree{nodes: make([]node, 1, 16)} }

// find returns the value of key, or none.
func (t *tree) find(key int64) int32 {
	n := t.root
	for n != 0 {
		x := &t.nodes[n]
		switch {
		case key < x.key:
			n = x.left
		case key > x.key:
			n = x.right
		default:
			return x.value
		}
	}
	return none
}

// ceil returns the smallest key >= key and its value; value is none if there is no such key.
func (t *tree) ceil(key int64) (found int64, value int32) {
	value = none
	for n := t.root; n != 0; {
		x := &t.nodes[n]
		if x.key < key {
			n = x.right
			continue
		}
		found, value = x.key, x.value
		n = x.left
	}
	return found, value
}

// floor returns the largest key <= key and its value; value is none if there is no such key.
func (t *tree) floor(key int64) (found int64, value int32) {
	value = none
	for n := t.root; n != 0; {
		x := &t.nodes[n]
		if x.key > key {
			n = x.left
			continue
		}
		found, value = x.key, x.value
		n = x.right
	}
	return found, value
}

func (t *tree) min() (int64, int32) { return t.ceil(math.MinInt64) }
func (t *tree) max() (int64, int32) { return t.floor(math.MaxInt64) }

// insert adds a new key.
func (t *tree) insert(key int64, value int32) {
	n := t.free
	if n != 0 {
		t.free = t.nodes[n].left
	} else {
		n = int32(len(t.nodes))
		t.nodes = append(t.nodes, node{})
	}
	t.nodes[n] = node{key: key, value: value, height: 1}
	t.root = t.insertUnder(t.root, n)
	t.size++
}

func (t *tree) insertUnder(at, n int32) int32 {
	if at == 0 {
		return n
	}
	if t.nodes[n].key < t.nodes[at].key {
		t.nodes[at].left = t.insertUnder(t.nodes[at].left, n)
	} else {
		t.nodes[at].right = t.insertUnder(t.nodes[at].right, n)
	}
	return t.split(t.skew(at))
}

// remove removes an existing key.
func (t *tree) remove(key int64) {
	t.root = t.removeUnder(t.root, key)
	t.size--
}

func (t *tree) removeUnder(at int32, key int64) int32 {
	if at == 0 {
		panic("ladder: removing a key that the tree does not have")
	}
	x := &t.nodes[at]
	switch {
	case key < x.key:
		x.left = t.removeUnder(x.left, key)
	case key > x.key:
		x.right = t.removeUnder(x.right, key)
	case x.left == 0 && x.right == 0:
		x.left, t.free = t.free, at
		return 0
	case x.left == 0:
		next := x.right // a leaf: x is of height 1
		x.key, x.value = t.nodes[next].key, t.nodes[next].value
		x.right = t.removeUnder(x.right, x.key)
	default:
		previous := x.left
		for t.nodes[previous].right != 0 {
			previous = t.nodes[previous].right
		}
		x.key, x.value = t.nodes[previous].key, t.nodes[previous].value
		x.left = t.removeUnder(x.left, x.key)
	}
	return t.rebalance(at)
}

// rebalance restores the AA rules at a node below which a height has shrunk.
func (t *tree) rebalance(at int32) int32 {
	x := &t.nodes[at]
	if h := min(t.nodes[x.left].height, t.nodes[x.right].height) + 1; h < x.height {
		x.height = h
		if h < t.nodes[x.right].height {
			t.nodes[x.right].height = h
		}
	}
	at = t.skew(at)
	x = &t.nodes[at]
	x.right = t.skew(x.right)
	if r := &t.nodes[x.right]; x.right != 0 {
		r.right = t.skew(r.right)
	}
	at = t.split(at)
	t.nodes[at].right = t.split(t.nodes[at].right)
	return at
}

// skew turns a left child of equal height into the parent.
func (t *tree) skew(at int32) int32 {
	l := t.nodes[at].left
	if l == 0 || t.nodes[l].height != t.nodes[at].height {
		return at
	}
	t.nodes[at].left = t.nodes[l].right
	t.nodes[l].right = at
	return l
}

// split lifts the middle of two right children of equal height.
func (t *tree) split(at int32) int32 {
	r := t.nodes[at].right
	if at == 0 || r == 0 || t.nodes[t.nodes[r].right].height != t.nodes[at].height {
		return at
	}
	t.nodes[at].right = t.nodes[r].left
	t.nodes[r].left = at
	t.nodes[r].height++
	return r
}
