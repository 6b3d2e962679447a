package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Where values come from, beside a file's line, a variable or a flag.
const (
	fromDefault = "default"
	fromDemo    = "--demo"
)

// configSources says where the values of a configuration come from, by path. What
// is not there is a default.
type configSources map[string]string

func (s configSources) of(path string) string {
	if from, ok := s[path]; ok {
		return from
	}
	return fromDefault
}

// addFile notes the line of every value of a YAML file that has been decoded.
func (s configSources) addFile(name string, text []byte) {
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

// lineNoter notes the lines of a syntax tree.
type lineNoter struct {
	file    string
	sources configSources
}

// Visit implements ast.Visitor.
func (n lineNoter) Visit(node ast.Node) ast.Visitor {
	if pair, ok := node.(*ast.MappingValueNode); ok {
		path := strings.TrimPrefix(pair.Key.GetPath(), "$.")
		n.sources[path] = fmt.Sprintf("%s:%d", n.file, pair.Key.GetToken().Position.Line)
	}
	return n
}

// addDemo notes what --demo has filled in: values that differ from before.
func (s configSources) addDemo(before, after *Config) {
	was := map[string]string{}
	before.each(func(path, _ string, v reflect.Value) { was[path] = valueText(v) })
	after.each(func(path, _ string, v reflect.Value) {
		if text, there := was[path]; !there || text != valueText(v) {
			s[path] = fromDemo
		}
	})
}
