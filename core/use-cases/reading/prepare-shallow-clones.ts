/**
 * Makes the answer of a shallow clone again after a push, in a moment in which git works for nobody: who asks next, as
 * a pipeline does that runs at each push, finds it made.
 *
 * Invariants: a push waits for nothing of it, and it is made only for what a client asked for since the last time, so
 * that it costs no more than that client's own request. It goes through the same checks, and is charged to nobody until
 * a client gets it. What is remembered of requests is bounded.
 */
import type { FetchRequest } from '../../git/wire/fetch-request.ts';
import { parseUploadPackRequest } from '../../git/wire/upload-pack-request.ts';
import type { AccountId, ObjectId, RepositoryId } from '../../kernel/ids.ts';
import type { Background } from '../../ports/background.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Context } from '../../runtime/execute.ts';
import { type FoundRepository, findRepositoryById } from '../repositories/repositories.ts';
import { type OpenFetchContext, openFetch } from './open-fetch.ts';
import { findDefaultBranch } from './resolve-ref.ts';

export interface WarmClonesContext extends Omit<OpenFetchContext, 'clock'>, Context {
  readonly clock: Context['clock'] & Pick<Clock, 'nextTurn'>;
  readonly background: Background;
  /** Does the work in a moment in which git works for no request. Resolves when it is done, or never will be. */
  readonly whenIdle: (work: (signal: AbortSignal) => Promise<void>) => Promise<void>;
}

export interface AskedClone {
  readonly repository: FoundRepository;
  readonly fetch: FetchRequest;
  /** The request as the client sent it. */
  readonly body: Uint8Array;
}

export interface WarmClones {
  /** Remembers a request that was granted, if it is a shallow clone of the default branch. */
  asked(clone: AskedClone): void;
  /** Called after a push that brought objects. */
  pushed(to: { readonly account: AccountId; readonly repository: RepositoryId }): void;
}

/**
 * Repositories whose answers are prepared. The oldest is forgotten first. Internal: the answer for a forgotten
 * repository is made when it is asked for.
 */
const REPOSITORIES_MAX = 1_000;
/**
 * Bytes of a request whose answer is prepared: git sends some 300. Internal: the answer to a longer one is made when it
 * is asked for.
 */
const BODY_BYTES_MAX = 2_048;

interface Remembered {
  readonly account: AccountId;
  readonly tip: ObjectId;
  readonly version: FetchRequest['version'];
  readonly body: Uint8Array;
}

export function createWarmClones(context: WarmClonesContext): WarmClones {
  const remembered = new Map<RepositoryId, Remembered>();
  return {
    asked: ({ repository, fetch, body }) => {
      if (!isShallowClone(fetch) || body.length > BODY_BYTES_MAX) return;
      const tip = findDefaultBranch(repository)?.id;
      if (tip === undefined || fetch.wants[0] !== tip) return;
      const before = remembered.get(repository.id);
      if (before?.tip === tip) return;
      remembered.delete(repository.id);
      const [oldest] = remembered.keys();
      if (remembered.size >= REPOSITORIES_MAX && oldest !== undefined) remembered.delete(oldest);
      const { accountId: account } = repository;
      // The body may lie in a larger buffer.
      remembered.set(repository.id, { account, tip, version: fetch.version, body: Uint8Array.from(body) });
    },
    pushed: ({ repository }) => {
      const clone = remembered.get(repository);
      if (clone === undefined) return;
      remembered.delete(repository);
      context.background.run('warm-clone', () =>
        context.whenIdle((signal) => warm(context, repository, clone, signal)),
      );
    },
  };
}

/** Whether a client that has nothing asks for one commit at a depth. */
function isShallowClone({ wants, haveCount, done, shallow, deepen }: FetchRequest): boolean {
  return wants.length === 1 && haveCount === 0 && done && shallow.length === 0 && deepen?.kind === 'depth';
}

async function warm(
  context: WarmClonesContext,
  id: RepositoryId,
  clone: Remembered,
  signal: AbortSignal,
): Promise<void> {
  const repository = await findRepositoryById(context, clone.account, id);
  const tip = repository === null ? undefined : findDefaultBranch(repository)?.id;
  if (repository === null || tip === undefined) return;
  const body = withWant(clone, tip);
  // What is authorised, and what names the answer, is read from the bytes that upload-pack gets.
  const parsed = await parseUploadPackRequest(body, clone.version, context.clock.nextTurn);
  if ('refused' in parsed || parsed.kind !== 'fetch') return;
  const opened = await openFetch(context, repository, parsed.request, context.clock.now());
  if ('refused' in opened) return;
  if ('held' in opened) {
    opened.held.release();
    return;
  }
  try {
    const { reader, view, answerKey } = opened;
    if (answerKey === null) return;
    const request = (async function* () {
      yield body;
    })();
    const options = { view, protocol: clone.version, request, answerKey, signal };
    const chunks = reader.uploadPack(options)[Symbol.asyncIterator]();
    while ((await chunks.next()).done !== true);
  } finally {
    opened.close();
  }
}

/** The request with another commit wherever it names the one that it asks for: git asks for HEAD and the branch. */
function withWant({ body, tip }: Remembered, wanted: ObjectId): Uint8Array {
  const text = String.fromCharCode(...body);
  const changed = Uint8Array.from(body);
  for (let at = text.indexOf(tip); at >= 0; at = text.indexOf(tip, at + tip.length)) {
    for (let index = 0; index < wanted.length; index += 1) changed[at + index] = wanted.charCodeAt(index);
  }
  return changed;
}
