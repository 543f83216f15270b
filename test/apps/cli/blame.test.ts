/** `strata blame` on a terminal. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { BlameRange } from '../../../apps/cli/client/operations.ts';
import { shownText } from '../../../apps/cli/commands/blame.ts';
import { createTerminal } from '../../../apps/cli/terminal/terminal.ts';

function shownOn(columns: number, ranges: readonly BlameRange[], lines: readonly string[]): readonly string[] {
  const stream = { write: () => true, isTTY: true, columns };
  return shownText(createTerminal(stream, stream, { NO_COLOR: '1' }), { ranges }, lines).split('\n');
}

const first: BlameRange = {
  ...{ start: 1, count: 2, commit: 'a'.repeat(40), path: 'src/old' },
  event_id: '01890000-0000-7000-8000-000000000001',
  actor: { kind: 'token', id: '01890000-0000-7000-8000-000000000002' },
};

describe('strata blame on a terminal', () => {
  test('shows what is known of a range above its lines, which have their numbers', () => {
    const second = { ...first, start: 3, count: 1, path: 'src/new', event_id: null, actor: null };
    const pushed = `pushed by token ${first.actor?.id}, event ${first.event_id}`;
    assert.deepEqual(shownOn(200, [first, second], ['one', '\ttwo', 'three']), [
      `aaaaaaaaaa src/old, ${pushed}`,
      '1  one',
      '2    two',
      'aaaaaaaaaa src/new',
      '3  three',
      '',
    ]);
  });

  test('is no wider than the terminal, and hands on no control character', () => {
    const shown = shownOn(30, [{ ...first, count: 1, path: 'src/\u001b[1mold' }], [`\u001b[31m${'x'.repeat(100)}`]);
    assert.deepEqual(shown, ['aaaaaaaaaa src/\ufffd[1mold, pushe…', `1  \ufffd[31m${'x'.repeat(21)}…`, '']);
  });
});
