/**
 * Makes cases: what clients ask for, in every combination, and requests that no client sends.
 *
 * Invariants: seed and number decide a case, so that `--replay` makes it again alone.
 */
import type { Dice } from '../support/seeded.ts';
import { type Case, type ClientCase, DELIMITER_LINE, FLUSH_LINE, type Line, type RequestCase } from './cases.ts';
import { FIRST_SECONDS, type RepositoryName, type Words } from './repository.ts';

/** Half of the time of a run goes to clients, each of which takes as long as several requests. */
const CLIENT_SHARE = 0.25;
const ADVERTISEMENT_SHARE = 0.1;
const CHANGED_SHARE = 0.35;
const UNKNOWN = 'f'.repeat(40);
const FLOOD_HAVES = 100;

export function caseOf(words: Words, dice: Dice): Case {
  const repository = dice.pick<RepositoryName>(['plain', 'plain', 'plain', 'forced', 'forced', 'headless', 'empty']);
  if (dice.chance(CLIENT_SHARE)) return clientCase(repository, words, dice);
  if (dice.chance(ADVERTISEMENT_SHARE)) return advertisement(repository, dice);
  const protocol = dice.pick([0, 1, 2, 2, 2] as const);
  const lines = protocol === 2 ? linesOfV2(words, dice) : linesOfV0(words, dice);
  return {
    ...{ kind: 'request', repository, protocol: `version=${protocol}`, target: 'git-upload-pack' },
    lines: dice.chance(CHANGED_SHARE) ? changed(lines, dice) : lines,
  };
}

// Clients

const FILTERS = [
  ...['blob:none', 'blob:none', 'blob:limit=0', 'blob:limit=1k', 'blob:limit=2000', 'tree:0', 'tree:1', 'tree:3'],
  ...['tree:16', 'tree:17', 'sparse:oid=main:sparse', 'object:type=commit', 'combine:blob:none+tree:2', 'nonsense'],
];

function clientCase(repository: RepositoryName, words: Words, dice: Dice): ClientCase {
  const protocol = dice.pick([0, 1, 2, 2] as const);
  const steps: string[][] = [firstStep(words, dice)];
  for (let more = dice.below(4); more > 0; more -= 1) steps.push(laterStep(words, dice));
  return { kind: 'client', repository, protocol, steps };
}

function firstStep(words: Words, dice: Dice): string[] {
  if (dice.chance(0.2)) return lsRemote(words, dice);
  const options = [
    ...some(dice, 0.4, () => shallowOption(words, dice, 'clone')),
    ...some(dice, 0.3, () => `--filter=${dice.pick(FILTERS)}`),
    ...some(dice, 0.2, () => dice.pick(['--single-branch', '--no-single-branch'])),
    ...some(dice, 0.2, () => '--no-tags'),
    ...some(dice, 0.25, () => `--branch=${dice.pick([...words.branches, ...words.tags, 'nowhere'])}`),
    ...some(dice, 0.5, () => dice.pick(['--bare', '--mirror', '--no-checkout', '--sparse', '--reject-shallow'])),
  ];
  return ['clone', '--quiet', ...options, 'URL', 'repo'];
}

function lsRemote(words: Words, dice: Dice): string[] {
  const options = ['--heads', '--tags', '--refs', '--symref', '--exit-code', '--sort=-v:refname'];
  const patterns = [...words.refs, 'main*', 'refs/pull/*', '*/x', 'HEAD', 'nowhere'];
  return [
    'ls-remote',
    ...options.filter(() => dice.chance(0.25)),
    'URL',
    ...some(dice, 0.5, () => dice.pick(patterns)),
  ];
}

