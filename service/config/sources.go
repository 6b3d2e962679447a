package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Sources of values, besides a line of the file, a variable or a flag.
const (
	FromDefault = "default"
	fromDemo    = "--demo"
)

// Sources maps the path of a value to its source. A path without an entry has its
// default.
type Sources map[string]string

// Of returns the source of a value.
func (s Sources) Of(path string) string {
	if from, ok := s[path]; ok {
		return from
	}
	return FromDefault
}

// locate adds the source of the value that an error of Validate is about.
func (s Sources) locate(err error) error {
	if err == nil {
		return nil
	}
	path, _, _ := strings.Cut(err.Error(), " ")
	if from, ok := s[strings.TrimRight(path, ":,")]; ok {
		return fmt.Errorf("%w (%s)", err, from)
	}
	return err
}

// addFile records the line of every value of a decoded YAML file.
func (s Sources) addFile(name string, text []byte) {
	eachNode(text, func(path string, t *token.Token) {
		if _, known := s[path]; !known { // a key comes before its value
			s[path] = fmt.Sprintf("%s:%d", name, t.Position.Line)
		}
	})
}

// keyAt returns the path of the value at a position of a YAML file.
func keyAt(text []byte, at *token.Position) (key string) {
	eachNode(text, func(path string, t *token.Token) {
		if key == "" && t.Position.Offset == at.Offset {
			key = path
		}
	})
	return key
}

// eachNode calls each for every node of a YAML file that is valid.
func eachNode(text []byte, each func(path string, t *token.Token)) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return // the decoder has reported it
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			ast.Walk(visitor(each), doc.Body)
		}
	}
}

// visitor calls itself with the keys and the values of a syntax tree.
type visitor func(path string, t *token.Token)

// Visit implements ast.Visitor.
func (v visitor) Visit(node ast.Node) ast.Visitor {
	if pair, ok := node.(*ast.MappingValueNode); ok {
		node = pair.Key
	}
	v(strings.TrimPrefix(node.GetPath(), "$."), node.GetToken())
	return v
}

// AddDemo records the values that --demo has filled in: those that differ.
func (s Sources) AddDemo(before, after *Config) {
	was := map[string]string{}
	before.Each(func(path, _ string, v reflect.Value) { was[path] = ValueText(v) })
	after.Each(func(path, _ string, v reflect.Value) {
		if text, there := was[path]; !there || text != ValueText(v) {
			s[path] = fromDemo
		}
	})
}
