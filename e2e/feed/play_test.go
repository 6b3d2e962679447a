package feed

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/bench/replay"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
)

// A recorded day through every gateway, and the same day with the server killed in the
// middle, end in the same books.
func TestRecordedDayThroughEveryGateway(t *testing.T) {
	runtest.SkipUnderRace(t, "it plays a day one order at a time, and the tests of engine, fixgw and feed race the same code")
	t.Parallel()
	days := []string{"own"}
	data := os.Getenv("BLOCKDESK_TESTDATA")
	if data == "" {
		data = filepath.Join("..", "..", "..", "shared", "data")
	}
	data, err := filepath.Abs(data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(data, "orderflow", "lobster")); err == nil {
		days = append(days, "aapl")
	} else {
		t.Logf("recorded flow absent, our own sample alone is played (set BLOCKDESK_TESTDATA): %v", err)
	}
	type answer struct {
		Result   replay.Result `json:"result"`
		BookHash string        `json:"book_hash"`
	}
	for _, day := range days {
		t.Run(day, func(t *testing.T) {
			hashes := map[string]bool{}
			for _, more := range [][]string{nil, {"--crash-at", "50,400,401"}} {
				text, err := programtest.Run(t, t.TempDir(), nil, append([]string{"bench", "play", "--json", "--rows", "700", "--testdata", data, "--day", day}, more...)...)
				if err != nil {
					t.Fatalf("%v: %v\n%s", more, err, text)
				}
				var a answer
				// Progress goes to standard error, before the answer.
				if err := json.Unmarshal([]byte(text[max(0, strings.IndexByte(text, '{')):]), &a); err != nil {
					t.Fatalf("%v: %v\n%s", more, err, text)
				}
				r := a.Result
				if r.Exact != r.Rows || r.RESTExact != r.RESTChecked || r.FeedGaps != 0 || r.Rows != 699 {
					t.Errorf("%v: %+v", more, r)
				}
				if r.RESTChecked == 0 || r.Trades == 0 || r.Crashes != 3*len(more)/2 {
					t.Errorf("%v: the run proves too little: %+v", more, r)
				}
				hashes[a.BookHash] = true
			}
			if len(hashes) != 1 {
				t.Errorf("with and without crashes the books differ: %v", hashes)
			}
		})
	}
}
