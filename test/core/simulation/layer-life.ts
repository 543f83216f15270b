/**
 * One repository whose layers live through pushes, forced moves, deletions, compactions, expiry and kills in random
 * order, with a model of what must be there. Objects are those of the real git; the log and the store are in memory.
 *
 * Invariants: the model learns only from what was acknowledged and from the clock. A kill ends the process at a
 * failpoint: the next one begins with an empty cache.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import { refName } from '../../../core/git/ref-name.ts';
import { type AccountId, type ObjectId, plusMs, type RepositoryId, type Timestamp } from '../../../core/kernel/ids.ts';
import { FAILPOINTS, type FailpointName } from '../../../core/ports/failpoints.ts';
import type { LayerStore } from '../../../core/ports/layer-store.ts';
import type { LayerKey } from '../../../core/repository/layer.ts';
import { createPastEntities } from '../../../core/runtime/past-entities.ts';
import { compactLayers } from '../../../core/use-cases/compacting/compact-layers.ts';
import { dropUnreached } from '../../../core/use-cases/compacting/drop-unreached.ts';
import { type PushCommand, type PushOutcome, pushRefs } from '../../../core/use-cases/pushing/push-refs.ts';
import { committedObjects } from '../../../core/use-cases/reading/committed-objects.ts';
import { type FoundRepository, findRepositoryById } from '../../../core/use-cases/repositories/repositories.ts';
import { expireLayers } from '../../../core/use-cases/sweeping/expire-layers.ts';
import { sweepLayers } from '../../../core/use-cases/sweeping/sweep-layers.ts';
import { newAccount, newRepository } from '../../support/accounts.ts';
import { runGit, type TestRepository, temporaryFolder, testRepository } from '../../support/git.ts';
import { layersIn } from '../../support/layers-in.ts';
import { keepLog } from '../../support/log.ts';
import { createMemoryPolicyMarks } from '../../support/memory/delivery-store.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../support/memory/layer-store.ts';
import { createMemorySnapshots } from '../../support/memory/snapshots.ts';
import { CAUSE, startNode, type TestNode } from '../../support/node.ts';
import { once, type TestDatabase, testDatabase } from '../../support/object-database.ts';
import { createDice, type Dice } from '../../support/seeded.ts';
import { createTestClock } from '../../support/test-clock.ts';

/** The steps of one seed. */
const STEPS = 60;
const HOUR_MS = 60 * 60_000;
const RETENTION_MS = 20 * HOUR_MS;
/** Tips left last that stale clients know: about the older half of them may be dropped. */
const RECENT = 8;
const BRANCHES = ['a', 'b', 'c', 'd', 'e'].map((name) => refName(`refs/heads/${name}`));
const NEVER = new AbortController().signal;

const COMPACTION_POINTS = FAILPOINTS.filter((point) => /^(compaction|dropping)-/.test(point));

class Killed extends Error {
  override readonly name = 'Killed';
}

interface LeftTip {
  readonly id: ObjectId;
  readonly leftAt: Timestamp;
}

/** What a process holds: a kill loses all of it. */
interface Process {
  readonly node: TestNode;
  readonly database: TestDatabase;
}

/** A push says what it believes a ref to name. */
type Command = PushCommand & { readonly before: ObjectId | null };

type FailpointHook = (point: FailpointName) => Promise<void>;

const LIVES: FailpointHook = async () => undefined;

