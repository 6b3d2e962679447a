package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"strings"
)

const (
	// MaxFileLines and MaxFuncLines: a file that tells two stories is cut.
	MaxFileLines = 600
	MaxFuncLines = 70
)

// checkLength counts a function from the word func to its closing brace, its
// comment aside.
func (c *checker) checkLength(s *source) {
	if s.lines > MaxFileLines && !c.excused("length", s.name) {
		c.report(s.name, s.lines, "length", fmt.Sprintf("%d lines, at most %d", s.lines, MaxFileLines))
	}
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := s.line(f.End()) - s.line(f.Pos()) + 1
		if n > MaxFuncLines && !c.excused("length", s.name+":"+f.Name.Name) {
			c.report(s.name, s.line(f.Pos()), "length", fmt.Sprintf("%s has %d lines, at most %d", f.Name.Name, n, MaxFuncLines))
		}
	}
}

// checkGoroutines: whoever starts the rooms must be able to end them, so a
// goroutine starts only where a context ends it. A load generator in bench is
// no part of the service.
func (c *checker) checkGoroutines(s *source) {
	if s.room.path == "bench" {
		return
	}
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name == "Run" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok && !c.excused("goroutine", s.name+":"+f.Name.Name) {
				c.report(s.name, s.line(g.Pos()), "goroutine", f.Name.Name+" starts a goroutine: only a function named Run may")
			}
			return true
		})
	}
}

// checkSleeps finds the sleeps of tests that do not say why they stay. What a sleep
// waits for on one machine has not happened yet on a slower one.
func (c *checker) checkSleeps(s *source) {
	if !s.test || testHelpers(path.Dir(s.name)) {
		return
	}
	reasons := map[int]bool{}
	for _, group := range s.file.Comments {
		if strings.HasPrefix(strings.TrimSpace(group.Text()), "sleep: ") {
			reasons[s.line(group.Pos())], reasons[s.line(group.End())+1] = true, true
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.SelectorExpr)
		if !ok || call.Sel.Name != "Sleep" {
			return true
		}
		pkg, ok := call.X.(*ast.Ident)
		if ok && pkg.Name == "time" && !reasons[s.line(call.Pos())] && !c.excused("sleep", s.name) {
			c.report(s.name, s.line(call.Pos()), "sleep", "a test waits for a condition (internal/await); a sleep that stays says why: // sleep: reason")
		}
		return true
	})
}

// machinePath matches the absolute paths under which this repository has been
// worked on. The character before tells a path from the end of a longer one.
var machinePath = regexp.MustCompile(`(?m)(?:^|[^\w./\-})])(/(?:work|root|tmp/bash\w*)(?:/|\b[^\w\-]|$))`)

func (c *checker) checkPaths(name string, text []byte) {
	if bytes.IndexByte(text, 0) >= 0 {
		return // not text
	}
	for _, at := range machinePath.FindAllSubmatchIndex(text, -1) {
		line := 1 + bytes.Count(text[:at[2]], []byte("\n"))
		c.report(name, line, "path", "names a directory of the machine it was written on")
	}
}
