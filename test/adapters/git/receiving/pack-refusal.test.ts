/** How git's messages are translated for the pusher. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ProcessEnd } from '../../../../adapters/git/process/process-runner.ts';
import { DETAIL_LENGTH_MAX, refusalOf } from '../../../../adapters/git/receiving/pack-refusal.ts';

const end = (stderr: string, more: Partial<ProcessEnd> = {}): ProcessEnd => {
  return { code: 128, signal: null, killed: 'no', stdout: '', stderr, outgrown: false, ...more };
};

describe('a refusal', () => {
  test('never shows a path of this machine, control characters or more than a line', () => {
    const hostile = `error: object ${'a'.repeat(40)}: rule: \u001b[2J${'x'.repeat(1_000)}\nfatal: /var/lib/strata/q\n`;
    const refusal = refusalOf(end(hostile));
    assert.equal(refusal?.refused, 'pack-fsck-failed');
    assert.match(refusal?.detail ?? '', /^object a{40}: rule: \?\[2Jx+$/);
    assert.equal(refusal?.detail.length, DETAIL_LENGTH_MAX);
    assert.equal(refusalOf(end('fatal: something new about /var/lib/strata'))?.detail, 'git could not index the pack');
  });

  test('tells what git says up to its limit, and not one character more', () => {
    const start = `object ${'a'.repeat(40)}: rule: `;
    const said = start.padEnd(DETAIL_LENGTH_MAX, 'x');
    for (const more of ['', 'x']) assert.equal(refusalOf(end(`error: ${said}${more}\n`))?.detail, said);
  });

  test('names the object', () => {
    const id = 'b'.repeat(40);
    const nullId = end(`error: object ${id}: nullSha1: contains entries pointing to null sha1\nfatal: fsck error\n`);
    assert.equal(refusalOf(nullId)?.detail, `object ${id}: nullSha1: contains entries pointing to null sha1`);
    const bogus = end(`error: bogus commit object ${id}\nfatal: invalid commit\n`);
    assert.equal(refusalOf(bogus)?.detail, `object ${id}: cannot be parsed as a commit`);
  });

  test('names the limit that a pack exceeded', () => {
    const costly = { refused: 'pack-too-costly' };
    assert.partialDeepStrictEqual(refusalOf(end('', { killed: 'timeout', code: null, signal: 'SIGKILL' })), costly);
    assert.partialDeepStrictEqual(refusalOf(end('', { code: null, signal: 'SIGXCPU' })), costly);
    assert.partialDeepStrictEqual(refusalOf(end('', { code: null, signal: 'SIGKILL' })), costly);
    assert.partialDeepStrictEqual(refusalOf(end('fatal: Out of memory, malloc failed')), costly);
    assert.partialDeepStrictEqual(refusalOf(end('', { code: null, signal: 'SIGXFSZ' })), { refused: 'pack-too-large' });
    const full = end('fatal: write error: No space left on device');
    assert.partialDeepStrictEqual(refusalOf(full), { refused: 'disk-full' });
  });

  test('says that memory was short when the system ended git', () => {
    const ended = { code: null, signal: 'SIGKILL' };
    assert.match(
      refusalOf(end('', ended))?.detail ?? '',
      /ran out of memory .*: nothing was changed, try again later$/,
    );
    assert.doesNotMatch(refusalOf(end('', { ...ended, stdout: null }))?.detail ?? '', /memory/);
  });

  test('is not returned when this machine is at fault', () => {
    assert.equal(refusalOf(end('fatal: unable to create file: Permission denied')), null);
    assert.equal(refusalOf(end("fatal: not a git repository: '/x'")), null);
    assert.equal(refusalOf(end('usage: git index-pack')), null);
  });
});
