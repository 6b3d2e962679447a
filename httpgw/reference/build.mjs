// Builds dist/ from src/ and Redoc's bundle: node build.mjs [FOLDER]. The same
// sources and packages make the same bytes.
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const out = path.resolve(process.argv[2] ?? path.join(here, 'dist'));
const bundle = createRequire(import.meta.url).resolve('redoc/bundles/redoc.standalone.js');

// What the bundle would do and the page's policy forbids, colours that its theme
// has no name for, and its faults. Each is there once; a Redoc where it is not must
// be looked at anew.
const mended = [
  ['the picture of an attribution, from elsewhere',
    /[\w$]+\.createElement\("img",\{alt:"redocly logo",onError:\(\)=>[\w$]+\(!1\),src:"https:\/\/cdn\.redoc\.ly\/redoc\/logo-mini\.svg"\}\)/g, 'null'],
  ['the style of scrollbars that are not used',
    /[\w$]+\.push\(\[[\w$]+\.id,"\.ps\{overflow:hidden!important;(?:[^"\\]|\\.)*","",\{.*?\}\]\),/g, ''],
  ['the colour of a pattern', /#0e7c86/g, 'var(--pattern)'],
  ['the colour of a chosen button', /color: white;(?=\\n {6}background-color: \$\{e\.theme\.colors\.primary\.main\};)/g, 'color: var(--ground);'],
  ['the ground of another button', /background-color: white;/g, 'background-color: var(--ground);'],
  ['the answer of a search that has been left', /\.then\(t=>\{this\.setResults\(t,e\)\}\)/g, '.then(t=>{this.state.term===e&&this.setResults(t,e)})'],
  ['the name of an entry of the menu, which leaves out what it shows', /"aria-label":e\.sidebarLabel,/g, ''],
  ['the name of a map that is not there', /\n\/\/# sourceMappingURL=redoc\.standalone\.js\.map\s*$/g, '\n'],
  ['the name of the licences', /redoc\.standalone\.js\.LICENSE\.txt/g, '/docs/licenses.txt'],
];

let script = await readFile(bundle, 'utf8');
for (const [what, from, to] of mended) {
  const times = script.match(from)?.length ?? 0;
  if (times !== 1) throw new Error(`${what}: ${times} times in ${bundle}`);
  script = script.replace(from, () => to);
}

await mkdir(out, { recursive: true });
await writeFile(path.join(out, 'redoc.js'), script);
await copyFile(`${bundle}.LICENSE.txt`, path.join(out, 'licenses.txt'));
for (const file of ['docs.html', 'docs.js', 'docs.css']) await copyFile(path.join(here, 'src', file), path.join(out, file));
