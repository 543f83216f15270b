/**
 * Lists what pushes and fetches in progress keep on a server's disk. When none is in progress, the list must be empty.
 */
import path from 'node:path';
import { filesBelow } from './files-below.ts';
import type { Strata } from './strata.ts';

/** Returns the temporary files below the data directory and the layers: quarantines and half-written layers. */
export async function leftovers(strata: Pick<Strata, 'dataDir' | 'env'>): Promise<readonly string[]> {
  const cache = path.join(strata.dataDir, 'cache');
  const layers = strata.env['STRATA_LAYERS_DIR'] ?? path.join(strata.dataDir, 'layers');
  const passing = [path.join(cache, 'incoming'), path.join(cache, 'trash'), path.join(layers, '.incoming')];
  const found = await Promise.all(passing.map(filesBelow));
  const temporary = (await filesBelow(cache)).filter((file) => /(^|\/)tmp_|\.tmp$/.test(file));
  return [...found.flat(), ...temporary];
}
