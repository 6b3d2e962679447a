package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"blockdesk/fixgw/wire/wiretest"
)

func TestParseLogLineRefuses(t *testing.T) {
	good := string(bytes.TrimSuffix(AppendLogLine(nil, aMoment, Received, []byte("MM"), wiretest.Message("35=D|58=a\x7fb|")), []byte("\n")))
	if _, err := ParseLogLine(good); err != nil {
		t.Fatal(err)
	}
	for name, line := range map[string]string{
		"empty":           "",
		"no time":         strings.Replace(good, "2026-", "2026:", 1),
		"no direction":    strings.Replace(good, " in ", " by ", 1),
		"CompID":          strings.Replace(good, " MM ", " M/M ", 1),
		"torn":            good[:len(good)-1],
		"escape":          strings.Replace(good, `\x7f`, `\y7f`, 1),
		"short escape":    strings.Replace(good, `\x7fb|`, `\x7`+"|", 1),
		"no field":        strings.Replace(good, "|58=", "|x58=", 1),
		"too many fields": good[:strings.Index(good, "8=FIX")] + strings.Repeat("1=2|", MaxLogFields+1),
		"lost nothing":    aMoment.Format(logTime) + " lost 0",
		"lost some":       aMoment.Format(logTime) + " lost some",
	} {
		if _, err := ParseLogLine(line); !errors.Is(err, ErrLogLine) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseLogLine(f *testing.F) {
	f.Add(string(AppendLogLine(nil, aMoment, Sent, []byte("MM"), wiretest.Message("35=8|58=a|b|"))))
	f.Add(aMoment.Format(logTime) + " lost 7")
	f.Fuzz(func(t *testing.T, line string) {
		e, err := ParseLogLine(line)
		if err != nil && !errors.Is(err, ErrLogLine) {
			t.Fatal(err)
		}
		if err == nil && e.Lost == 0 && (!IsCompID(e.CompID) || len(e.Fields) == 0) {
			t.Fatalf("%q was read as %+v", line, e)
		}
	})
}

// Any bytes become text that can be read again.
func FuzzLogText(f *testing.F) {
	f.Add(wiretest.Message("35=A|554=secret|"))
	f.Add([]byte("35=A\x01554=a\nb\x01=\x01"))
	f.Fuzz(func(t *testing.T, message []byte) {
		text := string(AppendLogText(nil, message))
		if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Fatalf("%q is no printable line", text)
		}
		if fields := strings.Count(text, "|"); len(message) > 0 && fields <= MaxLogFields-1 {
			if _, err := ParseLogText(text); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
	})
}

// aMoment is when the lines of these tests are of.
var aMoment = time.Date(2026, 3, 4, 23, 59, 59, 999_999_999, time.UTC)
