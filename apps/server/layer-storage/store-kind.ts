/**
 * A kind of store that can hold the platform's layers: a row of the table in `stores.ts`.
 *
 * Invariants: a place that answers and cannot be used stops the start, or the command, with the setting that is wrong;
 * one that cannot be reached is a `PartUnreachable`. No message holds a secret.
 */
import type { Logger } from 'pino';
import type { LayerStore } from '../../../core/ports/layer-store.ts';
import type { Tracing } from '../../../core/ports/tracing.ts';
import type { SettingsReader } from '../settings-reader.ts';

export type LayerStorageLog = Pick<Logger, 'warn'>;

/** `lacking`: some pushes are refused. `unknown`: it did not answer. */
export type StoreState = 'whole' | 'lacking' | 'unknown';

export interface OpenLayers {
  readonly store: LayerStore;
  /** Tries what pushes need of the store, and tells the log what it lacks. The first call throws as `open` does. */
  check(log: Pick<Logger, 'warn' | 'error'>): Promise<StoreState>;
}

export interface LayerStoreKind<Kind extends string, Settings> {
  /** The value of STRATA_STORAGE that chooses it. */
  readonly kind: Kind;
  /**
   * Reads and checks its settings. They are read for every kind, so that a wrong one is reported before somebody
   * chooses the kind. What it returns is used only if it is chosen.
   */
  read(reader: SettingsReader, at: { readonly isChosen: boolean; readonly dataDir: string }): Settings;
  /** What the greeting says of the place; null if it is in the data directory. */
  placeOutside(settings: Settings, dataDir: string): string | null;
  /**
   * Makes the store, and checks that it can be used: throws a `SettingsError` or a `PartUnreachable`. A store that is
   * asked over HTTP tells it the trace of each request.
   */
  open(settings: Settings, log: LayerStorageLog, tracing: Pick<Tracing, 'traceparent'> | null): Promise<OpenLayers>;
}
