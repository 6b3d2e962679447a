// Takes the pictures that README.md and docs show, of a running demo:
// node screenshots.mjs [URL]. The demo should have run for some minutes, so that the
// chart has candles.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';
import { chromium } from './unpack.mjs';

const base = process.argv[2] ?? 'http://127.0.0.1:8080';
const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', '..', '..', 'docs', 'images');
const patience = 240_000; // ms

const pictures = [
  { name: 'board', width: 1440, height: 900, scheme: 'dark' },
  { name: 'board-light', width: 1440, height: 900, scheme: 'light', click: '[data-view="depth"]' },
  { name: 'board-phone', width: 390, height: 844, scheme: 'dark', click: '#views [data-tab="detail"]' },
];

const browser = await puppeteer.launch({
  timeout: patience, protocolTimeout: patience, executablePath: chromium.executable, headless: 'shell',
  env: { ...process.env, ...chromium.environment, TZ: 'UTC' },
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--lang=en-US', '--font-render-hinting=none'],
});
try {
  for (const { name, width, height, scheme, click } of pictures) {
    const page = await (await browser.createBrowserContext()).newPage();
    page.setDefaultTimeout(patience);
    await page.setViewport({ width, height });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
    await page.goto(`${base}/board`);
    await page.waitForFunction(() => document.querySelectorAll('#bids tr').length > 4 && document.querySelector('#age').dataset.state === 'live'
      && document.querySelectorAll('#ladder-rows .best').length > 3 && document.querySelectorAll('#trades tr').length > 4);
    if (click) await page.click(click);
    await page.waitForNetworkIdle({ idleTime: 1000, concurrency: 4 });
    const file = path.join(folder, `${name}.png`);
    await page.screenshot({ path: file });
    console.log(file);
  }
} finally {
  await browser.close();
}
