/**
 * `strata-admin projections rebuild [--verify]`: every read model anew from the log.
 *
 * Must stay true: it works beside a running server, whose own cache of objects it leaves alone.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Logger } from 'pino';
import { createFilesystemLayerStore } from '../../adapters/filesystem/layer-store.ts';
import { createGitObjectDatabase } from '../../adapters/git/object-database.ts';
import type { RowDifference } from '../../projections/runner/verify.ts';
import { closer, type Foundation } from '../server/foundation.ts';
import { composeProjections } from '../server/projections.ts';
import type { Settings } from '../server/settings.ts';

export interface ProjectionReport {
  readonly model: string;
  /** Rows that the log gives; null when nothing was compared. */
  readonly rows: number | null;
  readonly differences: number;
  /** The first of them. */
  readonly examples: readonly RowDifference[];
}

export async function rebuildProjections(
  foundation: Foundation,
  settings: Settings,
  log: Logger,
  options: { readonly verify: boolean },
): Promise<readonly ProjectionReport[]> {
  const parts = closer();
  try {
    const cache = await mkdtemp(path.join(os.tmpdir(), 'strata-admin-'));
    parts.add(() => rm(cache, { recursive: true, force: true }));
    const objects = await createGitObjectDatabase({
      directory: cache,
      layers: await createFilesystemLayerStore({ directory: settings.layersDir }),
      cacheBytesMax: settings.cacheBytesMax,
      log,
    });
    parts.add(() => objects.close());
    const { runner, models, close } = composeProjections(foundation, objects, log);
    parts.add(close);
    if (options.verify) {
      const verified = await runner.verify(null);
      return verified.map(({ projection, rows, differences, examples }) => ({
        model: projection,
        rows,
        differences,
        examples,
      }));
    }
    await runner.rebuild(null);
    return models.map((model) => ({ model, rows: null, differences: 0, examples: [] }));
  } finally {
    await parts.close();
  }
}
