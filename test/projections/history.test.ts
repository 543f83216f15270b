/** Refs, commits and their order as the read model keeps them, against a real git's own answers. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { type LogPosition, streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, type ObjectId, objectId, type RepositoryId, ZERO_OBJECT_ID } from '../../core/kernel/ids.ts';
import type { JsonValue } from '../../core/kernel/json.ts';
import { ObjectDatabaseError } from '../../core/ports/object-database.ts';
import { ReadModelError, type ReadModels } from '../../core/ports/read-models.ts';
import type { RefsUpdated, StoredRefUpdate } from '../../core/repository/events.ts';
import { splitUpdates, updatesDigestText } from '../../core/repository/wide-updates.ts';
import type { HistoryOptions } from '../../projections/history/apply.ts';
import { createModels } from '../../projections/models.ts';
import { createReadModels } from '../../projections/read-models.ts';
import { CLOCKS, importHistories, randomShapes, seededNumbers } from '../core/git/random-histories.ts';
import { type GitObjects, gitObjects, initBare } from '../support/git-objects.ts';
import { git, temporaryFolder } from '../support/git-process.ts';
import { newDatabase } from '../support/read-model-database.ts';
import {
  Appender,
  createMemoryEventStore,
  digest,
  layer,
  newRunner,
  type StartedRunner,
} from '../support/read-models.ts';

const WAIT_MS = 20_000;

const folder = temporaryFolder('history');
after(() => folder.remove());

interface Service extends StartedRunner {
  readonly pool: pg.Pool;
  readonly append: Appender;
  readonly objects: GitObjects;
  readonly reads: ReadModels;
  readonly again: () => StartedRunner & { readonly reads: ReadModels };
}

/** A log, a database and every model on them; repositories lie under the file's folder. */
async function serve(
  context: TestContext,
  options: { readonly started?: boolean; readonly bounds?: NonNullable<HistoryOptions['bounds']> } = {},
): Promise<Service> {
  const pool = await newDatabase(context);
  const store = createMemoryEventStore();
  const objects = gitObjects(folder.path);
  const again = (): StartedRunner & { readonly reads: ReadModels } => {
    const bounds = options.bounds === undefined ? {} : { bounds: options.bounds };
    const models = createModels({
      objects: { open: (committed) => objects.open(committed) },
      events: store,
      ...bounds,
    });
    const started = newRunner(context, { events: store, database: pool, models: Object.values(models) });
    const { waitFor } = started.runner;
    const clock = { now: () => append.now };
    return { ...started, reads: createReadModels({ database: pool, models, waitFor, clock }) };
  };
  const append = new Appender(store);
  const first = again();
  if (options.started !== false) await first.runner.start();
  return { ...first, pool, append, objects, again };
}

/** A repository with its bare twin, and pushes that carry the refs as they stand there. */
class Pushed {
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

  static async create(service: Service, defaultBranch: string | null = 'main'): Promise<Pushed> {
    const account = await service.append.account(`user-${randomUUID().slice(0, 8)}`);
    const id = await service.append.repository(account, 'project', { default_branch: defaultBranch });
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

  /** A commit with no files on the given parents. */
  commit(message: string, parents: readonly ObjectId[], seconds: number): ObjectId {
    const tree = git(['mktree'], { cwd: this.bare, input: '' }).toString().trimEnd();
    const env = { GIT_AUTHOR_DATE: `@${seconds} +0000`, GIT_COMMITTER_DATE: `@${seconds} +0000` };
    const args = ['commit-tree', tree, ...parents.flatMap((parent) => ['-p', parent])];
    return objectId(git(args, { cwd: this.bare, env, input: message }).toString().trimEnd());
  }

  /** So many commits in a line. */
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

  /** Compares everything shown with what git says of the same refs. */
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

async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('It did not come to pass');
    await sleep(5);
  }
}

