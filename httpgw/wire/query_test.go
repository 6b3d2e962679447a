package wire

import (
	"strings"
	"testing"
)

// TestLimitParam: a limit is decimal digits, escaped or not, within its range.
func TestLimitParam(t *testing.T) {
	for query, want := range map[string]int{
		"": 50, "limit=1": 1, "limit=100": 100, "limit=007": 7, "limit=%31%30": 10, "limit=1%30": 10, "x=1&limit=%33": 3,
	} {
		if got, problem := LimitParam([]byte(query), 50, 100); problem != nil || got != want {
			t.Errorf("%s: %d, %v", query, got, problem)
		}
	}
	for _, query := range []string{
		"limit=", "limit", "limit=0", "limit=101", "limit=-1", "limit=+1", "limit=%2B1", "limit=%3", "limit=%zz", "limit=1%00",
		"limit=" + strings.Repeat("1", 10), "limit=" + strings.Repeat("%31", 33), "limit=1&limit=1",
	} {
		if got, problem := LimitParam([]byte(query), 50, 100); problem == nil {
			t.Errorf("%s is %d", query, got)
		}
	}
	if got, problem := LimitParamFrom([]byte("limit=%30"), 0, 50, 100); problem != nil || got != 0 {
		t.Errorf("a limit from 0: %d, %v", got, problem)
	}
	for _, query := range []string{"limit=101", "limit=-1", "limit=0&limit=0"} {
		if got, problem := LimitParamFrom([]byte(query), 0, 50, 100); problem == nil || problem.Code != CodeInvalidLimit || problem.Field != "limit" {
			t.Errorf("%s from 0: %d, %+v", query, got, problem)
		}
	}
}

// TestCheckParams: a parameter that the read does not know is refused by its name, which is
// repeated only if it is a plain word.
func TestCheckParams(t *testing.T) {
	known := []string{"symbol", "limit"}
	for _, query := range []string{"", "symbol=A", "limit=1&symbol=B", "&&", "=x", "symbol&limit", "symbol=A&pretty"} {
		if problem := CheckParams([]byte(query), known); problem != nil {
			t.Errorf("%q: %+v", query, problem)
		}
	}
	for query, field := range map[string]string{
		"start=1": "start", "symbol=A&from=2": "from", "Symbol=A": "Symbol", "<b>=1": "", "%73ymbol=A": "", "a b": "",
		strings.Repeat("a", maxEchoedName+1): "",
	} {
		problem := CheckParams([]byte(query), known)
		if problem == nil || problem.Status != 400 || problem.Reason != "unknown_field" || problem.Field != field {
			t.Errorf("%q: %+v", query, problem)
		}
	}
	query := []byte("symbol=SLUSD/USDC&limit=50")
	if n := testing.AllocsPerRun(100, func() { CheckParams(query, known); _, _ = LimitParam(query, 1, 100) }); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}
