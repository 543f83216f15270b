/**
 * `strata-admin log verify`: reads the whole log once, and checks positions, revisions and every event's form.
 *
 * Invariants: it changes nothing. Memory grows with the number of streams, vault records and, with references, of
 * stored layers, not of events.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Digest } from '../../core/kernel/digest.ts';
import { entityIdOf, LOG_START, type RecordedEvent, type StreamName } from '../../core/kernel/envelope.ts';
import { type RepositoryId, uuid } from '../../core/kernel/ids.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import type { Vault } from '../../core/ports/vault.ts';
import type { RecordedLayer } from '../../core/repository/events.ts';
import { repositories } from '../../core/repository/evolve.ts';
import type { Context } from '../../core/runtime/execute.ts';
import { type KnownRepository, readKnownRepositories } from '../../core/use-cases/repositories/known-repositories.ts';
import { checkEvent } from '../../core/use-cases/verifying/check-event.ts';
import { checkLayer } from '../../core/use-cases/verifying/check-layer.ts';
import { createExplanations, type Explanation } from '../../core/use-cases/verifying/explain-missing-layer.ts';
import { expiredSince } from '../../core/use-cases/verifying/later-expiry.ts';
import { isInBucket } from '../../core/use-cases/verifying/named-layers.ts';
import { readPage } from '../../core/use-cases/verifying/read-page.ts';
import { createTreeCheck, type TreeCheckContext } from '../../core/use-cases/verifying/verify-trees.ts';
import { createVaultCheck, SECOND_LOOK_MS } from '../../core/use-cases/verifying/verify-vault.ts';

export interface LogReport {
  readonly events: number;
  readonly streams: number;
  /** The number of layers that events name; their bytes are read only with `references`. */
  readonly layers: number;
  /** One line for each fault, the first FAULTS_MAX of them. */
  readonly faults: readonly string[];
  /**
   * One line for each thing that is not as the log says because the log was restored to an earlier state, and nothing
   * is lost; the first FAULTS_MAX of them. Only with `references`.
   */
  readonly explained: readonly string[];
  /**
   * Repositories that cannot be read until `storage adopt`, since the log names a layer as current whose absence a
   * manifest explains.
   */
  readonly unreadable: readonly UnreadableRepository[];
}

export interface UnreadableRepository {
  readonly id: RepositoryId;
  /** `<username>/<name>` */
  readonly name: string;
  readonly deleted: boolean;
}

const PAGE_EVENTS = 1_000;
const PROGRESS_EVENTS = 100_000;
/**
 * Later faults are neither reported nor counted: the first ones are enough to find the cause. Internal: only the
 * operator reads what it cuts.
 */
const FAULTS_MAX = 1_000;

export interface VerifyLogContext extends Context {
  readonly digest: Digest;
  readonly vault: Vault;
  readonly layers: LayerStores;
  readonly log: Logger;
  /** Null if no server has made the model yet. */
  readonly accountLogs: TreeCheckContext['accountLogs'];
}

