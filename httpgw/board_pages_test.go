package httpgw

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"blockdesk/catalog"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/wire"
)

// TestBoardServed: the page and its files are on both addresses, with ETags and gzip,
// and only the page has a policy.
func TestBoardServed(t *testing.T) {
	g := startDesk(t, nil)
	for path, media := range map[string]string{
		site.PathBoardPage: wire.HTMLType, "/board/board.js": "text/javascript; charset=utf-8", "/board/wallet.js": "text/javascript; charset=utf-8",
		"/board/board.css": "text/css; charset=utf-8", "/board/icon.svg": "image/svg+xml", site.PathBoardConfig: wire.JSONType,
	} {
		for _, addr := range []net.Addr{g.BaseAddr(), g.APIAddr()} {
			resp, body := gatewaytest.Do(t, addr, "GET", path, "")
			h := resp.Header
			if resp.StatusCode != 200 || h.Get("Content-Type") != media || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-cache" {
				t.Fatalf("%s: status %d %v", path, resp.StatusCode, h)
			}
			if policy := h.Get("Content-Security-Policy"); strings.HasPrefix(policy, "default-src 'none'; ") != (path == site.PathBoardPage) {
				t.Errorf("%s: policy %q", path, policy)
			}
			if again, _ := gatewaytest.Do(t, addr, "GET", path, "If-None-Match: "+h.Get("ETag")+"\r\n"); again.StatusCode != 304 {
				t.Errorf("%s: again: status %d", path, again.StatusCode)
			}
			packed, small := gatewaytest.Do(t, addr, "GET", path, "Accept-Encoding: gzip\r\n")
			if coded := packed.Header.Get("Content-Encoding") == "gzip"; coded != (len(body) >= wire.GzipMin) || coded && len(small) >= len(body) {
				t.Errorf("%s: %d bytes come as %d, compressed: %v", path, len(body), len(small), coded)
			}
		}
		if resp, _ := gatewaytest.Do(t, g.WSAddr(), "GET", path, ""); resp.StatusCode != 404 {
			t.Errorf("%s on the ws address: status %d", path, resp.StatusCode)
		}
	}
	// The wallet page is a template, and not one of the files.
	for _, path := range []string{"/board/", "/board/board.html", "/board/wallet.html", "/board/../board"} {
		if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", path, ""); resp.StatusCode != 404 {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
	}
	if _, body := gatewaytest.Do(t, g.BaseAddr(), "GET", site.PathBoardPage, ""); strings.Contains(string(body), "style=") || strings.Contains(string(body), "<script>") {
		t.Error("the page has a script or a style in it, which its policy forbids")
	}
}

// TestBoardConfig: pages get the service's URLs, and only in a demo the URL of a
// chain, which they may then reach.
func TestBoardConfig(t *testing.T) {
	const chain = "http://127.0.0.1:8899"
	for _, demo := range []string{"", chain} {
		g := startDesk(t, func(o *Options) {
			o.DemoChain, o.RedirectTargets = demo, []string{"https://node-b.example/x"}
			o.URLs = catalog.URLs{Base: "https://desk.example/behind", WS: "wss://ws.example"}
		})
		_, body := gatewaytest.Do(t, g.BaseAddr(), "GET", site.PathBoardConfig, "")
		var c boardSeen
		if err := json.Unmarshal(body, &c); err != nil {
			t.Fatal(err)
		}
		if reported := c.DemoChain != nil; reported != (demo != "") || reported && *c.DemoChain != chain {
			t.Errorf("demo %q: the page got %s", demo, body)
		}
		if c.Base != "https://desk.example/behind" || c.WS != "wss://ws.example" || c.API != "http://"+g.APIAddr().String() || c.Refresh != 10 || c.Groups == nil || len(c.Groups) > 0 {
			t.Errorf("the page got %s", body)
		}
		if c.Network != catalog.ExecutionNetwork {
			t.Errorf("network %q", c.Network)
		}
		resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", site.PathBoardPage, "")
		policy := resp.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "connect-src 'self' https://desk.example wss://ws.example") || !strings.Contains(policy, " https://node-b.example; ") || strings.Contains(policy, chain) != (demo != "") {
			t.Errorf("demo %q: policy %s", demo, policy)
		}
	}
}

// TestBoardConfigOfGroups: a page gets the feeds and boards of the other shards, and
// may reach the feeds.
func TestBoardConfigOfGroups(t *testing.T) {
	eu, _ := startShards(t, func(eu, _ *shardRig) { eu.o.Shards.All[1].Nodes[0].WS = "wss://us.example" })
	_, body := eu.get(t, site.PathBoardConfig)
	var c boardSeen
	if err := json.Unmarshal(body, &c); err != nil {
		t.Fatal(err)
	}
	us := eu.o.Shards.All[1]
	if len(c.Groups) != 1 || c.Groups[0].Name != "us" || c.Groups[0].Base != us.Nodes[0].Base || c.Groups[0].WS != "wss://us.example" ||
		len(c.Groups[0].Symbols) != len(us.Instruments) || c.Groups[0].Symbols[0] != us.Instruments[0].Symbol {
		t.Errorf("the page got %s", body)
	}
	resp, _ := eu.get(t, site.PathBoardPage)
	if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, " wss://us.example; ") || strings.Contains(policy, us.Nodes[0].Base) {
		t.Errorf("policy %s", policy)
	}
}

// boardSeen is what the pages read of their configuration.
type boardSeen struct {
	Service   string  `json:"service"`
	Operator  string  `json:"operator"`
	Network   string  `json:"network"`
	Base      string  `json:"base_url"`
	API       string  `json:"api_url"`
	WS        string  `json:"ws_url"`
	Refresh   int     `json:"refresh_s"`
	DemoChain *string `json:"demo_chain_url"`
	Groups    []struct {
		Name    string   `json:"name"`
		Base    string   `json:"base_url"`
		WS      string   `json:"ws_url"`
		Symbols []string `json:"symbols"`
	} `json:"groups"`
}
