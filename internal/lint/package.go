package lint

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
)

const (
	// MaxPackageLines and MaxPackageFiles: a package fits in a head.
	MaxPackageLines = 6000
	MaxPackageFiles = 40
	// MaxMethodFiles: six files of one type are one story cut in pieces.
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

// addMethods adds a file to those of the types that it has methods of.
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
