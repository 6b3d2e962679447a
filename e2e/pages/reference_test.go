package pages

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"blockdesk/e2e/browsertest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/sdk/openapitest"
)

// readReference reads the description of each operation from the API reference.
const readReference = `
return [...document.querySelectorAll('#reference [id^="operation/"]')].map((o) => ({
  id: o.id.slice('operation/'.length), summary: o.querySelector('h2').textContent,
  method: o.querySelector('.http-verb').textContent.toUpperCase(), path: o.querySelector('.http-verb').nextElementSibling.textContent,
  answers: o.querySelectorAll('[role=tab]').length,
}));`

// fewOperations keeps one operation of each kind, because axe would take minutes for
// all.
const fewOperations = `
const keep = ['getTicker', 'postQuote', 'openWebSocket', 'getMarketPool', 'postSubmit', 'getReferencePage'].map((id) => 'operation/' + id);
const all = () => [...document.querySelectorAll('#reference [id^="operation/"]')];
for (const o of all()) if (!keep.includes(o.id)) o.remove();
return all().length === keep.length;`

// TestReference: the API reference shows every operation of the document, loads
// nothing from other sites, violates no policy, and can be read and searched in both
// themes.
func TestReference(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests runs in a browser or in Node")
	t.Parallel()
	c := browsertest.StartChromium(t)
	s := programtest.Start(t, programtest.Config(t, programtest.DeskConfig))
	document, err := openapitest.Parse([]byte(programtest.Get(t, s.Addresses.Base+programtest.DocumentPath)))
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"dark", "light"} {
		p := &browsertest.Tab{Chromium: c}
		c.Do("open", map[string]any{"url": s.Addresses.Base + "/docs", "scheme": scheme, "script": notesAnswers}, &p.Number)
		await.True(t, "the reference", func() (shown bool) {
			p.Read("return document.getElementById('reference').dataset.state === 'shown'", &shown)
			return shown
		})
		allShown(t, p, document)
		p.Await("the theme", fmt.Sprintf("document.documentElement.dataset.theme === %q", scheme))
		p.Await("few operations", fmt.Sprintf("(() => { %s })()", fewOperations))
		for _, size := range screens { // no phone: that would load all operations again
			p.Do("dress", map[string]any{"width": size.width, "height": size.height, "scheme": scheme}, nil)
			p.Await("the size", fmt.Sprintf("innerWidth === %d", size.width))
			browsertest.NothingSerious(t, p, fmt.Sprintf("%s, %d px", scheme, size.width))
			noWider(t, p, size.width)
		}
		p.Do("dress", map[string]any{"width": screens[0].width, "height": screens[0].height, "scheme": scheme}, nil)
		searched(t, p, scheme)
		p.Click(`#reference [data-item-id="tag/dvp"] > label`)
		p.Await("the menu of a part", `document.querySelector('[data-item-id="tag/dvp/operation/getHandshake"]').checkVisibility()`)
		browsertest.NothingSerious(t, p, scheme+", a part of the menu open")
		nothingFetched(t, p, s.Addresses.Base)
	}
}

// notesAnswers records the messages to and from the search worker.
const notesAnswers = `
window.asked = [];
window.answered = [];
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...more) {
  if (!this.noted) {
    this.noted = true;
    this.addEventListener('message', (event) => window.answered.push(event.data?.id));
  }
  window.asked.push(message);
  return post.call(this, message, ...more);
};`

// searched checks that the search finds a text, and that its results disappear when
// the search is left, even before the answer.
func searched(t *testing.T, p *browsertest.Tab, scheme string) {
	t.Helper()
	const found = "document.querySelector('[data-role=\"search:results\"]')"
	p.Click("#reference .search-input")
	p.Do("type", map[string]any{"text": "handshake"}, nil)
	p.Await("what the search finds", found+"?.textContent.toLowerCase().includes('handshake')")
	browsertest.NothingSerious(t, p, scheme+", searched")
	p.Do("type", map[string]any{"text": "s"}, nil) // it is asked for a moment later
	p.Press("Escape")
	p.Await("the search to be left", "!"+found)
	p.Await("the search's answer", "window.asked.some((m) => JSON.stringify(m).includes('handshakes') && window.answered.includes(m.id))")
	var late bool
	p.Read("await new Promise((done) => setTimeout(() => setTimeout(done))); return "+found+" !== null", &late)
	if late {
		t.Errorf("%s: the answer of a search that was left is shown", scheme)
	}
}

// allShown compares the page with the document.
func allShown(t *testing.T, p *browsertest.Tab, document *openapitest.Document) {
	t.Helper()
	var operations []struct {
		ID, Summary, Method, Path string
		Answers                   int
	}
	p.Read(readReference, &operations)
	shown := map[string]bool{}
	for _, o := range operations {
		shown[o.Method+" "+o.Path] = true
		if o.ID == "" || o.Summary == "" || o.Answers == 0 {
			t.Errorf("an operation is shown as %+v", o)
		}
	}
	want := document.Operations()
	for _, o := range want {
		if !shown[o.Method+" "+o.Path] {
			t.Errorf("%s %s is not shown", o.Method, o.Path)
		}
	}
	if len(want) == 0 || len(operations) != len(want) {
		t.Errorf("%d operations are shown, the document has %d", len(operations), len(want))
	}
}

// nothingFetched checks that the page loaded only its own files and the document.
func nothingFetched(t *testing.T, p *browsertest.Tab, base string) {
	t.Helper()
	requests, faults := p.Observed()
	inside := func(r string) bool { return strings.HasPrefix(r, "data:") || strings.HasPrefix(r, "blob:"+base+"/") }
	requests = slices.DeleteFunc(requests, inside)
	slices.Sort(requests)
	want := []string{"/board/icon.svg", "/docs", "/docs/docs.css", "/docs/docs.js", "/docs/redoc.js", programtest.DocumentPath}
	for i := range want {
		want[i] = base + want[i]
	}
	// A browser without a screen does not always draw the icon.
	if len(requests) < len(want)-1 || slices.ContainsFunc(requests, func(r string) bool { return !slices.Contains(want, r) }) {
		t.Errorf("the page asks for %q", requests)
	}
	if len(faults) > 0 {
		t.Errorf("faults: %q", faults)
	}
}
