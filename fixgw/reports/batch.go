package reports

import (
	"bytes"

	"blockdesk/fixgw/session"
)

// batch is messages of one session that go out together, with the first answers to requests
// that are among them.
type batch struct {
	session.Batch
	answers []firstAnswer
}

// firstAnswer is the first answer to a request, whose message is in the batch. It is
// published to the request under the outbound lock, right before the batch gets its
// numbers. Earlier, a repetition could overtake the first answer; later, a repetition
// that the client sends when it has the answer would get none.
type firstAnswer struct {
	to   *Request
	code byte // to.answer
	body []byte
}

// answer adds the first answer to r; its message is in the batch. It copies body.
func (b *batch) answer(r *Request, code byte, body []byte) {
	b.answers = append(b.answers, firstAnswer{r, code, bytes.Clone(body)})
}

func (b *batch) empty() bool { return len(b.Drafts) == 0 && len(b.answers) == 0 }

func (b *batch) clear() {
	clear(b.answers) // an empty batch keeps no request alive
	b.answers = b.answers[:0]
	b.Batch.Clear()
}