class LayerLife {
  readonly counts = new Map<string, number>();
  readonly #dice: Dice;
  readonly #folder = temporaryFolder('layer-life');
  readonly #client: TestRepository;
  readonly #events = createMemoryEventStore();
  readonly #clock = createTestClock();
  readonly #layers: LayerStore;
  readonly #marks = createMemoryPolicyMarks();
  readonly #commits: ObjectId[] = [];
  readonly #unpacked = new Set<string>();
  #refs = new Map<string, ObjectId>();
  #left: LeftTip[] = [];
  #process: Process | null = null;
  #account: AccountId | null = null;
  #repository: RepositoryId | null = null;
  #checks = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
    this.#client = testRepository(join(this.#folder.path, 'client'));
    this.#layers = createMemoryLayerStore(() => this.#clock.now());
  }

  async start(): Promise<void> {
    const { node } = await this.#running();
    this.#account = await newAccount(node, 'ada');
    this.#repository = (await newRepository(node, this.#account, 'r', 'a')).id;
  }

  /** Takes one step, and says which. */
  async step(): Promise<string> {
    const [name, run] = this.#choose();
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    await run();
    return name;
  }

  #choose(): readonly [string, () => Promise<void>] {
    const steps = [
      [6, 'push', () => this.#pushOn()],
      [4, 'forced push', () => this.#forcePush()],
      [3, 'deletion', () => this.#delete()],
      [3, 'stale push', () => this.#stalePush()],
      [2, 'return of a left tip', () => this.#returnTip()],
      [2, 'half refused push', () => this.#halfRefused()],
      [2, 'killed push', () => this.#killedPush()],
      [3, 'compaction', () => this.#compact(LIVES)],
      [6, 'raced compaction', () => this.#compact(this.#racing())],
      [3, 'killed compaction', () => this.#killedCompaction()],
      [5, 'hours', async () => this.#clock.advance((1 + this.#dice.below(24)) * HOUR_MS)],
      [2, 'expiry', () => this.#expire()],
      [1, 'sweep', () => this.#sweep()],
      [1, 'restart', () => this.kill()],
    ] as const;
    let at = this.#dice.below(steps.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, name, run] of steps) {
      if (at < weight) return [name, run];
      at -= weight;
    }
    throw new RangeError('The weights do not add up');
  }

  async #running(): Promise<Process> {
    if (this.#process === null) {
      const node = await startNode(this.#events, { clock: this.#clock });
      this.#process = { node, database: await testDatabase({ layers: this.#layers }) };
    }
    return this.#process;
  }

  async kill(): Promise<void> {
    const running = this.#process;
    this.#process = null;
    if (running === null) return;
    await running.node.entities.close();
    await running.database.close();
  }

  async close(): Promise<void> {
    await this.kill();
    this.#folder.remove();
  }

  async #found(): Promise<FoundRepository> {
    const { node } = await this.#running();
    await node.entities.barrier();
    const found = await findRepositoryById(node, this.#account ?? assert.fail(), this.#repository ?? assert.fail());
    return found ?? assert.fail('the repository is gone');
  }

  #commit(parent: ObjectId | null): ObjectId {
    const files = {
      [`file-${this.#dice.below(6)}`]: randomBytes(200 + this.#dice.below(3_000)),
      // Trees that deltas are made of.
      [`folder/${this.#dice.below(40)}`]: `${this.#commits.length}\n`,
    };
    const id = this.#client.commit(files, { branch: 'work', parents: parent === null ? [] : [parent] });
    this.#commits.push(id);
    return id;
  }

  #branch(): string {
    return this.#dice.pick(BRANCHES);
  }

  #pushOn(): Promise<void> {
    const ref = this.#branch();
    return this.#push([[ref, this.#commit(this.#refs.get(ref) ?? null)]]);
  }

  #forcePush(): Promise<void> {
    const parent = this.#commits.length === 0 || this.#dice.chance(0.3) ? null : this.#dice.pick(this.#commits);
    return this.#push([[this.#branch(), this.#commit(parent)]]);
  }

  async #delete(): Promise<void> {
    if (this.#refs.size > 0) await this.#push([[this.#dice.pick([...this.#refs.keys()]), null]]);
  }

  /** The client believes that the server still has what refs left: its pack is thin on objects that may be gone. */
  async #stalePush(): Promise<void> {
    const recent = this.#left.slice(-RECENT);
    if (recent.length === 0) return this.#pushOn();
    const { id } = this.#dice.pick(recent);
    await this.#push([[this.#branch(), this.#commit(id)]], { believed: recent.map((tip) => tip.id) });
  }

  /** The pack is empty: only the committed layers can hold the tip. */
  async #returnTip(): Promise<void> {
    const recent = this.#left.slice(-RECENT);
    if (recent.length === 0) return this.#pushOn();
    const { id } = this.#dice.pick(recent);
    await this.#push([[this.#branch(), id]], { believed: [...this.#commits] });
  }

  /** The objects of the refused command are committed, and no ref ever reaches them. */
  #halfRefused(): Promise<void> {
    const refused = this.#commit(null);
    const ref = this.#branch();
    const wrong = { ref: refName('refs/heads/refused'), before: refused, after: refused };
    return this.#push([[ref, this.#commit(this.#refs.get(ref) ?? null)]], { more: [wrong] });
  }

  #killedPush(): Promise<void> {
    const ref = this.#branch();
    const dies = this.#dice.pick([
      'push-pack-received',
      'push-layer-stored',
      'push-appended',
      'push-installed',
    ] as const);
    return this.#push([[ref, this.#commit(this.#refs.get(ref) ?? null)]], { failpoint: killAt(dies) });
  }

  async #push(
    moves: readonly (readonly [ref: string, after: ObjectId | null])[],
    more: {
      readonly believed?: readonly ObjectId[];
      readonly more?: readonly Command[];
      readonly failpoint?: FailpointHook;
    } = {},
  ): Promise<void> {
    const { node, database } = await this.#running();
    const repository = await this.#found();
    const wanted = moves.map(([ref, after]) => ({ ref: refName(ref), before: this.#refs.get(ref) ?? null, after }));
    const commands = [...wanted, ...(more.more ?? [])];
    const after = commands.flatMap((command) => command.after ?? []);
    const have = [...this.#refs.values(), ...(more.believed ?? [])].map((id) => `^${id}`);
    const context = {
      ...node,
      layers: layersIn(this.#layers),
      objects: database.database,
      failpoint: more.failpoint ?? LIVES,
      onLayer: () => undefined,
      usage: { usageOf: async () => ({ storageBytes: 0, transferBytes: 0, ingressBytes: 0 }) },
    };
    const push = {
      ...{ repository, quotas: DEFAULT_PLANS.PRO, cause: CAUSE, guarding: async () => ({ guards: [] }) },
      ...{ commands, refusedNames: 0, atomic: false, pushOptions: [], receivedBytes: () => 500, signal: NEVER },
      door: 'git' as const,
      pack: after.length === 0 ? null : once(this.#client.pack([...after, ...have], { thin: true })),
    };
    let outcome: PushOutcome;
    try {
      outcome = await pushRefs(context, push);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      await this.kill();
      return this.#learn(wanted);
    }
    if ('refused' in outcome) return this.#note(`refused: ${outcome.refused.code}`);
    for (const [index, { ref, before, after: moved }] of wanted.entries()) {
      const code = outcome.results[index]?.code ?? null;
      if (code === null) this.#move(ref, before, moved);
      else this.#note(`refused: ${code}`);
    }
  }

  /** A push whose process died is there whole, or not at all. */
  async #learn(commands: readonly Command[]): Promise<void> {
    const refs = (await this.#found()).entity.state.refs;
    const done = commands.filter(({ ref, after }) => (refs.get(ref)?.id ?? null) === after);
    assert.ok(done.length === 0 || done.length === commands.length, 'half a push is there');
    for (const { ref, before, after } of done) this.#move(ref, before, after);
  }

  #move(ref: string, before: ObjectId | null, after: ObjectId | null): void {
    if (before !== null && before !== after) this.#left.push({ id: before, leftAt: this.#clock.now() });
    if (after === null) this.#refs.delete(ref);
    else this.#refs.set(ref, after);
  }

  #note(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** A failpoint at which others push before the compaction goes on. */
  #racing(): FailpointHook {
    let left = 1 + this.#dice.below(3);
    return async () => {
      if (left === 0) return;
      left -= 1;
      const [, push] = this.#dice.pick([
        ['push', () => this.#pushOn()],
        ['forced push', () => this.#forcePush()],
        ['deletion', () => this.#delete()],
        ['stale push', () => this.#stalePush()],
        ['stale push', () => this.#stalePush()],
        ['return', () => this.#returnTip()],
        ['return', () => this.#returnTip()],
      ] as const);
      await push();
    };
  }

  async #killedCompaction(): Promise<void> {
    try {
      await this.#compact(killAt(this.#dice.pick(COMPACTION_POINTS)));
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      await this.kill();
    }
  }

  async #compact(failpoint: FailpointHook): Promise<void> {
    // Most compactions are to find something that has just become old enough to be dropped.
    if (this.#dice.chance(0.7)) this.#clock.advance(this.#dice.below(16) * HOUR_MS);
    const { node, database } = await this.#running();
    const context = { ...node, layers: layersIn(this.#layers), objects: database.database, failpoint };
    const of = { account: this.#account ?? assert.fail(), repository: this.#repository ?? assert.fail() };
    const outcome = await dropUnreached(
      { ...context, retentionMs: RETENTION_MS, notifiedTo: async () => null },
      of,
      NEVER,
    );
    this.#note(`dropping: ${outcome}`);
    while ((await compactLayers(context, of, NEVER)) === 'compacted') this.#note('compaction: compacted');
  }

  async #expire(): Promise<void> {
    const { node } = await this.#running();
    const past = createPastEntities({
      ...{ ...node, snapshots: createMemorySnapshots(), onFault: () => undefined },
      complete: async (event) => event,
    });
    const noManifests = { beforeRemoval: async () => undefined };
    const parts = { marks: this.#marks, layers: layersIn(this.#layers), past, log: keepLog(), ...noManifests };
    await expireLayers({ ...node, ...parts, retentionMs: RETENTION_MS }, NEVER);
  }

  async #sweep(): Promise<void> {
    const { node } = await this.#running();
    await sweepLayers(
      { ...node, layers: this.#layers, log: keepLog(), onSwept: () => this.#note('swept layer') },
      NEVER,
    );
  }

  /**
   * Checks the refs, and a plain repository made of nothing but the committed layers of the store: it lacks no object
   * that another one names, and holds the closure of every tip that a ref had within the retention.
   */
  async check(): Promise<void> {
    const found = await this.#found();
    const { refs, layers } = found.entity.state;
    const there = [...refs.entries()].map(([name, ref]) => `${ref.id} ${name}`);
    assert.deepEqual(there.toSorted(byText), Array.from(this.#refs, ([name, id]) => `${id} ${name}`).toSorted(byText));
    const bare = join(this.#folder.path, 'bare');
    rmSync(bare, { recursive: true, force: true });
    mkdirSync(join(bare, 'objects', 'pack'), { recursive: true });
    mkdirSync(join(bare, 'refs'));
    writeFileSync(join(bare, 'HEAD'), 'ref: refs/heads/a\n');
    for (const layer of layers) await this.#untar(layer.key, layer.id, join(bare, 'objects', 'pack'));
    const oldest = plusMs(this.#clock.now(), -RETENTION_MS);
    const kept = this.#left.filter(({ leftAt }) => leftAt > oldest).map(({ id }) => id);
    const tips = [...this.#refs.values(), ...kept];
    runGit(['-C', bare, 'rev-list', '--objects', '--quiet', '--stdin'], {
      input: tips.map((id) => `${id}\n`).join(''),
    });
    // Not only what refs reach: later pushes are checked against every object of the layers.
    runGit(['-C', bare, 'fsck', '--full', '--no-dangling']);
    this.#checks += 1;
    if (this.#checks % 8 === 0) await this.#readCold(found);
  }

  /** Links the pack of a layer into a folder. A layer is unpacked once. */
  async #untar(key: LayerKey, id: string, target: string): Promise<void> {
    const folder = join(this.#folder.path, 'layers', id);
    assert.notEqual(await this.#layers.head(key), null, 'a committed layer is gone');
    if (!this.#unpacked.has(id)) {
      mkdirSync(folder, { recursive: true });
      const tar = Buffer.concat(await Array.fromAsync(await this.#layers.get(key)));
      execFileSync('tar', ['-xf', '-', '-C', folder], { input: tar });
      this.#unpacked.add(id);
    }
    const packs = join(folder, 'objects', 'pack');
    // Two layers may hold the same pack.
    for (const name of readdirSync(packs)) {
      rmSync(join(target, name), { force: true });
      linkSync(join(packs, name), join(target, name));
    }
  }

  /** Reads every tip on a node with an empty cache. */
  async #readCold(repository: FoundRepository): Promise<void> {
    const cold = await testDatabase({ layers: this.#layers });
    try {
      const reader = await cold.database.open(committedObjects(repository, repository.entity));
      const tips = [...this.#refs.values()];
      const reached = await reader.reachable(tips, tips, 'all');
      assert.equal(reached.size, new Set(tips).size);
      reader.close();
    } finally {
      await cold.close();
    }
  }
}

function byText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function killAt(dies: FailpointName): FailpointHook {
  return async (point) => {
    if (point === dies) throw new Killed(`Killed at ${point}`);
  };
}

/** Lives one seed, to its end or until the time. Returns how often each thing happened. */
async function live(seed: number, end: number): Promise<ReadonlyMap<string, number>> {
  const life = new LayerLife(createDice(seed));
  const steps: string[] = [];
  try {
    await life.start();
    for (let n = 0; n < STEPS && performance.now() < end; n += 1) {
      steps.push(await life.step());
      await life.check();
    }
    return life.counts;
  } catch (error) {
    const how = `repeat it with STRATA_LAYER_LIFE_SEED=${seed}`;
    throw new Error(`Layers were lost after ${steps.length} steps: ${how}\n${steps.join(', ')}`, { cause: error });
  } finally {
    await life.close();
  }
}

/** Lives the seed of STRATA_LAYER_LIFE_SEED, or new seeds for this long. Returns what happened, for the report. */
export async function liveFor(spanMs: number): Promise<string> {
  const given = process.env['STRATA_LAYER_LIFE_SEED'];
  const first = given === undefined ? Date.now() % 2 ** 31 : Number(given);
  const end = given === undefined ? performance.now() + spanMs : Number.POSITIVE_INFINITY;
  const counts = new Map<string, number>();
  let seed = first;
  do {
    for (const [what, count] of await live(seed, end)) counts.set(what, (counts.get(what) ?? 0) + count);
    seed += 1;
  } while (given === undefined && performance.now() < end);
  const listed = [...counts].map(([what, count]) => `${count} × ${what}`).sort();
  return `Seeds ${first} to ${seed - 1}: ${listed.join(', ')}`;
}
