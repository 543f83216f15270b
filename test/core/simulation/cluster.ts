/**
 * A simulated cluster: several nodes on one log, and clients that push, read, create and delete at random. Every call
 * to the log is delayed, and some calls fail.
 *
 * Invariants: the seed determines the whole run, so a failure can be repeated with its seed.
 */
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import { refName } from '../../../core/git/ref-name.ts';
import { LOG_START, type RecordedEvent } from '../../../core/kernel/envelope.ts';
import { type AccountId, type ObjectId, objectId } from '../../../core/kernel/ids.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { pushRefs } from '../../../core/use-cases/pushing/push-refs.ts';
import {
  createRepository,
  deleteRepository,
  type FoundRepository,
  findRepository,
} from '../../../core/use-cases/repositories/repositories.ts';
import { newAccount } from '../../support/accounts.ts';
import { createFakeObjects } from '../../support/fake-objects.ts';
import { layersIn } from '../../support/layers-in.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../support/memory/layer-store.ts';
import { createMemorySnapshots } from '../../support/memory/snapshots.ts';
import { createMemoryVault } from '../../support/memory/vault.ts';
import { CAUSE, startNode, type TestNode } from '../../support/node.ts';
import { onePack } from '../../support/pushing.ts';
import { createDice, createScheduler, type Dice, type Scheduler } from '../../support/seeded.ts';
import { createTestClock } from '../../support/test-clock.ts';
import { watchLog } from '../../support/watched-log.ts';
import type { PushOperation, ReadOperation } from './history.ts';

const NODES = 3;
const CLIENTS = 6;
const OPERATIONS_PER_CLIENT = 12;
const NAMES = ['one', 'two'];
const REFS = ['refs/heads/main', 'refs/heads/a', 'refs/heads/a/b', 'refs/tags/v1'].map(refName);
/** Memory for a few entities, so that most are dropped before they are used again. */
const CACHE_BYTES = 6_000;
const FAULT_PROBABILITY = 0.01;

export interface Run {
  readonly log: readonly RecordedEvent[];
  readonly reads: readonly ReadOperation[];
  readonly pushes: readonly PushOperation[];
  /** What each node returns for each repository after all clients have ended. */
  readonly finally: readonly ReadOperation[];
}

interface World {
  readonly store: EventStore;
  readonly dice: Dice;
  readonly scheduler: Scheduler;
  readonly nodes: TestNode[];
  readonly account: AccountId;
  readonly reads: ReadOperation[];
  readonly pushes: PushOperation[];
  faulty: boolean;
  lastOperation: number;
  lastObject: number;
}

export async function simulate(seed: number): Promise<Run> {
  const dice = createDice(seed);
  const scheduler = createScheduler(dice);
  const store = createMemoryEventStore();
  const shared = { snapshots: createMemorySnapshots(), vault: createMemoryVault() };
  const account = await newAccount(await startNode(store, shared), 'ada');
  const world: World = {
    ...{ store, dice, scheduler, account, nodes: [], reads: [], pushes: [] },
    ...{ faulty: false, lastOperation: 0, lastObject: 0 },
  };
  const start = () => startSimulatedNode(world, shared);
  await scheduler.run(
    (async () => {
      for (let n = 0; n < NODES; n += 1) world.nodes.push(await start());
      world.faulty = true;
      await Promise.all([...Array.from({ length: CLIENTS }, () => client(world)), restarts(world, start)]);
    })(),
  );
  world.faulty = false;
  scheduler.stopPausing();
  const last: ReadOperation[] = [];
  for (const node of world.nodes) for (const name of NAMES) last.push(await read(world, node, name));
  return { log: await store.readAll(LOG_START, 100_000), reads: world.reads, pushes: world.pushes, finally: last };
}

/** Starts a node whose calls to the log are delayed and sometimes fail. */
async function startSimulatedNode(world: World, shared: Parameters<typeof startNode>[1]): Promise<TestNode> {
  const { dice, scheduler } = world;
  const log = watchLog(world.store);
  const delayed = async (): Promise<void> => {
    await scheduler.pause();
    if (world.faulty && dice.chance(FAULT_PROBABILITY)) throw new Error('simulated fault');
  };
  Object.assign(log.on, {
    ...{ append: delayed, appended: delayed, read: delayed },
    ...{ head: delayed, headTaken: delayed, deliver: delayed },
  });
  const complete = async (event: RecordedEvent): Promise<RecordedEvent> => {
    await scheduler.pause();
    return event;
  };
  const clock = createTestClock();
  // The nodes' clocks differ by hours, which must not matter.
  clock.advance(dice.below(10_000_000));
  return startNode(log, { ...shared, clock, complete, cacheSizeBytesMax: CACHE_BYTES });
}

