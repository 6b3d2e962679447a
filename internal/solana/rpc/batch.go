package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// batched is the method whose requests travel in batches.
const batched = "getTransaction"

// Limits of batches (our choice). A node bounds a request's bytes: Agave 50 KiB, and a
// getTransaction has 250.
const (
	// maxBatch bounds the requests of a batch, maxWaiting those that wait for one; beyond
	// it a request goes alone.
	maxBatch, maxWaiting = 32, 1024
	// defaultGatherFor is the longest wait for a batch: a node that answers more slowly
	// gets the next batch before it has answered the last one.
	defaultGatherFor = 5 * time.Millisecond
	// aloneFor is how long a node that has refused a batch gets none.
	aloneFor = 10 * time.Minute
)

// batcher gathers the requests that are made while a node answers another one, and sends
// them as one batch when it has answered. A request that nothing is under way before goes
// at once, and alone. Safe for concurrent use.
type batcher struct {
	gatherFor time.Duration

	mu       sync.Mutex
	underWay int // requests and batches
	waiting  []*member
	timer    *time.Timer // of the next departure; nil: none has waited yet
	// aloneUntil is set by a node that refuses batches.
	aloneUntil time.Time
}

// member is a request of a batch.
type member struct {
	ctx  context.Context
	id   uint64
	body []byte
	done chan outcome // holds one
}

// outcome is how a member's batch ended. alone: the batch has decided nothing, and the
// request is to be made by itself.
type outcome struct {
	result json.RawMessage
	err    error
	alone  bool
}

// postGathered is post, in a batch if the node is at work.
func (u *upstream) postGathered(ctx context.Context, id uint64, body []byte) (json.RawMessage, error) {
	m := &member{ctx: ctx, id: id, body: body, done: make(chan outcome, 1)}
	if !u.batches.join(u, m) {
		defer u.batches.landed()
		return u.post(ctx, id, body)
	}
	select {
	case o := <-m.done:
		if !o.alone {
			return o.result, o.err
		}
		return u.post(ctx, id, body)
	case <-ctx.Done():
		return nil, &Error{Kind: Down, Err: ctx.Err()}
	}
}

// join lets m wait for a batch. It returns false if m goes alone: the caller calls landed
// after its request.
func (b *batcher) join(u *upstream, m *member) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.underWay == 0 || len(b.waiting) >= maxWaiting || time.Now().Before(b.aloneUntil) {
		b.underWay++
		return false
	}
	if b.waiting = append(b.waiting, m); b.timer == nil {
		b.timer = time.AfterFunc(b.gatherFor, func() { b.depart(u) })
	}
	switch len(b.waiting) {
	case 1:
		b.timer.Reset(b.gatherFor)
	case maxBatch:
		b.timer.Reset(0)
	}
	return true
}

// landed ends a request or a batch, and lets the next batch depart.
func (b *batcher) landed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.underWay--
	if len(b.waiting) > 0 {
		b.timer.Reset(0)
	}
}

// depart sends a batch of what waits; the timer calls it.
func (b *batcher) depart(u *upstream) {
	b.mu.Lock()
	batch := slices.Clone(b.waiting[:min(len(b.waiting), maxBatch)])
	if b.waiting = slices.Delete(b.waiting, 0, len(batch)); len(b.waiting) > 0 {
		b.timer.Reset(0)
	}
	b.underWay++
	b.mu.Unlock()
	defer b.landed()
	u.fly(batch)
}

