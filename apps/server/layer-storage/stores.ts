/**
 * The kinds of store that can hold the platform's layers, one row each. `STRATA_STORAGE` chooses one.
 *
 * A new kind is a file beside this one and its row in `KINDS`: the type of the settings, the values of
 * `STRATA_STORAGE`, the greeting and the start follow from the row.
 *
 * Invariants: the library of a store is loaded only where the store is chosen.
 */
import type { Logger } from 'pino';
import type { LayerStore } from '../../../core/ports/layer-store.ts';
import type { Tracing } from '../../../core/ports/tracing.ts';
import type { SettingsReader } from '../settings-reader.ts';
import { FILESYSTEM } from './filesystem.ts';
import { S3 } from './s3.ts';
import type { LayerStorageLog, LayerStoreKind, StoreState } from './store-kind.ts';

const KINDS = { filesystem: FILESYSTEM, s3: S3 };

type Kind = keyof typeof KINDS;
type SettingsOf = { readonly [K in Kind]: ReturnType<(typeof KINDS)[K]['read']> };

/** `KINDS` in the form in which the compiler relates the kind of some settings to its row. */
const ROWS: { readonly [K in Kind]: LayerStoreKind<K, SettingsOf[K]> } = KINDS;

/** The settings of the store that is chosen: `kind` says which. */
export type LayerStoreSettings<K extends Kind = Kind> = { [P in K]: { readonly kind: P } & SettingsOf[P] }[K];

export function readLayerStoreSettings(reader: SettingsReader, dataDir: string): LayerStoreSettings {
  const kinds = Object.values(KINDS).map(({ kind }) => kind);
  const chosen = reader.oneOf('STRATA_STORAGE', kinds, 'filesystem');
  for (const kind of kinds) if (kind !== chosen) read(kind, reader, { isChosen: false, dataDir });
  return read(chosen, reader, { isChosen: true, dataDir });
}

function read<K extends Kind>(
  kind: K,
  reader: SettingsReader,
  at: { readonly isChosen: boolean; readonly dataDir: string },
): LayerStoreSettings<K> {
  return { kind, ...ROWS[kind].read(reader, at) };
}

/** Returns null if the layers are in the data directory. */
export function placeOfLayersOutside<K extends Kind>(settings: LayerStoreSettings<K>, dataDir: string): string | null {
  return ROWS[settings.kind].placeOutside(settings, dataDir);
}

/** Opens the store for one command. */
export async function openLayerStorage<K extends Kind>(
  settings: LayerStoreSettings<K>,
  log: LayerStorageLog,
): Promise<LayerStore> {
  return (await ROWS[settings.kind].open(settings, log, null)).store;
}

export interface CheckedLayers {
  readonly store: LayerStore;
  /** What the check at the start found. */
  readonly state: StoreState;
  /** Checks it again. */
  check(): Promise<StoreState>;
}

/** Opens the store for a server, and tries what pushes need. */
export async function openCheckedLayers<K extends Kind>(
  settings: LayerStoreSettings<K>,
  log: Pick<Logger, 'warn' | 'error'>,
  tracing: Pick<Tracing, 'traceparent'> | null,
): Promise<CheckedLayers> {
  const { store, check } = await ROWS[settings.kind].open(settings, log, tracing);
  return { store, state: await check(log), check: () => check(log) };
}
