/**
 * The oldest version of Strata that may run beside this one: the commit that `deploy/upgrade-from` names, unpacked from
 * the history of this clone.
 *
 * Invariants: a test downloads nothing, so that the older version runs with the packages of this one.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import path from 'node:path';
import type { EventVersions } from '../../core/ports/running-processes.ts';
import type { Ending } from './cleanup.ts';
import { tempDir } from './temp-dir.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const NAMED_IN = 'deploy/upgrade-from';
const ARCHIVE_BYTES_MAX = 256 * 1024 * 1024;

/** Returns why there is no older version to run beside this one; false if there is one. */
export function whyNoOlderVersion(): string | false {
  const commit = olderCommit();
  if (commit === null) return `needs a commit in ${NAMED_IN}`;
  const found = spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT });
  return found.status === 0 ? false : `needs the commit of ${NAMED_IN} in the history of the clone`;
}

/** Unpacks the older version, and returns its folder. */
export async function olderVersion(ending: Ending): Promise<string> {
  const folder = await tempDir(ending);
  const archive = spawnSync('git', ['archive', olderCommit() ?? ''], { cwd: ROOT, maxBuffer: ARCHIVE_BYTES_MAX });
  if (archive.status !== 0) throw new Error(`git archive failed: ${String(archive.stderr)}`);
  const unpacked = spawnSync('tar', ['-x', '-C', folder], { input: archive.stdout });
  if (unpacked.status !== 0) throw new Error(`tar failed: ${String(unpacked.stderr)}`);
  await symlink(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  return folder;
}

/** Returns the highest version of each type of event that the older version reads. */
export function eventsOfOlderVersion(): EventVersions {
  const names = `${olderCommit() ?? ''}:test/golden/names/event-log.txt`;
  const { status, stdout, stderr } = spawnSync('git', ['show', names], { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new Error(`git show failed: ${stderr}`);
  const events = [...stdout.matchAll(/^event \S+ (\S+) (\d+) /gm)];
  return Object.fromEntries(events.map(([, type = '', version]) => [type, Number(version)]));
}

/** Returns null while no version is named. */
function olderCommit(): string | null {
  try {
    const commit = readFileSync(path.join(ROOT, NAMED_IN), 'utf8').trim();
    if (!/^[0-9a-f]{40}$/.test(commit)) throw new Error(`${NAMED_IN} holds one commit, in 40 hex digits`);
    return commit;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
