/** Folds a repository's events. The caller has put the updates of a wide push back into `RefsUpdated.updates`. */
import type { ObjectType } from '../git/objects.ts';
import { branchOfRef, refName } from '../git/ref-name.ts';
import { AppendList } from '../kernel/append-list.ts';
import { converted, flag, list, nullable, number, object, parsed, text, time, tuple } from '../kernel/codec.ts';
import type { Decider, Parts, SnapshotCodec } from '../kernel/decider.ts';
import { objectId, plusMs, type Timestamp } from '../kernel/ids.ts';
import type { JsonValue } from '../kernel/json.ts';
import { LEFT_TIP_SPAN_MS } from '../kernel/limits.ts';
import { PersistentMap } from '../kernel/persistent-map.ts';
import { type LayersExpired, type RefsUpdated, type RepositoryEvent, repositoryEventKinds } from './events.ts';
import type { Layer } from './layer.ts';
import {
  changeLayers,
  dropsObjects,
  endsRestoration,
  grownBytes,
  layersChangeOf,
  NO_LAYERS,
  storedLayer,
} from './layers.ts';
import { changeRefs, type RefRun, refRuns, refsOfRuns } from './ref-runs.ts';
import { type LeftTip, type OpenRepository, type Ref, type Repository, refMemoryBytes } from './state.ts';
import { leavesObjects } from './unreached.ts';

/** Tips that refs of a repository left within `LEFT_TIP_SPAN_MS`, which a fetch may still want: the newest. */
export const LEFT_TIPS_MAX = 10_000;

function evolveRepository(state: Repository, event: RepositoryEvent, at: Timestamp): Repository {
  switch (event.type) {
    case 'RefsUpdated':
      return evolveRefs(open(state, event), event, at);
    case 'DefaultBranchChanged':
      return { ...open(state, event), defaultBranch: event.data.default_branch };
    case 'LayersCompacted': {
      const { clean } = event.data;
      const compacted = withLayersOf(open(state, event), event);
      const drops = dropsObjects(event);
      const since = drops ? at : compacted.uncleanSince;
      // Merged layers hold the same objects as before.
      const onceReached = drops ? event.data.once_reached : compacted.onceReached;
      // If the layers are clean, objects that only earlier tips reach are gone, so nobody can fetch those tips.
      const leftTips = clean ? NO_LEFT_TIPS : compacted.leftTips;
      return { ...compacted, clean, uncleanSince: clean ? null : since, onceReached, leftTips };
    }
    case 'LayersExpired': {
      if (state.status === 'open') return withExpired(state, event);
      const expired = state.expired || endsRestoration(event);
      return { ...state, before: withExpired(state.before, event), expired };
    }
    case 'RepositoryClosed':
      return { status: 'closed', before: open(state, event), closedAt: at, expired: false };
    case 'RepositoryReopened':
      if (state.status !== 'closed' || state.expired) throw misplaced(event, state);
      return state.before;
  }
}

function open(state: Repository, event: RepositoryEvent): OpenRepository {
  if (state.status !== 'open') throw misplaced(event, state);
  return state;
}

function misplaced({ type }: RepositoryEvent, state: Repository): TypeError {
  const expired = state.status === 'closed' && state.expired;
  return new TypeError(`${type} on a repository that is ${expired ? 'closed and expired' : state.status}`);
}

function withLayersOf(state: OpenRepository, event: RepositoryEvent): OpenRepository {
  const change = layersChangeOf(event);
  if (change === null) return state;
  return { ...state, ...changeLayers(state, change), layersSizeBytes: state.layersSizeBytes + grownBytes(change) };
}

function withExpired(state: OpenRepository, event: LayersExpired): OpenRepository {
  const expiredThrough = Math.max(state.expiredThrough, event.data.compacted_at ?? -1);
  return { ...withLayersOf(state, event), expiredThrough };
}

function evolveRefs(state: OpenRepository, event: RefsUpdated, at: Timestamp): OpenRepository {
  const { data } = event;
  if (data.parts !== null && data.updates.length === 0) {
    throw new TypeError(`The updates of push ${data.push_id} are in parts that were not read`);
  }
  const clean = state.clean && !leavesObjects(data);
  return {
    ...withLayersOf(state, event),
    refs: changeRefs(
      state.refs,
      data.updates.map((update) => [refName(update.ref), storedRef(update)] as const),
    ),
    clean,
    uncleanSince: clean ? null : (state.uncleanSince ?? at),
    onceReached: state.onceReached && (data.layer === null || data.once_reached),
    hadBranch:
      state.hadBranch || data.updates.some(({ ref, kind }) => kind === 'create' && branchOfRef(refName(ref)) !== null),
    pushedAt: at,
    leftTips: leftTips(state.leftTips, data.updates, at),
  };
}

