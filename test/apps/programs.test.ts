/** What every program does in a shell: it says its version, and what became of its standard output. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, test } from 'vitest';
import cli from '../../apps/cli/package.json' with { type: 'json' };
import verifier from '../../apps/verifier/package.json' with { type: 'json' };
import service from '../../package.json' with { type: 'json' };
import { ROOT } from '../architecture/source-tree.ts';
import { skippedFor } from '../support/skipped.ts';

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

describe('standard output', () => {
  const PROGRAMS = ['apps/admin/main.ts', 'apps/admin/backup/main.ts', 'apps/cli/main.ts', 'apps/verifier/main.ts'];
  /** Runs a program with its help going elsewhere; returns its exit status and what it said of that. */
  const helped = (entry: string, elsewhere: string): string => {
    const program = `'${process.execPath}' --disable-warning=ExperimentalWarning '${path.join(ROOT, entry)}' --help`;
    const { stdout, stderr } = spawnSync('bash', ['-c', `${program} ${elsewhere}`], { encoding: 'utf8' });
    return `${stderr}${stdout}`;
  };

  test(
    'that cannot be written is said in one line',
    skippedFor(existsSync('/dev/full') ? false : 'there is no /dev/full'),
    () => {
      for (const entry of PROGRAMS) {
        const said = helped(entry, '>/dev/full; echo $?');
        assert.match(
          said,
          // 1 of the verifier means that a file is refuted.
          /^((error|strata|strata-admin): standard output cannot be written: .*\n1|strata-verify: .*\n2)\n$/,
          entry,
        );
      }
    },
  );

  test('whose reader has gone ends the program quietly', () => {
    for (const entry of PROGRAMS) assert.equal(helped(entry, '| true; echo ${PIPESTATUS[0]}'), '0\n', entry);
  });
});
