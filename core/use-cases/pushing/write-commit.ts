/**
 * Writes a commit over the API, or tries to: changes of files, decided against the head that their writer saw.
 *
 * Invariants: `pushRefs` commits it, with the checks, quotas and event of every push; nothing is stored before. What is
 * pushed in between is decided on again only where the writer takes any head.
 */
import type { CommitRow } from '../../git/commit-row.ts';
import type { Diff } from '../../git/diff/diff.ts';
import type { DiffBounds } from '../../git/diff/diff-parser.ts';
import { listedRow } from '../../git/history/listed-commit.ts';
import { parseRefName, type RefName, refName } from '../../git/ref-name.ts';
import { refuse } from '../../kernel/decider.ts';
import { type EventId, type ObjectId, objectId, ZERO_OBJECT_ID } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { repositories } from '../../repository/evolve.ts';
import { type DiffContext, readFiles } from '../reading/read-diff.ts';
import { closing, type ObjectsContext, openView } from '../reading/repository-view.ts';
import { branchRef } from '../reading/resolve-ref.ts';
import { type FoundRepository, findRepositoryById } from '../repositories/repositories.ts';
import { type ChangeRefsContext, type ChangeRefsOrigin, faultOf, type RefFault } from './change-refs.ts';
import {
  type DecideCommitContext,
  type DecidedCommit,
  type Deciding,
  decideCommit,
  type Faulty,
  type WantedCommit,
} from './decide-commit.ts';
import type { UsedKey } from './push-keys.ts';
import { type PackedPush, type PushRefusal, pushRefs, REDECISIONS_MAX, tryPush } from './push-refs.ts';
import { MOVES_WAIT_SECONDS, refusalOfPush } from './refusal-of-push.ts';

export type WriteCommitContext = ChangeRefsContext & DecideCommitContext;

export interface WrittenCommit {
  readonly ref: RefName;
  readonly commit: CommitRow;
  /** Null: the branch was not there. */
  readonly before: ObjectId | null;
  /** The same as `before` if nothing was to be changed. */
  readonly after: ObjectId | null;
  /** Null if nothing was changed. */
  readonly event: EventId | null;
}

/** What would be written. */
export interface TriedCommit {
  readonly ref: RefName;
  /** Null: the branch is not there. */
  readonly before: ObjectId | null;
  readonly tree: ObjectId;
  /** What differs from the parent. */
  readonly diff: Diff;
}

type Failed = Faulty | { readonly refused: Refusal };

export async function writeCommit(
  context: WriteCommitContext,
  origin: ChangeRefsOrigin,
  wanted: WantedCommit,
): Promise<WrittenCommit | Failed> {
  const ref = writtenRef(wanted);
  if (typeof ref !== 'string') return ref;
  let { repository } = wanted;
  let seen: Deciding['seen'] = null;
  for (let decisions = 0; decisions <= REDECISIONS_MAX; decisions += 1) {
    // What it would be decided on again may be what another request with its key has written.
    if ((await wanted.key?.isUsed(repository.entity.position)) === true) return refuse({ code: 'key-in-use' });
    const decided = await decideCommit(context, { ...wanted, repository, ref, seen });
    if ('fault' in decided) return decided;
    const pushed = await pushDecided(context, origin, { ...wanted, repository, ref, seen }, decided);
    if (pushed !== 'moved') return pushed;
    seen ??= decided.seen;
    await context.entities.reload(repositories, repository.id);
    const again = await findRepositoryById(context, repository.accountId, repository.id);
    if (again === null) return refuse({ code: 'repository-not-found' });
    repository = again;
  }
  return MOVED_TOO_OFTEN;
}

const MOVED_TOO_OFTEN = refuse({ code: 'refs-moved-too-often', waitSeconds: MOVES_WAIT_SECONDS });

/** Returns what the commit of an earlier request has written; null if its objects are not there any more. */
export async function readWritten(
  context: ObjectsContext,
  repository: FoundRepository,
  { event, data }: UsedKey,
): Promise<WrittenCommit | null> {
  const [update] = data.updates;
  if (update === undefined) throw new TypeError('A written commit is one update');
  const after = objectId(update.after);
  const commit = await closing(openView(context, repository), async (view) => (await view.objects()).commit(after));
  if (commit === null) return null;
  const before = update.before === ZERO_OBJECT_ID ? null : objectId(update.before);
  return { ref: refName(update.ref), commit: listedRow(commit), before, after, event };
}

