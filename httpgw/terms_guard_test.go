package httpgw

import (
	"strings"
	"testing"
)

// TestGuardsAreTotal: each word has a sentence and goes out as it is; those of
// the desk have their own code.
func TestGuardsAreTotal(t *testing.T) {
	id := requestID([]byte("01234567-0123456789"))
	for word := range guards {
		p := guarded(word)
		if e := decodeError(t, p.append(nil, &id)); e.Reason != word || e.Code != codeRefused || p.status != 409 || !strings.HasSuffix(p.text, ".") {
			t.Errorf("%s: %+v", word, p)
		}
	}
	for reason, is := range refusals {
		if p := guarded(reason.String()); p.status != is.status || p.code != is.code || p.reason != reason.String() {
			t.Errorf("%s: %+v", reason, p)
		}
	}
	if p := guarded(tokenOfAnother); p.status != 403 || p.code != codeToken {
		t.Errorf("%+v", p)
	}
}
