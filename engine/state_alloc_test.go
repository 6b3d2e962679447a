package engine

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/internal/runtest"
)

// TestApplyDoesNotAllocate: every kind of participant command, rejects included, without an
// allocation once the book has its size.
func TestApplyDoesNotAllocate(t *testing.T) {
	s := newScript(false)
	s.run(t, "define in=0 symbol=A/USD\nrisk who=1 in=all qty=900 notional=1000000 open=50 band=5000\nrisk who=2 in=all open=50")
	var round []Command
	for _, line := range []string{
		"new id=1 who=1 side=buy qty=10 price=100 ref=a-reference-of-the-usual-length session=1",
		"new id=2 who=2 side=sell qty=20 price=102 display=5",
		"new id=3 who=1 side=buy qty=12 price=102 tif=ioc",
		"new id=4 who=2 side=sell qty=5 type=market tif=ioc",
		"new id=5 who=1 side=sell qty=10 stop=95 price=94 type=stop-limit",
		"new id=6 who=1 side=buy qty=10 price=103 stp=4 tif=fok",
		"new id=7 who=1 side=buy qty=9 price=90 tif=gtd expire=4000000000000000000",
		"amend id=1 who=1 price=101 qty=20",
		"amend id=1 who=1 qty=7",
		"amend id=99 who=1 qty=7",
		"new id=8 who=1 side=buy qty=9999 price=90",
		"new id=8 who=1 side=buy qty=1 price=9000",
		"new id=8 who=3 side=buy qty=1 price=90",
		"cancel id=7 who=1",
		"cancel id=77 who=1",
		"mass-cancel who=1 in=all",
		"mass-cancel who=2",
		"tick",
		"auction",
		"new id=11 who=1 side=buy qty=10 price=103",
		"new id=12 who=2 side=sell qty=4 price=101 display=2",
		"new id=13 who=2 side=sell qty=4 price=104",
		"new id=14 who=1 side=buy qty=5 type=market tif=ioc",
		"new id=15 who=1 side=buy qty=5 stop=99 type=stop",
		"amend id=12 who=2 price=100 qty=6",
		"amend id=11 who=1 qty=8",
		"cancel id=13 who=2",
		"resume",
		"tick",
		"tick",
		"mass-cancel who=1 in=all",
		"mass-cancel who=2",
	} {
		cs, err := s.parse(line)
		if err != nil {
			t.Fatal(err)
		}
		round = append(round, cs...)
	}
	out := &event.Sink{Buf: make([]event.Event, 256), Limit: 1 << 62}
	seq, at := s.state.Seq(), int64(0)
	runRound := func() {
		for i := range round {
			seq++
			at++
			round[i].Seq, round[i].At = seq, at
			s.state.Apply(&round[i], out)
		}
	}
	for range 1_000 {
		runRound()
	}
	if allocs := testing.AllocsPerRun(1_000, runRound); allocs != 0 {
		t.Errorf("%v allocations in %d commands", allocs, len(round))
	}
	if events := out.Pos / 2_001; events < uint64(len(round)) {
		t.Errorf("%d events a round: the commands do not do what they are for", events)
	}
}

// hotFunctions run for a participant's command. The compiler must not move any of their
// variables to the heap.
var hotFunctions = map[string][]string{
	"apply.go": {"State.Apply", "emitReference", "State.expire"},
	"state.go": {"State.orderExpiresAt", "State.expiresAt", "State.reject"},
	"state_orders.go": {
		"State.newOrder", "State.admit", "tradeRejection", "State.amendOrder", "State.cancelOrder", "State.rejectCancel",
		"State.massCancel", "State.cancelAll", "checkShape", "explainShape", "checkAmend",
	},
	"state_auction.go": {
		"call.due", "State.submitGuarded", "State.submit", "State.amend", "State.amendLeavesBand", "instrument.leavesBand",
		"instrument.reference", "State.interrupt", "State.startCall", "State.callDue", "State.emitAuction",
	},
	"state_book.go": {
		"instrumentBook.amend", "instrumentBook.nextLevel", "instrumentBook.refuses", "instrumentBook.gather", "instrumentBook.amendGathered",
		"instrumentBook.open", "instrumentBook.get", "instrumentBook.best", "instrumentBook.lastTrade",
	},
	"risk.go": {
		"participant.limitsOn", "checkRisk", "explainRisk", "checkAmendRisk", "checkNotional", "clampToInt64", "marketOrderPrice",
		"doubledReference", "checkBand", "bandEdge",
	},
}

func TestNothingEscapesOnTheOrderPath(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		runtest.SkipMissing(t, "go command", "put the bin folder of Go on the PATH")
	}
	out, err := exec.Command(goTool, "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	hot, cold := hotLines(t), 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		line := lines.Text()
		if !strings.Contains(line, "escapes to heap") && !strings.Contains(line, "moved to heap") {
			continue
		}
		parts := strings.SplitN(line, ":", 3)
		if len(parts) < 3 {
			continue
		}
		number, err := strconv.Atoi(parts[1])
		if err != nil {
			continue
		}
		file := path.Base(parts[0]) // ./file.go; with -trimpath blockdesk/engine/file.go
		if name := hot[file][number]; name != "" {
			t.Errorf("%s: %s", name, line)
		} else if hot[file] != nil {
			cold++
		}
	}
	if cold == 0 {
		t.Fatalf("no escape in the cold functions of these files either: the compiler's words must have changed\n%.500s", out)
	}
}

// hotLines maps file and line to the hot function there.
func hotLines(t *testing.T) map[string]map[int]string {
	t.Helper()
	hot := map[string]map[int]string{}
	for file, names := range hotFunctions {
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		hot[file] = map[int]string{}
		found := map[string]bool{}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := functionName(f)
			found[name] = true
			for line := fset.Position(f.Pos()).Line; line <= fset.Position(f.End()).Line; line++ {
				hot[file][line] = name
			}
		}
		wanted := map[string]bool{}
		for _, name := range names {
			wanted[name] = true
			if !found[name] {
				t.Errorf("%s has no %s", file, name)
			}
		}
		for line, name := range hot[file] {
			if !wanted[name] {
				delete(hot[file], line)
			}
		}
	}
	return hot
}

func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	return typ.(*ast.Ident).Name + "." + f.Name.Name
}
