/** Commits over REST that change nothing, on objects in memory: what they may read. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'vitest';
import { MIB } from '../../../core/kernel/byte-units.ts';
import { OBJECT_ID_BYTES, type ObjectId } from '../../../core/kernel/ids.ts';
import {
  CHANGED_ENTRIES_READ_MAX,
  CHANGED_TREES_READ_BYTES_MAX,
} from '../../../core/use-cases/pushing/decide-commit.ts';
import { createApiFixture } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';

/** Writes what is there already to the file `x` of each folder at the root. */
async function start(context: TestContext) {
  const fixture = await createApiFixture();
  cleanUp(context, () => fixture.close());
  const account = await fixture.account('ada', 'FREE');
  const token = await fixture.token(account, { grants: ['GIT_HTTP_WRITE'] });
  const repository = await fixture.repository(account, 'project');
  const { objects } = fixture;
  let branches = 0;
  const write = async (folders: readonly ObjectId[]) => {
    const root = folders.map((id, at) => ['abcd'.charAt(at), ['040000', id]] as const);
    const tip = objects.commit({ tree: objects.tree(Object.fromEntries(root)), seconds: 1 });
    const branch = `branch-${++branches}`;
    await fixture.push(repository, { [`refs/heads/${branch}`]: tip });
    const changes = root.map(([name]) => ({ action: 'put', path: `${name}/x`, content: 'text' }));
    const body = { branch, expected: tip, message: 'The same', changes };
    const answer = await fixture.request('POST', '/v1/repos/ada/project/commits', token, { body });
    return answer.statusCode === 200 ? 'written' : answer.json().detail[0].type;
  };
  const blob = objects.blob('text');
  /** A tree of these files and `x`. */
  const treeOf = (names: readonly string[]) => {
    return objects.rawTree([...names, 'x'].map((name) => ({ name: Buffer.from(name), mode: '100644', id: blob })));
  };
  return { treeOf, write };
}

const entryBytes = (mode: string, name: string) => mode.length + name.length + 2 + OBJECT_ID_BYTES;

test(`A commit reads ${CHANGED_TREES_READ_BYTES_MAX / MIB} MiB of trees, and no more`, async (context) => {
  const { treeOf, write } = await start(context);
  const treeOfBytes = (bytes: number) => {
    const names: string[] = [];
    let left = bytes - entryBytes('100644', 'x');
    for (; left > 0; left -= entryBytes('100644', names.at(-1) ?? '')) {
      const length = left < 2_000 ? left : 1_000;
      names.push(String(names.length).padStart(length - entryBytes('100644', ''), '0'));
    }
    return treeOf(names.sort());
  };
  const eight = treeOfBytes(8 * MIB);
  const rest = CHANGED_TREES_READ_BYTES_MAX - 24 * MIB - 4 * entryBytes('40000', 'a');
  assert.equal(await write([eight, eight, eight, treeOfBytes(rest)]), 'written');
  assert.equal(await write([eight, eight, eight, treeOfBytes(rest + 1)]), 'trees-too-large');
});

test(`A commit reads ${CHANGED_ENTRIES_READ_MAX} entries of trees, and no more`, async (context) => {
  const { treeOf, write } = await start(context);
  const treeOfEntries = (count: number) =>
    treeOf(Array.from({ length: count - 1 }, (_, n) => String(n).padStart(6, '0')));
  const half = treeOfEntries(CHANGED_ENTRIES_READ_MAX / 2);
  const rest = CHANGED_ENTRIES_READ_MAX / 2 - 2;
  assert.equal(await write([half, treeOfEntries(rest)]), 'written');
  assert.equal(await write([half, treeOfEntries(rest + 1)]), 'trees-too-large');
});
