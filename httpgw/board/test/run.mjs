// Bundles the tests with the sources, and runs them.
import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const names = (await readdir(here)).filter((name) => name.endsWith('.test.mjs'));
const out = await mkdtemp(path.join(tmpdir(), 'board-'));
try {
  await build({
    absWorkingDir: here, entryPoints: names, outdir: out, outExtension: { '.js': '.mjs' }, bundle: true, format: 'esm', platform: 'node', target: 'node20', logLevel: 'warning',
  });
  const run = spawnSync(process.execPath, ['--test', ...names.map((name) => path.join(out, name))], { stdio: 'inherit' });
  process.exitCode = run.status ?? 1;
} finally {
  await rm(out, { recursive: true, force: true });
}
