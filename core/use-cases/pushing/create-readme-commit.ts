/**
 * Begins a repository with a README: a commit that the service makes and pushes as a client would.
 *
 * Invariants: the commit arrives by the same use case as every push, with the same checks, quotas and event. Two
 * streams need two commits, so a process that dies between them leaves a repository that is whole and empty, which
 * `pushReadme` may begin later. A README that is refused takes the new repository with it.
 */
import type { Plans } from '../../account/plans.ts';
import { newNameRefusal, refName } from '../../git/ref-name.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { FirstCommits } from '../../ports/first-commits.ts';
import type { Door } from '../../repository/events.ts';
import type { Guarding } from '../../runtime/execute.ts';
import {
  createRepository,
  deleteRepository,
  type FoundRepository,
  findRepositoryById,
  type NewRepository,
  type RepositoryCommandOrigin,
} from '../repositories/repositories.ts';
import { type PushContext, pushRefs } from './push-refs.ts';
import { refusalOfPush } from './refusal-of-push.ts';
import { serviceAuthor } from './service-author.ts';

export interface ReadmeContext extends PushContext {
  readonly plans: Plans;
  readonly failpoint: Failpoint;
  readonly firstCommits: FirstCommits;
}

/** A push always needs its caller's guard. */
export type ReadmeOrigin = RepositoryCommandOrigin & { readonly guarding: Guarding; readonly door: Door };

type Refused = { readonly refused: Refusal };

export interface ReadmeOptions {
  /** The host of the author's address, which leads nowhere. */
  readonly authorHost: string;
  /** When aborted, the push ends. */
  readonly signal: AbortSignal;
}

export async function createRepositoryWithReadme(
  context: ReadmeContext,
  origin: ReadmeOrigin,
  wanted: NewRepository,
  options: ReadmeOptions,
): Promise<FoundRepository | Refused> {
  const created = await createRepository(context, origin, wanted);
  if ('refused' in created) return created;
  await context.failpoint('repository-created');
  const begun = await pushReadme(context, origin, created, options);
  if (!('refused' in begun)) return begun;
  const removed = await deleteRepository(context, origin, created.id);
  return 'refused' in removed ? removed : begun;
}

/** Does nothing to a repository whose default branch exists already. */
export async function pushReadme(
  context: ReadmeContext,
  origin: ReadmeOrigin,
  repository: FoundRepository,
  options: ReadmeOptions,
): Promise<FoundRepository | Refused> {
  const { account, owned, defaultBranch } = repository;
  const ref = refName(`refs/heads/${defaultBranch}`);
  // A name that was recorded before it was refused.
  const refusedName = newNameRefusal(ref);
  if (refusedName !== null) return refuse({ code: 'branch-name-invalid', reason: refusedName.detail });
  const { commit, pack } = await context.firstCommits.make({
    fileName: 'README.md',
    text: readmeText(owned.name, owned.description),
    message: 'Add a README\n',
    author: serviceAuthor(account.username, options.authorHost),
    at: context.clock.now(),
  });
  const outcome = await pushRefs(context, {
    repository,
    quotas: context.plans[account.plan],
    cause: origin.cause,
    guarding: origin.guarding,
    door: origin.door,
    commands: [{ ref, before: null, after: commit }],
    refusedNames: 0,
    atomic: true,
    pushOptions: [],
    pack: onePack(pack),
    receivedBytes: () => pack.length,
    signal: options.signal,
  });
  if ('refused' in outcome) return refuse(refusalOfPush(outcome.refused));
  // A result other than success means that somebody else pushed to the branch first. Then it is not empty either.
  return (await findRepositoryById(context, origin.account, repository.id)) ?? refuse({ code: 'repository-not-found' });
}

function readmeText(name: string, description: string | null): string {
  return description === null || description.trim() === '' ? `# ${name}\n` : `# ${name}\n\n${description.trim()}\n`;
}

async function* onePack(pack: Uint8Array): AsyncGenerator<Uint8Array> {
  yield pack;
}
