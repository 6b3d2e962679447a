package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// A package-level variable must be constant: its initial value never changes.
// checkGlobals finds those that a function of the package assigns to, in whole
// or in part, and those whose type exists to be changed.
func (c *checker) checkGlobals(packages map[string][]*source) {
	for _, files := range packages {
		globals := map[string]bool{}
		for _, s := range files {
			c.collectGlobals(s, globals)
		}
		for _, s := range files {
			c.checkAssignments(s, globals)
		}
	}
}

func (c *checker) collectGlobals(s *source, globals map[string]bool) {
	for _, d := range s.file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			v := spec.(*ast.ValueSpec)
			for _, name := range v.Names {
				globals[name.Name] = true
				if mutableType(v) {
					c.reportGlobal(s, name, "exists to be changed")
				}
			}
		}
	}
}

// mutableType reports whether a variable is a lock, a pool, an atomic or a
// channel, by how its declaration reads.
func mutableType(v *ast.ValueSpec) bool {
	exprs := append([]ast.Expr{v.Type}, v.Values...)
	return slices.ContainsFunc(exprs, func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.CompositeLit:
			return mutableExpr(e.Type)
		case *ast.UnaryExpr:
			lit, ok := e.X.(*ast.CompositeLit)
			return ok && mutableExpr(lit.Type)
		case *ast.CallExpr:
			name, ok := e.Fun.(*ast.Ident)
			return ok && name.Name == "make" && mutableExpr(e.Args[0])
		default:
			return mutableExpr(e)
		}
	})
}

func mutableExpr(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ChanType:
		return true
	case *ast.IndexExpr: // atomic.Pointer[T]
		return mutableExpr(e.X)
	case *ast.SelectorExpr:
		pkg, ok := e.X.(*ast.Ident)
		return ok && (pkg.Name == "sync" || pkg.Name == "atomic")
	}
	return false
}

func (c *checker) checkAssignments(s *source, globals map[string]bool) {
	check := func(target ast.Expr) {
		name := rootOf(target)
		if name != nil && globals[name.Name] && (name.Obj == nil || s.file.Scope.Lookup(name.Name) == name.Obj) {
			c.reportGlobal(s, name, "is assigned to")
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, target := range n.Lhs {
					check(target)
				}
			}
		case *ast.IncDecStmt:
			check(n.X)
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				check(n.Key)
				check(n.Value)
			}
		case *ast.CallExpr:
			name, ok := n.Fun.(*ast.Ident)
			if ok && (name.Name == "delete" || name.Name == "clear" || name.Name == "copy") && len(n.Args) > 0 {
				check(n.Args[0])
			}
		}
		return true
	})
}

// rootOf returns the variable that x, x.f, x[i], x[i:j], *x or (x) is part of.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

func (c *checker) reportGlobal(s *source, name *ast.Ident, why string) {
	if name.Name == "_" || c.excused("global", s.name+":"+name.Name) {
		return
	}
	c.report(s.name, s.line(name.Pos()), "global", fmt.Sprintf("%s %s: a package-level variable is a table", name.Name, why))
}
