package fixgw

import (
	"bytes"

	"blockdesk/fixgw/session"
)

// reportBatch is messages of one session that go out together, with the first answers
// to requests that are among them.
type reportBatch struct {
	session.Batch
	answers []firstAnswer
}

// firstAnswer is the first answer to a request, whose message is in the batch. It becomes
// the request's under the line's mutex, right before the batch gets its numbers.
// Earlier, a repetition could be answered ahead of it. Later, one from a client who
// has the message could find the request unanswered, and be left without a word.
type firstAnswer struct {
	ref  *request
	code byte // ref.answer
	body []byte
}

// answer notes that the messages have the first answer to what r has asked for. It
// copies body.
func (b *reportBatch) answer(r *request, code byte, body []byte) {
	b.answers = append(b.answers, firstAnswer{r, code, bytes.Clone(body)})
}

func (b *reportBatch) empty() bool { return len(b.Drafts) == 0 && len(b.answers) == 0 }

func (b *reportBatch) clear() {
	clear(b.answers) // an idle batch holds on to no request
	b.answers = b.answers[:0]
	b.Batch.Clear()
}

// deliver is session.deliver. Whoever asks for the same again from then on is
// answered, after the messages of r.
func (s *blotter) deliver(r *reportBatch) error { return s.Session.Deliver(&r.Batch) }

// store is session.store.
func (s *blotter) store(r *reportBatch) error { return s.Session.Store(&r.Batch) }

// publishAnswers makes the answers of the reports those of their requests.
func (s *blotter) publishAnswers() {
	if len(s.reports.answers) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.reports.answers {
		u.ref.answer, u.ref.body = u.code, u.body
	}
}
