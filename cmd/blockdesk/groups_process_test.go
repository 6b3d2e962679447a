package main

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

	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/demo"
	"blockdesk/service/servicetest"
)

// startGroup runs a process of a group, on its configured addresses.
func startGroup(t *testing.T, config, name string, ports [4]string) *demoService {
	t.Helper()
	set := func(key, value string) []string { return []string{"--set", key + "=" + value} }
	more := []string{"--config", config, "--demo"}
	more = append(more, set("routing.group", name)...)
	more = append(more, set("routing.timeout_ms", "60000")...)
	for i, key := range []string{"listen.base", "listen.api", "listen.ws", "listen.fix"} {
		more = append(more, set(key, "127.0.0.1:"+ports[i])...)
	}
	for _, key := range []string{"http.market_data_per_minute", "http.rfq_writes_per_minute"} {
		more = append(more, set(key, "0")...)
	}
	return startServe(t, t.TempDir(), more...)
}

// startTwoGroups runs the processes of two groups: eu, which has SLUSD/USDC, and us,
// which has 92C/SLUSD.
func startTwoGroups(t *testing.T) (eu, us *demoService) {
	t.Helper()
	var ports [2][4]string
	for i := range ports[0] {
		ports[0][i], ports[1][i] = freePort(t), freePort(t)
	}
	node := func(p [4]string) string {
		return fmt.Sprintf(`{base_url: "http://127.0.0.1:%s", api_url: "http://127.0.0.1:%s", ws_url: "ws://127.0.0.1:%s", fix: "127.0.0.1:%s"}`, p[0], p[1], p[2], p[3])
	}
	config := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(config, []byte(servicetest.TwoGroups(servicetest.SecretFile(t, 32), node(ports[0]), node(ports[1]))), 0o600); err != nil {
		t.Fatal(err)
	}
	return startGroup(t, config, "eu", ports[0]), startGroup(t, config, "us", ports[1])
}

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
	here, there := startTwoGroups(t)
	client := http.Client{Timeout: runtest.Patience}
	get := func(d *demoService, path string) (int, string, groupAnswer) {
		t.Helper()
		got, err := client.Get(d.at.Base + path)
		return readGroupAnswer(t, got, err)
	}
	groupOf := map[string]string{"SLUSD/USDC": "eu", "92C/SLUSD": "us"}
	for _, d := range []*demoService{here, there} {
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
			got, err := client.Post(d.at.Base+"/api/v1/rfq/quote", "application/json", strings.NewReader(body))
			if status, by, a := readGroupAnswer(t, got, err); status != 200 || by != groupOf[ticket.Pair] || a.Quote == "" {
				t.Errorf("quote of %s: %d of %s: %+v", ticket.ID, status, by, a)
			}
		}
		if _, _, a := get(d, "/api/v1/market/symbols"); len(a.Symbols) != 2 {
			t.Errorf("symbols: %+v", a.Symbols)
		}
	}
	toldByWebSocket(t, here, there)
	toldByFIX(t, here, there.at.FIX)
	t.Run("Python", func(t *testing.T) {
		followGroups(t, here, "PYTHONPATH="+filepath.Join("..", "..", "sdk", "python"), tool(t, "python3"), "-B", filepath.Join("..", "..", "sdk", "python", "tests", "live_groups.py"))
	})
	t.Run("TypeScript", func(t *testing.T) {
		followGroups(t, here, "", "node", filepath.Join(typescriptDir(t), "test", "live-groups.mjs"))
	})

	if err := there.stop(); err != nil {
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
func toldByWebSocket(t *testing.T, here, there *demoService) {
	t.Helper()
	ask := func(url string) (ack struct {
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
		if err := conn.SetReadDeadline(time.Now().Add(runtest.Patience)); err != nil {
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
	first := ask(here.at.WS)
	if len(first.Rejected) != 1 || first.Rejected[0].Code != "OTHER_GROUP" || first.Rejected[0].URL != there.at.WS {
		t.Fatalf("%+v", first)
	}
	if second := ask(first.Rejected[0].URL); len(second.Subscribed) != 1 {
		t.Errorf("where it was sent: %+v", second)
	}
}

// followGroups runs a client of ours, which follows the symbols of both groups by one
// stream from the address of the first.
func followGroups(t *testing.T, d *demoService, env, command string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runtest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, append(args, d.at.Base, "SLUSD/USDC", "92C/SLUSD")...)
	cmd.Env = append(os.Environ(), env)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "followed") {
		t.Errorf("%v\n%s", err, out)
	}
}

// toldByFIX: an order for another group's symbol is rejected with its address.
func toldByFIX(t *testing.T, d *demoService, at string) {
	t.Helper()
	s := logOnAs(t, fixclient.Options{
		Addr: d.at.FIX, SenderCompID: demo.Guest, TargetCompID: "BLOCKDESK", Username: demo.Guest, Password: demo.Password,
	})
	body := "11=a|55=92C/SLUSD|54=1|38=1|40=2|44=0.1|59=1|60=" + time.Now().UTC().Format("20060102-15:04:05") + "|"
	if err := s.client.Send("D", []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
		t.Fatal(err)
	}
	s.expect(map[int]string{35: "8", 150: "8", 103: "1", 58: "OTHER_GROUP: 92C/SLUSD is served at " + at})
}
