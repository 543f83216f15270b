/**
 * `strata-admin log verify`: reads the whole log once, and checks positions, revisions and every event's form.
 *
 * Must stay true: it changes nothing. Memory grows with the number of streams and vault records, not of events.
 */
import type { Logger } from 'pino';
import { EVENT_CATALOGUE } from '../../core/catalogue.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, LOG_START, type RecordedEvent, type StreamName } from '../../core/kernel/envelope.ts';
import type { Digest } from '../../core/ports/digest.ts';
import type { Vault } from '../../core/ports/vault.ts';
import type { Context } from '../../core/runtime/execute.ts';
import { withUpdatesInPlace } from '../../core/use-cases/pushing/wide-refs.ts';
import { repositoryEventKinds, type RecordedLayer } from '../../core/repository/events.ts';
import { openLayerStorage } from '../server/layer-storage.ts';
import type { Settings } from '../server/settings.ts';
import { checkLayer } from './check-layer.ts';
import { createVaultCheck, type VaultCheck } from './verify-vault.ts';

export interface LogReport {
  readonly events: number;
  readonly streams: number;
  /** The number of layers that events name; their bytes are read only with `references`. */
  readonly layers: number;
  /** One line for each fault, the first FAULTS_MAX of them. */
  readonly faults: readonly string[];
}

const PAGE_EVENTS = 1_000;
const PROGRESS_EVENTS = 100_000;
/** Later faults are neither reported nor counted: the first ones are enough to find the cause. */
const FAULTS_MAX = 1_000;

export async function verifyLog(
  context: Context & { readonly digest: Digest; readonly vault: Vault },
  settings: Settings,
  log: Logger,
  options: { readonly references: boolean },
): Promise<LogReport> {
  const layers = await openLayerStorage(settings, log);
  const revisions = new Map<StreamName, number>();
  const faults: string[] = [];
  const fault = (text: string): void => {
    if (faults.length < FAULTS_MAX) faults.push(text);
  };
  const vault = options.references ? createVaultCheck(context.vault, fault) : null;
  let position = LOG_START;
  let events = 0;
  let named = 0;
  for (;;) {
    const page = await context.events.readAll(position, PAGE_EVENTS);
    for (const event of page) {
      const where = `${event.stream} revision ${event.revision}`;
      if (event.position <= position) fault(`${where} is at position ${event.position}, not after ${position}`);
      position = event.position;
      const expected = (revisions.get(event.stream) ?? -1) + 1;
      if (event.revision !== expected) fault(`${where} follows revision ${expected - 1}`);
      revisions.set(event.stream, event.revision);
      const layer = await checkEvent(context, event, vault, fault);
      if (layer === null) continue;
      named += 1;
      const found = options.references ? await checkLayer(layers, layer) : null;
      if (found !== null) fault(`${where} names the layer ${layer.key}, which ${found.detail}`);
    }
    events += page.length;
    if (events % PROGRESS_EVENTS < PAGE_EVENTS && page.length > 0) log.info({ events }, 'Verifying the log');
    if (page.length < PAGE_EVENTS) break;
  }
  await vault?.finish();
  return { events, streams: revisions.size, layers: named, faults };
}

/** Checks the event. Resolves to the layer that it names, or null if it names none or cannot be read. */
async function checkEvent(
  context: Context & { readonly digest: Digest },
  event: RecordedEvent,
  vault: VaultCheck | null,
  fault: (text: string) => void,
): Promise<RecordedLayer | null> {
  const kinds = EVENT_CATALOGUE[categoryOf(event.stream)];
  if (kinds === undefined) {
    fault(`${event.stream} is of no known category`);
    return null;
  }
  try {
    readEvent(kinds, event);
    vault?.add(event);
    if (event.type !== 'RefsUpdated') return null;
    const whole = readEvent(repositoryEventKinds, await withUpdatesInPlace(context, event));
    return whole.type === 'RefsUpdated' ? whole.data.layer : null;
  } catch (error) {
    fault(error instanceof Error ? error.message : String(error));
    return null;
  }
}