/** Replaces nodes at random times by new ones with nothing in memory, as after a crash. */
async function restarts({ nodes, dice, scheduler }: World, start: () => Promise<TestNode>): Promise<void> {
  for (let n = 0; n < 2; n += 1) {
    for (let turn = dice.below(400); turn > 0; turn -= 1) await scheduler.pause();
    const place = dice.below(nodes.length);
    const old = nodes[place];
    nodes[place] = await started(start);
    await old?.entities.close();
  }
}

/** Retries until the node starts: a simulated fault may prevent it from reading the head. */
async function started(start: () => Promise<TestNode>): Promise<TestNode> {
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (!isSimulated(error)) throw error;
    }
  }
}

async function client(world: World): Promise<void> {
  const { dice, nodes } = world;
  for (let n = 0; n < OPERATIONS_PER_CLIENT; n += 1) {
    const node = dice.pick(nodes);
    const name = dice.pick(NAMES);
    try {
      const what = dice.below(20);
      if (what < 9) world.reads.push(await read(world, node, name));
      else if (what < 18) await push(world, node, name);
      else if (what < 19) await create(world, node, name);
      else await remove(world, node, name);
    } catch (error) {
      if (!isSimulated(error)) throw error;
    }
  }
}

/** Returns whether an error is a simulated fault, or comes from a node that was closed in between. */
function isSimulated(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return error instanceof Error && (error.message === 'simulated fault' || code === 'log-unavailable');
}

async function read(world: World, node: TestNode, name: string): Promise<ReadOperation> {
  const id = `read-${(world.lastOperation += 1)}`;
  const from = await world.store.head();
  await node.entities.barrier();
  const found = await findRepository(node, 'ada', name);
  const seen = found === null ? null : seenOf(found);
  return { id, from, to: await world.store.head(), name, seen };
}

function seenOf({ entity }: FoundRepository): NonNullable<ReadOperation['seen']> {
  const refs = Object.fromEntries([...entity.state.refs.entries()].map(([ref, { id }]) => [ref, id]));
  return { stream: entity.stream, revision: entity.revision, refs };
}

async function push(world: World, node: TestNode, name: string): Promise<void> {
  const { dice } = world;
  const id = `push-${(world.lastOperation += 1)}`;
  const from = await world.store.head();
  await node.entities.barrier();
  const repository = await findRepository(node, 'ada', name);
  if (repository === null) return;
  const commands = commandsOf(world, repository);
  const { stream } = repository.entity;
  const done = async (outcome: PushOperation['outcome']): Promise<void> => {
    world.pushes.push({ id, from, to: await world.store.head(), stream, commands, outcome });
  };
  const context = {
    ...node,
    layers: layersIn(createMemoryLayerStore()),
    objects: createFakeObjects().database,
    onLayer: () => undefined,
    usage: { usageOf: async () => ({ storageBytes: 0, transferBytes: 0, ingressBytes: 0 }) },
  };
  try {
    const outcome = await pushRefs(context, {
      repository,
      quotas: DEFAULT_PLANS.PRO,
      cause: { ...CAUSE, requestId: id },
      guarding: async () => ({ guards: [] }),
      door: 'git',
      commands,
      refusedNames: 0,
      atomic: dice.chance(0.3),
      pushOptions: [],
      pack: commands.some(({ after }) => after !== null) ? onePack() : null,
      receivedBytes: () => 100,
      signal: new AbortController().signal,
    });
    await done('refused' in outcome ? { refused: outcome.refused.code } : outcome.results.map(({ code }) => code));
  } catch (error) {
    await done('unknown');
    throw error;
  }
}

/** Commands for one or more refs: each from the tip that the client read, sometimes from a tip that never was. */
function commandsOf(world: World, { entity }: FoundRepository) {
  const { dice } = world;
  const refs = REFS.filter(() => dice.chance(0.4));
  const chosen = refs.length === 0 ? [dice.pick(REFS)] : refs;
  return chosen.map((ref) => {
    const seen = entity.state.refs.get(ref)?.id ?? null;
    const before = dice.chance(0.1) ? newObject(world) : seen;
    const after = before !== null && dice.chance(0.2) ? null : newObject(world);
    return { ref, before, after };
  });
}

function newObject(world: World): ObjectId {
  world.lastObject += 1;
  return objectId(world.lastObject.toString(16).padStart(40, '1'));
}

async function create(world: World, node: TestNode, name: string): Promise<void> {
  const cause = { ...CAUSE, requestId: `create-${(world.lastOperation += 1)}` };
  await node.entities.barrier();
  const wanted = { name, description: null, defaultBranch: null, storageBucketId: null };
  await createRepository(node, { account: world.account, cause }, wanted);
}

async function remove(world: World, node: TestNode, name: string): Promise<void> {
  const cause = { ...CAUSE, requestId: `delete-${(world.lastOperation += 1)}` };
  await node.entities.barrier();
  const repository = await findRepository(node, 'ada', name);
  if (repository !== null) await deleteRepository(node, { account: world.account, cause }, repository.id);
}
