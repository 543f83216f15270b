/** Objects that the service makes, read by git. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'vitest';
import { createNewObjects } from '../../../../adapters/git/packs/new-objects.ts';
import { loadObjectHash } from '../../../../adapters/git/packs/object-hash.ts';
import { commitBytes } from '../../../../core/git/commit-bytes.ts';
import { writingTree } from '../../../../core/git/tree-bytes.ts';
import { encodeUtf8 } from '../../../../core/git/utf8.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { finish } from '../../../../core/kernel/turns.ts';
import type { NewObject } from '../../../../core/ports/new-objects.ts';
import { git } from '../../../support/strata.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const UNHASHED = createNewObjects(null);

test('New objects have the ids that git gives them, and git reads their pack whole', async (context) => {
  const made = [UNHASHED, createNewObjects(loadObjectHash(() => undefined))];
  const objects: NewObject[] = [];
  const add = (type: NewObject['type'], bytes: Uint8Array): ObjectId => {
    objects.push({ type, bytes });
    const [id, ...others] = made.map((each) => each.name({ type, bytes }));
    if (id === null || id === undefined) throw new Error('An attack');
    for (const other of others) assert.equal(other, id);
    return id;
  };
  const large = new Uint8Array(300_000).map((_, at) => (at * at) % 251);
  const entries = [add('blob', encodeUtf8('# Ünïcode\n')), add('blob', large), add('blob', new Uint8Array(0))];
  const modes = ['100644', '100755', '120000'];
  const tree = add(
    'tree',
    finish(writingTree(entries.map((id, at) => ({ name: encodeUtf8(`file-${at}`), mode: modes[at] ?? '', id })))),
  );
  const person = { name: 'ada', email: 'ada@example.org', seconds: 1_800_000_000 };
  const author = { ...person, offsetMinutes: -210 };
  const committer = { ...person, offsetMinutes: 345 };
  const commit = add('commit', commitBytes({ tree, parents: [], author, committer, message: 'Begin\n' }));
  const bare = path.join(await tempDir(context), 'bare.git');
  await git(path.dirname(bare), ['init', '--quiet', '--bare', bare]);
  const pack = Buffer.concat(await Array.fromAsync(UNHASHED.pack(objects)));
  await git(bare, ['unpack-objects', '--strict', '-q'], pack);
  await git(bare, ['fsck', '--full', '--strict', '--no-dangling']);
  assert.equal(await git(bare, ['show', `${commit}:file-0`]), '# Ünïcode\n');
  const shown = await git(bare, ['log', '--format=%an <%ae> %ad %cd %s', '--date=raw', commit]);
  assert.equal(shown, 'ada <ada@example.org> 1800000000 -0330 1800000000 +0545 Begin\n');
});

test('What shows an attack on SHA-1 gets no name', () => {
  const attacked = createNewObjects(() => {
    throw new Error('A collision');
  });
  assert.equal(attacked.name({ type: 'blob', bytes: encodeUtf8('text') }), null);
});
