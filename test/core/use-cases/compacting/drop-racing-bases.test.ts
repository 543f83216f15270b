/**
 * Pushes that come while a compaction drops objects, with a pack that holds some of these objects again: no ref reaches
 * them, and the new layer stays.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'vitest';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import type { FailpointName } from '../../../../core/ports/failpoints.ts';
import { unauthorisedWants } from '../../../../core/use-cases/reading/authorise-wants.ts';
import { committedObjects } from '../../../../core/use-cases/reading/committed-objects.ts';
import { deletedBranch, found, pushPack, stateOf } from '../../../support/deleted-branch.ts';
import type { GitReading } from '../../../support/git-reading.ts';
import { deltaOf, packEntry, packOfEntries } from '../../../support/git-wire.ts';

type DeletedBranch = Awaited<ReturnType<typeof deletedBranch>>;

/** A commit on main, and packs of its objects, which may be deltas on an object that they leave out. */
async function newCommit({ reading: { git }, main }: DeletedBranch) {
  const content = randomBytes(600);
  const id = git.commit({ new: content }, { parents: [main] });
  const objects = [id, git.line(['rev-parse', `${id}^{tree}`]), git.line(['rev-parse', `${id}:new`])] as ObjectId[];
  const thinOn = (base: ObjectId): Buffer => {
    const bytes = git.git(['cat-file', 'blob', base]);
    const entries = (['commit', 'tree'] as const).map((type, at) =>
      packEntry(type, git.git(['cat-file', type, objects[at] ?? assert.fail()])),
    );
    const delta = packEntry('ref-delta', deltaOf(bytes, content), { base: Buffer.from(base, 'hex') });
    return packOfEntries([...entries, delta]);
  };
  return { id, thinOn, with: (more: ObjectId) => git.packOf([...objects, more]) };
}

/** Whether a client that knows the id is served the object. */
async function isServed(reading: GitReading, id: ObjectId): Promise<boolean> {
  const repository = await reading.current();
  const { state, revision } = repository.entity;
  const reader = await reading.database.database.open(committedObjects(repository, repository.entity));
  try {
    const now = reading.node.clock.now();
    return (await unauthorisedWants(state, [id], `${revision}`, now, async () => reader)).length === 0;
  } finally {
    reader.close();
  }
}

describe('A push that comes while a branch is being dropped', () => {
  for (const [name, file, packed, clean] of [
    ['has a thin pack whose base is', 'gone:large', 'thinOn', false],
    ['sends again what is', 'gone:large', 'with', false],
    ['has a thin pack whose base is kept, not', 'main:readme', 'thinOn', true],
    ['sends again what is kept, not', 'main:readme', 'with', true],
  ] as const) {
    const served = clean ? 'is served it, and the repository is clean' : 'is not served it by its id';
    test(`and ${name} dropped, ${served}`, async (context) => {
      const branch = await deletedBranch(context);
      const { reading, main, gone, drop } = branch;
      const commits = { main, gone };
      const [commit, path] = file.split(':') as [keyof typeof commits, string];
      const object = reading.git.line(['rev-parse', `${commits[commit]}:${path}`]) as ObjectId;
      const made = await newCommit(branch);
      const racing = async (point: FailpointName): Promise<void> => {
        if (point !== 'dropping-layers-stored') return;
        const commands = [{ ref: 'refs/heads/main', before: main, after: made.id }];
        const outcome = await pushPack(reading, commands, made[packed](object));
        assert.deepEqual('results' in outcome ? outcome.results.map(({ code }) => code) : outcome, [null]);
      };
      assert.equal(await drop({ onFailpoint: racing }), 'dropped');
      assert.deepEqual(await found(reading, [made.id, object, gone]), [true, true, false]);
      assert.equal(await isServed(reading, object), clean);
      assert.equal(await isServed(reading, made.id), true);
      const state = await stateOf(reading);
      assert.deepEqual([state.clean, state.onceReached], [clean, clean]);
    });
  }
});
