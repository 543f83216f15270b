/**
 * The log on a terminal. The attack: a client whose text reaches an error message, with control characters that a
 * terminal obeys: they clear the screen, hide lines, or write to the clipboard of whoever watches the log.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createLogger } from '../../../apps/server/logger.ts';
import { createTerminalDestination } from '../../../apps/server/terminal-log.ts';

function startLog(colours: boolean) {
  const written: string[] = [];
  const terminal = { write: (text: string) => written.push(text), hasColors: () => colours };
  return { log: createLogger('info', createTerminalDestination(terminal)), text: () => written.join('') };
}

describe('The log on a terminal', () => {
  test('shows time, level, message and fields in one line, and no JSON', () => {
    const { log, text } = startLog(false);
    log.info({ port: 8080 }, 'Strata is ready');
    assert.match(text(), /^\[\d\d:\d\d:\d\d\] INFO: Strata is ready \{"port":8080\}\n$/);
  });

  test('shows an error with its stack', () => {
    const { log, text } = startLog(false);
    log.warn({ err: new TypeError('It broke') }, 'A request failed');
    assert.match(text(), /WARN: A request failed/);
    assert.match(text(), /TypeError: It broke\n +at .*terminal-log\.test\.ts/);
  });

  test('has colours where the terminal has some', () => {
    const { log, text } = startLog(true);
    log.info({}, 'Strata is ready');
    assert.match(text(), /\u001b\[32mINFO\u001b\[39m/);
  });

  test('writes control characters of a message or a field as text', () => {
    const controls = '\u001b[2J\u009b31m\u0007\b\r\u007f\u202e\u2066\\u001b';
    const { log, text } = startLog(false);
    log.warn({ err: new Error(controls), ref: controls }, `Refused ${controls}`);
    assert.doesNotMatch(text(), /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    assert.ok(text().includes('Refused \\u001b[2J\\u009b31m\\u0007\\b\\r\\u007f\\u202e\\u2066\\u001b'));
  });
});
