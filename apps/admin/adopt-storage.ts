/**
 * `strata-admin storage adopt`: finds the repositories of a restored log that cannot be read because their store is
 * newer, and gives each the layers of its newest manifest.
 *
 * Invariants: without `yes` it changes nothing. What a repository lacks is judged as `log verify --references` does:
 * by a manifest of a later revision whose layers are all there. Repositories of erased accounts are left to the first
 * node that starts, which erases these accounts again. What a bucket of a user holds of a deleted repository is its
 * owner's matter. One repository that cannot be adopted holds up no other.
 */
import { accounts } from '../../core/account/evolve.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import { type LayerStore, LayerStoreError } from '../../core/ports/layer-store.ts';
import { ObjectDatabaseError } from '../../core/ports/object-database.ts';
import { repositories } from '../../core/repository/evolve.ts';
import type { LayerKey } from '../../core/repository/layer.ts';
import { recordedErasures } from '../../core/use-cases/erasing/erasure-records.ts';
import {
  ADOPTION,
  type Adopted,
  type AdoptionContext,
  type AdoptionPlan,
  type AdoptionRefusal,
  adoptManifest,
  planAdoption,
} from '../../core/use-cases/manifests/adopt-manifest.ts';
import { type KnownRepository, readKnownRepositories } from '../../core/use-cases/repositories/known-repositories.ts';
import { findRepositoryLedTo } from '../../core/use-cases/repositories/repositories.ts';
import { newerManifest } from '../../core/use-cases/verifying/explain-missing-layer.ts';
import { closer } from '../server/closer.ts';
import { causeOf } from './commands.ts';
import type { AdminContext } from './context.ts';
import { type ObjectsOf, openObjects } from './open-objects.ts';

export interface AdoptionReport {
  /** Without `yes` those that would be adopted. */
  readonly adopted: readonly AdoptedRepository[];
  readonly refused: readonly RefusedRepository[];
}

export interface AdoptedRepository {
  readonly id: string;
  /** `<username>/<name>` */
  readonly repository: string;
  readonly deleted: boolean;
  readonly manifest_revision: number;
  readonly layers_added: number;
  readonly layers_removed: number;
  readonly refs_deleted: readonly { readonly ref: string; readonly target: string }[];
}

export interface RefusedRepository {
  readonly id: string;
  readonly repository: string;
  readonly reason: string;
}

export interface AdoptionSetup extends ObjectsOf {
  readonly context: Omit<AdoptionContext, 'objects'> & Pick<AdminContext, 'vault' | 'operator'>;
}

/** Resolves to null if no repository has the name, and none is led to by it. */
export async function adoptStorage(
  setup: AdoptionSetup,
  { name, yes }: { /** `<username>/<name>`; null for all. */ readonly name: string | null; readonly yes: boolean },
): Promise<AdoptionReport | null> {
  const { context, layers } = setup;
  await context.entities.barrier();
  const known = [...(await readKnownRepositories(context.events)).values()];
  const wanted = name === null ? known : await namedAmong(known, context, name);
  if (name !== null && wanted.length === 0) return null;
  const erased = new Set(await Array.fromAsync(recordedErasures(layers.platform)));
  const adopted: AdoptedRepository[] = [];
  const refused: RefusedRepository[] = [];
  const parts = closer();
  try {
    const adopting = { ...context, objects: await openObjects(setup, parts) };
    for (const repository of wanted) {
      if (await isErased(setup, erased, repository.place.account)) continue;
      const outcome = await adopt(setup, adopting, { repository, yes });
      if (outcome === null) continue;
      const about = { id: repository.id, repository: repository.name };
      if ('reason' in outcome) refused.push({ ...about, ...outcome });
      else adopted.push({ ...about, deleted: repository.deleted, ...outcome });
    }
  } finally {
    await parts.close();
  }
  return { adopted, refused };
}