export async function verifyLog(
  context: VerifyLogContext,
  options: { readonly references: boolean },
): Promise<LogReport> {
  const revisions = new Map<StreamName, number>();
  const faults: string[] = [];
  const fault = (text: string): void => {
    if (faults.length < FAULTS_MAX) faults.push(text);
  };
  const explained: string[] = [];
  const explain = (text: string): void => {
    if (explained.length < FAULTS_MAX) explained.push(text);
  };
  const newerCheckpoint = options.references ? explain : fault;
  const trees = await createTreeCheck({ ...context, store: context.layers.platform }, { fault, newerCheckpoint });
  const vault = options.references ? createVaultCheck(context.vault, fault) : null;
  let position = LOG_START;
  let events = 0;
  let named = 0;
  /** Layers that no later event lets expire. */
  const unread = new Map<string, UnreadLayer>();
  const readOn = async (): Promise<void> => {
    for (;;) {
      const { page, unreadable } = await readPage(context.events, position, PAGE_EVENTS);
      for (const event of page) {
        const where = `${event.stream} revision ${event.revision}`;
        if (event.position <= position) fault(`${where} is at position ${event.position}, not after ${position}`);
        position = event.position;
        const expected = (revisions.get(event.stream) ?? -1) + 1;
        if (event.revision !== expected) fault(`${where} follows revision ${expected - 1}`);
        revisions.set(event.stream, event.revision);
        trees.add(event);
        const checked = await checkEvent(context, event, { fault, onRead: (read) => vault?.add(read) });
        if (checked === null) continue;
        for (const id of checked.expired) unread.delete(id);
        for (const layer of checked.stored) {
          named += 1;
          if (options.references) unread.set(layer.id, { layer, where, event });
        }
      }
      events += page.length;
      if (events % PROGRESS_EVENTS < PAGE_EVENTS && page.length > 0) context.log.info({ events }, 'Verifying the log');
      if (unreadable !== null) {
        fault(unreadable.message);
        position = unreadable.position;
      } else if (page.length < PAGE_EVENTS) return;
    }
  };
  await readOn();
  await trees.finish();
  const unreadable = options.references ? await checkLayers(context, { unread, revisions }, { fault, explain }) : [];
  await vault?.finish(async () => {
    await sleep(SECOND_LOOK_MS);
    await readOn();
  });
  return { events, streams: revisions.size, layers: named, faults, explained, unreadable };
}

interface UnreadLayer {
  readonly layer: RecordedLayer;
  readonly where: string;
  /** The event that names it. */
  readonly event: Pick<RecordedEvent, 'stream' | 'accountId'>;
}

/** What was read of the log. */
interface Read {
  readonly unread: ReadonlyMap<string, UnreadLayer>;
  /** The last revision of each stream. */
  readonly revisions: ReadonlyMap<StreamName, number>;
}

interface Told {
  readonly fault: (text: string) => void;
  readonly explain: (text: string) => void;
}

/**
 * Reads the layers. What a bucket of a user holds of a deleted repository is its owner's matter. Returns the
 * repositories that cannot be read because of layers whose absence is explained.
 */
async function checkLayers(
  { events, entities, layers, digest }: VerifyLogContext,
  { unread, revisions }: Read,
  { fault, explain }: Told,
): Promise<readonly UnreadableRepository[]> {
  const known = await readKnownRepositories(events);
  const explanations = createExplanations(layers.platform);
  const unreadable = new Map<RepositoryId, UnreadableRepository>();
  for (const { layer, where, event } of unread.values()) {
    const id = uuid<RepositoryId>(entityIdOf(event.stream));
    const repository = known.get(id);
    if (repository?.deleted === true && isInBucket(repository)) continue;
    const store = repository === undefined ? layers.platform : layers.of(repository.place, 'maintenance');
    const found = await checkLayer(digest, store, layer);
    if (found === null) continue;
    const revision = revisions.get(event.stream) ?? -1;
    const expired = await expiredSince(events, event.stream, revision + 1);
    if (expired.has(layer.id)) continue;
    const what = `${where} names the layer ${layer.key}, which ${found.detail}`;
    if (found.kind !== 'missing') {
      fault(what);
      continue;
    }
    const missing = { id: layer.id, account: event.accountId, repository: id, store, revision };
    const explanation = await explanations.of(missing);
    if (explanation === null) fault(`${what}: it is lost`);
    else explain(`${what}: ${explanation.text}`);
    if (await isNeeded(entities, { id, layer, explanation })) unreadable.set(id, shownOf(id, repository));
  }
  return [...unreadable.values()];
}

/** Whether the log names the layer as current. The repositories of an erased account are erased again instead. */
async function isNeeded(
  entities: VerifyLogContext['entities'],
  of: { readonly id: RepositoryId; readonly layer: RecordedLayer; readonly explanation: Explanation | null },
): Promise<boolean> {
  if (of.explanation?.by !== 'manifest') return false;
  const { state } = await entities.get(repositories, of.id);
  const { layers } = state.status === 'closed' ? state.before : state;
  return [...layers].some(({ id }) => id === of.layer.id);
}

function shownOf(id: RepositoryId, known: KnownRepository | undefined): UnreadableRepository {
  return { id, name: known?.name ?? id, deleted: known?.deleted === true };
}
