/**
 * Creates the runner of the read models for one command.
 *
 * Invariants: it works beside a running server, and uses an object cache of its own, never the server's.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Logger } from 'pino';
import { createGitObjectDatabase } from '../../adapters/git/object-database.ts';
import { openLayerStores } from '../server/buckets.ts';
import { closer } from '../server/closer.ts';
import type { Foundation } from '../server/foundation.ts';
import { type ComposedProjections, composeProjections } from '../server/projections.ts';
import type { Settings } from '../server/settings.ts';

export type WithProjections = <Result>(
  work: (projections: Pick<ComposedProjections, 'runner' | 'models' | 'readModels'>) => Promise<Result>,
) => Promise<Result>;

/** Calls the work with a runner that is not started, and closes the runner afterwards. */
export function projectionsOf(foundation: Foundation, settings: Settings, log: Logger): WithProjections {
  return async (work) => {
    const parts = closer();
    try {
      const cache = await mkdtemp(path.join(os.tmpdir(), 'strata-admin-'));
      parts.add(() => rm(cache, { recursive: true, force: true }));
      const { layers, close } = await openLayerStores(settings, foundation, log);
      parts.add(close);
      const objects = await createGitObjectDatabase({
        directory: cache,
        layers,
        cacheBytesMax: settings.cacheBytesMax,
        log,
      });
      parts.add(() => objects.close());
      const projections = composeProjections(foundation, objects, log);
      parts.add(projections.close);
      await projections.reserve();
      await projections.list();
      return await work(projections);
    } finally {
      await parts.close();
    }
  };
}
