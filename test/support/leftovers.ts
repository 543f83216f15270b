/**
 * Lists what pushes and fetches in progress keep on a server's disk. When none is in progress, the list must be empty.
 */
import path from 'node:path';
import { filesBelow } from './files-below.ts';
import type { Strata } from './strata.ts';

/**
 * An empty file of an instant, by which a server asks for the time of the layers' file system. Unlike a half-written
 * layer it is of no key. One of a server that was killed leaves with the next `storage expire`.
 */
const TIME_PROBE = /^[^~/]+~[^~/]+$/;

/** Returns the temporary files below the data directory and the layers: quarantines and half-written layers. */
export async function leftovers(strata: Pick<Strata, 'dataDir' | 'env'>): Promise<readonly string[]> {
  const cache = path.join(strata.dataDir, 'cache');
  const layers = strata.env['STRATA_LAYERS_DIR'] ?? path.join(strata.dataDir, 'layers');
  const passing = [path.join(cache, 'incoming'), path.join(cache, 'trash')];
  const found = await Promise.all(passing.map(filesBelow));
  const halfWritten = (await filesBelow(path.join(layers, '.incoming'))).filter((file) => !TIME_PROBE.test(file));
  const temporary = (await filesBelow(cache)).filter((file) => /(^|\/)tmp_|\.tmp$/.test(file));
  return [...found.flat(), ...halfWritten, ...temporary];
}
