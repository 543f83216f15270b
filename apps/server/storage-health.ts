/**
 * Whether pushes can be stored: the platform's store of layers answers, and the disks have room. `/readyz` shows it as
 * `layers` and `disk`, the metrics show the figures.
 *
 * Invariants: neither makes a node unready, since reads go on. No request waits for these looks: they run in the
 * background, and their last result is shown.
 */
import { statfs } from 'node:fs/promises';
import { settledWithin } from '../../adapters/node/pause.ts';
import { GIB } from '../../core/kernel/byte-units.ts';
import type { StartPeriodic } from './background.ts';
import type { Composing } from './composing.ts';
import type { PartHealth } from './readiness.ts';
import type { WatchedLayers } from './watched-layers.ts';

/**
 * A disk with less free room than this is shown as degraded: a few large pushes, or the files of the database, fill it.
 * Internal: nothing is refused because of it.
 */
export const DISK_FREE_BYTES_MIN = GIB;
const DISK_SPAN_MS = 1_000;

type Health = Pick<PartHealth, 'isDegraded'>;

/** The free room of the disk of a folder, as it was last looked at. */
export interface DiskSpace {
  readonly health: Health;
  /** NaN if it cannot be read. */
  freeBytes(): number;
  look(): Promise<void>;
}

/** `freeOf` returns the free bytes of the disk that holds the folder. */
export function createDiskSpace(folder: string, freeOf: (folder: string) => Promise<number> = freeBytesOf): DiskSpace {
  let free: number | null = null;
  let looking: Promise<void> | null = null;
  const read = async (): Promise<void> => {
    free = await freeOf(folder).catch(() => Number.NaN);
    looking = null;
  };
  return {
    // What cannot be read is no room.
    health: { isDegraded: () => free !== null && !(free >= DISK_FREE_BYTES_MIN) },
    freeBytes: () => free ?? Number.NaN,
    look: () => (looking ??= read()),
  };
}

/** What is free for a user without the rights of root. */
async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

export interface StorageHealth {
  readonly layers: Health;
  readonly disk: Health;
}

/** Begins to look at both. The disk of layers counts as part of their store, if they are in a folder. */
export function watchStorage(
  { settings, metrics, log }: Pick<Composing, 'settings' | 'metrics' | 'log'>,
  layers: WatchedLayers,
  start: StartPeriodic<'every node'>,
): StorageHealth {
  const { dataDir, layerStore } = settings;
  const data = createDiskSpace(dataDir);
  const ofLayers = layerStore.kind === 'filesystem' ? createDiskSpace(layerStore.directory) : null;
  const disks = { data, ...(ofLayers === null ? {} : { layers: ofLayers }) };
  const health = { isDegraded: () => layers.health.isDegraded() || ofLayers?.health.isDegraded() === true };
  let isAway = false;
  start('storage-look', async (signal) => {
    // A disk that does not answer holds up the probe no longer than this.
    await settledWithin(DISK_SPAN_MS, Promise.all(Object.values(disks).map(({ look }) => look())));
    try {
      await layers.probe(signal);
      if (isAway && !signal.aborted) log.info({}, 'The store of layers answers again');
      isAway = false;
    } catch (err) {
      if (!isAway) log.warn({ err }, 'The store of layers does not answer');
      isAway = true;
    }
  });
  start('layers-check', async (signal) => {
    if (await layers.checkAgain(signal)) log.info({}, 'The store of layers has all that pushes need again');
  });
  const reads = Object.entries(disks).map(([folder, { freeBytes }]) => [folder, freeBytes] as const);
  metrics.gauges(
    'strata_disk_free_bytes',
    'Free bytes of the disk that holds a folder',
    'folder',
    Object.fromEntries(reads),
  );
  metrics.gauge(
    'strata_disk_free_bytes_min',
    'A disk with less free bytes than this is degraded',
    () => DISK_FREE_BYTES_MIN,
  );
  return { layers: health, disk: data.health };
}
