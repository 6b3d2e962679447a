package fixgw

import (
	"bytes"
	_ "embed"
	"fmt"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/datadictionary"
)

// fix44 is QuickFIX's stock dictionary of FIX 4.4, unchanged: see FIX44.LICENSE.
//
//go:embed FIX44.xml
var fix44 []byte

// newValidator returns what holds incoming messages to the stock dictionary.
// User-defined fields (5000 and above) are let through: 8013 and 9406 are ours.
// It is used by all sessions at once; a dictionary given to quickfix would be
// parsed from a file for each.
func newValidator() (quickfix.Validator, error) {
	dictionary, err := datadictionary.ParseSrc(bytes.NewReader(fix44))
	if err != nil {
		return nil, fmt.Errorf("FIX44.xml: %w", err)
	}
	return quickfix.NewValidator(quickfix.ValidatorSettings{
		CheckFieldsOutOfOrder: true, CheckFieldsHaveValues: true, RejectInvalidMessage: true,
	}, dictionary, nil), nil
}

// worded is a session reject whose text begins with a code and names the field.
type worded struct {
	quickfix.MessageRejectError
	text string
}

func (w worded) Error() string { return w.text }

// word gives a reject of the validator its code.
func word(err quickfix.MessageRejectError) quickfix.MessageRejectError {
	if err == nil {
		return nil
	}
	const requiredTagMissing = 1
	code := codeInvalidField
	if err.RejectReason() == requiredTagMissing {
		code = codeMissingField
	}
	text := code + ": " + err.Error()
	if tag := err.RefTagID(); tag != nil {
		text = fmt.Sprintf("%s: tag %d: %s", code, *tag, err.Error())
	}
	return worded{err, text}
}
