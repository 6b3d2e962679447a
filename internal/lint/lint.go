// Package lint checks this project's rules for the shape of the source, so that
// reviewers need not repeat them. Its test runs them over the whole repository;
// nothing of it is part of the product.
//
// The rules, each by the word that a finding and allow.txt carry:
//
//   - row: every Go file is covered by a row of the table in packages.go.
//   - import: a package imports only those of our packages that its row allows.
//   - pure: market, engine/event, engine/book and engine/rfq use no clock, lock,
//     network, file, log or randomness.
//   - library: each outside library has the rows that may import it.
//   - testing: test libraries are imported by tests alone.
//   - goroutine: a go statement is in a function named Run, except in bench.
//   - global: no package-level variable changes.
//   - length: a Go file has at most 600 lines and a function 70, except in tests.
//   - package: a package has at most 6,000 lines and 40 files, not counting tests.
//   - methods: the methods of a type are in at most five files.
//   - sleep: a test waits for a condition (internal/await). A time.Sleep that stays
//     has a comment "sleep: and the reason" on its line or on the line above.
//   - word: comments, strings, names and documents, those of tests too, have no private
//     word, and comments no sentence without a named subject.
//   - path: no tracked text names a path of the machine it was written on.
//   - allow: every line of allow.txt excuses something and says why.
//
// Test files may import more: those of a pure package and of engine all of market
// and engine and the whole standard library; those of other packages any package
// but cmd, and any outside library, because a test with the real dependencies
// proves more. A suite that tests share is in a directory whose name ends in
// "test" and counts as test files.
package lint

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Module is the path before every import of ours.
const Module = "blockdesk"

// Problem is one broken rule.
type Problem struct {
	File string
	Line int
	Rule string // a word of the package doc
	Text string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Rule, p.Text)
}

// Check reads the named files of a tree, slash-separated and relative to its
// root, and returns what breaks a rule, ordered by file and line. allow is the
// text of allow.txt. Check skips a file that no longer exists; a file that
// cannot be read or parsed is an error.
func Check(tree fs.FS, files []string, allow string) ([]Problem, error) {
	c := &checker{}
	if err := c.readAllow(allow); err != nil {
		return nil, err
	}
	for _, name := range files {
		text, err := fs.ReadFile(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		c.checkPaths(name, text)
		c.checkDocument(name, text)
		if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		if err := c.checkGo(name, text); err != nil {
			return nil, err
		}
	}
	packages := c.packages()
	c.checkGlobals(packages)
	c.checkPackages(packages)
	for _, e := range c.allowed {
		if !e.used {
			c.report(allowFile, e.line, "allow", fmt.Sprintf("%s %s is not needed: delete the line", e.rule, e.what))
		}
	}
	slices.SortStableFunc(c.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return c.problems, nil
}

// allowFile lists the excused findings, one a line: rule, file or file:name (a folder
// for the rules of packages), and the reason. Empty lines and lines that begin with # say nothing.
const allowFile = "internal/lint/allow.txt"

type excuse struct {
	rule, what string
	line       int
	used       bool
}

type checker struct {
	allowed  []*excuse
	problems []Problem
	product  []*source // parsed files that are neither tests nor generated
}

func (c *checker) readAllow(text string) error {
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		if len(fields) < 3 {
			return fmt.Errorf("%s:%d: want rule, file[:name] and a reason", allowFile, i+1)
		}
		c.allowed = append(c.allowed, &excuse{rule: fields[0], what: fields[1], line: i + 1})
	}
	return nil
}

func (c *checker) report(file string, line int, rule, text string) {
	c.problems = append(c.problems, Problem{File: file, Line: line, Rule: rule, Text: text})
}

// excused reports whether allow.txt has a line for rule and what.
func (c *checker) excused(rule, what string) bool {
	for _, e := range c.allowed {
		if e.rule == rule && e.what == what {
			e.used = true
			return true
		}
	}
	return false
}

// source is one parsed Go file.
type source struct {
	name string
	row  *row
	test bool
	fset *token.FileSet
	file *ast.File
	// lines of the whole file
	lines int
}

// packages returns the product's files by folder.
func (c *checker) packages() map[string][]*source {
	packages := map[string][]*source{}
	for _, s := range c.product {
		dir := path.Dir(s.name)
		packages[dir] = append(packages[dir], s)
	}
	return packages
}

func (s *source) line(p token.Pos) int { return s.fset.Position(p).Line }

func (c *checker) checkGo(name string, text []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	dir := path.Dir(name)
	s := &source{
		name:  name,
		row:   ownerOf(dir),
		test:  strings.HasSuffix(name, "_test.go") || strings.HasSuffix(dir, "test") || testHelpers(dir),
		fset:  fset,
		file:  file,
		lines: strings.Count(string(text), "\n"),
	}
	if s.row == nil {
		c.report(name, 1, "row", fmt.Sprintf("%s is in no row: put the file into a package that exists, or argue for a new row in internal/lint/packages.go", dir))
		return nil
	}
	c.checkImports(s)
	c.checkSleeps(s)
	if dir != "internal/lint" && !ast.IsGenerated(file) {
		c.checkGoWords(s)
	}
	if !s.test && !ast.IsGenerated(file) {
		c.product = append(c.product, s)
		c.checkLength(s)
		c.checkGoroutines(s)
	}
	return nil
}
