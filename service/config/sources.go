package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
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

// addFile records the line of every value of a decoded YAML file.
func (s Sources) addFile(name string, text []byte) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return // the decoder has said so
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			ast.Walk(lineNoter{name, s}, doc.Body)
		}
	}
}

// lineNoter records the lines of a syntax tree.
type lineNoter struct {
	file    string
	sources Sources
}

// Visit implements ast.Visitor.
func (n lineNoter) Visit(node ast.Node) ast.Visitor {
	if pair, ok := node.(*ast.MappingValueNode); ok {
		path := strings.TrimPrefix(pair.Key.GetPath(), "$.")
		n.sources[path] = fmt.Sprintf("%s:%d", n.file, pair.Key.GetToken().Position.Line)
	}
	return n
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
