package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func (c *checker) checkImports(s *source) {
	for _, spec := range s.file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has refused it
		}
		rule, text := s.checkImport(imported)
		if rule != "" && !c.excused(rule, s.name) {
			c.report(s.name, s.line(spec.Pos()), rule, text)
		}
	}
}

// checkImport returns the rule that an import breaks and why, or "".
func (s *source) checkImport(imported string) (rule, text string) {
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case first == Module:
		return s.checkOurImport(strings.TrimPrefix(strings.TrimPrefix(imported, Module), "/"))
	case coveredBy(imported, testLibraries):
		if !s.test {
			return "testing", imported + " belongs in tests"
		}
		return "", ""
	case !strings.Contains(first, "."):
		if s.row.pure && !s.test && coveredBy(imported, impurePackages) {
			return "pure", fmt.Sprintf("%s may not import %s: state is a pure machine", s.row.path, imported)
		}
		return "", ""
	default:
		return s.checkLibraryImport(imported)
	}
}

func (s *source) checkOurImport(dir string) (rule, text string) {
	target := ownerOf(dir)
	switch {
	case target == nil:
		return "row", dir + " is in no row"
	case s.test && testHelpers(dir):
		return "", ""
	case target.path == s.row.path || slices.Contains(s.row.may, target.path):
		return "", ""
	case s.test && s.row.inner && target.inner:
		return "", ""
	case s.test && !s.row.inner && target.path != "cmd":
		return "", ""
	}
	return "import", fmt.Sprintf("%s may not import %s: declare the small interface you need, service joins the packages", s.row.path, target.path)
}

func (s *source) checkLibraryImport(imported string) (rule, text string) {
	for _, lib := range libraries {
		if !within(imported, lib.path) {
			continue
		}
		if s.test && !s.row.inner || coveredBy(s.row.path, lib.owners) {
			return "", ""
		}
		return "library", fmt.Sprintf("%s belongs to %s, not to %s", imported, strings.Join(lib.owners, ", "), s.row.path)
	}
	return "library", imported + " has no owner: give it one in internal/lint/packages.go and a line in DEPENDENCIES.md"
}

func coveredBy(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return within(path, root) })
}
