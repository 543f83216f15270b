/**
 * Loaded into a server before its own modules (`node --import`): sets the server's clock ahead by the milliseconds in
 * the file that `TEST_CLOCK_FILE` names, as a test writes them there while the server runs.
 *
 * Invariants: only the clock that is passed to the core moves. Timers, certificates and what is signed for other
 * servers follow the machine's clock.
 */
import { readFileSync } from 'node:fs';
import { systemClock } from '../../adapters/node/clock.ts';
import { plusMs } from '../../core/kernel/ids.ts';

const LOOK_MS = 100;

const file = process.env['TEST_CLOCK_FILE'];
if (file !== undefined) {
  let aheadMs = Number(readFileSync(file, 'utf8'));
  setInterval(() => {
    aheadMs = Number(readFileSync(file, 'utf8'));
  }, LOOK_MS).unref();
  const { now } = systemClock;
  Object.assign(systemClock, { now: () => plusMs(now(), aheadMs) });
}