describe('a repository', () => {
  test('shows branches in byte order, commits with all their fields, and pages at any depth', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    await service.reads.caughtUp(service.append.last);
    assert.deepEqual(await service.reads.branches(repository.id), { revision: -1, branches: [] });
    assert.equal(await service.reads.defaultBranchCommits(repository.id, { offset: 0, limit: 10 }), null);
    const base = repository.line(300);
    const tip = repository.commit('Subject\n\nBody \u{1F600}\n', [base], 2_000_000);
    await repository.push({
      'refs/heads/main': tip,
      'refs/heads/a-b': base,
      'refs/heads/a/b': base,
      'refs/heads/Z': tip,
    });
    await service.reads.caughtUp(service.append.last);
    await repository.check();
    const page = await service.reads.defaultBranchCommits(repository.id, { offset: 0, limit: 1 });
    assert.deepEqual(page?.items, [
      {
        id: tip,
        message: 'Subject\n\nBody \u{1F600}\n',
        author: { name: 'A', email: 'a@example.org' },
        committer: { name: 'A', email: 'a@example.org' },
        ...{ authoredAt: 2_000_000, committedAt: 2_000_000, parents: [base] },
      },
    ]);
    assert.equal(page?.revision, 0);
    const order = repository.git('rev-list', tip).split('\n');
    const deep = await service.reads.defaultBranchCommits(repository.id, { offset: 290, limit: 50 });
    assert.deepEqual(
      deep?.items.map(({ id }) => id),
      order.slice(290),
    );
    const beyond = await service.reads.defaultBranchCommits(repository.id, { offset: 301, limit: 50 });
    assert.deepEqual([beyond?.items, beyond?.total], [[], 301]);
    assert.equal(service.objects.leases(), 0);
  });

  test('follows pushes, merges, forced moves and deletions as git log would', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    const base = repository.line(20);
    const show = async (): Promise<void> => {
      await service.reads.caughtUp(service.append.last);
      await repository.check();
    };
    await repository.push({ 'refs/heads/main': base });
    await show();
    const feature = repository.line(3, base, 1_000_005);
    await repository.push({ 'refs/heads/feature': feature });
    await show();
    const next = repository.commit('next', [base], 1_000_100);
    await repository.push({ 'refs/heads/main': next });
    await show();
    // The merge brings commits that are known already, and older than some of main's.
    const merge = repository.commit('merge', [next, feature], 1_000_200);
    await repository.push({ 'refs/heads/main': merge });
    await show();
    const walks = service.objects.walks();
    const plain = repository.commit('plain', [merge], 1_000_300);
    await repository.push({ 'refs/heads/main': plain });
    await show();
    assert.equal(service.objects.walks(), walks, 'a plain push walked the history');
    await repository.push({ 'refs/heads/main': repository.commit('other', [next], 1_000_250) });
    await show();
    await repository.push({ 'refs/heads/main': repository.line(5) });
    await show();
    await repository.push({ 'refs/heads/main': null, 'refs/heads/feature': null });
    await show();
    await repository.push({ 'refs/heads/main': merge });
    await show();
  });

  test('takes another branch as default, and one that does not exist', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service, null);
    await repository.push({ 'refs/heads/master': repository.line(3), 'refs/heads/dev': repository.line(7, null, 500) });
    await service.reads.caughtUp(service.append.last);
    await repository.check('master');
    await repository.defaultBranch('dev');
    await service.reads.caughtUp(service.append.last);
    await repository.check('dev');
    await repository.defaultBranch('nowhere');
    await service.reads.caughtUp(service.append.last);
    await repository.check('nowhere');
    await repository.push({ 'refs/heads/nowhere': repository.line(2, null, 900) });
    await service.reads.caughtUp(service.append.last);
    await repository.check('nowhere');
  });

  test('takes tags of every kind, notes, and texts that PostgreSQL cannot hold', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    const tip = repository.line(2);
    const tree = objectId(repository.git('rev-parse', `${tip}^{tree}`));
    const tag = (of: ObjectId, type: string): ObjectId =>
      objectId(
        git(['hash-object', '-t', 'tag', '-w', '--stdin'], {
          cwd: repository.bare,
          input: `object ${of}\ntype ${type}\ntag t\ntagger A <a@example.org> 1 +0000\n\nmessage\n`,
        })
          .toString()
          .trimEnd(),
      );
    const raw = Buffer.concat([
      Buffer.from(
        `tree ${tree}\nauthor \xff\xfe <a@example.org> 1 +0000\ncommitter B <b@example.org> 2 +0000\n\nnul `,
        'latin1',
      ),
      Buffer.from([0, 0xed, 0xa0, 0x80, 0x5c]),
      Buffer.from('u0000 "end"\n'),
    ]);
    const odd = objectId(
      git(['hash-object', '-t', 'commit', '-w', '--literally', '--stdin'], { cwd: repository.bare, input: raw })
        .toString()
        .trimEnd(),
    );
    const tagged = repository.commit('only tagged', [odd], 3);
    await repository.push({
      'refs/heads/main': tip,
      'refs/heads/odd': odd,
      'refs/tags/annotated': tag(tagged, 'commit'),
      'refs/tags/tree': tag(tree, 'tree'),
      'refs/tags/light-tree': tree,
      'refs/notes/commits': tip,
    });
    await service.reads.caughtUp(service.append.last);
    await repository.check();
    const branches = await service.reads.branches(repository.id);
    const shown = branches?.branches.find(({ name }) => name === 'odd')?.commit;
    assert.equal(shown?.message, 'nul \uFFFD\uFFFD\uFFFD\uFFFD\\u0000 "end"\n');
    assert.equal(shown?.author.name, '\uFFFD\uFFFD');
    assert.deepEqual(await service.runner.parked(), []);
  });

  test('takes a wide push, whose updates stand in parts', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    const tip = repository.line(3);
    const names = Array.from({ length: 5_000 }, (_, index) => `refs/heads/${'x'.repeat(100)}/${index}`);
    const updates = repository.updates(Object.fromEntries([...names, 'refs/heads/main'].map((name) => [name, tip])));
    const stream = streamName('refUpdates', randomUUID());
    const parts = splitUpdates(updates);
    assert.ok(parts.length > 1);
    for (const { data } of parts) await service.append.append(stream, repository.account, 'RefUpdatesPart', data);
    await service.append.push(repository.account, repository.id, {
      parts: {
        ...{ stream, count: parts.length, updates: updates.length },
        sha256: digest.sha256(updatesDigestText(updates)),
      },
    });
    await service.reads.caughtUp(service.append.last);
    await repository.check();
    // A part that is not what the event names is that event's fault alone.
    const other = await Pushed.create(service);
    const wrong = { stream, count: parts.length, updates: updates.length, sha256: '0'.repeat(64) };
    await service.append.push(other.account, other.id, { parts: wrong });
    await service.reads.caughtUp(service.append.last);
    await assert.rejects(service.reads.branches(other.id), isReadModelError('read-model-parked'));
    await repository.check();
  });

  test('goes with its deletion, whole', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    await repository.push({ 'refs/heads/main': repository.line(10) });
    await service.append.deleteRepository(repository.account, repository.id, 'project');
    await service.reads.caughtUp(service.append.last);
    assert.equal(await service.reads.branches(repository.id), null);
    for (const table of ['repositories', 'refs', 'commits', 'order', 'layers']) {
      const { rowCount } = await service.pool.query(`SELECT FROM read_models.history_${table}_v1_1`);
      assert.equal(rowCount, 0, table);
    }
  });
});

