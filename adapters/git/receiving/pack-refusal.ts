/**
 * What git's words about a bad pack mean for the pusher (builtin/index-pack.c and fsck.c of git 2.39 to 2.5x).
 *
 * Must stay true: the detail is one line of printable characters, says nothing of this machine's paths, and a
 * failure of this machine is never called the pusher's.
 */
import type { PackRefusal, PackRefusalCode } from '../../../core/ports/object-database.ts';
import type { ProcessEnd } from '../process/process-runner.ts';

const DETAIL_LENGTH_MAX = 300;

interface Rule {
  readonly says: RegExp;
  readonly refused: PackRefusalCode;
  /** The pusher's line; `$1` and `$2` are what the expression caught. */
  readonly detail: string;
}

/** In order: the first that fits counts. */
const RULES: readonly Rule[] = [
  // First, since what follows may quote the pusher's own words, such as a URL in .gitmodules.
  {
    says: /^error: object ([0-9a-f]{40}): ([A-Za-z]+: .*)$/m,
    refused: 'pack-fsck-failed',
    detail: 'object $1: $2',
  },
  {
    says: /fsck error in pack(?:ed)? objects?/,
    refused: 'pack-fsck-failed',
    detail: 'an object breaks the rules of git fsck',
  },
  { says: /No space left on device|Disk quota exceeded/, refused: 'disk-full', detail: 'the server has no room left' },
  {
    says: /Out of memory|[Cc]annot allocate memory|unable to create (?:async )?thread/,
    refused: 'pack-too-costly',
    detail: 'the pack takes more memory than a push may',
  },
  { says: /pack exceeds maximum allowed size/, refused: 'pack-too-large', detail: 'the pack is larger than it may be' },
  {
    says: /did not receive expected object ([0-9a-f]{40})/,
    refused: 'pack-not-connected',
    detail: 'object $1 is referred to and is neither in the pack nor in the repository',
  },
  {
    says: /Not all child objects of ([0-9a-f]{40}) are reachable/,
    refused: 'pack-not-connected',
    detail: 'object $1 refers to one that is neither in the pack nor in the repository',
  },
  {
    says: /object type mismatch at ([0-9a-f]{40})|object ([0-9a-f]{40})(?: is a \w+, not a \w+|: expected type)/,
    refused: 'pack-fsck-failed',
    detail: 'object $1$2 is referred to as another type than it has',
  },
  {
    says: /pack has (\d+) unresolved delta|pack is missing base|unresolved deltas? left/,
    refused: 'pack-broken',
    detail: 'the pack has deltas whose base is neither in it nor in the repository',
  },
  { says: /early EOF|premature end/, refused: 'pack-broken', detail: 'the pack ends too early' },
  { says: /SHA1 mismatch|pack is corrupted/, refused: 'pack-broken', detail: 'the pack does not match its checksum' },
  { says: /SHA1 COLLISION|collision attack/, refused: 'pack-broken', detail: 'an object collides with another one' },
  {
    says: /pack has bad object at offset (\d+)/,
    refused: 'pack-broken',
    detail: 'the pack is broken at byte $1',
  },
  {
    says: /pack signature mismatch|pack version \d+ unsupported|inflate|delta|offset|pack has junk|invalid object/,
    refused: 'pack-broken',
    detail: 'the pack is broken',
  },
];

/** Failures of this machine that look like none of the rules. */
const NOT_THE_PUSHERS =
  /unable to (?:create|open|write|read)|cannot (?:open|create|store|pread|fstat)|Too many open files|Permission denied|Input\/output error|detected dubious|not a git repository|unknown option|usage:/;

/** Why git took no pack; null when the failure is this machine's. */
export function refusalOf(end: ProcessEnd): PackRefusal | null {
  if (end.killed === 'timeout') return { refused: 'pack-too-costly', detail: 'checking the pack took too long' };
  if (end.signal === 'SIGXCPU') return { refused: 'pack-too-costly', detail: 'checking the pack took too long' };
  if (end.signal === 'SIGXFSZ') return { refused: 'pack-too-large', detail: 'the pack is larger than it may be' };
  if (end.signal !== null) return { refused: 'pack-too-costly', detail: 'checking the pack was ended by the system' };
  for (const { says, refused, detail } of RULES) {
    const found = says.exec(end.stderr);
    if (found === null) continue;
    const line = detail.replace(/\$([12])/g, (_, group: string) => found[Number(group)] ?? '');
    return { refused, detail: oneLine(line) };
  }
  if (NOT_THE_PUSHERS.test(end.stderr)) return null;
  return { refused: 'pack-broken', detail: 'git could not index the pack' };
}

/** Printable and short: it goes into a report line and onto a terminal. */
function oneLine(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, '?').slice(0, DETAIL_LENGTH_MAX);
}
