/** How far a refused pack is searched for what refers to a missing object. */
import assert from 'node:assert/strict';
import { describe, test, vi } from 'vitest';
import { EXPLAINING_MS_MAX, explainRefusal } from '../../../../adapters/git/receiving/explain-refusal.ts';
import { EXPLAINED_BYTES_MAX, findReferrer } from '../../../../adapters/git/receiving/find-referrer.ts';
import type { PackRefusal } from '../../../../core/git/pack-refusal.ts';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';

const MISSING = objectId('1'.repeat(40));
const LARGE = objectId('2'.repeat(40));
const REFERRER = objectId('3'.repeat(40));
const NEVER = new AbortController().signal;
const commit = Buffer.from(`tree ${'4'.repeat(40)}\nparent ${MISSING}\nauthor x\n\nx\n`);

function sourceOf(largeBytes: number) {
  const objects = new Map([
    [LARGE, { type: 'commit', bytes: Buffer.alloc(largeBytes) }],
    [REFERRER, { type: 'commit', bytes: commit }],
  ] as const);
  return {
    has: async (id: ObjectId) => objects.has(id),
    info: async () => null,
    type: () => null,
    read: async (id: ObjectId) => objects.get(id) ?? null,
  };
}

const among = (largeBytes: number, signal = NEVER) =>
  findReferrer(sourceOf(largeBytes), { commits: [LARGE, REFERRER], trees: [], tags: [] }, MISSING, signal);

describe('The search for what refers to a missing object', () => {
  test(`goes on until ${EXPLAINED_BYTES_MAX} bytes were read, and not beyond`, async () => {
    assert.deepEqual(await among(EXPLAINED_BYTES_MAX - 1), { as: 'parent of commit', kind: 'commit', id: REFERRER });
    assert.equal(await among(EXPLAINED_BYTES_MAX), null);
  });

  test('ends with its time', async () => {
    const reason = new Error('over');
    await assert.rejects(among(1, AbortSignal.abort(reason)), reason);
  });

  test(`has ${EXPLAINING_MS_MAX} ms, after which the refusal stays as git gave it`, async (context) => {
    context.onTestFinished(() => void vi.restoreAllMocks());
    const spans: number[] = [];
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      spans.push(ms);
      return AbortSignal.abort(new Error('The time is over'));
    });
    const refusal: PackRefusal = { refused: 'pack-fsck-failed', detail: `object ${MISSING}: hasDotgit` };
    const signalsOfGit: (AbortSignal | undefined)[] = [];
    const explaining = {
      git: {
        stream: async function* ({ signal }: { readonly signal?: AbortSignal }) {
          signalsOfGit.push(signal);
          signal?.throwIfAborted();
          yield Buffer.alloc(0);
        },
      },
      folder: async () => '/nonexistent',
      signal: NEVER,
    };
    const sent = { bytes: () => once(), again: async () => null };
    assert.equal(await explainRefusal(explaining as never, sent, refusal), refusal);
    assert.deepEqual(spans, [EXPLAINING_MS_MAX]);
    assert.deepEqual(
      signalsOfGit.map((signal) => signal?.aborted),
      [true],
    );
  });
});

async function* once(): AsyncGenerator<Uint8Array> {
  yield Buffer.alloc(0);
}
