/** From what git index-pack writes on standard error to why the pack is refused, in a line for its pusher. */
import type { PackRefusal, PackRefusalCode } from '../../core/ports/object-database.ts';

/** The first that matches decides: git-index-pack(1) of 2.39 and newer. */
const RULES: readonly (readonly [RegExp, PackRefusalCode])[] = [
  [/No space left on device|Disk quota exceeded/i, 'disk-full'],
  [/pack exceeds maximum allowed size/i, 'pack-too-large'],
  [/out of memory|malloc failed|mmap failed|unable to create thread/i, 'pack-too-costly'],
  [/File too large|file size limit/i, 'pack-too-costly'],
  [
    /did not receive expected object|Not all child objects|failed connectivity|object .* not found|has unresolved/i,
    'pack-not-connected',
  ],
  [/error: object [0-9a-f]{40}:|fsck error|in packed data|nonexistent|symlink|gitmodules/i, 'pack-fsck-failed'],
  [/unresolved delta/i, 'pack-broken'],
];

const DETAIL_LENGTH_MAX = 300;

/** `stderr` may hold paths of this server and many lines: one of them, without paths, is what the pusher reads. */
export function refusalOf(stderr: string): PackRefusal {
  const lines = stderr.split('\n').flatMap((line) => {
    const text = line.replaceAll('\u0000', '').trim();
    return text === '' ? [] : [text];
  });
  const found = RULES.find(([pattern]) => pattern.test(stderr));
  const code = found?.[1] ?? 'pack-broken';
  const telling = lines.find((line) => found?.[0].test(line) === true) ?? lines[0] ?? 'git could not read the pack';
  const detail = telling
    .replace(/^(fatal|error): /, '')
    .replaceAll(/'?\/[^\s:']+'?/g, 'the repository')
    .slice(0, DETAIL_LENGTH_MAX);
  return { refused: code, detail: code === 'disk-full' ? 'no room left on the disk' : detail };
}
