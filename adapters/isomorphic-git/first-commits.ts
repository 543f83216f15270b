/**
 * Makes first commits with isomorphic-git, which needs no process and no repository but a folder of its own.
 *
 * Invariants: each commit is made in a private folder that is removed afterwards. What a killed process left is
 * removed at the next start. Nothing reads these folders: the pack goes the way of every push.
 */
import fs from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import git from 'isomorphic-git';
import { createConcurrencyLimit } from '../../core/kernel/concurrency-limit.ts';
import { objectId } from '../../core/kernel/ids.ts';
import type { FirstCommit, FirstCommits, WantedFirstCommit } from '../../core/ports/first-commits.ts';

/** Each takes a few milliseconds of the event loop. Internal: further first commits wait. */
const AT_ONCE_MAX = 2;

/** `directory` belongs to this process alone: it is emptied here. */
export async function createIsomorphicFirstCommits(options: { readonly directory: string }): Promise<FirstCommits> {
  const { directory } = options;
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const limited = createConcurrencyLimit(AT_ONCE_MAX);
  return {
    make: (wanted) =>
      limited(async () => {
        const dir = await mkdtemp(path.join(directory, 'commit-'));
        try {
          return await makeIn(dir, wanted);
        } finally {
          await rm(dir, { recursive: true, force: true });
        }
      }),
  };
}

async function makeIn(
  gitdir: string,
  { fileName, text, message, author, at }: WantedFirstCommit,
): Promise<FirstCommit> {
  const repository = { fs, dir: gitdir, gitdir };
  await git.init({ ...repository, bare: true });
  const blob = await git.writeBlob({ ...repository, blob: Buffer.from(text, 'utf8') });
  const entry = { mode: '100644', path: fileName, oid: blob, type: 'blob' } as const;
  const tree = await git.writeTree({ ...repository, tree: [entry] });
  const signature = { ...author, timestamp: Math.floor(Date.parse(at) / 1_000), timezoneOffset: 0 };
  const commit = await git.writeCommit({
    ...repository,
    commit: { message, tree, parent: [], author: signature, committer: signature },
  });
  const { packfile } = await git.packObjects({ ...repository, oids: [commit, tree, blob], write: false });
  if (packfile === undefined) throw new TypeError('isomorphic-git made no pack');
  return { commit: objectId(commit), pack: packfile };
}