function leftTips(
  before: readonly LeftTip[],
  updates: RefsUpdated['data']['updates'],
  at: Timestamp,
): readonly LeftTip[] {
  const oldest = plusMs(at, -LEFT_TIP_SPAN_MS);
  const left = updates.flatMap((update): LeftTip[] =>
    update.kind === 'delete' || update.kind === 'force-push' ? [{ id: objectId(update.before), leftAt: at }] : [],
  );
  const kept = before.filter((tip) => tip.leftAt >= oldest);
  return kept.length === 0 && left.length === 0 ? NO_LEFT_TIPS : [...kept, ...left].slice(-LEFT_TIPS_MAX);
}

const NO_LEFT_TIPS: readonly LeftTip[] = [];

function storedRef(update: RefsUpdated['data']['updates'][number]): Ref | undefined {
  if (update.kind === 'delete' || update.type === null) return undefined;
  return {
    id: objectId(update.after),
    type: update.type,
    peeled: update.peeled === null ? null : objectId(update.peeled),
  };
}

const NO_REFS: OpenRepository['refs'] = PersistentMap.from([], refMemoryBytes);

/** What parts do not hold. If its meaning changes, raise the version of the snapshot. */
const openRepository = object<Omit<OpenRepository, 'status' | 'refs' | 'layersSizeBytes'>>({
  defaultBranch: nullable(text),
  layers: converted(
    list(storedLayer),
    (layers: AppendList<Layer>) => [...layers],
    (layers) => AppendList.from(layers),
  ),
  shrinkEpoch: number,
  keptSinceEpoch: nullable(number),
  clean: flag,
  uncleanSince: nullable(time),
  onceReached: flag,
  hadBranch: flag,
  pushedAt: nullable(time),
  leftTips: list(
    converted(
      tuple(parsed(objectId), time),
      ({ id, leftAt }: LeftTip) => [id, leftAt] as const,
      ([id, leftAt]) => ({ id, leftAt }),
    ),
  ),
  expiredThrough: number,
});

/**
 * A part: a run of refs, in their order, so that they need no sorting when they are read. Written and read without a
 * codec, which takes a fifth more time: a repository may have some 200,000 refs.
 */
type StoredRun = readonly (readonly [name: string, id: string, type: ObjectType, peeled: string | null])[];

/** The cast is sound because only `writeRuns` below makes parts of a snapshot of this version. */
function parseRun(part: JsonValue): RefRun {
  return (part as StoredRun).map(([name, id, type, peeled]) => ({
    name: refName(name),
    id: objectId(id),
    type,
    peeled: peeled === null ? null : objectId(peeled),
  }));
}

function* writeRuns(state: Repository): Generator<StoredRun> {
  if (state.status === 'closed') return;
  for (const run of refRuns(state.refs)) yield run.map(({ name, id, type, peeled }) => [name, id, type, peeled]);
}

async function readRuns(state: Repository, parts: Parts): Promise<Repository> {
  if (state.status === 'closed') return state;
  return { ...state, refs: await refsOfRuns(parsedRuns(parts), refMemoryBytes) };
}

async function* parsedRuns(parts: Parts): AsyncGenerator<RefRun> {
  for await (const part of parts) yield parseRun(part);
}

const repositorySnapshots: SnapshotCodec<Repository> = {
  version: 6,
  write: (state) => (state.status === 'open' ? openRepository.write(state) : null),
  read(snapshot) {
    const stored = openRepository.read(snapshot);
    const layersSizeBytes = [...stored.layers].reduce((sum, layer) => sum + layer.sizeBytes, 0);
    return { ...stored, status: 'open', refs: NO_REFS, layersSizeBytes };
  },
  parts: { write: writeRuns, read: readRuns },
};

export const repositories: Decider<Repository, RepositoryEvent> = {
  category: 'repository',
  kinds: repositoryEventKinds,
  initial: {
    status: 'open',
    defaultBranch: null,
    refs: NO_REFS,
    ...NO_LAYERS,
    layersSizeBytes: 0,
    clean: true,
    uncleanSince: null,
    onceReached: true,
    hadBranch: false,
    pushedAt: null,
    leftTips: NO_LEFT_TIPS,
    expiredThrough: -1,
  },
  evolve: evolveRepository,
  snapshots: repositorySnapshots,
  sizeBytes: (state) => sizeBytesOf(state.status === 'open' ? state : state.before),
};

function sizeBytesOf({ refs, layers, leftTips }: OpenRepository): number {
  return 500 + refs.weight + 800 * layers.length + 150 * leftTips.length;
}
