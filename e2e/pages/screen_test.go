package pages

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"blockdesk/bench/server"
	"blockdesk/e2e/browsertest"
	"blockdesk/service/operator"
)

// screens are the sizes that the pages are made for.
var screens = []struct {
	width, height int
	phone         bool
}{{1440, 900, false}, {1024, 768, false}, {390, 844, true}}

// narrowest is the smallest phone, on which pages may not overflow either.
const narrowest = 360

// clippedTexts lists what is cut off at the side, or needs a sideways scroll.
const clippedTexts = `
const found = [];
for (const e of document.querySelectorAll('body *')) {
  if (!e.checkVisibility() || e.closest('.sr, .skip, svg, canvas, select, input, #candles')) continue;
  const panel = e.closest('.panel');
  if (getComputedStyle(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1
    || panel && e.getBoundingClientRect().right > panel.getBoundingClientRect().right + 1)
    found.push(e.tagName + '#' + e.id + '.' + e.className + ': ' + e.textContent.trim().slice(0, 60));
}
return found.slice(0, 10);`

// dress gives the page a screen and a theme. Between a desk and a phone it loads the page again.
func dress(p *browsertest.Tab, width, height int, phone bool, scheme string) {
	p.Do("dress", map[string]any{"width": width, "height": height, "phone": phone, "scheme": scheme}, nil)
	p.Await("the theme", fmt.Sprintf("document.documentElement.dataset.theme === %q && innerWidth === %d", scheme, width))
}

// accessible checks with axe on every screen in both themes, that nothing is cut off there,
// and that no page is wider than its screen.
func accessible(t *testing.T, p *browsertest.Tab) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, s := range screens {
			dress(p, s.width, s.height, s.phone, scheme)
			when := fmt.Sprintf("%s, %d px", scheme, s.width)
			browsertest.NothingSerious(t, p, when)
			var clipped []string
			if p.Read(clippedTexts, &clipped); len(clipped) > 0 {
				t.Errorf("%s: cut off: %q", when, clipped)
			}
			noWider(t, p, s.width)
		}
		dress(p, narrowest, 800, true, scheme)
		noWider(t, p, narrowest)
	}
	dress(p, screens[0].width, screens[0].height, false, "dark")
}

func noWider(t *testing.T, p *browsertest.Tab, width int) {
	t.Helper()
	var wide int
	if p.Read("return document.documentElement.scrollWidth", &wide); wide > width {
		t.Errorf("the page is %d px wide on %d", wide, width)
	}
}

// fullChart is whether candles are in every eighth of the chart's width.
const fullChart = `(() => {
const style = getComputedStyle(document.documentElement);
const colours = ['--buy', '--sell'].map((name) => [1, 3, 5].map((i) => parseInt(style.getPropertyValue(name).trim().slice(i, i + 2), 16)));
const largest = [...document.querySelectorAll('#candles canvas')].sort((a, b) => b.width * b.height - a.width * a.height).slice(0, 2);
return largest.some((canvas) => {
  const { width, height } = canvas;
  const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
  const filled = new Set();
  for (let i = 0; i < data.length; i += 4) {
    if (colours.some((c) => c.every((value, k) => Math.abs(value - data[i + k]) < 3))) filled.add(Math.floor(((i / 4) % width) * 8 / width));
  }
  return filled.size === 8;
});
})()`

