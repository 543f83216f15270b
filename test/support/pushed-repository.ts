/**
 * Repositories whose pushes are in an event log and whose objects are in a real git repository, to compare the read
 * models with git.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { TestContext } from 'vitest';
import { digest } from '../../adapters/node/digest.ts';
import { type LogPosition, streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, type ObjectId, objectId, type RepositoryId, ZERO_OBJECT_ID } from '../../core/kernel/ids.ts';
import type { JsonValue } from '../../core/kernel/json.ts';
import { ReadModelError, type ReadModels } from '../../core/ports/read-models.ts';
import type { RefsUpdated, StoredRefUpdate } from '../../core/repository/events.ts';
import { withUpdatesInPlace } from '../../core/use-cases/pushing/restore-wide-updates.ts';
import type { HistoryOptions } from '../../projections/history/apply.ts';
import { createModels, type Models } from '../../projections/models.ts';
import { createReadModels } from '../../projections/read-models.ts';
import { cleanUp } from './cleanup.ts';
import { type GitObjects, gitObjects, initBare } from './git-objects.ts';
import { git, temporaryFolder } from './git-process.ts';
import { newDatabase } from './read-model-database.ts';
import { Appender, createMemoryEventStore, layer, newRunner, type StartedRunner } from './read-models.ts';

export interface Service extends StartedRunner {
  readonly pool: pg.Pool;
  readonly append: Appender;
  readonly objects: GitObjects;
  readonly models: Models;
  readonly reads: ReadModels;
  readonly again: () => StartedRunner & Pick<Service, 'models' | 'reads'>;
}

/** Starts a log, a database and every read model on them; the repositories lie in a temporary folder of the test. */
export async function serve(
  context: TestContext,
  options: { readonly started?: boolean; readonly bounds?: Pick<HistoryOptions, 'turnBounds' | 'patientBounds'> } = {},
): Promise<Service> {
  const folder = temporaryFolder('history');
  cleanUp(context, () => folder.remove());
  const pool = await newDatabase(context);
  const store = createMemoryEventStore();
  const objects = gitObjects(folder.path);
  const again: Service['again'] = () => {
    const models = createModels({
      digest,
      workflows: [],
      objects: { open: (committed) => objects.open(committed) },
      events: store,
      complete: (event) => withUpdatesInPlace({ events: store, digest }, event),
      ...options.bounds,
    });
    const started = newRunner(context, { events: store, database: pool, models: Object.values(models) });
    const clock = { now: () => append.now };
    const reads = createReadModels({ digest, database: pool, models, runner: started.runner, clock });
    return { ...started, models, reads };
  };
  const append = new Appender(store);
  const first = again();
  if (options.started !== false) await first.runner.start();
  return { ...first, pool, append, objects, again };
}

/** A repository with its bare git repository, and pushes that move the refs to objects in it. */
export class Pushed {
  readonly service: Service;
  readonly account: AccountId;
  readonly id: RepositoryId;
  readonly bare: string;
  readonly #refs = new Map<string, ObjectId>();
  readonly #types = new Map<ObjectId, string>();

  private constructor(service: Service, account: AccountId, id: RepositoryId) {
    this.service = service;
    this.account = account;
    this.id = id;
    this.bare = initBare(service.objects.pathOf(id));
  }

  static async create(
    service: Service,
    defaultBranch: string | null = 'main',
    storageBucketId: string | null = null,
  ): Promise<Pushed> {
    const account = await service.append.account(`user-${randomUUID().slice(0, 8)}`);
    const id = await service.append.repository(account, 'project', {
      ...{ default_branch: defaultBranch, storage_bucket_id: storageBucketId },
    });
    return new Pushed(service, account, id);
  }

  updates(refs: { readonly [ref: string]: ObjectId | null }): StoredRefUpdate[] {
    return Object.entries(refs).map(([ref, after]) => {
      const before = this.#refs.get(ref) ?? null;
      if (after === null) this.#refs.delete(ref);
      else this.#refs.set(ref, after);
      const type = after === null ? null : this.#typeOf(after);
      const peeled = type === 'tag' ? this.git('rev-parse', `${after}^{}`) : null;
      const kind = after === null ? 'delete' : before === null ? 'create' : 'force-push';
      const ids = { before: before ?? ZERO_OBJECT_ID, after: after ?? ZERO_OBJECT_ID };
      return { ref, ...ids, type: type as StoredRefUpdate['type'], peeled, kind };
    });
  }

