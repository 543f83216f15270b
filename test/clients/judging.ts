/**
 * Judges with stock git what a client left in its clone and what the server stored.
 *
 * Invariants: a judgement throws with what is wrong and returns nothing. Refs are compared as a whole, so that one
 * too many is found as well as one too few.
 */
import { git, tryGit } from '../support/strata.ts';

/** Ids by the whole name of the ref. */
export type Refs = ReadonlyMap<string, string>;

interface Server {
  /** With credentials. */
  readonly judgeUrl: string;
  readonly mirror: string;
}

function parsedRefs(text: string, separator: string): Refs {
  const lines = text.split('\n').filter((line) => line !== '');
  return new Map(
    lines.map((line): [string, string] => {
      const [id = '', name = ''] = line.split(separator);
      return [name, id];
    }),
  );
}

/** The refs of a repository in a folder, without symbolic ones. */
export async function refsOf(folder: string): Promise<Refs> {
  const format = '%(if)%(symref)%(then)%(else)%(objectname) %(refname)%(end)';
  return parsedRefs(await git(folder, ['for-each-ref', `--format=${format}`]), ' ');
}

/** The refs that the server tells of, without HEAD and without what annotated tags lead to. */
export async function refsOfServer({ judgeUrl, mirror }: Server): Promise<Refs> {
  return parsedRefs(await git(mirror, ['ls-remote', '--refs', judgeUrl]), '\t');
}

/** Throws unless both hold the same names with the same ids. */
function requireSameRefs(found: Refs, expected: Refs, where: string): void {
  const names = [...new Set([...found.keys(), ...expected.keys()])].sort();
  const different = names.filter((name) => found.get(name) !== expected.get(name));
  const lines = different.map(
    (name) => `${name} is ${found.get(name) ?? 'not there'} instead of ${expected.get(name) ?? 'not there'}`,
  );
  if (lines.length > 0) throw new Error(`${where}: ${lines.join(', ')}`);
}

async function requireWhole(folder: string): Promise<void> {
  const checked = await tryGit(folder, ['fsck', '--full', '--no-dangling', '--no-progress']);
  if (checked.code !== 0) throw new Error(`git fsck: ${checked.stdout}${checked.stderr}`);
}

/** A clone, or what a fetch made of it: every branch and tag of the server, and every object. */
export async function judgeClone(server: Server, folder: string): Promise<void> {
  const all = await refsOfServer(server);
  const expected = new Map(
    [...all].flatMap(([name, id]): [string, string][] => {
      if (name.startsWith('refs/tags/')) return [[name, id]];
      return name.startsWith('refs/heads/') ? [[name.replace('refs/heads/', 'refs/remotes/origin/'), id]] : [];
    }),
  );
  const found = new Map([...(await refsOf(folder))].filter(([name]) => /^refs\/(tags|remotes\/origin)\//.test(name)));
  // A client may write it as a ref of its own.
  found.delete('refs/remotes/origin/HEAD');
  requireSameRefs(found, expected, 'the clone');
  await requireWhole(folder);
  const changes = await git(folder, ['status', '--porcelain', '--untracked-files=all']);
  if (changes !== '') throw new Error(`the work tree differs from its commit: ${changes}`);
}

/** The clone of one commit, or the same clone with the whole history. */
export async function judgeShallow(server: Server, folder: string, kind: 'shallow' | 'whole'): Promise<void> {
  const main = (await refsOfServer(server)).get('refs/heads/main') ?? 'not there';
  const head = (await git(folder, ['rev-parse', 'HEAD'])).trim();
  if (head !== main) throw new Error(`HEAD is ${head} instead of ${main}`);
  const isShallow = (await git(folder, ['rev-parse', '--is-shallow-repository'])).trim() === 'true';
  if (isShallow !== (kind === 'shallow')) throw new Error(`the clone is ${isShallow ? '' : 'not '}shallow`);
  await git(server.mirror, ['fetch', '--quiet', '--prune', server.judgeUrl, '+refs/*:refs/*']);
  const whole = (await git(server.mirror, ['rev-list', '--count', main])).trim();
  const expected = kind === 'shallow' ? '1' : whole;
  const count = (await git(folder, ['rev-list', '--count', 'HEAD'])).trim();
  if (count !== expected) throw new Error(`the clone has ${count} commits instead of ${expected}`);
  await requireWhole(folder);
}

/** The server has exactly these refs, and all their objects. */
export async function judgeStored(server: Server, expected: Refs): Promise<void> {
  requireSameRefs(await refsOfServer(server), expected, 'the server');
  await git(server.mirror, ['fetch', '--quiet', '--prune', server.judgeUrl, '+refs/*:refs/*']);
  requireSameRefs(await refsOf(server.mirror), expected, 'a mirror of the server');
  await requireWhole(server.mirror);
}
