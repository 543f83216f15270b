/** What pushes and fetches under way keep on a server's disk: nothing of it may stay when none is. */
import path from 'node:path';
import { filesBelow } from './files-below.ts';
import type { Strata } from './strata.ts';

/** Files, below the data directory and the layers, that are in no place for good: quarantines, half-written layers. */
export async function leftovers(strata: Pick<Strata, 'dataDir' | 'env'>): Promise<readonly string[]> {
  const cache = path.join(strata.dataDir, 'cache');
  const layers = strata.env['STRATA_LAYERS_DIR'] ?? path.join(strata.dataDir, 'layers');
  const passing = [path.join(cache, 'incoming'), path.join(cache, 'trash'), path.join(layers, '.incoming')];
  const found = await Promise.all(passing.map(filesBelow));
  const temporary = (await filesBelow(cache)).filter((file) => /(^|\/)tmp_|\.tmp$/.test(file));
  return [...found.flat(), ...temporary];
}
