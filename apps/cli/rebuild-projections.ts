/** `strata-admin projections rebuild [--verify]`. */
import path from 'node:path';
import type { Logger } from 'pino';
import { createFilesystemLayerStore } from '../../adapters/filesystem/layer-store.ts';
import { createGitObjectDatabase } from '../../adapters/git/object-database.ts';
import { closer, type Foundation } from '../server/foundation.ts';
import { composeProjections } from '../server/projections.ts';
import type { Settings } from '../server/settings.ts';

export interface ProjectionReport {
  readonly model: string;
}
export async function rebuildProjections(
  foundation: Foundation,
  settings: Settings,
  log: Logger,
  options: { readonly verify: boolean },
): Promise<readonly ProjectionReport[]> {
  void [path, createFilesystemLayerStore, createGitObjectDatabase, closer, composeProjections, foundation, settings, log, options];
  return [];
}