// fly sends a batch and gives each member its outcome. It ends early when no member waits
// any more.
func (u *upstream) fly(batch []*member) {
	batch = slices.DeleteFunc(batch, func(m *member) bool { return m.ctx.Err() != nil })
	switch len(batch) {
	case 0:
		return
	case 1:
		result, err := u.post(batch[0].ctx, batch[0].id, batch[0].body)
		batch[0].done <- outcome{result: result, err: err}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var left atomic.Int64
	for _, m := range batch {
		defer context.AfterFunc(m.ctx, func() {
			if left.Add(1) == int64(len(batch)) {
				cancel()
			}
		})()
	}
	bodies := make([][]byte, len(batch))
	for i, m := range batch {
		bodies[i] = m.body
	}
	text, status, failure := u.send(ctx, slices.Concat([]byte("["), bytes.Join(bodies, []byte(",")), []byte("]")))
	for i, o := range u.outcomes(batch, text, status, failure) {
		batch[i].done <- o
	}
}

// outcomes reads the answer to a batch. A node that refuses the batch itself gets single
// requests for a while; an answer that is too long for a batch may be short enough for
// each request alone.
func (u *upstream) outcomes(batch []*member, text []byte, status int, failure *Error) []outcome {
	list := make([]outcome, len(batch))
	answers, isList := [][]byte(nil), false
	if failure == nil && status == http.StatusOK {
		answers, isList = splitList(text, 2*len(batch))
	}
	if len(answers) == 1 && isRefusal(answers[0]) { // of the batch, in a list
		text, isList = answers[0], false
	}
	switch {
	case isList || failure != nil:
	case status >= http.StatusInternalServerError:
		failure = failedStatus(status)
	case isRateLimited(text):
		failure = &Error{Kind: RateLimited, RetryAfter: defaultRetryAfter}
	}
	switch {
	case isList:
		if !matchAnswers(batch, answers, list) {
			u.batches.refuse()
		}
	case failure != nil && failure.Kind != WrongAnswer:
		for i := range list {
			own := *failure // the caller adds to it
			list[i].err = &own
		}
	default:
		if failure == nil {
			u.batches.refuse()
		}
		for i := range list {
			list[i].alone = true
		}
	}
	return list
}

// jsonSpace is what may be around the values of a JSON text.
const jsonSpace = " \t\r\n"

// splitList returns the elements of a JSON list. It validates none of them and copies
// nothing, because a node may send millions. ok is false if text is no list, or one of more
// than most elements.
func splitList(text []byte, most int) (list [][]byte, ok bool) {
	text = bytes.Trim(text, jsonSpace)
	if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
		return nil, false
	}
	rest := bytes.Trim(text[1:len(text)-1], jsonSpace)
	if len(rest) == 0 {
		return nil, true
	}
	begin, depth := 0, 0
	for i := 0; i < len(rest) && depth >= 0; i++ {
		switch rest[i] {
		case '"':
			n := endOfText(rest[i+1:])
			if n < 0 {
				return nil, false
			}
			i += 1 + n
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth > 0 {
				continue
			}
			if list = append(list, rest[begin:i]); len(list) == most {
				return nil, false
			}
			begin = i + 1
		}
	}
	return append(list, rest[begin:]), depth == 0
}

// endOfText returns the index of the quotation mark that ends a JSON string, whose first one
// is before text; negative if there is none.
func endOfText(text []byte) int {
	for i := 0; ; i++ {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for escapes < i && text[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

// isRefusal reports whether an answer is an error that belongs to no request.
func isRefusal(text []byte) bool {
	var r response
	return json.Unmarshal(text, &r) == nil && r.ID == nil && r.Error != nil
}

// isRateLimited reports whether an answer is the error of a node that wants us to wait.
func isRateLimited(text []byte) bool {
	var r response
	return json.Unmarshal(text, &r) == nil && r.Error != nil && classify(r.Error).Kind == RateLimited
}

// refuse sends requests alone for a while.
func (b *batcher) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.aloneUntil = time.Now().Add(aloneFor)
}

// matchAnswers gives each member the answer with its id. A request that the node answers
// twice, or in another form, has a wrong answer; one that it leaves out is made alone, for
// another one of the batch may be the cause. whole is false if there is such a one.
func matchAnswers(batch []*member, answers [][]byte, list []outcome) (whole bool) {
	at := make(map[uint64]int, len(batch))
	for i, m := range batch {
		at[m.id] = i
		list[i].alone = true
	}
	for _, text := range answers {
		var r response
		if json.Unmarshal(text, &r) != nil || r.ID == nil {
			continue
		}
		i, ok := at[*r.ID]
		switch {
		case !ok:
		case !list[i].alone:
			list[i] = outcome{err: &Error{Kind: WrongAnswer, Message: "the batch has two answers"}}
		default:
			list[i].alone = false
			list[i].result, list[i].err = r.open(http.StatusOK, batch[i].id)
		}
	}
	return !slices.ContainsFunc(list, func(o outcome) bool { return o.alone })
}
