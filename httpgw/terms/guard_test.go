package terms

import (
	"strings"
	"testing"

	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
)

// TestGuardsAreTotal: each reason has a sentence and is published unchanged; reasons
// of the desk have their own code.
func TestGuardsAreTotal(t *testing.T) {
	id := wire.RequestID([]byte("01234567-0123456789"))
	for word := range guardTexts {
		p := GuardProblem(word)
		if e := gatewaytest.DecodeError(t, p.Append(nil, &id)); e.Reason != word || e.Code != wire.CodeRefused || p.Status != 409 || !strings.HasSuffix(p.Text, ".") {
			t.Errorf("%s: %+v", word, p)
		}
	}
	for reason, is := range refusals {
		if p := GuardProblem(reason.String()); p.Status != is.Status || p.Code != is.Code || p.Reason != reason.String() {
			t.Errorf("%s: %+v", reason, p)
		}
	}
	if p := GuardProblem(TokenWrongTaker); p.Status != 403 || p.Code != wire.CodeTokenRefused {
		t.Errorf("%+v", p)
	}
}
