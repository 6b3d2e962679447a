// Unpacks Chromium, its libraries and a font from npm's @sparticuz/chromium: the
// package has all of it, so that no download and nothing of the system is needed.
// npm runs this after an installation; who finds it undone runs it again.
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), 'node_modules', '.chromium');

/** chromium is where the browser is, and the environment that it needs. */
export const chromium = {
  there: () => existsSync(folder),
  executable: path.join(folder, 'chromium'),
  environment: { LD_LIBRARY_PATH: path.join(folder, 'al2023', 'lib'), FONTCONFIG_FILE: path.join(folder, 'fonts.conf') },
};

// The package unpacks into the folder for temporary files, the libraries only
// where it takes the machine for one of Amazon's.
async function unpack() {
  const half = `${folder}.${process.pid}`;
  await mkdir(half, { recursive: true });
  Object.assign(process.env, { TMPDIR: half, AWS_EXECUTION_ENV: 'nodejs20.x' });
  const { default: packed } = await import('@sparticuz/chromium');
  await packed.executablePath();
  const fonts = path.join(folder, 'fonts', 'fonts');
  await writeFile(path.join(half, 'fonts.conf'), `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${fonts}</dir><cachedir>${path.join(folder, 'fontcache')}</cachedir></fontconfig>
`);
  await rm(folder, { recursive: true, force: true });
  await rename(half, folder);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.platform === 'linux' && process.arch === 'x64') await unpack();
  else console.log('no Chromium for this machine: the pages are not looked at');
}
