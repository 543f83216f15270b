/** Tests deploy/strata.service with systemd's own check. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'vitest';
import { ROOT } from '../architecture/source-tree.ts';
import { needs } from '../support/optional-suites.ts';

const UNIT = path.join(ROOT, 'deploy/strata.service');

describe('The unit of systemd', () => {
  test('has only settings that systemd knows', needs('systemd-analyze'), () => {
    const { stderr } = spawnSync('systemd-analyze', ['verify', UNIT], { encoding: 'utf8' });
    // Systemd before 254 does not know it; the program is elsewhere on this machine.
    const expected = /Unknown key.*'DelegateSubgroup'|\/usr\/bin\/node is not executable/;
    const faults = stderr.split('\n').filter((line) => line.includes('strata.service') && !expected.test(line));
    assert.deepEqual(faults, []);
  });

  test('runs the launcher with the entry of the server, and gives it time to end its requests', () => {
    const unit = readFileSync(UNIT, 'utf8');
    const [, launcher, entry] = /^ExecStart=\S+ \/opt\/strata\/(\S+) (\S+)$/m.exec(unit) ?? [];
    for (const file of [launcher, entry]) assert.ok(file !== undefined && existsSync(path.join(ROOT, file)), file);
    assert.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]) > 60);
    assert.match(unit, /^KillMode=mixed$/m);
  });
});