function laterStep(words: Words, dice: Dice): string[] {
  const chosen = dice.below(10);
  if (chosen === 0) return lsRemote(words, dice);
  if (chosen === 1) return ['commit', '--quiet', '--allow-empty', '-m', 'local'];
  if (chosen === 2) return ['checkout', '--quiet', '--detach', dice.pick(['HEAD~1', 'FETCH_HEAD', 'origin/dev', 'v1'])];
  const tip = dice.pick(words.branches);
  const options = [
    ...some(dice, 0.5, () => shallowOption(words, dice, 'fetch')),
    ...some(dice, 0.2, () => `--filter=${dice.pick(FILTERS)}`),
    ...some(dice, 0.3, () => dice.pick(['--tags', '--no-tags', '--prune', '--refetch', '--update-shallow', '--force'])),
    ...some(dice, 0.1, () => `--negotiation-tip=${dice.pick([`refs/remotes/origin/${tip}`, 'HEAD', 'refs/tags/v1'])}`),
    ...some(dice, 0.05, () => '--negotiate-only'),
  ];
  const refspecs = some(dice, 0.8, () => refspec(words, dice));
  if (refspecs.length > 0) refspecs.push(...some(dice, 0.3, () => refspec(words, dice)));
  return [
    'fetch',
    '--quiet',
    ...options,
    ...dice.pick([['URL'], ['URL'], refspecs.length > 0 ? ['URL'] : []]),
    ...refspecs,
  ];
}

function shallowOption(words: Words, dice: Dice, command: 'clone' | 'fetch'): string {
  const times = [...words.seconds, FIRST_SECONDS - 1, FIRST_SECONDS + 1_000_000, 1];
  const options = [
    ...[1, 1, 2, 3, 5, 100].map((depth) => `--depth=${depth}`),
    `--shallow-since=@${dice.pick(times)}`,
    `--shallow-since=@${dice.pick(times)}`,
    `--shallow-exclude=${dice.pick([...words.branches, ...words.tags, ...words.refs, 'both', 'nowhere', 'HEAD'])}`,
    ...(command === 'fetch' ? ['--deepen=1', '--deepen=3', '--unshallow', '--deepen=100'] : []),
  ];
  return dice.pick(options);
}

function refspec(words: Words, dice: Dice): string {
  const branch = dice.pick(words.branches);
  return dice.pick([
    ...[branch, `${branch}:copy`, `+refs/heads/${branch}:refs/remotes/origin/${branch}`, '+refs/*:refs/all/*'],
    ...['refs/heads/*:refs/remotes/o/*', 'refs/tags/*:refs/tags/*', 'HEAD', 'HEAD:refs/all/head', 'nowhere'],
    ...[`refs/tags/${dice.pick(words.tags)}`, dice.pick(words.refs), `^refs/heads/${branch}`],
    ...[dice.pick(words.commits), anyObject(words, dice), dice.pick(words.left), UNKNOWN],
    `${dice.pick(words.commits)}:refs/all/by-id`,
  ]);
}

// Requests

const PROTOCOLS = [
  ...[null, '', 'version=0', 'version=1', 'version=2', 'version=3', 'version=-1', 'version=02'],
  ...['version=1:version=2', 'version=2:version=1', 'key=value:version=2', 'version', 'VERSION=2', 'version=2:x'],
];
const SERVICES = [
  ...Array.from({ length: 6 }, () => 'info/refs?service=git-upload-pack'),
  ...[
    'info/refs?x=1&service=git-upload-pack',
    'info/refs?service=git-upload-pack&x=1',
    'info/refs?service=upload-pack',
  ],
  ...['info/refs?service=git-upload-archive', 'info/refs?service=', 'info/refs?service=git-upload-pack%00'],
];

function advertisement(repository: RepositoryName, dice: Dice): RequestCase {
  return { kind: 'request', repository, protocol: dice.pick(PROTOCOLS), target: dice.pick(SERVICES), lines: null };
}