describe('the order of commits', () => {
  test('equals git rev-list after each move over random histories', async (context) => {
    const service = await serve(context);
    const random = seededNumbers(7);
    for (const clock of CLOCKS) {
      const repository = await Pushed.create(service);
      const [commits = []] = importHistories(repository.bare, [randomShapes(60, clock, random)]);
      let at = 0;
      for (let move = 0; move < 12; move += 1) {
        // Mostly forwards, now and then anywhere.
        at = random(4) > 0 ? Math.min(commits.length - 1, at + 1 + random(6)) : random(commits.length);
        const id = commits[at]?.id ?? ZERO_OBJECT_ID;
        await repository.push({
          'refs/heads/main': id,
          [`refs/heads/other-${random(3)}`]: commits[random(60)]?.id ?? id,
        });
        await service.reads.caughtUp(service.append.last);
        await repository.check();
      }
    }
    const verified = await service.runner.verify('history');
    assert.equal(verified[0]?.differences, 0);
  });
});

describe('building again from the log', () => {
  test('gives identical content after every table was dropped', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    const base = repository.line(50);
    await repository.push({ 'refs/heads/main': base });
    await repository.push({ 'refs/heads/side': repository.line(10, base, 1_000_020) });
    await repository.push({ 'refs/heads/main': repository.commit('m', [base], 2_000_000), 'refs/heads/side': null });
    const other = await Pushed.create(service);
    await other.push({ 'refs/heads/main': other.line(5) });
    await service.append.deleteRepository(other.account, other.id, 'project');
    await service.append.token(repository.account, 'laptop');
    await service.reads.caughtUp(service.append.last);
    const before = await contents(service.pool);
    await service.runner.close();
    await service.pool.query('DROP SCHEMA read_models CASCADE');
    const { runner, reads } = service.again();
    await runner.start();
    await reads.caughtUp(service.append.last);
    assert.deepEqual(await contents(service.pool), before);
    await repository.check('main', reads);
  });

  test('does without objects that left storage because a later event replaced them', async (context) => {
    const service = await serve(context, { started: false });
    const repository = await Pushed.create(service);
    const forced = repository.line(4);
    await repository.push({ 'refs/heads/main': forced, 'refs/heads/stays': forced });
    const kept = repository.line(6, null, 5_000);
    // More events than a batch holds, so that the first tip is met on its own.
    for (let count = 0; count < 1_000; count += 1) await service.append.account(`filler-${count}`);
    await repository.push({ 'refs/heads/main': kept, 'refs/heads/stays': kept });
    const gone = await Pushed.create(service);
    await gone.push({ 'refs/heads/main': gone.line(3) });
    for (let count = 0; count < 1_000; count += 1) await service.append.account(`more-${count}`);
    await service.append.deleteRepository(gone.account, gone.id, 'project');
    repository.git('update-ref', 'refs/heads/keep', kept);
    repository.git('update-ref', '-d', 'refs/scratch/line');
    repository.git('-c', 'gc.pruneExpire=now', 'gc', '--quiet', '--prune=now');
    assert.throws(() => repository.git('cat-file', '-e', forced));
    service.objects.onOpen = (committed) => {
      if (committed.repository !== gone.id) return;
      throw new ObjectDatabaseError('layer-missing', 'It was deleted with its repository');
    };
    await service.runner.start();
    await service.reads.caughtUp(service.append.last);
    await repository.check();
    assert.equal(await service.reads.branches(gone.id), null);
    assert.deepEqual(await service.runner.parked(), []);
  });

  test('finds a commit whose row was changed, and one that was lost', async (context) => {
    const service = await serve(context);
    const repository = await Pushed.create(service);
    await repository.push({ 'refs/heads/main': repository.line(5) });
    await service.reads.caughtUp(service.append.last);
    const commits = 'read_models.history_commits_v1_1';
    await service.pool.query(
      `UPDATE ${commits} SET entry = replace(entry, '"A"', '"Mallory"') WHERE id = (SELECT min(id) FROM ${commits})`,
    );
    await service.pool.query(`DELETE FROM ${commits} WHERE id = (SELECT max(id) FROM ${commits})`);
    const results = await service.runner.verify(null);
    const found = results.find(({ projection }) => projection === 'history');
    assert.deepEqual(found?.examples.map(({ table, kind }) => `${table} ${kind}`).sort(), [
      'history_commits different',
      'history_commits missing',
    ]);
    await service.runner.rebuild('history');
    await repository.check();
  });
});

