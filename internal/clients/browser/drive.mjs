// Drives Chromium for a test: one JSON request a line on standard input, one
// answer a line on standard output, the first of them when it is ready. It ends
// with its standard input.
import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import puppeteer from 'puppeteer-core';
import { chromium } from './unpack.mjs';

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const patience = 240_000; // ms; it ends what hangs, and a loaded machine is slow
const browser = await puppeteer.launch({
  timeout: patience, protocolTimeout: patience,
  executablePath: chromium.executable, headless: 'shell', env: { ...process.env, ...chromium.environment, TZ: 'UTC' },
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--lang=en-US', '--font-render-hinting=none'],
});

const pages = new Map(); // {page, requests, faults} by number

// watch notes every address that a page asks for, and all that goes wrong in it.
async function watch(page) {
  const seen = { page, requests: [], faults: [] };
  page.on('request', (r) => seen.requests.push(r.url()));
  page.on('pageerror', (e) => seen.faults.push(`error: ${e.message}`));
  page.on('console', (m) => {
    if (m.type() === 'error' && !m.text().startsWith('Failed to load resource') && !m.text().startsWith('WebSocket connection')) seen.faults.push(m.text());
  });
  const session = await page.createCDPSession();
  await session.send('Network.enable');
  session.on('Network.webSocketCreated', (e) => seen.requests.push(e.url));
  await page.exposeFunction('policyBroken', (what) => seen.faults.push(`policy: ${what}`));
  await page.evaluateOnNewDocument(() => document.addEventListener('securitypolicyviolation', (e) => policyBroken(`${e.violatedDirective} ${e.blockedURI}`)));
  return seen;
}

const does = {
  /** open opens a page of its own; script runs in it before its own. */
  async open({ url, width = 1440, height = 900, phone = false, scheme = 'dark', script }) {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    page.setDefaultTimeout(patience);
    const seen = await watch(page);
    await dress(page, { width, height, phone, scheme });
    await page.evaluateOnNewDocument((longer) => {
      const timeout = AbortSignal.timeout.bind(AbortSignal);
      AbortSignal.timeout = (ms) => timeout(longer * ms); // a loaded machine is slow
    }, 20);
    if (script) await page.evaluateOnNewDocument(script);
    await page.goto(url);
    pages.set(pages.size + 1, seen);
    return pages.size;
  },
  async dress({ page, ...how }) {
    await dress(page, how);
  },
  async evaluate({ page, js }) {
    return page.evaluate(`(async () => { ${js} })()`);
  },
  /** click clicks until the element has it: what moves meanwhile is missed. */
  async click({ page, selector }) {
    const until = Date.now() + patience;
    do {
      await page.evaluate((wanted) => {
        globalThis.hit = false;
        addEventListener('click', (event) => (globalThis.hit ||= event.target.closest?.(wanted) != null), { capture: true, once: true });
      }, selector);
      await page.locator(selector).setTimeout(patience).click();
      if (await page.evaluate('globalThis.hit ?? true').catch(() => true)) return; // another page follows a link
    } while (Date.now() < until);
    throw new Error(`${selector} cannot be clicked`);
  },
  async press({ page, key }) {
    await page.keyboard.press(key);
  },
  async type({ page, text }) {
    await page.keyboard.type(text);
  },
  /** axe returns what it finds serious or worse. */
  async axe({ page }) {
    await page.evaluate(axe);
    const { violations } = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })');
    const serious = violations.filter((v) => v.impact === 'serious' || v.impact === 'critical');
    return serious.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 4).map((n) => `${n.target} ${n.failureSummary}`).join(' | ')}`);
  },
  async seen({ page }) {
    const { requests, faults } = [...pages.values()].find((s) => s.page === page);
    return { requests, faults };
  },
  async picture({ page, file }) {
    await page.screenshot({ path: file });
  },
};

async function dress(page, { width, height, phone, scheme }) {
  await page.setViewport({ width, height, isMobile: phone, hasTouch: phone, deviceScaleFactor: phone ? 2 : 1 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
}

process.stdout.write(`${JSON.stringify({ result: await browser.version() })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const { do: what, page, ...rest } = JSON.parse(line);
  let answer;
  try {
    const result = await does[what]({ ...rest, ...(page ? { page: pages.get(page).page } : {}) });
    answer = { result: result ?? null };
  } catch (error) {
    answer = { error: String(error?.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