// boardFits looks at the board of a demo with history as its first visitor does: on a desk's
// screen, then on a phone.
func boardFits(t *testing.T, p *browsertest.Tab) {
	t.Helper()
	dress(p, 1440, 900, false, "light")
	p.Await("15 levels a side", "['asks', 'bids'].every((id) => document.getElementById(id).children.length >= 15)")
	p.Await("a chart full of candles", fullChart)
	var odd []string
	p.Read(`return [...document.querySelectorAll('#asks tr, #bids tr')].flatMap((row) => {
  const [, size, total, share] = row.children;
  const beside = share.getBoundingClientRect().left >= total.getBoundingClientRect().right - 1;
  return beside && [size, total].every((cell) => /^<?[0-9,]+([.][0-9]{1,3})?$/.test(cell.textContent)) ? [] : [row.textContent];
});`, &odd)
	if len(odd) > 0 {
		t.Errorf("rows of the book: %q", odd)
	}
	regroup := func(scale string) {
		p.Do("evaluate", map[string]any{"js": "const s = document.querySelector('#book-group'); s.value = '" + scale + "'; s.dispatchEvent(new Event('change'));"}, nil)
	}
	regroup("3")
	p.Await("grouped prices", "[...document.querySelectorAll('#asks td:first-child, #bids td:first-child')].every((c) => /^[0-9]+[.][0-9]{3}$/.test(c.textContent))")
	regroup("6")
	p.Click(`[data-view="depth"]`)
	p.Await("axes and the middle", "document.querySelectorAll('#curve .axis').length > 4 && document.querySelectorAll('#curve text').length > 10 && document.querySelector('#curve .mid')")
	p.Do("evaluate", map[string]any{"js": `const c = document.querySelector('#curve'), r = c.getBoundingClientRect();
c.dispatchEvent(new PointerEvent('pointermove', { clientX: r.left + 0.8 * r.width, clientY: r.top + 20 }));`}, nil)
	p.Await("the total under the pointer", "document.querySelector('#curve .pointer') && [...document.querySelectorAll('#curve .strong')].some((e) => / to [0-9]/.test(e.textContent))")
	p.Click(`[data-view="candles"]`)
	if text := p.Text("#headline"); !regexp.MustCompile(`^250 USD buys .* USD each, all infee 5\.00 % included .* % off`).MatchString(text) {
		t.Errorf("the headline is %q", text)
	}
	var first string
	var flashes bool
	p.Read("return document.querySelector('.detail button').id", &first)
	p.Read("return document.querySelector('#flash').checked", &flashes)
	if first != "quote-ask" || flashes {
		t.Errorf("the first button is %s; the title flashes: %v", first, flashes)
	}
	phoneTabs(t, p)
	dress(p, 1440, 900, false, "dark")
}

// phoneTabs checks that a phone shows the chart first, and one panel a tab.
func phoneTabs(t *testing.T, p *browsertest.Tab) {
	t.Helper()
	dress(p, 390, 844, true, "light")
	p.Await("a chart full of candles", fullChart)
	var tabs []string
	p.Read("return [...document.querySelectorAll('#views [data-tab]')].map((b) => b.dataset.tab)", &tabs)
	if !slices.Equal(tabs, []string{"charts", "detail", "offers", "book", "tape"}) {
		t.Errorf("the tabs are %q", tabs)
	}
	for i, tab := range tabs {
		if i > 0 {
			p.Click(`#views [data-tab="` + tab + `"]`)
		}
		p.Await("the panel "+tab+" alone", "[...document.querySelectorAll('main > .panel')].every((e) => e.checkVisibility() === e.classList.contains('"+tab+"'))")
		var clipped []string
		if p.Read(clippedTexts, &clipped); len(clipped) > 0 {
			t.Errorf("%s: cut off: %q", tab, clipped)
		}
	}
	p.Click(`#views [data-tab="charts"]`)
}

// deskShowsMoney checks what the operators' page shows of a desk that settles: its wallet,
// prices with their age, and money that needs a person.
func deskShowsMoney(t *testing.T, c *browsertest.Chromium, s *server.Server) {
	t.Helper()
	token, err := operator.LocalToken(s.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	p := c.Open(s.Addresses.Admin+"/desk", "")
	p.Do("evaluate", map[string]any{"js": fmt.Sprintf("document.querySelector('#token').value = %q; document.querySelector('#token-form').requestSubmit();", token)}, nil)
	p.Await("the wallet, prices, money and sessions", "document.querySelectorAll('#balances tr').length > 2 && document.querySelectorAll('#money tr').length > 3 && "+
		"[...document.querySelectorAll('#prices td:nth-child(4)')].filter((c) => / s$/.test(c.textContent)).length > 1 && document.querySelector('#sessions').textContent.includes('logged on')")
	accessible(t, p)
}
