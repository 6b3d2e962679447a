package wire

import (
	"encoding/xml"
	"fmt"
)

// Names are a dictionary's names of messages, fields and values.
type Names struct {
	messages map[string]string
	fields   map[int]string
	values   map[fieldValue]string
}

// fieldValue is one value of a field.
type fieldValue struct {
	tag   int
	value string
}

// ReadNames reads a dictionary in QuickFIX's XML.
func ReadNames(text []byte) (*Names, error) {
	var dictionary struct {
		Messages []struct {
			Name    string `xml:"name,attr"`
			MsgType string `xml:"msgtype,attr"`
		} `xml:"messages>message"`
		Fields []struct {
			Number int    `xml:"number,attr"`
			Name   string `xml:"name,attr"`
			Values []struct {
				Enum        string `xml:"enum,attr"`
				Description string `xml:"description,attr"`
			} `xml:"value"`
		} `xml:"fields>field"`
	}
	if err := xml.Unmarshal(text, &dictionary); err != nil {
		return nil, fmt.Errorf("FIX dictionary: %w", err)
	}
	n := &Names{messages: map[string]string{}, fields: map[int]string{}, values: map[fieldValue]string{}}
	for _, m := range dictionary.Messages {
		n.messages[m.MsgType] = m.Name
	}
	for _, f := range dictionary.Fields {
		n.fields[f.Number] = f.Name
		for _, v := range f.Values {
			n.values[fieldValue{f.Number, v.Enum}] = v.Description
		}
	}
	return n, nil
}

// Message returns the name of a MsgType (35), or "".
func (n *Names) Message(msgType string) string { return n.messages[msgType] }

// Field returns the name of a tag, or "".
func (n *Names) Field(tag int) string { return n.fields[tag] }

// Value returns what a field's value is called, or "" where it has no name.
func (n *Names) Value(tag int, value string) string { return n.values[fieldValue{tag, value}] }
