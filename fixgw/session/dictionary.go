package session

import (
	"bytes"
	_ "embed"
	"fmt"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/datadictionary"

	"blockdesk/fixgw/wire"
)

// fix44 is QuickFIX's stock dictionary of FIX 4.4, unchanged: see FIX44.LICENSE.
//
//go:embed FIX44.xml
var fix44 []byte

// Values of SessionRejectReason (373) that the validator gives.
const (
	sessionRejectMissing   = 1 // required tag
	sessionRejectUndefined = 2 // tag, for this message type
	sessionRejectGroup     = 15
)

// validator checks incoming messages against the stock dictionary. User-defined fields
// (5000 and above) pass: those of a Logon are ours, and other custom tags are not read.
// All sessions share it; a dictionary given to quickfix would be parsed from a file for
// each.
type validator struct {
	dictionary *datadictionary.DataDictionary
	inner      quickfix.Validator
}

// Dictionary is the FIX 4.4 dictionary that messages are checked against. The successive
// servers of a process share it. Immutable.
type Dictionary struct{ validator quickfix.Validator }

// ReadDictionary parses the embedded dictionary, which takes some 100 ms.
func ReadDictionary() (*Dictionary, error) {
	v, err := newValidator()
	if err != nil {
		return nil, err
	}
	return &Dictionary{v}, nil
}

func newValidator() (quickfix.Validator, error) {
	dictionary, err := datadictionary.ParseSrc(bytes.NewReader(fix44))
	if err != nil {
		return nil, fmt.Errorf("FIX44.xml: %w", err)
	}
	return &validator{dictionary, quickfix.NewValidator(quickfix.ValidatorSettings{
		CheckFieldsOutOfOrder: true, CheckFieldsHaveValues: true, RejectInvalidMessage: true,
	}, dictionary, nil)}, nil
}

// Validate returns the reject of a message, or nil if it is valid. It corrects two
// answers of quickfix: quickfix names any one of several missing tags, and it calls a
// field that is out of order in its repeating group undefined.
func (v *validator) Validate(m *quickfix.Message) quickfix.MessageRejectError {
	err := v.inner.Validate(m)
	if err == nil || err.RefTagID() == nil {
		return err
	}
	msgType, headless := m.Header.GetString(35)
	if headless != nil {
		return err
	}
	tag, message := *err.RefTagID(), v.dictionary.Messages[msgType]
	switch err.RejectReason() {
	case sessionRejectMissing:
		if _, ours := message.RequiredTags[int(tag)]; !ours || m.Body.Has(tag) {
			return err // in the header or in a group
		}
		for required := range message.RequiredTags {
			if required := quickfix.Tag(required); required < tag && !m.Body.Has(required) {
				tag = required
			}
		}
		return quickfix.RequiredTagMissing(tag)
	case sessionRejectUndefined:
		for _, f := range message.Fields {
			if f.IsGroup() && m.Body.Has(quickfix.Tag(f.Tag())) && inGroup(f, int(tag)) {
				return quickfix.NewMessageRejectError("Repeating group fields out of order", sessionRejectGroup, &tag)
			}
		}
	}
	return err
}

// inGroup reports whether a repeating group, or one inside it, has the field.
func inGroup(group *datadictionary.FieldDef, tag int) bool {
	for _, f := range group.Fields {
		if f.Tag() == tag || f.IsGroup() && inGroup(f, tag) {
			return true
		}
	}
	return false
}

// codedReject is a session reject whose text begins with a code and names the field.
type codedReject struct {
	quickfix.MessageRejectError
	text string
}

func (w codedReject) Error() string { return w.text }

// withCode adds our code to a reject of the validator.
func withCode(err quickfix.MessageRejectError) quickfix.MessageRejectError {
	if err == nil {
		return nil
	}
	code := wire.CodeInvalidField
	if err.RejectReason() == sessionRejectMissing {
		code = wire.CodeMissingField
	}
	text := code + ": " + err.Error()
	if tag := err.RefTagID(); tag != nil {
		text = fmt.Sprintf("%s: tag %d: %s", code, *tag, err.Error())
	}
	return codedReject{err, text}
}
