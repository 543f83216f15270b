/** Every program says which version it is, before it reads a setting or connects to anything. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { test } from 'vitest';
import cli from '../../apps/cli/package.json' with { type: 'json' };
import verifier from '../../apps/verifier/package.json' with { type: 'json' };
import service from '../../package.json' with { type: 'json' };
import { ROOT } from '../architecture/source-tree.ts';

test.for([
  ['apps/server/main.ts', service.version],
  ['apps/admin/main.ts', service.version],
  ['apps/cli/main.ts', cli.version],
  ['apps/verifier/main.ts', verifier.version],
] as const)('%s prints its version', async ([entry, version]) => {
  const args = ['--disable-warning=ExperimentalWarning', path.join(ROOT, entry), '--version'];
  const env = { PATH: process.env['PATH'], STRATA_PORT: 'no port', STRATA_DATABASE_URL: 'nowhere' };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env });
  assert.deepEqual([stdout, stderr], [`${version}\n`, '']);
});
