package cosign

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
)

// proofs are the types whose values prove something.
var proofs = []reflect.Type{
	reflect.TypeFor[Countersigned](), reflect.TypeFor[Authorized](), reflect.TypeFor[Job](), reflect.TypeFor[Signed](),
	reflect.TypeFor[AuthorizedRefund](), reflect.TypeFor[SignedRefund](),
}

// TestNoConversion: Go lets any package convert between struct types with the same
// fields, so no two of ours may have them.
func TestNoConversion(t *testing.T) {
	for _, from := range proofs {
		for _, to := range proofs {
			if from != to && from.ConvertibleTo(to) {
				t.Errorf("%s converts to %s", from, to)
			}
		}
		for i := range from.NumField() {
			if from.Field(i).IsExported() {
				t.Errorf("%s.%s is exported", from, from.Field(i).Name)
			}
		}
	}
}

// TestConstructors: these functions alone give a value that proves something, of all that
// the package's code has, exported or not.
func TestConstructors(t *testing.T) {
	names := map[string]bool{}
	for _, p := range proofs {
		names[p.Name()] = true
	}
	var constructors, literals []string
	for _, f := range sources(t) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, result := range results(fn) {
				if names[result] {
					constructors = append(constructors, fn.Name.Name+" "+result)
				}
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				lit, ok := n.(*ast.CompositeLit)
				if name, named := litName(lit, ok); named && names[name] && len(lit.Elts) > 0 {
					literals = append(literals, fn.Name.Name+" "+name)
				}
				return true
			})
		}
	}
	slices.Sort(constructors)
	slices.Sort(literals)
	want := []string{
		"Authorize Authorized", "AuthorizeDelivery Authorized", "AuthorizeRefund AuthorizedRefund",
		"Countersign Countersigned", "Sign Signed", "Sign SignedRefund", "authorize Authorized",
	}
	if !slices.Equal(constructors, want) {
		t.Errorf("constructors %q, want %q", constructors, want)
	}
	want = []string{
		"AuthorizeRefund AuthorizedRefund", "Countersign Countersigned", "Sign Signed", "Sign SignedRefund",
		"authorize Authorized", "sign Job", "sign Job",
	}
	if !slices.Equal(literals, want) {
		t.Errorf("made in %q, want %q", literals, want)
	}
}

func litName(lit *ast.CompositeLit, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	name, ok := lit.Type.(*ast.Ident)
	if !ok {
		return "", false
	}
	return name.Name, true
}

func results(fn *ast.FuncDecl) (names []string) {
	if fn.Type.Results == nil {
		return nil
	}
	for _, r := range fn.Type.Results.List {
		e := r.Type
		if star, ok := e.(*ast.StarExpr); ok {
			e = star.X
		}
		if name, ok := e.(*ast.Ident); ok {
			names = append(names, name.Name)
		}
	}
	return names
}

// sources parses the package's code without its tests.
func sources(t *testing.T) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if len(files) < 5 {
		t.Fatalf("%d files", len(files))
	}
	return files
}

// TestZeroValues: nothing can be done with them.
func TestZeroValues(t *testing.T) {
	asked := &agreeing{}
	if a, err := (Countersigned{}).Authorize(asked); !errors.Is(err, ErrZero) || a != (Authorized{}) {
		t.Errorf("Countersigned: %v", err)
	}
	for _, u := range []*build.Unsigned{nil, {}} {
		if a, err := AuthorizeDelivery(asked, testClaim, u); !errors.Is(err, ErrZero) || a != (Authorized{}) {
			t.Errorf("no delivery: %v", err)
		}
	}
	if len(asked.asked) != 0 {
		t.Error("the desk was asked")
	}
	if x, err := (Authorized{}).Sign(context.Background(), deskSigner()); !errors.Is(err, ErrZero) || !x.IsZero() {
		t.Errorf("Authorized: %v", err)
	}
	for name, s := range map[string]Signer{"key": deskSigner(), "no key": FileSigner{}, "socket": &SocketSigner{}} {
		if got, err := s.Sign(context.Background(), Job{}); !errors.Is(err, ErrZero) || got != (solana.Signature{}) {
			t.Errorf("%s: Job: %v", name, err)
		}
	}
	if a, err := AuthorizeRefund(asked, 1, nil, solana.Address{}); !errors.Is(err, ErrShape) || a != (AuthorizedRefund{}) {
		t.Errorf("no refund: %v", err)
	}
	if x, err := (AuthorizedRefund{}).Sign(context.Background(), deskSigner()); !errors.Is(err, ErrZero) || !x.IsZero() {
		t.Errorf("AuthorizedRefund: %v", err)
	}
	if a, x := (AuthorizedRefund{}), (SignedRefund{}); a.Hash() != (solana.Hash{}) || x.Hash() != a.Hash() || x.Signature() != (solana.Signature{}) || x.Bytes() != nil {
		t.Error("SignedRefund has something")
	}
	if c, a := (Countersigned{}), (Authorized{}); c.Claim() != 0 || a.Claim() != 0 || c.Hash() != (solana.Hash{}) || a.Hash() != (solana.Hash{}) {
		t.Error("a zero value has a claim")
	}
	if shape := (Countersigned{}).Summary(); shape != (Summary{}) {
		t.Errorf("a zero value does %+v", shape)
	}
	if x := (Signed{}); !x.IsZero() || x.Claim() != 0 || x.Kind() != 0 || x.Hash() != (solana.Hash{}) || x.Signature() != (solana.Signature{}) || x.Bytes() != nil {
		t.Error("Signed has something")
	}
	if j := (Job{}); j.Kind() != 0 || j.Transaction() != nil || j.Message() != nil {
		t.Error("Job has something")
	}
}
