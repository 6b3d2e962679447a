// Package schedule has a priority queue of items in the order in which they are due: a
// binary heap whose items know their positions, so that one can be moved or removed in
// logarithmic time. container/heap would need an interface value for each item and a
// method set for each queue.
//
// A due number is a time, a slot or a height; equal ones are ordered by a tiebreak, so the
// order is the same on every machine. The queue holds what its owner puts in: the owner
// bounds it. It allocates only when it is longer than ever before. Not for concurrent use.
package schedule

// Queue holds items in the order of a due number (Unix nanoseconds, a slot, a height),
// then of a tiebreak. An item is in it at most once. Each operation takes logarithmic
// time and allocates only when the queue is longer than ever before. Not for concurrent
// use.
type Queue[T any] struct {
	// index returns a pointer to the item's position in heap plus 1, 0 if it is not
	// there. nil: positions are not tracked.
	index func(item T) *int
	heap  []entry[T] // a binary min-heap
}

type entry[T any] struct {
	due      int64
	tiebreak uint64
	item     T
}

func (e *entry[T]) before(o *entry[T]) bool {
	return e.due < o.due || e.due == o.due && e.tiebreak < o.tiebreak
}

// New returns an empty queue. index returns a pointer to a number of the item that this
// queue alone writes, 0 at first; an item of several queues has several. With a nil
// index items can only be added and popped: Set always adds, and Remove panics.
func New[T any](index func(item T) *int) Queue[T] { return Queue[T]{index: index} }

// Len returns the number of items.
func (q *Queue[T]) Len() int { return len(q.heap) }

// Set adds an item, or moves it if it is there.
func (q *Queue[T]) Set(item T, due int64, tiebreak uint64) {
	i := -1
	if q.index != nil {
		i = *q.index(item) - 1
	}
	if i < 0 {
		i = len(q.heap)
		q.heap = append(q.heap, entry[T]{})
	}
	q.place(i, entry[T]{due, tiebreak, item})
}

// Remove removes an item if it is there.
func (q *Queue[T]) Remove(item T) {
	if at := *q.index(item); at > 0 {
		q.removeAt(at - 1)
	}
}

// First returns the first item and its due number, and false if the queue is empty.
func (q *Queue[T]) First() (item T, due int64, ok bool) {
	if len(q.heap) == 0 {
		return item, 0, false
	}
	return q.heap[0].item, q.heap[0].due, true
}

// Pop removes and returns the first item if its due number is at most limit, else
// false.
func (q *Queue[T]) Pop(limit int64) (item T, ok bool) {
	if len(q.heap) == 0 || q.heap[0].due > limit {
		return item, false
	}
	item = q.heap[0].item
	q.removeAt(0)
	return item, true
}

// removeAt removes the entry at i.
func (q *Queue[T]) removeAt(i int) {
	if q.index != nil {
		*q.index(q.heap[i].item) = 0
	}
	end := len(q.heap) - 1
	last := q.heap[end]
	q.heap[end] = entry[T]{} // for the garbage collector
	q.heap = q.heap[:end]
	if i < end {
		q.place(i, last)
	}
}

// place puts an entry into the heap, starting at the gap at i.
func (q *Queue[T]) place(i int, e entry[T]) {
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(&q.heap[up]) {
			break
		}
		q.put(i, q.heap[up])
		i = up
	}
	for {
		down := 2*i + 1
		if down >= len(q.heap) {
			break
		}
		if right := down + 1; right < len(q.heap) && q.heap[right].before(&q.heap[down]) {
			down = right
		}
		if !q.heap[down].before(&e) {
			break
		}
		q.put(i, q.heap[down])
		i = down
	}
	q.put(i, e)
}

func (q *Queue[T]) put(i int, e entry[T]) {
	q.heap[i] = e
	if q.index != nil {
		*q.index(e.item) = i + 1
	}
}
