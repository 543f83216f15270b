/**
 * Runs git upload-pack for one stateless request, in a view of the refs (docs/git-path.md, Fetch).
 *
 * Invariants: the caller has authorised the wants, since git serves any object that it has here.
 */
import type { AccountId } from '../../../core/kernel/ids.ts';
import { ObjectDatabaseError, type UploadPackOptions } from '../../../core/ports/object-database.ts';
import { type CacheFolder, isWhole, writeHeld } from '../cache/cache-folder.ts';
import type { ViewFolders } from '../cache/view-folders.ts';
import type { Git, GitCommand, Pacing } from '../process/git-commands.ts';
import type { ConfigPairs } from '../process/git-environment.ts';
import type { ProcessEnd } from '../process/process-runner.ts';

const CONFIG: ConfigPairs = [
  // Over stateless HTTP git serves unreachable blobs in any case; this setting makes it serve all other objects too.
  ['uploadpack.allowAnySHA1InWant', 'true'],
  ['uploadpack.allowFilter', 'true'],
  ['uploadpackfilter.allow', 'false'],
  ['uploadpackfilter.blob:none.allow', 'true'],
  ['uploadpackfilter.blob:limit.allow', 'true'],
  ['uploadpackfilter.tree.allow', 'true'],
  ['uploadpackfilter.tree.maxDepth', '16'],
];

export async function* uploadPack(
  git: Git,
  views: ViewFolders,
  folder: CacheFolder,
  options: UploadPackOptions & { readonly account: AccountId; readonly pacing: Pacing },
): AsyncGenerator<Uint8Array> {
  const view = await views.acquire(folder, options.view);
  try {
    const command: GitCommand = {
      args: ['upload-pack', '--stateless-rpc', '--strict', view.path],
      view: { key: options.account, variables: () => writeHeld(folder).then(() => ({})) },
      variables: { GIT_PROTOCOL: `version=${options.protocol}` },
      config: CONFIG,
      signal: options.signal,
      pacing: options.pacing,
    };
    const start = new AnswerStart();
    const accepts = (end: ProcessEnd) => end.code === 0 || start.isError();
    for await (const chunk of git.stream(command, options.request, accepts)) {
      start.add(chunk);
      // git may miss an object that was deleted, not one that the client made up.
      if (start.isError() && !(await isWhole(folder))) throw new ViewLost('The cached repository is not whole');
      yield chunk;
    }
  } catch (error) {
    if (options.signal.aborted || (await view.isWhole())) throw error;
    throw new ViewLost('A view of refs was deleted', { cause: error });
  } finally {
    view.release();
  }
}

/** Files that git read were deleted: another attempt finds others. */
export class ViewLost extends ObjectDatabaseError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('object-database-unavailable', message, options);
  }
}

/**
 * The first bytes of an answer. An answer that is only an `ERR` packet (gitprotocol-pack(5)) is git's complete reply to
 * a bad request, although git then exits with an error.
 */
class AnswerStart {
  #head = '';

  add(chunk: Buffer): void {
    if (this.#head.length < 8) this.#head += chunk.toString('latin1', 0, 8);
  }

  isError(): boolean {
    return /^[0-9a-f]{4}ERR /.test(this.#head);
  }
}
