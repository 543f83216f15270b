/** The package of the command line that `npm start` makes for the documentation. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'vitest';
import { packCommandLine } from '../../../apps/launcher/command-line.mjs';
import { until } from '../../support/read-models.ts';
import { tempDir } from '../../support/temp-dir.ts';

const PACKED = '.cache/command-line/strata-cli-1.0.0.tgz';
/** Packs as apps/cli/build/pack.ts does, in the folder that it is given. */
const PACK = `import { renameSync, writeFileSync } from 'node:fs';
writeFileSync(process.argv[2] + '/.whole', String(Date.now()));
renameSync(process.argv[2] + '/.whole', process.argv[2] + '/strata-cli-1.0.0.tgz');
`;

async function checkout(context: TestContext): Promise<string> {
  const root = await tempDir(context);
  const files = {
    'apps/cli/build/pack.ts': PACK,
    'apps/cli/package-lock.json': '{"packages": {"": {}}}',
    'apps/cli/node_modules/.package-lock.json': '{"packages": {}}',
    'node_modules/.bin/tsc': '',
    'core/source.ts': '',
    'docs/cli.md': '',
  };
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.join(root, path.dirname(name)), { recursive: true });
    await writeFile(path.join(root, name), text);
  }
  return root;
}

const pack = (root: string): void => packCommandLine(root, process.execPath, process.env);
const isDone = (root: string): boolean => !existsSync(path.join(root, '.cache/command-line/.packing'));

test('the command line is packed once, and again when its sources were changed', async (context) => {
  const root = await checkout(context);
  pack(root);
  await until(async () => existsSync(path.join(root, PACKED)) && isDone(root));
  const first = await readFile(path.join(root, PACKED), 'utf8');
  pack(root);
  assert.ok(isDone(root), 'nothing is packed');
  await writeFile(path.join(root, '.cache/command-line/strata-cli-0.9.0.tgz'), 'of an older version');
  await utimes(path.join(root, '.cache/command-line/strata-cli-0.9.0.tgz'), new Date(0), new Date(0));
  const later = new Date(Date.now() + 10_000);
  await utimes(path.join(root, 'core/source.ts'), later, later);
  pack(root);
  await until(async () => (await readFile(path.join(root, PACKED), 'utf8')) !== first && isDone(root));
  await until(() => !existsSync(path.join(root, '.cache/command-line/strata-cli-0.9.0.tgz')));
});

test('the command line is packed by one process at a time', async (context) => {
  const root = await checkout(context);
  await mkdir(path.join(root, '.cache/command-line/.packing'), { recursive: true });
  pack(root);
  assert.deepEqual(readdirSync(path.join(root, '.cache/command-line')), ['.packing']);
});

test('nothing is packed where the bundler or the packages of the command line are missing', async (context) => {
  for (const missing of ['node_modules/.bin/tsc', 'apps/cli/package-lock.json', 'apps/cli/build/pack.ts']) {
    const root = await checkout(context);
    await rm(path.join(root, missing));
    pack(root);
    assert.ok(!existsSync(path.join(root, '.cache')), missing);
  }
});