  push(
    refs: { readonly [ref: string]: ObjectId | null },
    fields: Partial<RefsUpdated['data']> = {},
  ): Promise<LogPosition> {
    const updates = this.updates(refs);
    return this.service.append.push(this.account, this.id, { updates, layer: layer(1_000), ...fields });
  }

  #typeOf(id: ObjectId): string {
    const type = this.#types.get(id) ?? this.git('cat-file', '-t', id);
    this.#types.set(id, type);
    return type;
  }

  defaultBranch(branch: string): Promise<LogPosition> {
    const data = { default_branch: branch };
    return this.service.append.append(streamName('repository', this.id), this.account, 'DefaultBranchChanged', data);
  }

  git(...args: readonly string[]): string {
    return git(args, { cwd: this.bare }).toString().trimEnd();
  }

  /** Makes a commit of the empty tree with these parents. */
  commit(message: string, parents: readonly ObjectId[], seconds: number): ObjectId {
    const tree = git(['mktree'], { cwd: this.bare, input: '' }).toString().trimEnd();
    const env = { GIT_AUTHOR_DATE: `@${seconds} +0000`, GIT_COMMITTER_DATE: `@${seconds} +0000` };
    const args = ['commit-tree', tree, ...parents.flatMap((parent) => ['-p', parent])];
    return objectId(git(args, { cwd: this.bare, env, input: message }).toString().trimEnd());
  }

  /** Makes a chain of `count` commits and returns the last. */
  line(count: number, from: ObjectId | null = null, seconds = 1_000_000): ObjectId {
    const script: string[] = [];
    for (let index = 0; index < count; index += 1) {
      script.push('commit refs/scratch/line', `committer A <a@example.org> ${seconds + index} +0000`, 'data 1', 'x');
      if (index === 0 && from !== null) script.push(`from ${from}`);
    }
    git(['fast-import', '--quiet', '--force'], {
      cwd: this.bare,
      input: `reset refs/scratch/line\n\n${script.join('\n')}\n`,
    });
    return objectId(this.git('rev-parse', 'refs/scratch/line'));
  }

  /** Compares everything the read models show with what git returns for the same refs. */
  async check(defaultBranch = 'main', reads: ReadModels = this.service.reads): Promise<void> {
    const branches = await reads.branches(this.id);
    const expected = [...this.#refs].filter(([ref]) => ref.startsWith('refs/heads/'));
    const names = expected.map(([ref]) => ref.slice('refs/heads/'.length));
    names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    assert.deepEqual(
      branches?.branches.map(({ name }) => name),
      names,
    );
    for (const { name, commit } of branches?.branches ?? []) {
      assert.equal(commit.id, this.#refs.get(`refs/heads/${name}`));
    }
    const tip = this.#refs.get(`refs/heads/${defaultBranch}`);
    const page = await reads.defaultBranchCommits(this.id, { offset: 0, limit: 1_000_000 });
    if (tip === undefined) assert.equal(page, null);
    else {
      const order = this.git('rev-list', tip).split('\n');
      assert.equal(page?.tip, tip);
      assert.equal(page?.total, order.length);
      assert.deepEqual(
        page?.items.map(({ id }) => id),
        order,
      );
    }
  }
}

export function isReadModelError(code: ReadModelError['code']): (error: unknown) => boolean {
  return (error) => error instanceof ReadModelError && error.code === code;
}

/** Returns every row of every read model, under table names without version and generation. */
export async function contents(pool: pg.Pool): Promise<Record<string, JsonValue>> {
  const { rows } = await pool.query<{ tablename: string }>(
    `SELECT tablename FROM pg_tables WHERE schemaname = 'read_models' AND tablename ~ '_v[0-9]+_[0-9]+$' ORDER BY 1`,
  );
  const all: Record<string, JsonValue> = {};
  for (const { tablename } of rows) {
    const table = await pool.query<{ rows: JsonValue }>(
      `SELECT json_agg(t::text ORDER BY t::text) AS rows FROM read_models.${tablename} AS t`,
    );
    all[tablename.replace(/_v\d+_\d+$/, '')] = table.rows[0]?.rows ?? null;
  }
  return all;
}
