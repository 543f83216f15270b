/**
 * The attack: one push creates 80,000 refs and the next deletes them, which took the server's main thread 7 s. 3,000
 * tags, each of the one before and each pushed as a ref, took 21 s.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';
import { suiteEnding } from '../../support/cleanup.ts';
import { NO_PROC } from '../../support/git-below.ts';
import { commit, type WireTarget, wirePush } from '../../support/git-wire.ts';
import { packOfTags } from '../../support/hostile-packs.ts';
import { skippedFor } from '../../support/skipped.ts';
import { createRepository } from '../../support/strata.ts';

const MIB = 1024 * 1024;
const REFS = 80_000;
const TAGS = 3_000;
const TAG_CHAIN_LENGTH_MAX = 50;

describe('Pushes of very many refs', skippedFor(NO_PROC), () => {
  const ending = suiteEnding();
  let stage: Stage;

  beforeAll(async () => {
    stage = await setStage(ending);
  });

  async function target(name: string): Promise<WireTarget> {
    await createRepository(stage.strata, stage.attacker, name);
    return { strata: stage.strata, account: stage.attacker, name };
  }

  test('leave the event loop to others, when they are created and when they are deleted', async (context) => {
    const repository = await target('many');
    const tip = commit('tip');
    const names = Array.from({ length: REFS }, (_, index) => `refs/heads/branch-${index}`);
    await underAttack(
      context,
      stage,
      `${REFS} refs created and deleted`,
      async () => {
        const created = await wirePush(
          repository,
          names.map((ref) => ({ ref, after: tip.id })),
          [tip],
        );
        assert.deepEqual(new Set(created.refs.values()), new Set(['ok']), created.remote);
        assert.equal(created.refs.size, REFS);
        const deleted = await wirePush(
          repository,
          names.map((ref) => ({ ref, before: tip.id })),
          null,
        );
        assert.deepEqual(new Set(deleted.refs.values()), new Set(['ok']), deleted.remote);
      },
      { diskBytesMax: 128 * MIB, processesMax: 64, eventsMax: 1_000 },
    );
  });

  test('have tags of tags peeled once for all, and those too deep refused by name', async (context) => {
    const repository = await target('tags');
    const { bytes, ids } = packOfTags(TAGS);
    const commands = ids.toReversed().map((after, index) => ({ ref: `refs/tags/tag-${index}`, after }));
    await underAttack(
      context,
      stage,
      `a chain of ${TAGS} tags, each pushed as a ref`,
      async () => {
        const pushed = await wirePush(repository, commands, bytes);
        const words = commands.map(({ ref }) => pushed.refs.get(ref) ?? 'no word');
        assert.deepEqual(words.slice(0, TAG_CHAIN_LENGTH_MAX), Array(TAG_CHAIN_LENGTH_MAX).fill('ok'));
        assert.ok(
          words.slice(TAG_CHAIN_LENGTH_MAX).every((word) => /tags/.test(word)),
          pushed.remote,
        );
      },
      { diskBytesMax: 64 * MIB, processesMax: 64, eventsMax: 100 },
    );
  });
});
