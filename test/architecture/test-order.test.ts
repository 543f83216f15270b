/** The order in which test files run. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import type { TestSpecification, Vitest } from 'vitest/node';
import { LONGEST_FIRST, ServersFirst } from '../vitest/servers-first.ts';
import { ROOT } from './source-tree.ts';

const SERVER = 'test/scenarios/first-contact.test.ts';
const PURE = 'test/core/git/ref-name.test.ts';

test('files that take minutes run first, then those that start servers, then the rest', async () => {
  const given = [PURE, SERVER, ...LONGEST_FIRST.toReversed()];
  for (const file of given) assert.ok(existsSync(path.join(ROOT, file)), `${file} does not exist`);
  // The order asks for the path of a file alone, and of the run for its workers.
  const files = given.map((file) => ({ moduleId: path.join(ROOT, file) })) as TestSpecification[];
  const sorted = await new ServersFirst({ config: { maxWorkers: 2 } } as Vitest).sort(files);
  const paths = sorted.map(({ moduleId }) => path.relative(ROOT, moduleId));
  assert.deepEqual(paths, [...LONGEST_FIRST, SERVER, PURE]);
});
