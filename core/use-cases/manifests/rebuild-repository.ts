/**
 * Makes a repository from a store alone: what its newest manifest names becomes one push of a new repository, with a
 * history of its own.
 *
 * Invariants:
 * - every layer has the SHA-256 of the manifest before a byte of it is used, and the push passes the checks of every
 *   push: whoever owns the store may have written anything there;
 * - the store that is read is not changed;
 * - refs whose names nobody may create any more are left out, and the answer names them;
 * - a manifest of another account is in both logs before anything is in the repository, each once, however often the
 *   work is repeated;
 * - a repository that holds anything is refused. A process that died between the creation and the push leaves an empty
 *   one, which the next try fills.
 */
import type { WantedBucket } from '../../account/buckets/binding.ts';
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import type { PlanQuotas, Plans } from '../../account/plans.ts';
import { branchOfRef, newNameRefusal, parseDefaultBranch, parseRefName, type RefName } from '../../git/ref-name.ts';
import { createLineWriter, createPacketDecoder } from '../../git/wire/pkt-line.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId, RepositoryId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { singleChunk } from '../../kernel/single-chunk.ts';
import type { LayerStore } from '../../ports/layer-store.ts';
import type { ObjectDatabase, ObjectReader } from '../../ports/object-database.ts';
import type { Manifest } from '../../repository/manifest.ts';
import { execute } from '../../runtime/execute.ts';
import { isInAccountLog } from '../accounts/is-in-account-log.ts';
import { type PushContext, type PushOutcome, pushRefs } from '../pushing/push-refs.ts';
import {
  changeRepository,
  createRepository,
  deleteRepository,
  type FoundRepository,
  findRepository,
  type RepositoryCommandOrigin,
} from '../repositories/repositories.ts';
import { type ManifestRef, readManifestRefs } from './read-manifest.ts';

export interface RebuildContext extends PushContext {
  readonly plans: Plans;
  /** Opens objects of the store that is read, by a cache of its own. */
  readonly source: { readonly store: Pick<LayerStore, 'get' | 'list'>; readonly objects: Pick<ObjectDatabase, 'open'> };
}

export interface RebuildWanted {
  readonly manifest: Manifest;
  readonly account: AccountId;
  readonly username: string;
  readonly name: string;
  readonly storageBucketId: WantedBucket;
  /** Whose logs say that the manifest names another account, which is here. Else empty. */
  readonly logs: readonly RepositoryCommandOrigin[];
  readonly cause: Cause;
  readonly signal: AbortSignal;
}

export type RebuildRefusal =
  | { readonly kind: 'exists' }
  /** `detail` follows the words "the refs of the manifest". */
  | { readonly kind: 'refs'; readonly detail: string }
  | { readonly kind: 'creation'; readonly refusal: Refusal }
  | { readonly kind: 'push'; readonly outcome: PushOutcome };

export interface Rebuilt {
  readonly repository: FoundRepository;
  readonly refs: number;
  /** Refs of the manifest that were left out for their names, in their order. */
  readonly leftOut: readonly RefName[];
}

/** An operator's command is held by no quota. What it stores counts afterwards as what was pushed does. */
const NO_QUOTAS: Pick<PlanQuotas, 'storage_bytes' | 'ingress_bytes'> = { storage_bytes: null, ingress_bytes: null };

/** Rejects with an ObjectDatabaseError or a LayerStoreError if a layer is missing, altered or cannot be read. */
export async function rebuildRepository(
  context: RebuildContext,
  wanted: RebuildWanted,
): Promise<Rebuilt | { readonly refused: RebuildRefusal }> {
  const { manifest, account, username, name } = wanted;
  await context.entities.barrier();
  if (isInUse(await findRepository(context, username, name))) return { refused: { kind: 'exists' } };
  const listed = await readManifestRefs(context.source.store, manifest, context.digest);
  if ('invalid' in listed) return { refused: { kind: 'refs', detail: listed.invalid } };
  const refs = listed.filter((ref) => newNameRefusal(ref.name) === null);
  const leftOut = listed.filter((ref) => newNameRefusal(ref.name) !== null).map((ref) => ref.name);
  // Reads and checks every layer before the first event.
  const reader = await context.source.objects.open({
    repository: manifest.repository,
    place: { account, storageBucketId: null },
    revision: manifest.revision,
    shrinkEpoch: 0,
    keptSinceEpoch: null,
    layers: manifest.layers,
  });
  try {
    const created = await createEmpty(context, wanted);
    if ('refused' in created) return created;
    await context.failpoint('repository-created');
    const { repository } = created;
    await recordIn(context, wanted, repository.id);
    if (refs.length === 0) return { repository, refs: 0, leftOut };
    const outcome = await pushAll(context, wanted, repository, { refs, reader });
    const isWhole = 'results' in outcome && outcome.results.every(({ code }) => code === null);
    if (isWhole) return { repository, refs: refs.length, leftOut };
    if (created.isNew) await deleteRepository(context, { account, cause: wanted.cause }, repository.id);
    return { refused: { kind: 'push', outcome } };
  } finally {
    reader.close();
  }
}

