/**
 * Runs git upload-pack for one stateless request, in a view of the refs (docs/git-path.md, Fetch).
 *
 * Must stay true: the caller has authorised the wants, since git serves any object that it has here.
 */
import type { UploadPackOptions } from '../../core/ports/object-database.ts';
import type { CacheFolder } from './cache/cache-folder.ts';
import type { Git, GitCommand } from './process/git-commands.ts';
import type { ConfigPairs } from './process/git-environment.ts';
import type { ProcessEnd } from './process/process-runner.ts';
import type { ViewFolders } from './cache/view-folders.ts';

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
  options: UploadPackOptions,
): AsyncGenerator<Uint8Array> {
  const view = await views.acquire(folder, options.view);
  try {
    const command: GitCommand = {
      args: ['upload-pack', '--stateless-rpc', '--strict', view.path],
      view: { key: folder.repository, variables: {} },
      variables: { GIT_PROTOCOL: `version=${options.protocol}` },
      config: CONFIG,
      signal: options.signal,
    };
    const start = new AnswerStart();
    const accepts = (end: ProcessEnd) => end.code === 0 || start.isError();
    for await (const chunk of git.stream(command, options.request, accepts)) {
      start.add(chunk);
      yield chunk;
    }
  } finally {
    view.release();
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
