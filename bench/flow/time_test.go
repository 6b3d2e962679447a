package flow

import (
	"strings"
	"testing"
	"time"
)

// A row's time is read to the nanosecond, rounded down, and only within a day.
func TestLobsterTime(t *testing.T) {
	const book = "2239500,100,2231800,100\n"
	for text, want := range map[string]time.Duration{
		"34200.017459617":  34200*time.Second + 17459617,
		"34200.18960767":   34200*time.Second + 189607670,
		"34200.0174596179": 34200*time.Second + 17459617,
		"0":                0,
		"86400":            24 * time.Hour,
	} {
		rows, err := ReadLobster(strings.NewReader(text+",1,7,21,2238100,1\n"), strings.NewReader(book), 1)
		if err != nil || len(rows) != 1 || rows[0].Message.At != want {
			t.Errorf("%s: %v, %v, want %v", text, rows, err, want)
		}
	}
	for _, text := range []string{"", "-1", "86400.000000001", "9:30"} {
		if rows, err := ReadLobster(strings.NewReader(text+",1,7,21,2238100,1\n"), strings.NewReader(book), 1); err == nil {
			t.Errorf("%q is read as %v", text, rows[0].Message.At)
		}
	}
}
