/**
 * The step that writes a manifest.
 *
 * Invariants: a store that fails is tried rarely, and its repositories hold no step that others wait for: after a
 * failure, they are all put off without a call.
 */
import { createFairSlots } from '../../core/kernel/fair-slots.ts';
import { plusMs, type RepositoryId, type Timestamp, uuid } from '../../core/kernel/ids.ts';
import { MANIFEST_DELAY_MS } from '../../core/kernel/limits.ts';
import { LayerStoreError } from '../../core/ports/layer-store.ts';
import type { ManifestStep, ManifestWrite, ManifestWrites } from '../../core/ports/manifest-writes.ts';
import type { StepActions } from '../../core/ports/workflows.ts';
import { type ManifestContext, manifestPlace, writeManifest } from '../../core/use-cases/manifests/write-manifest.ts';

/**
 * Manifests that one process writes at the same time. One account has one of them, since its bucket may be slow.
 * Internal: further manifests wait.
 */
export const MANIFESTS_AT_ONCE_MAX = 4;
/**
 * After a failure of the store, a manifest is tried again after this time, which doubles with each failure in a row.
 * Internal: it is the pace of background work.
 */
export const MANIFEST_RETRY_FIRST_MS = 60_000;
export const MANIFEST_RETRY_LAST_MS = 60 * 60_000;

export interface ManifestStepsContext extends ManifestContext {
  readonly manifests: Pick<ManifestWrites, 'find' | 'done' | 'failed'>;
}

/**
 * Stores remembered as failing; the one that failed first is forgotten first, which costs one more call. Internal: a
 * forgotten store is called again.
 */
const FAILING_MAX = 10_000;

export function createManifestSteps(context: ManifestStepsContext): StepActions<ManifestStep> {
  const { manifests, clock } = context;
  const slots = createFairSlots({ slots: MANIFESTS_AT_ONCE_MAX, slotsPerKey: 1 });
  const failing = createFailing();

  async function write(of: ManifestWrite, revision: number, bucket: string): Promise<void> {
    const putOffUntil = failing.until(bucket);
    if (putOffUntil !== null && clock.now() < putOffUntil) {
      await manifests.failed(of.repository, putOffUntil);
      return;
    }
    try {
      const written = await writeManifest(context, of);
      failing.forget(bucket);
      const nextAt = written.outcome === 'written' ? written.nextAt : null;
      await manifests.done(of.repository, revision, { nextAt, againAt: plusMs(clock.now(), MANIFEST_DELAY_MS) });
    } catch (error) {
      if (!(error instanceof LayerStoreError)) throw error;
      const { account, repository } = of;
      context.log.warn({ err: error, account, repository }, 'A manifest could not be written');
      failing.note(bucket, plusMs(clock.now(), MANIFEST_RETRY_FIRST_MS));
      await manifests.failed(repository, plusMs(clock.now(), retryMs(of.failures)));
    }
  }

  return {
    write: async ({ id, revision }, signal) => {
      const wanted = await manifests.find(uuid<RepositoryId>(id));
      if (wanted === null) return;
      const bucket = (await manifestPlace(context, wanted))?.storageBucketId ?? 'platform';
      const done = await slots.acquire(`${wanted.account}/${bucket}`, signal);
      try {
        await write(wanted, revision, bucket);
      } finally {
        done();
      }
    },
  };
}

/** Until when each failing store is left alone. */
function createFailing() {
  const known = new Map<string, Timestamp>();
  return {
    until: (bucket: string): Timestamp | null => known.get(bucket) ?? null,
    note(bucket: string, until: Timestamp): void {
      const [first] = known.keys();
      if (known.size >= FAILING_MAX && first !== undefined) known.delete(first);
      known.set(bucket, until);
    },
    forget: (bucket: string): void => void known.delete(bucket),
  };
}

function retryMs(failures: number): number {
  return Math.min(MANIFEST_RETRY_FIRST_MS * 2 ** Math.min(failures, 16), MANIFEST_RETRY_LAST_MS);
}
