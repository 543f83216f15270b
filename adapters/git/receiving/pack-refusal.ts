/**
 * Translates git's messages about a bad pack for the pusher (builtin/index-pack.c and fsck.c of git 2.39 to 2.5x).
 *
 * Invariants: the detail is one line of printable characters and shows no path of this machine; a failure of this
 * machine is never reported as the pusher's.
 */
import type { PackRefusal, PackRefusalCode } from '../../../core/git/pack-refusal.ts';
import { OBJECT_ID_PATTERN } from '../../../core/kernel/ids.ts';
import type { ProcessEnd } from '../process/process-runner.ts';

/** How much a refusal tells of what git says. */
export const DETAIL_LENGTH_MAX = 300;

interface Rule {
  /** What git prints on standard error. */
  readonly pattern: RegExp;
  readonly refused: PackRefusalCode;
  /** The line for the pusher; `$1` and `$2` are the groups of the pattern. */
  readonly detail: string;
}

/** An object's id, as a group of a pattern. */
const ID = `(${OBJECT_ID_PATTERN})`;

/** In order: the first rule whose pattern matches applies. */
const RULES: readonly Rule[] = [
  // First, because this message may quote the pusher's text, such as a URL in .gitmodules, which a later rule matches.
  {
    pattern: new RegExp(`^error: object ${ID}: ([A-Za-z0-9]+: .*)$`, 'm'),
    refused: 'pack-fsck-failed',
    detail: 'object $1: $2',
  },
  {
    pattern: /fsck error in pack(?:ed)? objects?/,
    refused: 'pack-fsck-failed',
    detail: 'an object breaks the rules of git fsck',
  },
  {
    pattern: new RegExp(`bogus (commit|tree|tag) object ${ID}`),
    refused: 'pack-fsck-failed',
    detail: 'object $2: cannot be parsed as a $1',
  },
  {
    pattern: new RegExp(`bad (?:tree pointer|parents) in commit ${ID}`),
    refused: 'pack-fsck-failed',
    detail: 'object $1: cannot be parsed as a commit',
  },
  {
    pattern: /^fatal: invalid tag$/m,
    refused: 'pack-fsck-failed',
    detail: 'a tag cannot be parsed',
  },
  {
    pattern: /No space left on device|Disk quota exceeded/,
    refused: 'disk-full',
    detail: 'the server has no room left',
  },
  {
    pattern: /Out of memory|[Cc]annot allocate memory|unable to create (?:async )?thread/,
    refused: 'pack-too-costly',
    detail: 'the pack takes more memory than a push may',
  },
  {
    pattern: /pack exceeds maximum allowed size/,
    refused: 'pack-too-large',
    detail: 'the pack is larger than it may be',
  },
  {
    pattern: new RegExp(`did not receive expected object ${ID}`),
    refused: 'pack-not-connected',
    detail: 'object $1 is referred to and is neither in the pack nor in the repository',
  },
  {
    pattern: new RegExp(`Not all child objects of ${ID} are reachable`),
    refused: 'pack-not-connected',
    detail: 'object $1 refers to one that is neither in the pack nor in the repository',
  },
  {
    pattern: new RegExp(`object type mismatch at ${ID}|object ${ID}(?: is a \\w+, not a \\w+|: expected type)`),
    refused: 'pack-fsck-failed',
    detail: 'object $1$2 is referred to as another type than it has',
  },
  {
    pattern: /pack has (\d+) unresolved delta|pack is missing base|unresolved deltas? left/,
    refused: 'pack-broken',
    detail: 'the pack has deltas whose base is neither in it nor in the repository',
  },
  { pattern: /early EOF|premature end/, refused: 'pack-broken', detail: 'the pack ends too early' },
  {
    pattern: /SHA1 mismatch|pack is corrupted/,
    refused: 'pack-broken',
    detail: 'the pack does not match its checksum',
  },
  { pattern: /SHA1 COLLISION|collision attack/, refused: 'pack-broken', detail: 'an object collides with another one' },
  {
    pattern: /pack has bad object at offset (\d+)/,
    refused: 'pack-broken',
    detail: 'the pack is broken at byte $1',
  },
  {
    pattern: /pack signature mismatch|pack version \d+ unsupported|inflate|delta|offset|pack has junk|invalid object/,
    refused: 'pack-broken',
    detail: 'the pack is broken',
  },
];

/** Failures of this machine, among the messages that no rule matches. */
const MACHINE_FAILURES =
  /unable to (?:create|open|write|read)|cannot (?:open|create|store|pread|fstat)|Too many open files|Permission denied|Input\/output error|detected dubious|not a git repository|unknown option|usage:/;

/** Linux ends processes when memory is short: that of the machine, or of the control group of all git processes. */
const OUT_OF_MEMORY: PackRefusal = {
  refused: 'pack-too-costly',
  detail: 'the server ran out of memory for git while it checked the pack: nothing was changed, try again later',
};

/**
 * More than its bytes are worth (PUSH_CPU_MS_PER_MIB), as only hostile packs take, and long rows of deltas on large
 * files.
 */
const TOOK_TOO_MUCH_TIME: PackRefusal = {
  refused: 'pack-too-costly',
  detail:
    'checking the pack took too much time; push fewer commits in one push, or, where large files changed, with git -c core.bigFileThreshold=16m push',
};

/** Why git refused the pack; null when the failure is this machine's. */
export function refusalOf(end: ProcessEnd): PackRefusal | null {
  if (end.killed === 'timeout' || end.signal === 'SIGXCPU') return TOOK_TOO_MUCH_TIME;
  if (end.signal === 'SIGXFSZ') return { refused: 'pack-too-large', detail: 'the pack is larger than it may be' };
  // With too much output a process is killed as well: then none of it is kept.
  if (end.signal === 'SIGKILL' && end.stdout !== null) return OUT_OF_MEMORY;
  if (end.signal !== null) return { refused: 'pack-too-costly', detail: 'checking the pack was ended by the system' };
  for (const { pattern, refused, detail } of RULES) {
    const found = pattern.exec(end.stderr);
    if (found === null) continue;
    const line = detail.replace(/\$([12])/g, (_, group: string) => found[Number(group)] ?? '');
    return { refused, detail: oneLine(line) };
  }
  if (MACHINE_FAILURES.test(end.stderr)) return null;
  return { refused: 'pack-broken', detail: 'git could not index the pack' };
}

/** Makes the text printable and short: it is sent in a report line and shown on a terminal. */
function oneLine(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, '?').slice(0, DETAIL_LENGTH_MAX);
}
