/**
 * `strata-admin storage rebuild`: finds the store and the manifest that an operator names, and makes a repository of
 * them.
 *
 * Invariants: it writes nothing into the store that it reads. Its caches are its own, beside those of a running
 * server, and are removed with it.
 */
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { readFilesystemLayers } from '../../adapters/filesystem/layer-store.ts';
import { accounts } from '../../core/account/evolve.ts';
import type { AccountId, RepositoryId } from '../../core/kernel/ids.ts';
import { type LayerStore, LayerStoreError } from '../../core/ports/layer-store.ts';
import { ObjectDatabaseError } from '../../core/ports/object-database.ts';
import type { Manifest } from '../../core/repository/manifest.ts';
import { findAccount, findAccountState } from '../../core/use-cases/accounts/accounts.ts';
import { type FoundManifest, findManifests, readManifest } from '../../core/use-cases/manifests/read-manifest.ts';
import { type RebuildRefusal, rebuildRepository } from '../../core/use-cases/manifests/rebuild-repository.ts';
import { REF_REFUSALS } from '../front-door/texts/ref-faults.ts';
import { refusalText } from '../front-door/texts/refusals.ts';
import { pushRefusalText } from '../git-http/push-messages.ts';
import { closer } from '../server/closer.ts';
import type { FoundationContext } from '../server/foundation.ts';
import { Refused } from './answer.ts';
import { causeOf } from './commands.ts';
import type { AdminContext, OpenedStorage } from './context.ts';
import { openObjects } from './open-objects.ts';

export interface RebuildOptions {
  /** `platform`, the name of a bucket of the user, or a path with a slash. */
  readonly bucket: string;
  /** What a relative path starts from. */
  readonly folder: string;
  readonly username: string;
  readonly name: string;
  /** Null: the only repository in the store. */
  readonly repository: RepositoryId | null;
  /** Null: the newest manifest. */
  readonly revision: number | null;
  /** Whether another account than the manifest names may get the repository, although that one is here. */
  readonly yes: boolean;
}

export interface RebuildReport {
  readonly repository_id: string;
  readonly refs: number;
  /** Refs of the manifest that were not made, because no branch or tag of such a name is created. */
  readonly left_out: readonly string[];
  readonly layers: number;
  readonly source: {
    readonly repository_id: string;
    readonly name: string;
    readonly revision: number;
    readonly as_of: string;
  };
}

export interface RebuildSetup extends OpenedStorage {
  readonly context: FoundationContext & Pick<AdminContext, 'operator'>;
}

type Source = Pick<LayerStore, 'get' | 'head' | 'list'>;

/** Throws `Refused` with what stands in the way. */
export async function rebuildFromStore(setup: RebuildSetup, options: RebuildOptions): Promise<RebuildReport> {
  const account = await findAccount(setup.context, options.username);
  if (account === null) throw new Refused(`There is no account ${JSON.stringify(options.username)}`);
  try {
    const store = await sourceOf(setup, account, options);
    const manifest = await manifestIn(store, options);
    const owner = await otherOwner(setup, manifest, account);
    if (owner !== null && !options.yes) throw refusalOf(manifest, options);
    return await rebuild(setup, store, manifest, { ...options, account, owner });
  } catch (error) {
    const isOfStore = error instanceof LayerStoreError;
    const isOfLayer =
      error instanceof ObjectDatabaseError && (error.code === 'layer-corrupt' || error.code === 'layer-missing');
    if (isOfStore || isOfLayer) throw new Refused(error.message, { cause: error });
    throw error;
  }
}

/**
 * Returns the account that the manifest names, if it is here and another one. A username that nobody has here says
 * nothing: the old service is lost, and its owner may be called otherwise now.
 */
async function otherOwner(
  { context }: RebuildSetup,
  { name }: Manifest,
  account: AccountId,
): Promise<AccountId | null> {
  const found = await findAccountState(context, ownerOf(name));
  return found === null || found.id === account ? null : found.id;
}

function ownerOf(name: string): string {
  const [owner = ''] = name.split('/');
  return owner;
}

function refusalOf(manifest: Manifest, { username }: RebuildOptions): Refused {
  const [name, here, other] = [manifest.name, ownerOf(manifest.name), username].map((text) => JSON.stringify(text));
  return new Refused(`The manifest is of ${name}, and ${here} is here: add --yes to give the repository to ${other}`);
}

