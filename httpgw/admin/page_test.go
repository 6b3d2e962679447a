package admin

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestDeskPage: the operators' page is served with its files and a strict policy, and has
// nothing that needs a token.
func TestDeskPage(t *testing.T) {
	t.Parallel()
	o := newOperatorRig(t).options(t)
	rig := "http://" + startAdmin(t, Options{Operate: &o}).Addr().String()
	for path, has := range map[string]string{
		"/desk": "Operator token", "/desk-page/desk.js": "operator-token", "/desk-page/board.css": ".operator", "/desk-page/icon.svg": "<svg",
	} {
		resp, err := http.Get(rig + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), has) {
			t.Errorf("%s: %d, %v, %.200s", path, resp.StatusCode, err, body)
		}
		h := resp.Header
		if h.Get("Content-Security-Policy") != deskPolicy || h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
		again, err := http.NewRequest(http.MethodGet, rig+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		again.Header.Set("If-None-Match", h.Get("ETag"))
		if resp, err = http.DefaultClient.Do(again); err != nil || resp.StatusCode != http.StatusNotModified {
			t.Errorf("%s again: %v, %v", path, resp, err)
		}
		resp.Body.Close()
	}
	for _, path := range []string{"/desk-page/board.js", "/desk-page/", "/desk-page/wallet.html"} {
		resp, err := http.Get(rig + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}
