/** Clones a repository as of a moment with the real git, and compares it with what a mirror had then. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { plusMs, type Timestamp } from '../../core/kernel/ids.ts';
import type { Ending } from './cleanup.ts';
import type { PastHistory, PastState } from './past-history.ts';
import type { Dice } from './seeded.ts';
import { git, tryGit } from './strata.ts';
import { tempDir } from './temp-dir.ts';

/** Writes a moment of a state in one of the forms that a URL may have. */
export function momentIn(dice: Dice, { from, until, event }: PastState): string {
  const spanMs = Date.parse(until) - Date.parse(from);
  const at = plusMs(from, dice.below(spanMs));
  const forms = [
    at,
    encodeURIComponent(at),
    at.replaceAll(/[-:]/g, ''),
    withOffset(at, '+05:30', 330),
    encodeURIComponent(withOffset(at, '-08:00', -480)),
    ...(event === null ? [] : [event, event]),
  ];
  return dice.pick(forms);
}

function withOffset(at: Timestamp, offset: string, minutes: number): string {
  return plusMs(at, minutes * 60_000).replace('Z', offset);
}

/** Fails unless a clone as of the moment has the refs, the HEAD and exactly the objects of the state. */
export async function assertCloneIs(
  ending: Ending,
  history: Pick<PastHistory, 'url' | 'mirror' | 'keptSince'>,
  moment: string,
  { listed, from }: Pick<PastState, 'listed' | 'from'>,
): Promise<'equal' | 'expired'> {
  const url = history.url(moment);
  const shown = await tryGit(history.mirror, ['ls-remote', '--symref', url]);
  if (shown.code !== 0) {
    assert.ok(from < history.keptSince, `${moment}: ${shown.stderr}`);
    assert.match(shown.stderr, /passed retention: it was removed by the event [0-9a-f-]{36}\n.*\n?.*410/);
    return 'expired';
  }
  assert.equal(shown.stdout, listed, moment);
  if (listed === '') return 'equal';
  const clone = path.join(await tempDir(ending), 'clone.git');
  await git(history.mirror, ['clone', '--quiet', '--mirror', url, clone]);
  const refs = listed.split('\n').flatMap((line) => {
    const [id = '', ref = ''] = line.split('\t');
    return ref.startsWith('refs/') && !ref.endsWith('^{}') ? [{ id, ref }] : [];
  });
  const cloned = await git(clone, ['for-each-ref', '--format=%(objectname) %(refname)']);
  assert.equal(cloned, refs.map(({ id, ref }) => `${id} ${ref}\n`).join(''));
  const tips = refs.map(({ id }) => `${id}\n`).join('');
  const reached = await git(history.mirror, ['rev-list', '--objects', '--no-object-names', '--stdin'], tips);
  const stored = await git(clone, ['cat-file', '--batch-all-objects', '--batch-check=%(objectname)']);
  assert.deepEqual(stored.trim().split('\n').sort(), reached.trim().split('\n').sort(), moment);
  const symref = /^ref: (\S+)\tHEAD$/m.exec(listed)?.[1];
  if (symref !== undefined) assert.equal((await git(clone, ['symbolic-ref', 'HEAD'])).trim(), symref);
  return 'equal';
}