function linesOfV2(words: Words, dice: Dice): readonly Line[] {
  const command = dice.pick([...Array.from({ length: 12 }, () => 'fetch'), 'ls-refs', 'ls-refs', 'ls-refs', 'other']);
  const capabilities = ['agent=x/1', 'object-format=sha1', 'server-option=x'].filter(() => dice.chance(0.5));
  const odd = some(dice, 0.05, () =>
    dice.pick(['object-format=sha256', 'session-id=x', 'bogus', 'agent', 'fetch=shallow']),
  );
  if (command === 'other') {
    const others = ['object-info', 'bundle-uri', 'push', '', 'fetch ', 'FETCH', 'ls-refs=x', 'agent'];
    const asked = some(dice, 0.5, () => dice.pick(['size', `oid ${dice.pick(words.blobs)}`]));
    return [`command=${dice.pick(others)}`, ...capabilities, DELIMITER_LINE, ...asked, FLUSH_LINE];
  }
  const args = command === 'fetch' ? fetchArguments(words, dice) : lsRefsArguments(words, dice);
  return [`command=${command}`, ...capabilities, ...odd, DELIMITER_LINE, ...args, FLUSH_LINE];
}

function lsRefsArguments(words: Words, dice: Dice): readonly string[] {
  const flags = ['peel', 'symrefs', 'unborn'].filter(() => dice.chance(0.5));
  const prefixes = [
    'HEAD',
    'H',
    'refs/',
    'refs/heads/',
    'refs/heads/main',
    'refs/tags/v1',
    'refs/heads/ü',
    'x',
    '',
    ' ',
  ];
  const asked = Array.from({ length: dice.below(4) }, () => `ref-prefix ${dice.pick([...prefixes, ...words.refs])}`);
  return [
    ...flags,
    ...asked,
    ...some(dice, 0.05, () => dice.pick(['bogus', 'ref-prefix', 'peel ', 'peeled', 'symrefs=1'])),
  ];
}

function fetchArguments(words: Words, dice: Dice): readonly string[] {
  const flags = ['thin-pack', 'no-progress', 'ofs-delta', 'include-tag'].filter(() => dice.chance(0.5));
  const odd = ['wait-for-done', 'want-ref refs/heads/main', 'sideband-all', 'packfile-uris https', 'bogus', 'done '];
  return [
    ...flags,
    ...some(dice, 0.1, () => dice.pick(odd)),
    ...wants(words, dice),
    ...boundaries(words, dice),
    ...haves(words, dice),
    ...some(dice, 0.75, () => 'done'),
  ];
}

function linesOfV0(words: Words, dice: Dice): readonly Line[] {
  const names = ['multi_ack', 'multi_ack_detailed', 'no-done', 'side-band', 'side-band-64k', 'thin-pack', 'ofs-delta'];
  const others = ['shallow', 'deepen-since', 'deepen-not', 'deepen-relative', 'no-progress', 'include-tag', 'agent=x'];
  const odd = some(dice, 0.05, () => dice.pick(['object-format=sha256', 'bogus', 'filter=1', 'sideband-all']));
  const [first = '', ...more] = wants(words, dice);
  const chosen = [...names, ...others].filter(() => dice.chance(0.5));
  const capabilities = [...chosen, ...some(dice, 0.9, () => 'filter'), ...odd];
  const known = haves(words, dice);
  const batches = dice.chance(0.2) ? [...known, FLUSH_LINE, ...haves(words, dice)] : known;
  return [
    ...[[first, ...capabilities].join(' '), ...more, ...boundaries(words, dice), FLUSH_LINE, ...batches],
    ...(dice.chance(0.8) ? ['done'] : dice.chance(0.5) ? [FLUSH_LINE] : []),
  ];
}

function wants(words: Words, dice: Dice): readonly string[] {
  const many = dice.chance(0.05) ? words.tips.map((id) => `want ${id}`) : [];
  return [...Array.from({ length: 1 + dice.below(3) }, () => `want ${wanted(words, dice)}`), ...many];
}

function wanted(words: Words, dice: Dice): string {
  const chosen = dice.below(100);
  if (chosen < 60) return dice.pick(words.tips);
  if (chosen < 75) return dice.pick(words.commits);
  if (chosen < 88) return anyObject(words, dice);
  if (chosen < 94) return dice.pick(words.left);
  return oddId(words, dice);
}

