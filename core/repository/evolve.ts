/** Folds a repository's events. A wide push's updates were put back in place before (`RefsUpdated.updates`). */
import { branchOfRef, type RefName, refName } from '../git/ref-name.ts';
import { AppendList } from '../kernel/append-list.ts';
import type { Decider, SnapshotCodec } from '../kernel/decider.ts';
import { type LayerId, objectId, plusMs, type Timestamp, timestamp, uuid } from '../kernel/ids.ts';
import type { JsonObject } from '../kernel/json.ts';
import { LEFT_TIP_SPAN_MS, LEFT_TIPS_MAX } from '../kernel/limits.ts';
import { PersistentMap } from '../kernel/persistent-map.ts';
import { layerKey } from '../ports/layer-store.ts';
import type { Layer, ObjectType } from '../ports/object-database.ts';
import { type RefsUpdated, type RepositoryEvent, repositoryEventKinds, type StoredLayer } from './events.ts';
import type { LeftTip, OpenRepository, Ref, Repository } from './state.ts';

function evolveRepository(state: Repository, event: RepositoryEvent, at: Timestamp): Repository {
  if (state.status === 'closed') throw new TypeError(`${event.type} on a repository that is closed`);
  switch (event.type) {
    case 'RefsUpdated':
      return evolveRefs(state, event.data, at);
    case 'DefaultBranchChanged':
      return { ...state, defaultBranch: event.data.default_branch };
    case 'RepositoryClosed':
      return { status: 'closed' };
  }
}

function evolveRefs(state: OpenRepository, data: RefsUpdated['data'], at: Timestamp): OpenRepository {
  if (data.parts !== null && data.updates.length === 0) {
    throw new TypeError(`The updates of push ${data.push_id} stand in parts that were not read`);
  }
  return {
    ...state,
    refs: state.refs.with(data.updates.map((update) => [refName(update.ref), storedRef(update)] as const)),
    layers: data.layer === null ? state.layers : state.layers.append(layerOf(data.layer)),
    layersSizeBytes: state.layersSizeBytes + (data.layer?.size_bytes ?? 0),
    clean:
      state.clean && data.refused === 0 && data.updates.every((u) => u.kind === 'create' || u.kind === 'fast-forward'),
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

/** Each weighs the bytes of memory it takes, with its place in the sorted names and among the tips. */
function refsFrom(refs: Iterable<readonly [RefName, Ref]>): OpenRepository['refs'] {
  return PersistentMap.from(refs, (name) => 350 + 2 * name.length);
}

function layerOf(stored: StoredLayer): Layer {
  return {
    id: uuid<LayerId>(stored.id),
    key: layerKey(stored.key),
    sizeBytes: stored.size_bytes,
    sha256: stored.sha256,
    pack: stored.pack,
  };
}

/** The stored form; written and read only here. */
type RepositorySnapshot = {
  readonly defaultBranch: string | null;
  readonly refs: readonly (readonly [string, string, ObjectType, string | null])[];
  readonly layers: readonly StoredLayer[];
  readonly shrinkEpoch: number;
  readonly clean: boolean;
  readonly hadBranch: boolean;
  readonly pushedAt: string | null;
  readonly leftTips: readonly (readonly [string, string])[];
};

/** Only `write` below makes snapshots of this version. */
function parseSnapshot(snapshot: JsonObject): RepositorySnapshot {
  return snapshot as RepositorySnapshot;
}

const repositorySnapshots: SnapshotCodec<Repository> = {
  version: 2,
  write(state) {
    if (state.status === 'closed') return null;
    const { defaultBranch, shrinkEpoch, clean, hadBranch, pushedAt } = state;
    const refs = [...state.refs.entries()].map(([name, ref]) => [name, ref.id, ref.type, ref.peeled] as const);
    const layers = [...state.layers].map((layer) => ({
      id: layer.id,
      key: layer.key,
      size_bytes: layer.sizeBytes,
      sha256: layer.sha256,
      pack: layer.pack,
    }));
    const left = state.leftTips.map(({ id, leftAt }) => [id, leftAt] as const);
    const whole = { defaultBranch, refs, layers, shrinkEpoch, clean, hadBranch, pushedAt, leftTips: left };
    return whole satisfies RepositorySnapshot;
  },
  read(snapshot) {
    const stored = parseSnapshot(snapshot);
    const layers = stored.layers.map(layerOf);
    return {
      status: 'open',
      defaultBranch: stored.defaultBranch,
      refs: refsFrom(
        stored.refs.map(([name, id, type, peeled]) => [
          refName(name),
          { id: objectId(id), type, peeled: peeled === null ? null : objectId(peeled) },
        ]),
      ),
      layers: AppendList.from(layers),
      layersSizeBytes: layers.reduce((sum, layer) => sum + layer.sizeBytes, 0),
      shrinkEpoch: stored.shrinkEpoch,
      clean: stored.clean,
      hadBranch: stored.hadBranch,
      pushedAt: stored.pushedAt === null ? null : timestamp(stored.pushedAt),
      leftTips: stored.leftTips.map(([id, leftAt]) => ({ id: objectId(id), leftAt: timestamp(leftAt) })),
    };
  },
};

export const repositories: Decider<Repository, RepositoryEvent> = {
  category: 'repository',
  kinds: repositoryEventKinds,
  initial: {
    status: 'open',
    defaultBranch: null,
    refs: refsFrom([]),
    layers: AppendList.from([]),
    layersSizeBytes: 0,
    shrinkEpoch: 0,
    clean: true,
    hadBranch: false,
    pushedAt: null,
    leftTips: NO_LEFT_TIPS,
  },
  evolve: evolveRepository,
  snapshots: repositorySnapshots,
  sizeBytes: (state) =>
    state.status === 'open' ? 500 + state.refs.weight + 800 * state.layers.length + 150 * state.leftTips.length : 100,
};
