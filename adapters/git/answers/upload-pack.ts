/**
 * Runs git upload-pack for one stateless request, in a view of the refs (docs/git-path.md, Fetch).
 *
 * Invariants: the caller has authorised the wants, since git serves any object that it has here. A request that git
 * ends for a reason of the client's has an answer, which says it.
 */
import { dataPacket, errorPacket } from '../../../core/git/wire/pkt-line.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { ObjectDatabaseError, type UploadPackOptions } from '../../../core/ports/object-database.ts';
import { type CacheFolder, isWhole, writeHeld } from '../cache/cache-folder.ts';
import type { ViewFolders } from '../cache/view-folders.ts';
import type { Git, GitCommand, Pacing } from '../process/git-commands.ts';
import type { ConfigPairs } from '../process/git-environment.ts';
import type { ProcessEnd } from '../process/process-runner.ts';
import { toldToClient } from './fetch-ends.ts';
import { PackMessages } from './pack-messages.ts';

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

const SHALLOW_INFO = Buffer.from(dataPacket('shallow-info\n'));

export async function* uploadPack(
  git: Git,
  views: ViewFolders,
  folder: CacheFolder,
  options: UploadPackOptions & { readonly account: AccountId; readonly pacing: Pacing },
): AsyncGenerator<Uint8Array> {
  const view = await views.acquire(folder, options.view);
  const messages = new PackMessages();
  try {
    const command: GitCommand = {
      args: ['upload-pack', '--stateless-rpc', '--strict', view.path],
      view: { key: options.account, variables: () => writeHeld(folder).then(() => ({})) },
      variables: { GIT_PROTOCOL: `version=${options.protocol}` },
      config: CONFIG,
      signal: options.signal,
      pacing: options.pacing,
      saidInOutput: () => messages.text(),
    };
    yield* answered((accepts) => git.stream(command, options.request, accepts), folder, messages);
  } catch (error) {
    if (options.signal.aborted || (await view.isWhole())) throw error;
    throw new ViewLost('A view of refs was deleted', { cause: error });
  } finally {
    view.release();
  }
}

/** Yields what git writes, and the reason if git ends for one of the client's. */
async function* answered(
  stream: (accepts: (end: ProcessEnd) => boolean) => AsyncIterable<Buffer>,
  folder: CacheFolder,
  messages: PackMessages,
): AsyncGenerator<Uint8Array> {
  const start = new AnswerStart();
  const end: { told: string | null } = { told: null };
  const accepts = (ended: ProcessEnd): boolean => {
    end.told = toldToClient(ended);
    return ended.code === 0 || start.isError() || end.told !== null;
  };
  let held: Buffer | null = null;
  for await (const chunk of stream(accepts)) {
    start.add(chunk);
    messages.add(chunk);
    if (start.isError()) await assertWhole(folder);
    if (held !== null) yield held;
    held = endsBeforeBoundary(chunk) ? chunk : null;
    if (held === null) yield chunk;
  }
  if (end.told !== null) {
    await assertWhole(folder);
    yield errorPacket(end.told);
  } else if (held !== null) yield held;
}

/** git may miss an object that was deleted, not one that the client made up. */
async function assertWhole(folder: CacheFolder): Promise<void> {
  if (!(await isWhole(folder))) throw new ViewLost('The cached repository is not whole');
}

/**
 * Whether git, in protocol v2, walks now to find the shallow boundary. What it wrote waits for what follows, so that an
 * error is the whole answer.
 */
function endsBeforeBoundary(chunk: Buffer): boolean {
  return chunk.subarray(-SHALLOW_INFO.length).equals(SHALLOW_INFO);
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