/** Decides a commit and checks it as a push is checked, and makes nothing of it. `bounds` are those of the diff. */
export async function tryCommit(
  context: WriteCommitContext & DiffContext,
  origin: ChangeRefsOrigin,
  wanted: WantedCommit,
  bounds: Partial<DiffBounds>,
): Promise<TriedCommit | Failed> {
  const ref = writtenRef(wanted);
  if (typeof ref !== 'string') return ref;
  const deciding = { ...wanted, ref, seen: null };
  const decided = await decideCommit(context, deciding);
  if ('fault' in decided) return decided;
  const { before, parent, commit, release } = decided;
  try {
    const push = pushOf(context, origin, deciding, decided);
    const tried = await tryPush(context, push, ({ diff }) =>
      readFiles(context, { history: { diff } }, parent?.id ?? null, commit.id, { bounds, signal: wanted.signal }),
    );
    if ('refused' in tried) {
      const failed = notPushed(tried.refused);
      return failed === 'moved' ? MOVED_TOO_OFTEN : failed;
    }
    const code = tried.results[0]?.code ?? null;
    if (code !== null) return branchFault(faultOf(ref, code, tried.refs));
    return { ref, before, tree: commit.tree, diff: tried.read };
  } finally {
    release();
  }
}

/** Returns the full name of the branch, unless nothing can be written. */
function writtenRef({ branch, changes, allowEmpty }: WantedCommit): RefName | Faulty {
  const ref = parseRefName(branchRef(branch));
  if (typeof ref !== 'string') {
    const { refused: code, detail } = ref;
    return branchFault({ ref: branchRef(branch), code, detail, head: null });
  }
  return changes.length === 0 && !allowEmpty ? { fault: { at: 'changes', code: 'changes-empty' } } : ref;
}

function branchFault(fault: RefFault): Faulty {
  return { fault: { at: 'branch', fault } };
}

/** `moved`: it is to be decided again. */
async function pushDecided(
  context: WriteCommitContext,
  origin: ChangeRefsOrigin,
  wanted: Deciding,
  decided: DecidedCommit,
): Promise<WrittenCommit | Failed | 'moved'> {
  const { ref } = wanted;
  const { before, parent, commit, release } = decided;
  try {
    if (parent !== null && commit.tree === parent.tree && !wanted.allowEmpty) {
      return { ref, commit: listedRow(parent), before, after: before, event: null };
    }
    const pushed = await pushRefs(context, pushOf(context, origin, wanted, decided));
    if ('refused' in pushed) return notPushed(pushed.refused);
    const code = pushed.results[0]?.code ?? null;
    const { event } = pushed;
    if (code === null) return { ref, commit: listedRow(commit), before, after: commit.id, event };
    const fault = faultOf(ref, code, pushed.refs);
    const takesAnyHead = wanted.expected === 'any' || wanted.expected === 'any-head';
    return fault.head === null || !takesAnyHead ? branchFault(fault) : 'moved';
  } finally {
    release();
  }
}

function pushOf(
  context: WriteCommitContext,
  origin: ChangeRefsOrigin,
  { repository, ref, key, signal }: Deciding,
  { before, commit, pack }: DecidedCommit,
): PackedPush {
  return {
    repository,
    quotas: context.plans[repository.account.plan],
    cause: origin.cause,
    guarding: origin.guarding,
    door: origin.door,
    key,
    commands: [{ ref, before, after: commit.id }],
    refusedNames: 0,
    atomic: true,
    pushOptions: [],
    ...pack(),
    signal,
  };
}

function notPushed(refused: PushRefusal): Failed | 'moved' {
  if (refused.code === 'pack-fsck-failed' || refused.code === 'pack-broken') {
    return { fault: { at: 'objects', code: 'objects-refused', detail: refused.detail } };
  }
  // A purge removed objects that the decision has read: it is made again without them.
  return refused.code === 'pack-not-connected' ? 'moved' : refuse(refusalOfPush(refused));
}
