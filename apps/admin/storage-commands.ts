/** `strata-admin storage …`: lists and verifies the layers on platform storage and in the buckets of users. */
import { type Command, InvalidArgumentError } from 'commander';
import { parseUuid, type RepositoryId } from '../../core/kernel/ids.ts';
import { type KnownRepository, readRepositoriesOf } from '../../core/use-cases/repositories/known-repositories.ts';
import { findRepositoryLedTo } from '../../core/use-cases/repositories/repositories.ts';
import { type AdoptedRepository, adoptStorage } from './adopt-storage.ts';
import { type Act, Refused } from './answer.ts';
import { type AdminContext, callersFolder } from './context.ts';
import { rebuildFromStore } from './rebuild-from-store.ts';
import type { StorageReport } from './storage.ts';

interface RepositoryName {
  readonly username: string;
  readonly name: string;
}

export function addStorageCommands(program: Command, act: Act): void {
  const storage = program.command('storage').description('the layers on platform storage and in the buckets of users');

  storage
    .command('list')
    .description('lists repositories with the number and bytes of their layers')
    .action(
      act(async (context) => {
        const repositories = await context.listStorage();
        const layers = repositories.reduce((sum, row) => sum + row.layers, 0);
        const size_bytes = repositories.reduce((sum, row) => sum + row.size_bytes, 0);
        const rows = repositories.map(({ id, repository, deleted, storage_bucket_id: bucket, fault, ...sums }) => {
          const name = `${repository ?? `${id} (unknown)`}${deleted ? ' (deleted)' : ''}`;
          const place = bucket === null ? '' : ` in the bucket ${bucket}`;
          if (fault !== null) return `${name}${place}: cannot be listed: ${fault}`;
          return `${name}${place}: ${sums.layers} layers, ${sums.size_bytes} bytes`;
        });
        const total = `${repositories.length} repositories, ${layers} layers, ${size_bytes} bytes`;
        return { value: { repositories, layers, size_bytes }, text: [...rows, total].join('\n') };
      }),
    );

  storage
    .command('expire')
    .description(
      'removes immediately what has passed retention, as a running server does every ten minutes, and what crashes left',
    )
    .action(
      act(async (context) => {
        const report = await context.expireStorage();
        const { repositories, layers, size_bytes } = report.expired;
        const text = [
          `${layers} layers of ${repositories} repositories, ${size_bytes} bytes, have passed retention by now`,
          `${report.removed} layers were removed from storage; others leave it when requests under way have ended, in an hour`,
          `${report.leftovers.incoming} half-written layers and ${report.leftovers.layers} layers that no event names were removed, which crashes had left`,
          `${report.pruned} streams of operational events were removed from the log`,
          `${report.delivery_bodies} bodies of webhook deliveries beyond their accounts' bounds were removed`,
        ].join('\n');
        return { value: report, text };
      }),
    );

  addRebuildCommand(storage, act);
  addAdoptCommand(storage, act);

  storage
    .command('verify')
    .description('reads every layer that events name, and looks for damaged, missing, unknown and unnamed ones')
    .option('--repository <username/name>', 'only this one', repositoryName)
    .action(
      act<{ repository?: RepositoryName }>(async (context, { repository }) => {
        const only = repository === undefined ? null : await existingRepository(context, repository);
        const report = await context.verifyStorage(only);
        const lines = report.faults.map(({ kind, repository: of, what, detail }) =>
          [kind, ...(of === null ? [] : [of]), what, detail].join(' '),
        );
        const total = `${report.repositories} repositories, ${report.layers} layers, ${report.size_bytes} bytes read`;
        const text = [...lines, ...noFaults(report), `${total}, ${report.fault_count} faults`].join('\n');
        return { value: report, text, status: report.fault_count === 0 ? 0 : 1 };
      }),
    );
}

/** Returns a line for each thing in the stores that no event names, or that events let go. */
function noFaults(report: StorageReport): readonly string[] {
  const unnamed = report.unnamed.map(
    ({ repository: of, account, key, removed_after }) =>
      `unnamed ${of} ${key} is named by no event: its push is under way, or died; it is removed after ${removed_after}, or before by storage expire (account ${account})`,
  );
  const leaving = report.leaving.map(
    ({ repository: of, account, key, removed_after }) =>
      `leaving ${of} ${key} was let go by a purge, a drop or the end of its repository; it is removed after ${removed_after} (account ${account})`,
  );
  const incoming = report.incoming.map(
    ({ repository: of, account, name, size_bytes, at }) =>
      `incoming ${of ?? 'of an unknown repository'} ${name}, ${size_bytes ?? 'an unknown number of'} bytes, last written ${at}, was left by a process that died; storage expire removes it (account ${account ?? 'unknown'})`,
  );
  return [...unnamed, ...leaving, ...incoming];
}

