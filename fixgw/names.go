package fixgw

import (
	"bytes"
	"fmt"

	"github.com/quickfixgo/quickfix/datadictionary"
)

// Names are what a dictionary calls messages, fields and values.
type Names struct {
	dictionary *datadictionary.DataDictionary
}

// ReadNames reads a dictionary in QuickFIX's XML.
func ReadNames(xml []byte) (*Names, error) {
	dictionary, err := datadictionary.ParseSrc(bytes.NewReader(xml))
	if err != nil {
		return nil, fmt.Errorf("FIX dictionary: %w", err)
	}
	return &Names{dictionary}, nil
}

// Message returns the name of a MsgType (35), or "".
func (n *Names) Message(msgType string) string {
	if m := n.dictionary.Messages[msgType]; m != nil {
		return m.Name
	}
	return ""
}

// Field returns the name of a tag, or "".
func (n *Names) Field(tag int) string {
	if f := n.dictionary.FieldTypeByTag[tag]; f != nil {
		return f.Name()
	}
	return ""
}

// Value returns what a field's value is called, or "" where it has no name.
func (n *Names) Value(tag int, value string) string {
	if f := n.dictionary.FieldTypeByTag[tag]; f != nil {
		return f.Enums[value].Description
	}
	return ""
}
