package pages

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"blockdesk/e2e/browsertest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
	"blockdesk/service/operator"
)

// TestDeskPage: an operator's visit to the admin address: a wrong token, the right one, a
// lock and its end.
func TestDeskPage(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests runs in a browser or in Node")
	t.Parallel()
	c := browsertest.StartChromium(t)
	s := programtest.Start(t, programtest.Config(t, programtest.DeskConfig))
	programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", "<b>bold</b>", "--tranches", "30000,5000")
	token, err := operator.LocalToken(s.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	p := c.Open(s.Addresses.Admin+"/desk", "")
	enter := func(text string) {
		p.Do("evaluate", map[string]any{"js": fmt.Sprintf("document.querySelector('#token').value = %q; document.querySelector('#token-form').requestSubmit();", text)}, nil)
	}
	enter(strings.Repeat("0", len(token)))
	p.Await("a refusal", "document.querySelector('#banners .bad') && document.querySelector('#panels').hidden")
	accessible(t, p)
	enter(token)
	p.Await("the panels", "!document.querySelector('#panels').hidden && document.querySelector('#desk-tickets').textContent.includes('<b>bold</b>') && "+
		"document.querySelectorAll('#ready tr').length > 5 && document.querySelectorAll('#prices tr').length > 0")
	p.Do("evaluate", map[string]any{"js": `document.querySelector('#lock-reason').value = 'a test'; document.querySelector('#lock-what').value = '` + programtest.Symbol + `';
document.querySelector('#lock-form').requestSubmit();`}, nil)
	p.Await("the lock", "document.querySelector('#locks').textContent.includes('a test')")
	if out := programtest.CLI(t, s, "lock", "--list"); !strings.Contains(out, programtest.Symbol) || !strings.Contains(out, "a test") {
		t.Errorf("the locks are %s", out)
	}
	accessible(t, p)
	p.Click("#locks [data-unlock]")
	p.Await("no lock", "document.querySelector('#locks').children.length === 0")
	p.Click("#forget")
	p.Await("no token", "document.querySelector('#panels').hidden && sessionStorage.length === 0")
	requests, faults := p.Observed()
	for _, r := range requests {
		if u, err := url.Parse(r); err != nil || u.Scheme+"://"+u.Host != s.Addresses.Admin || strings.Contains(r, token) {
			t.Errorf("the page asks for %s", r)
		}
	}
	if len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}
