package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	// MaxFileLines and MaxFuncLines: a longer file usually has two subjects.
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

// checkGoroutines: the caller that starts a package must be able to end it, so a
// goroutine starts only where a context ends it. A load generator in bench is
// no part of the service.
func (c *checker) checkGoroutines(s *source) {
	if s.row.path == "bench" {
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
// worked on. The character before the match tells a path from the end of a longer one.
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

const (
	// MaxPackageLines and MaxPackageFiles: one person can know a package of this size.
	MaxPackageLines = 6000
	MaxPackageFiles = 40
	// MaxMethodFiles: a type in more files is hard to follow.
	MaxMethodFiles = 5
)

// checkPackages finds the packages that are too large, and the types whose methods are
// in too many files.
func (c *checker) checkPackages(packages map[string][]*source) {
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		lines, files := 0, len(packages[dir])
		methods := map[string]map[string]bool{} // files by type
		for _, s := range packages[dir] {
			lines += s.lines
			addMethods(s, methods)
		}
		if (lines > MaxPackageLines || files > MaxPackageFiles) && !c.excused("package", dir) {
			c.report(dir, lines, "package", fmt.Sprintf("%d lines in %d files, at most %d in %d", lines, files, MaxPackageLines, MaxPackageFiles))
		}
		for _, name := range slices.Sorted(maps.Keys(methods)) {
			if n := len(methods[name]); n > MaxMethodFiles && !c.excused("methods", dir+":"+name) {
				c.report(dir, n, "methods", fmt.Sprintf("the methods of %s stand in %d files, at most %d", name, n, MaxMethodFiles))
			}
		}
	}
}

// addMethods adds the file to the entry of each type that it defines methods of.
func addMethods(s *source, methods map[string]map[string]bool) {
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil {
			continue
		}
		receiver := rootType(f.Recv.List[0].Type)
		if methods[receiver] == nil {
			methods[receiver] = map[string]bool{}
		}
		methods[receiver][s.name] = true
	}
}

// rootType returns the name of T in T, *T, T[P] and *T[P, Q].
func rootType(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		default:
			return ""
		}
	}
}
