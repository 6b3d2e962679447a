// The runtime: LiteSVM's native package alone, without its wrapper and that
// one's dependencies.

import { createRequire } from 'node:module';

export default createRequire(import.meta.url)('litesvm-linux-x64-gnu');