function anyObject({ commits, trees, blobs, tips }: Words, dice: Dice): string {
  return dice.pick(dice.pick([commits, trees, blobs, tips]));
}

function oddId({ commits }: Words, dice: Dice): string {
  const id = dice.pick(commits);
  return dice.pick([
    ...[UNKNOWN, '0'.repeat(40), id.toUpperCase(), id.slice(1), `${id}0`, `${id} x`, ` ${id}`, 'main', '', `${id}\n`],
    ...['refs/heads/main', '0'.repeat(64), `${id}\0`],
  ]);
}

function haves(words: Words, dice: Dice): readonly string[] {
  const held = Array.from({ length: dice.below(5) }, () => {
    const id = dice.pick([dice.pick(words.commits), dice.pick(words.commits), anyObject(words, dice), UNKNOWN]);
    return `have ${dice.chance(0.03) ? oddId(words, dice) : id}`;
  });
  if (!dice.chance(0.04)) return held;
  return [...held, ...Array.from({ length: FLOOD_HAVES }, (_, at) => `have ${at.toString(16).padStart(40, 'e')}`)];
}

function boundaries(words: Words, dice: Dice): readonly string[] {
  const seconds = [
    ...words.seconds,
    0,
    1,
    -1,
    FIRST_SECONDS + 1_000_000,
    '',
    'x',
    '010',
    2 ** 31,
    '99999999999999999999',
  ];
  const depths = [1, 1, 2, 3, 10, 2 ** 31 - 1, 0, -1, 2 ** 31, '', 'x', '010', '1x', '+1'];
  const excluded = [...words.branches, ...words.tags, ...words.refs, 'both', 'nowhere', 'HEAD', '', 'main~1'];
  const bounds = [
    () => [`deepen ${dice.pick(depths)}`, ...some(dice, 0.3, () => 'deepen-relative')],
    () => [`deepen-since ${dice.pick(seconds)}`],
    () => Array.from({ length: 1 + dice.below(2) }, () => `deepen-not ${dice.pick(excluded)}`),
    () => [`deepen-since ${dice.pick(words.seconds)}`, `deepen-not ${dice.pick(excluded)}`],
    () => [`deepen 1`, `deepen-since ${dice.pick(seconds)}`],
  ];
  const shallow = (): string => {
    const id = dice.pick([dice.pick(words.commits), dice.pick(words.commits), anyObject(words, dice), UNKNOWN]);
    return `shallow ${dice.chance(0.05) ? oddId(words, dice) : id}`;
  };
  return [
    ...(dice.chance(0.2) ? Array.from({ length: 1 + dice.below(2) }, shallow) : []),
    ...(dice.chance(0.35) ? dice.pick(bounds)() : []),
    ...some(dice, 0.2, () => `filter ${dice.pick(FILTERS)}`),
    ...some(dice, 0.02, () => `filter ${dice.pick(FILTERS)}`),
  ];
}

/** The lines with some left out, repeated, moved or changed. */
function changed(lines: readonly Line[], dice: Dice): readonly Line[] {
  const result = [...lines];
  for (let rounds = 1 + dice.below(2); rounds > 0; rounds -= 1) {
    const at = dice.below(result.length);
    const line = result[at] ?? '';
    const chosen = dice.below(5);
    if (chosen === 0) result.splice(at, 1);
    if (chosen === 1) result.splice(at, 0, line);
    if (chosen === 2) result.splice(dice.below(result.length), 0, ...result.splice(at, 1));
    if (chosen === 3)
      result.splice(at, 0, { raw: dice.pick(['0000', '0001', '0002', '0003', '0004', 'zzzz', 'ffff', '0']) });
    if (chosen === 4)
      result[at] = typeof line === 'string' ? dice.pick([`${line}\n`, line.slice(1), `${line} x`]) : line;
  }
  return result;
}

/** What the function makes, with this probability. */
function some(dice: Dice, probability: number, make: () => string): string[] {
  return dice.chance(probability) ? [make()] : [];
}