interface RebuildFlags {
  readonly username: string;
  readonly name: string;
  readonly repository?: RepositoryId;
  readonly revision?: number;
  readonly yes?: boolean;
}

function addRebuildCommand(storage: Command, act: Act): void {
  storage
    .command('rebuild')
    .argument('<bucket>', "'platform', the name of a bucket of the user, or a folder such as ./copy")
    .description('makes a new repository from the newest manifest of a store, and the layers that it names')
    .requiredOption('--username <name>', 'whose repository it becomes')
    .requiredOption('--name <name>', 'the name of the new repository')
    .option('--repository <id>', 'the repository in the store, if it holds several', repositoryId)
    .option('--revision <number>', 'an older manifest', revisionNumber)
    .option('--yes', 'even if the manifest names another user, who is here')
    .action(async (bucket: string, flags: RebuildFlags) => {
      const rebuild = act<RebuildFlags>(async (context, { username, name, repository, revision, yes }) => {
        const wanted = { repository: repository ?? null, revision: revision ?? null, yes: yes === true };
        const options = { bucket, folder: callersFolder(), username, name, ...wanted };
        const report = await context.onStorage((storage) => rebuildFromStore({ context, ...storage }, options));
        const from = `${report.source.name} (${report.source.repository_id}) at revision ${report.source.revision}`;
        const made = `Made ${username}/${name} from ${from}: ${report.refs} refs, ${report.layers} layers read and checked`;
        const leftOut = report.left_out.map((ref) => `\nLeft out, because its name is refused today: ${ref}`);
        const text = made + leftOut.join('');
        return { value: report, text };
      });
      await rebuild(flags);
    });
}

interface AdoptFlags {
  readonly repository?: RepositoryName;
  readonly all?: boolean;
  readonly yes?: boolean;
}

function addAdoptCommand(storage: Command, act: Act): void {
  storage
    .command('adopt')
    .description('gives repositories that a restored log leaves unreadable the layers of their newest manifests')
    .option('--repository <username/name>', 'only this one', repositoryName)
    .option('--all', 'all that cannot be read')
    .option('--yes', 'do it, with all nodes stopped; without this it says what it would do')
    .action(
      act<AdoptFlags>(async (context, { repository, all, yes = false }) => {
        if ((repository === undefined) === (all === undefined)) throw new Refused('Give one of --repository and --all');
        const name = repository === undefined ? null : `${repository.username}/${repository.name}`;
        const report = await context.onStorage((opened) => adoptStorage({ context, ...opened }, { name, yes }));
        if (report === null) throw new Refused(`There is no repository ${JSON.stringify(name)}`);
        const { adopted, refused } = report;
        const lines = [
          ...adopted.flatMap(adoptedLines),
          ...refused.map((one) => `not adopted: ${one.repository}: ${one.reason}`),
        ];
        if (!yes && adopted.length > 0) {
          const would = 'This would be recorded in the logs of these repositories, permanently:';
          throw new Refused(
            [would, ...lines, 'Nothing was done. Add --yes to do it, with all nodes stopped.'].join('\n'),
          );
        }
        const text = [...lines, `Repositories that can be read again: ${adopted.length}`].join('\n');
        return { value: report, text, status: refused.length === 0 ? 0 : 1 };
      }),
    );
}

function adoptedLines({ repository, deleted, ...made }: AdoptedRepository): readonly string[] {
  const layers = `${made.layers_added} layers come into its list, ${made.layers_removed} leave it`;
  const of = `${repository}${deleted ? ' (deleted)' : ''}: the manifest of revision ${made.manifest_revision}: ${layers}`;
  return [
    of,
    ...made.refs_deleted.map(({ ref, target }) => `${repository}: ${ref} is deleted, whose tip ${target} is gone`),
  ];
}

function repositoryId(text: string): RepositoryId {
  const id = parseUuid<RepositoryId>(text);
  if (id === null) throw new InvalidArgumentError('Give the id of a repository.');
  return id;
}

function revisionNumber(text: string): number {
  const revision = Number(text);
  if (!/^[0-9]+$/.test(text) || !Number.isSafeInteger(revision)) throw new InvalidArgumentError('Give a number.');
  return revision;
}

async function existingRepository(context: AdminContext, { username, name }: RepositoryName): Promise<KnownRepository> {
  const found = await findRepositoryLedTo(context, username, name);
  const known = found === null ? undefined : (await readRepositoriesOf(context.events, found.accountId)).get(found.id);
  if (known === undefined) throw new Refused(`There is no repository ${JSON.stringify(`${username}/${name}`)}`);
  return known;
}

function repositoryName(text: string): RepositoryName {
  const [username = '', name = '', ...more] = text.split('/');
  if (username === '' || name === '' || more.length > 0) throw new InvalidArgumentError('Give USERNAME/NAME.');
  return { username, name };
}