async function sourceOf(
  { context, layers }: RebuildSetup,
  account: AccountId,
  { bucket, folder }: RebuildOptions,
): Promise<Source> {
  if (bucket === 'platform') return layers.platform;
  if (bucket.includes('/') || bucket.startsWith('.')) {
    const directory = path.resolve(folder, bucket);
    const facts = await stat(directory).catch(() => null);
    if (facts?.isDirectory() !== true) throw new Refused(`There is no folder ${directory}`);
    return readFilesystemLayers({ directory });
  }
  const { state } = await context.entities.get(accounts, account);
  const buckets = state.status === 'open' ? [...state.storageBuckets.values()] : [];
  const found = buckets.find(({ id, name }) => name === bucket || id === bucket);
  if (found === undefined) {
    throw new Refused(`The user has no bucket ${JSON.stringify(bucket)}; write a folder as ./${bucket}`);
  }
  return layers.of({ account, storageBucketId: found.id }, 'maintenance');
}

interface WantedRebuild extends RebuildOptions {
  readonly account: AccountId;
  /** The account that the manifest names, if it is here and another one. */
  readonly owner: AccountId | null;
}

const COMMAND = 'storage rebuild';
/** No quota holds the command, so it reads no usage. */
const NOTHING_USED = { storageBytes: 0, transferBytes: 0, ingressBytes: 0 };
/** Repositories that a refusal names. Internal: only the operator reads what it cuts. */
const NAMED_MAX = 20;

async function manifestIn(store: Source, { repository, revision }: RebuildOptions): Promise<Manifest> {
  const found = [...(await findManifests(store, { repository, revision })).values()];
  const [only] = found;
  if (only === undefined) throw new Refused('The store holds no such manifest');
  if (found.length > 1) {
    const names = await Promise.all(found.slice(0, NAMED_MAX).map(async (one) => nameOf(store, one)));
    const more = found.length > NAMED_MAX ? [`and ${found.length - NAMED_MAX} others`] : [];
    throw new Refused(
      `The store holds several repositories; choose by --repository: ${[...names, ...more].join(', ')}`,
    );
  }
  const manifest = await readManifest(store, only);
  if ('invalid' in manifest) throw new Refused(`${only.key} ${manifest.invalid}`);
  return manifest;
}

async function nameOf(store: Source, found: FoundManifest): Promise<string> {
  const manifest = await readManifest(store, found);
  return 'invalid' in manifest ? found.repository : `${found.repository} (${manifest.name})`;
}

async function rebuild(
  { context, layers, settings, log }: RebuildSetup,
  store: Source,
  manifest: Manifest,
  { account, owner, username, name }: WantedRebuild,
): Promise<RebuildReport> {
  const parts = closer();
  try {
    const read = readOnly(store);
    const sources = { platform: read, of: () => read, altered: () => undefined };
    const source = await openObjects({ layers: sources, settings, log }, parts);
    const objects = await openObjects({ layers, settings, log }, parts);
    const origin = { account, cause: await causeOf(context, COMMAND, account) };
    const logs = owner === null ? [] : [origin, { account: owner, cause: await causeOf(context, COMMAND, owner) }];
    const rebuilt = await rebuildRepository(
      {
        ...context,
        layers,
        objects,
        usage: { usageOf: async () => NOTHING_USED },
        onLayer: () => undefined,
        source: { store, objects: source },
      },
      {
        ...origin,
        manifest,
        username,
        name,
        storageBucketId: 'default',
        logs,
        signal: new AbortController().signal,
      },
    );
    if ('refused' in rebuilt) throw new Refused(textOf(rebuilt.refused));
    const { repository, revision, asOf } = manifest;
    return {
      repository_id: rebuilt.repository.id,
      refs: rebuilt.refs,
      left_out: rebuilt.leftOut,
      layers: manifest.layers.length,
      source: { repository_id: repository, name: manifest.name, revision, as_of: asOf },
    };
  } finally {
    await parts.close();
  }
}

function readOnly(store: Source): LayerStore {
  const refuse = async (): Promise<never> => {
    throw new TypeError('A rebuild writes nothing into the store that it reads');
  };
  return {
    get: (key, range) => store.get(key, range),
    head: (key) => store.head(key),
    list: (prefix) => store.list(prefix),
    put: refuse,
    delete: refuse,
    now: refuse,
  };
}

function textOf(refusal: RebuildRefusal): string {
  switch (refusal.kind) {
    case 'exists':
      return 'The repository exists already, and is not empty';
    case 'refs':
      return `The object with the refs of the manifest ${refusal.detail}`;
    case 'creation':
      return refusalText(refusal.refusal);
    case 'push': {
      const { outcome } = refusal;
      // No quota bounds what is rebuilt, so nothing is said of a body.
      const read = { receivedBytes: 0, whole: true };
      if ('refused' in outcome) return `Nothing was made: ${pushRefusalText(outcome.refused, read)}`;
      const refused = outcome.results.find(({ code }) => code !== null && code !== 'atomic-push-refused');
      const code = refused?.code ?? 'atomic-push-refused';
      return `Nothing was made: ${refused?.ref ?? 'a ref'}: ${REF_REFUSALS[code]}`;
    }
  }
}