describe('when objects cannot be read', () => {
  test('only that repository is set aside, and comes back by itself', async (context) => {
    const service = await serve(context);
    const broken = await Pushed.create(service);
    const sound = await Pushed.create(service);
    let away = true;
    service.objects.onOpen = (committed) => {
      if (!away || committed.repository !== broken.id) return;
      throw new ObjectDatabaseError('object-database-unavailable', 'The bucket does not answer');
    };
    await broken.push({ 'refs/heads/main': broken.line(3) });
    await sound.push({ 'refs/heads/main': sound.line(3) });
    await broken.push({ 'refs/heads/other': broken.line(3, null, 77) });
    await service.reads.caughtUp(service.append.last);
    await sound.check();
    await assert.rejects(service.reads.branches(broken.id), isReadModelError('read-model-behind'));
    away = false;
    await service.pool.query(`UPDATE read_models.parked SET retry_at = now() WHERE retry_at IS NOT NULL`);
    await until(async () => (await service.runner.parked()).length === 0);
    await broken.check();
    assert.equal(service.objects.leases(), 0);
  });
});

describe('a history too long to be read while others wait', () => {
  const bounds = { newCommits: 20, orderedCommits: 60 };

  test('is applied beside the other repositories, with all that is pushed to it meanwhile', async (context) => {
    const service = await serve(context, { bounds });
    const long = await Pushed.create(service);
    const other = await Pushed.create(service);
    let proceed: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    const { open } = service.objects;
    const opened = new Set<number | 'none'>();
    service.objects.open = async (committed) => {
      // The first opening finds that it is long; the next is the one beside the others.
      if (committed.repository === long.id && opened.size > 0) await held;
      if (committed.repository === long.id) opened.add(committed.revision);
      return open(committed);
    };
    const base = long.line(100);
    await long.push({ 'refs/heads/main': base });
    await other.push({ 'refs/heads/main': other.line(5) });
    await service.reads.caughtUp(service.append.last);
    await other.check();
    await assert.rejects(service.reads.branches(long.id), isReadModelError('read-model-behind'));
    await long.push({ 'refs/heads/main': long.commit('next', [base], 3_000_000), 'refs/heads/side': base });
    await service.reads.caughtUp(service.append.last);
    proceed();
    await until(async () => (await service.runner.parked()).length === 0);
    await long.check();
    // Afterwards it is a repository like any other.
    const tip = long.commit('last', [base], 3_000_001);
    await long.push({ 'refs/heads/main': tip });
    await service.reads.caughtUp(service.append.last);
    await long.check();
    assert.ok(!service.log.lines.some(({ level }) => level === 'error'));
    const [verified] = await service.runner.verify('history');
    assert.equal(verified?.differences, 0);
    await service.append.deleteRepository(long.account, long.id, 'project');
    await service.reads.caughtUp(service.append.last);
    await until(async () => (await service.runner.parked()).length === 0);
    assert.equal(await service.reads.branches(long.id), null);
    const { rowCount } = await service.pool.query('SELECT FROM read_models.history_commits_v1_1');
    assert.equal(rowCount, 5);
  });

  test('is finished by the next runner when the first one dies over it', async (context) => {
    const service = await serve(context, { bounds });
    const long = await Pushed.create(service);
    const { open } = service.objects;
    let openings = 0;
    service.objects.open = async (committed) => {
      openings += 1;
      if (openings > 1) await new Promise(() => undefined);
      return open(committed);
    };
    await long.push({ 'refs/heads/main': long.line(100) });
    await service.reads.caughtUp(service.append.last);
    await until(() => openings === 2);
    await service.runner.close();
    service.objects.open = open;
    const { runner, reads } = service.again();
    await runner.start();
    await until(async () => (await runner.parked()).length === 0);
    await reads.caughtUp(service.append.last);
    await long.check('main', reads);
  });
});

function isReadModelError(code: ReadModelError['code']): (error: unknown) => boolean {
  return (error) => error instanceof ReadModelError && error.code === code;
}

/** Every row of every model, whatever the generation. */
async function contents(pool: pg.Pool): Promise<Record<string, JsonValue>> {
  const { rows } = await pool.query<{ tablename: string }>(
    `SELECT tablename FROM pg_tables WHERE schemaname = 'read_models' AND tablename ~ '_v1_[0-9]+$' ORDER BY 1`,
  );
  const all: Record<string, JsonValue> = {};
  for (const { tablename } of rows) {
    const table = await pool.query<{ rows: JsonValue }>(
      `SELECT json_agg(t::text ORDER BY t::text) AS rows FROM read_models.${tablename} AS t`,
    );
    all[tablename.replace(/_v1_\d+$/, '')] = table.rows[0]?.rows ?? null;
  }
  return all;
}
