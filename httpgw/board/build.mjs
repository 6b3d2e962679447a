// Builds dist/ from src/: node build.mjs [FOLDER]. The build is reproducible.
import { copyFile, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const out = path.resolve(process.argv[2] ?? path.join(here, 'dist'));

await mkdir(out, { recursive: true });
await build({
  absWorkingDir: here, entryPoints: ['src/board.ts', 'src/wallet.ts', 'src/desk.ts', 'src/board.css'], outdir: out, bundle: true, minify: true,
  format: 'esm', target: 'es2022', charset: 'utf8', legalComments: 'inline', logLevel: 'warning',
});
for (const file of ['board.html', 'wallet.html', 'desk.html', 'icon.svg']) await copyFile(path.join(here, 'src', file), path.join(out, file));
