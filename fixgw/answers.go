package fixgw

import (
	"bytes"

	"blockdesk/fixgw/session"
)

// reportBatch is messages of one session that go out together, with the first answers to
// requests that are among them.
type reportBatch struct {
	session.Batch
	answers []firstAnswer
}

// firstAnswer is the first answer to a request, whose message is in the batch. It is
// published to the request under the outbound lock, right before the batch gets its
// numbers. Earlier, a repetition could overtake the first answer; later, a repetition
// that the client sends when it has the answer would get none.
type firstAnswer struct {
	ref  *request
	code byte // ref.answer
	body []byte
}

// answer adds the first answer to r; its message is in the batch. It copies body.
func (b *reportBatch) answer(r *request, code byte, body []byte) {
	b.answers = append(b.answers, firstAnswer{r, code, bytes.Clone(body)})
}

func (b *reportBatch) empty() bool { return len(b.Drafts) == 0 && len(b.answers) == 0 }

func (b *reportBatch) clear() {
	clear(b.answers) // an empty batch keeps no request alive
	b.answers = b.answers[:0]
	b.Batch.Clear()
}

// deliver delivers the reports. From then on a repetition of their requests is answered,
// after them.
func (s *blotter) deliver(r *reportBatch) error { return s.Session.Deliver(&r.Batch) }

func (s *blotter) store(r *reportBatch) error { return s.Session.Store(&r.Batch) }

// publishAnswers publishes the answers of the reports to their requests.
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
