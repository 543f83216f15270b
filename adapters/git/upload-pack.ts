/**
 * git upload-pack's answer to one stateless request, in a view of the refs (git-path.md, Fetch).
 *
 * Must stay true: the wants were authorised by the caller, since git serves any object it has here.
 */
import type { UploadPackOptions } from '../../core/ports/object-database.ts';
import type { CacheFolder } from './cache/cache-folder.ts';
import type { Git, GitCommand } from './process/git-commands.ts';
import type { ConfigPairs } from './process/git-environment.ts';
import type { ProcessEnd } from './process/process-runner.ts';
import type { ViewFolders } from './cache/view-folders.ts';

const CONFIG: ConfigPairs = [
  // Over stateless HTTP git refuses no unreachable blob anyway; this only makes it not refuse the rest.
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
  const view = await views.hold(folder, options.view);
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
 * The beginning of an answer. One that is nothing but an `ERR` packet (gitprotocol-pack(5)) is git's whole answer
 * to a bad request, although it exits with an error after it.
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