/** An account that was never created has no log: the repository is made all the same. */
async function recordIn(context: RebuildContext, { logs, manifest }: RebuildWanted, made: RepositoryId): Promise<void> {
  const source = manifest.repository;
  const members = { repository_id: made, source_repository_id: source };
  for (const { account, cause } of logs) {
    if (await isInAccountLog(context, account, { type: 'RepositoryRebuilt', members })) continue;
    await execute(context, accounts, account, { account, cause }, (state) =>
      decideAccount(state, { type: 'RecordRebuild', repository: made, source }),
    );
  }
}

function isInUse(found: FoundRepository | null): boolean {
  return found !== null && (found.entity.state.refs.size > 0 || found.entity.state.layers.length > 0);
}

/** Creates the repository, or takes the empty one that an earlier try left. */
async function createEmpty(
  context: RebuildContext,
  { manifest, account, username, name, storageBucketId, cause }: RebuildWanted,
): Promise<{ readonly repository: FoundRepository; readonly isNew: boolean } | { readonly refused: RebuildRefusal }> {
  const head = parseRefName(manifest.head);
  const recorded = typeof head === 'string' ? branchOfRef(head) : null;
  // Where the recorded name is refused today, the push chooses the default branch.
  const parsed = recorded === null ? null : parseDefaultBranch(recorded);
  const defaultBranch = typeof parsed === 'string' ? parsed : null;
  const found = await findRepository(context, username, name);
  if (isInUse(found)) return { refused: { kind: 'exists' } };
  const origin = { account, cause };
  const created =
    found === null
      ? await createRepository(context, origin, { name, description: null, defaultBranch, storageBucketId })
      : await changeRepository(context, origin, found.id, defaultBranch === null ? {} : { defaultBranch });
  if ('refused' in created) return { refused: { kind: 'creation', refusal: created.refused } };
  return { repository: created, isNew: found === null };
}

interface Contents {
  readonly refs: readonly ManifestRef[];
  readonly reader: ObjectReader;
}

function pushAll(
  context: RebuildContext,
  { manifest, cause, signal }: RebuildWanted,
  repository: FoundRepository,
  { refs, reader }: Contents,
): Promise<PushOutcome> {
  return pushRefs(context, {
    repository,
    quotas: { ...context.plans[repository.account.plan], ...NO_QUOTAS },
    cause,
    guarding: async () => ({ guards: [] }),
    door: 'admin',
    commands: refs.map(({ name: ref, id }) => ({ ref, before: null, after: id })),
    refusedNames: 0,
    atomic: true,
    pushOptions: [],
    pack: packOf(reader, { refs, head: manifest.head, signal }),
    // Nothing came over the wire.
    receivedBytes: () => 0,
    signal,
  });
}

/** The answer to a clone in protocol 0 without sidebands: a packet that says NAK, and the raw pack. */
async function* packOf(
  reader: ObjectReader,
  { refs, head, signal }: { refs: readonly ManifestRef[]; head: string; signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  const request = createLineWriter();
  for (const [index, id] of [...new Set(refs.map((ref) => ref.id))].entries()) {
    request.line(index === 0 ? `want ${id} ofs-delta no-progress` : `want ${id}`);
  }
  request.flush();
  request.line('done');
  const body = request.bytes();
  const answer = reader.uploadPack({
    view: { key: 'rebuild', head, runs: [refs] },
    protocol: 0,
    request: singleChunk(body),
    answerKey: null,
    signal,
  });
  const packets = createPacketDecoder({ bytesMax: FIRST_PACKET_BYTES_MAX });
  let hasBegun = false;
  for await (const chunk of answer) {
    if (hasBegun) {
      yield chunk;
      continue;
    }
    packets.push(chunk);
    const packet = packets.next();
    if (packet === null) continue;
    if (!('kind' in packet) || packet.kind !== 'data') throw new TypeError('git answered a clone with no packet');
    hasBegun = true;
    yield packets.rest();
  }
}

/** The first packet that git answers a clone with. Internal: it is what this server's own git writes. */
const FIRST_PACKET_BYTES_MAX = 1_024;
