/** For tests of the read models: a log, runners on a real database, and events as the use cases append them. */
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { digest as nodeDigest } from '../../adapters/node/digest.ts';
import { pause } from '../../adapters/node/pause.ts';
import { createTakeLead } from '../../adapters/postgres/lead.ts';
import { EVENT_CATALOGUE } from '../../core/catalogue.ts';
import { downcast, RECORD_V1 } from '../../core/kernel/decider.ts';
import {
  type Actor,
  categoryOf,
  type LogPosition,
  type NewEvent,
  type StreamName,
  streamName,
} from '../../core/kernel/envelope.ts';
import {
  type AccessTokenId,
  type AccountId,
  type EventId,
  type RepositoryId,
  type Timestamp,
  timestamp,
  type Uuid,
  uuid,
  ZERO_OBJECT_ID,
} from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { Pause } from '../../core/ports/clock.ts';
import type { EventStore, ExpectedRevision } from '../../core/ports/event-store.ts';
import { NEWEST_FORMS, type WrittenForms } from '../../core/ports/running-processes.ts';
import type { RefsUpdated, RepositoryReopened } from '../../core/repository/events.ts';
import { withUpdatesInPlace } from '../../core/use-cases/pushing/restore-wide-updates.ts';
import type { IsModelRead } from '../../projections/runner/generations.ts';
import type { Projection } from '../../projections/runner/projection.ts';
import {
  createProjectionRunner,
  type ProjectionMetrics,
  type ProjectionRunner,
} from '../../projections/runner/runner.ts';
import { cleanUp, type Ending } from './cleanup.ts';
import { type KeptLog, keepLog } from './log.ts';
import { createMemoryEventStore } from './memory/event-store.ts';

export const digest = {
  sha256: (text: string) => createHash('sha256').update(text, 'utf8').digest('hex'),
  equal: (a: string, b: string) => a === b,
};

export function newUuid<Id extends Uuid>(): Id {
  return uuid<Id>(randomUUID());
}

/** Appends domain events as use cases do, each at its stream's current revision. */
export class Appender {
  readonly store: EventStore;
  readonly #revisions = new Map<StreamName, number>();
  /** The time of the next events; tests may change it. */
  now: Timestamp = timestamp('2026-11-21T10:00:00.000Z');
  last: LogPosition = 0n as LogPosition;
  /** Where the next events come from; tests may change it. */
  sourceAddressRef: string | null = null;
  /** The request of the next events; tests may change it. */
  requestId = 'request-1';
  /** Who causes the next events; tests may change it. */
  actor: Actor = { kind: 'system', id: 'test' };

  /** The versions of the next events; tests may change them. */
  written: WrittenForms = NEWEST_FORMS;

  constructor(store: EventStore) {
    this.store = store;
  }

  append(stream: StreamName, account: AccountId, type: string, data: JsonObject): Promise<LogPosition> {
    return this.together(stream, account, [{ type, data }]);
  }

  /** Appends several events together. */
  async together(
    stream: StreamName,
    account: AccountId,
    events: readonly { readonly type: string; readonly data: JsonObject }[],
  ): Promise<LogPosition> {
    const before = this.#revisions.get(stream);
    const expected: ExpectedRevision = before ?? 'none';
    const result = await this.store.append({
      ...{ stream, expected },
      events: events.map(({ type, data }): NewEvent => {
        const kind = EVENT_CATALOGUE[categoryOf(stream)]?.[type] ?? RECORD_V1;
        return {
          ...{ id: newUuid<EventId>(), accountId: account, occurredAt: this.now },
          ...downcast(kind, { type, data }, this.written.versionOf(type)),
          actor: this.actor,
          ...{
            requestId: this.requestId,
            sourceAddressRef: this.sourceAddressRef,
            causationId: null,
            isRecord: kind.record,
          },
        };
      }),
    });
    if (result.outcome === 'conflict') throw new Error(`${stream} is at ${result.actual}, not ${expected}`);
    this.#revisions.set(stream, result.revision);
    this.last = result.position;
    return result.position;
  }

  async account(username: string): Promise<AccountId> {
    const account = newUuid<AccountId>();
    const data = { username, email_ref: 'e'.repeat(64), password_hash_ref: 'a'.repeat(64), plan: 'FREE' };
    await this.append(streamName('account', account), account, 'AccountCreated', data);
    return account;
  }