/** Prefers the name that a repository has or had last, since a deleted one is known by no other. */
async function namedAmong(
  known: readonly KnownRepository[],
  context: AdoptionSetup['context'],
  name: string,
): Promise<readonly KnownRepository[]> {
  const named = known.filter((repository) => repository.name === name);
  if (named.length > 0) return named;
  const [username = '', ofRepository = ''] = name.split('/');
  const led = await findRepositoryLedTo(context, username, ofRepository);
  return known.filter(({ id }) => id === led?.id);
}

async function isErased(
  { context }: AdoptionSetup,
  erased: ReadonlySet<AccountId>,
  account: AccountId,
): Promise<boolean> {
  return erased.has(account) || (await context.entities.get(accounts, account)).state.status === 'erased';
}

type Outcome =
  | Pick<AdoptedRepository, 'manifest_revision' | 'layers_added' | 'layers_removed' | 'refs_deleted'>
  | Pick<RefusedRepository, 'reason'>;

/** Resolves to null for a repository that lacks nothing. */
async function adopt(
  { context, layers }: AdoptionSetup,
  adopting: AdoptionContext,
  { repository, yes }: { readonly repository: KnownRepository; readonly yes: boolean },
): Promise<Outcome | null> {
  const { place } = repository;
  if (repository.deleted && place.storageBucketId !== null) return null;
  try {
    const found = await unreadable(context, layers.of(place, 'maintenance'), repository);
    if (found === null || 'reason' in found) return found;
    const plan = await planAdoption(adopting, found);
    if ('refused' in plan) return { reason: REFUSALS[plan.refused] };
    if (yes) {
      const about = { account: place.account, cause: await causeOf(context, ADOPTION, place.account) };
      if (!(await adoptManifest(adopting, about, found, plan))) return { reason: CHANGED };
    }
    return outcomeOf(found, plan);
  } catch (error) {
    const isOfStore = error instanceof LayerStoreError || error instanceof ObjectDatabaseError;
    if (!isOfStore) throw error;
    return { reason: error.message };
  }
}

function outcomeOf({ manifest }: Adopted, { gone, replaced, added, lostRefs }: AdoptionPlan): Outcome {
  return {
    manifest_revision: manifest.revision,
    layers_added: added.length,
    layers_removed: gone.length + replaced.length,
    refs_deleted: [...lostRefs].map(([ref, target]) => ({ ref, target })),
  };
}

async function unreadable(
  { entities }: Pick<AdoptionContext, 'entities'>,
  store: LayerStore,
  { id, place }: KnownRepository,
): Promise<Adopted | Pick<RefusedRepository, 'reason'> | null> {
  const entity = await entities.get(repositories, id);
  const { state, revision } = entity;
  const { layers } = state.status === 'closed' ? state.before : state;
  if (layers.length === 0 || revision === 'none') return null;
  const stored = new Set<LayerKey>();
  for await (const { key } of store.list(`repositories/${id}/layers/`)) stored.add(key);
  if ([...layers].every(({ key }) => stored.has(key))) return null;
  const manifest = await newerManifest(store, id, revision);
  if (manifest === null) return { reason: LOST };
  return { id, place, entity, manifest, stored };
}

const LOST = 'its store lacks layers that no newer manifest explains: they are lost, as log verify --references says';
const CHANGED = 'a running process changed it since the command began: stop all nodes, and repeat the command';

const REFUSALS: Readonly<Record<AdoptionRefusal, string>> = {
  'in-bucket':
    'its manifest lies in a bucket of the user, where nothing says who wrote it: storage rebuild makes a new repository from it and checks every object',
  'log-went-on': 'the log has taken on more since it was restored, which the manifest does not know',
  'undeleted-since':
    'the log says that it is deleted, and the manifest that it was brought back since: storage rebuild makes a new repository from it',
  'too-many-layers': 'one event cannot name all of its layers: storage rebuild makes a new repository from it',
};
