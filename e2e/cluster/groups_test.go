package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/demo"
)

// groupAnswer is what this test reads of any answer.
type groupAnswer struct {
	OK      bool   `json:"ok"`
	Code    string `json:"code"`
	Symbol  string `json:"symbol"`
	Quote   string `json:"quote_id"`
	Symbols []struct {
		Symbol string `json:"symbol"`
		Status string `json:"status"`
	} `json:"symbols"`
	Tickets []struct {
		ID       string `json:"order_id"`
		Pair     string `json:"pair"`
		Tranches []struct {
			ID string `json:"tranche_id"`
		} `json:"tranches"`
	} `json:"tickets"`
}

func readGroupAnswer(t *testing.T, got *http.Response, err error) (int, string, groupAnswer) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	var a groupAnswer
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return got.StatusCode, got.Header.Get("X-Group"), a
}

// TestGroupsAsProcesses: two processes, each with an engine for one instrument,
// and one client that does everything at either address.
func TestGroupsAsProcesses(t *testing.T) {
	t.Parallel()
	here, there := programtest.StartTwoGroups(t)
	client := http.Client{Timeout: runtest.HangTimeout}
	get := func(d *programtest.Service, path string) (int, string, groupAnswer) {
		t.Helper()
		got, err := client.Get(d.At.Base + path)
		return readGroupAnswer(t, got, err)
	}
	groupOf := map[string]string{"SLUSD/USDC": "eu", "92C/SLUSD": "us"}
	for _, d := range []*programtest.Service{here, there} {
		var all groupAnswer
		await.True(t, "tickets of both groups", func() bool {
			_, _, all = get(d, "/api/v1/rfq/market-tickets")
			seen := map[string]bool{}
			for _, ticket := range all.Tickets {
				seen[ticket.Pair] = true
			}
			return len(seen) == 2
		})
		for symbol, group := range groupOf {
			if status, by, a := get(d, "/api/v1/market/depth?symbol="+symbol); status != 200 || by != group || a.Symbol != symbol {
				t.Errorf("depth of %s: %d of %s: %+v", symbol, status, by, a)
			}
		}
		asked := map[string]bool{}
		for _, ticket := range all.Tickets {
			if asked[ticket.Pair] {
				continue
			}
			asked[ticket.Pair] = true
			body := fmt.Sprintf(`{"order_id":%q,"tranche_id":%q,"fill_usd":"250","rail":"USDC"}`, ticket.ID, ticket.Tranches[0].ID)
			got, err := client.Post(d.At.Base+"/api/v1/rfq/quote", "application/json", strings.NewReader(body))
			if status, by, a := readGroupAnswer(t, got, err); status != 200 || by != groupOf[ticket.Pair] || a.Quote == "" {
				t.Errorf("quote of %s: %d of %s: %+v", ticket.ID, status, by, a)
			}
		}
		if _, _, a := get(d, "/api/v1/market/symbols"); len(a.Symbols) != 2 {
			t.Errorf("symbols: %+v", a.Symbols)
		}
	}
	reportedByWebSocket(t, here, there)
	reportedByFIX(t, here, there.At.FIX)
	t.Run("Python", func(t *testing.T) {
		followGroups(t, here, "PYTHONPATH="+filepath.Join("..", "..", "sdk", "python"), programtest.Tool(t, "python3"), "-B", filepath.Join("..", "..", "sdk", "python", "tests", "live_groups.py"))
	})
	t.Run("TypeScript", func(t *testing.T) {
		followGroups(t, here, "", "node", filepath.Join(programtest.TypeScriptDir(t), "test", "live-groups.mjs"))
	})

	if err := there.Stop(); err != nil {
		t.Fatal(err)
	}
	if status, _, a := get(here, "/api/v1/market/depth?symbol=92C/SLUSD"); status != 503 || a.Code != "GROUP_UNREACHABLE" {
		t.Errorf("of a group that has gone: %d %+v", status, a)
	}
	await.True(t, "the other group to be missed", func() bool {
		_, _, a := get(here, "/api/v1/rfq/market-tickets")
		for _, ticket := range a.Tickets {
			if groupOf[ticket.Pair] == "us" {
				return false
			}
		}
		return len(a.Tickets) > 0
	})
}

// toldByWebSocket: one group's feed names the other's, which has the symbol.
func reportedByWebSocket(t *testing.T, here, there *programtest.Service) {
	t.Helper()
	subscribe := func(url string) (ack struct {
		Type       string            `json:"type"`
		Subscribed []json.RawMessage `json:"subscribed"`
		Rejected   []struct {
			Code string `json:"code"`
			URL  string `json:"ws_url"`
		} `json:"rejected"`
	},
	) {
		conn, _, err := websocket.DefaultDialer.Dial(url+"/ws/rfq", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		request := `{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["92C/SLUSD"]}`
		if err := conn.WriteMessage(websocket.TextMessage, []byte(request)); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout)); err != nil {
			t.Fatal(err)
		}
		for ack.Type != "ack" {
			_, text, err := conn.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &ack); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
		}
		return ack
	}
	first := subscribe(here.At.WS)
	if len(first.Rejected) != 1 || first.Rejected[0].Code != "OTHER_GROUP" || first.Rejected[0].URL != there.At.WS {
		t.Fatalf("%+v", first)
	}
	if second := subscribe(first.Rejected[0].URL); len(second.Subscribed) != 1 {
		t.Errorf("where it was sent: %+v", second)
	}
}

// followGroups runs a client of ours, which follows the symbols of both groups by one
// stream from the address of the first.
func followGroups(t *testing.T, d *programtest.Service, env, command string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, append(args, d.At.Base, "SLUSD/USDC", "92C/SLUSD")...)
	cmd.Env = append(os.Environ(), env)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "followed") {
		t.Errorf("%v\n%s", err, out)
	}
}

// toldByFIX: an order for another group's symbol is rejected with its address.
func reportedByFIX(t *testing.T, d *programtest.Service, at string) {
	t.Helper()
	s := fixtest.LogOnAs(t, fixclient.Options{
		Addr: d.At.FIX, SenderCompID: demo.Guest, TargetCompID: "BLOCKDESK", Username: demo.Guest, Password: demo.Password,
	})
	body := "11=a|55=92C/SLUSD|54=1|38=1|40=2|44=0.1|59=1|60=" + time.Now().UTC().Format("20060102-15:04:05") + "|"
	if err := s.Client.Send("D", []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
		t.Fatal(err)
	}
	s.Expect(map[int]string{35: "8", 150: "8", 103: "1", 58: "OTHER_GROUP: 92C/SLUSD is served at " + at})
}