  async repository(account: AccountId, name: string, fields: JsonObject = {}): Promise<RepositoryId> {
    const id = newUuid<RepositoryId>();
    await this.append(streamName('account', account), account, 'RepositoryCreated', {
      ...{ repository_id: id, name, description: null, default_branch: null, storage_bucket_id: null },
      ...fields,
    });
    return id;
  }

  push(account: AccountId, repository: RepositoryId, fields: Partial<RefsUpdated['data']> = {}): Promise<LogPosition> {
    return this.append(streamName('repository', repository), account, 'RefsUpdated', {
      ...{
        push_id: randomUUID(),
        updates: [],
        parts: null,
        layer: null,
        push_options: [],
        received_bytes: 0,
        restored: null,
        request_digest: null,
      },
      ...fields,
    });
  }

  async deleteRepository(account: AccountId, repository: RepositoryId, name: string): Promise<LogPosition> {
    await this.append(streamName('repository', repository), account, 'RepositoryClosed', {});
    const data = { repository_id: repository, name };
    return this.append(streamName('account', account), account, 'RepositoryDeleted', data);
  }

  /** Restores a deleted repository: appends `RepositoryRestored`, then `RepositoryReopened` with these fields. */
  async restoreRepository(
    account: AccountId,
    repository: RepositoryId,
    name: string,
    fields: RepositoryReopened['data'],
  ): Promise<LogPosition> {
    await this.append(streamName('account', account), account, 'RepositoryRestored', {
      ...{ repository_id: repository, name, description: null, default_branch: null, storage_bucket_id: null },
      created_at: '2026-11-20T10:00:00.000Z',
    });
    return this.append(streamName('repository', repository), account, 'RepositoryReopened', fields);
  }

  async token(account: AccountId, name: string, fields: JsonObject = {}): Promise<AccessTokenId> {
    const id = newUuid<AccessTokenId>();
    await this.append(streamName('accessToken', id), account, 'AccessTokenCreated', {
      ...{ account, name, scope: 'ALL_REPO', grants: ['ALL'], repository_ids: [], expires_at: null },
      ...{ secret_hash: digest.sha256(id), token_prefix: 'strata_abcd' },
      ...fields,
    });
    return id;
  }
}

/** A layer of a size; no bytes are stored for it. */
export function layer(sizeBytes: number): NonNullable<RefsUpdated['data']['layer']> {
  const id = randomUUID();
  return { id, key: `layers/${id}.tar`, size_bytes: sizeBytes, sha256: '0'.repeat(64), pack: ZERO_OBJECT_ID };
}

/** A timeout that only a broken program reaches. */
export const WAIT_MS = 20_000;

/** Resolves when the condition holds; rejects after `WAIT_MS`. */
/** Returns how many parked streams wait for an operator; a stream counts once for each model. */
export async function waitingStreams(runner: Pick<ProjectionRunner, 'figures'>): Promise<number> {
  return (await runner.figures()).reduce((sum, { waitingStreams: streams }) => sum + streams, 0);
}

export async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('The condition did not hold in time');
    await sleep(5);
  }
}

export interface StartedRunner {
  readonly runner: ProjectionRunner;
  readonly log: KeptLog;
  readonly applied: { model: string; position: LogPosition; events: number; durationMs: number }[];
}

/** Makes a runner without starting it; it is closed after the test. */
export function newRunner(
  context: Ending,
  options: {
    readonly events: EventStore;
    readonly database: pg.Pool;
    readonly models: readonly Projection[];
    readonly pause?: Pause;
    readonly isRead?: IsModelRead;
  },
): StartedRunner {
  const log = keepLog();
  const applied: StartedRunner['applied'] = [];
  const metrics: ProjectionMetrics = {
    applied: (model, position, events, durationMs) => applied.push({ model, position, events, durationMs }),
    parked: () => undefined,
    halted: () => undefined,
  };
  const runner = createProjectionRunner({
    pause,
    ...options,
    takeLead: createTakeLead(options.database),
    ...{ log, metrics, intervalMs: 20 },
    complete: (event) => withUpdatesInPlace({ events: options.events, digest: nodeDigest }, event),
  });
  cleanUp(context, () => runner.close());
  return { runner, log, applied };
}

export async function startRunner(...args: Parameters<typeof newRunner>): Promise<StartedRunner> {
  const started = newRunner(...args);
  await started.runner.start();
  return started;
}

export { createMemoryEventStore };
