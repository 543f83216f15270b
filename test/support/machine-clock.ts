/**
 * Loaded into a program before its own modules (`node --import`): the clock of its machine, as it sees it, is 40 days
 * ahead if `TEST_CLOCK_AHEAD` is set; each SIGUSR2 sets it ahead, or right again.
 *
 * Invariants: only this process sees the clock move, as it sees a step of the real one: timers keep their pace.
 */
const AHEAD_MS = 40 * 24 * 60 * 60_000;

const { now } = Date;
let aheadMs = process.env['TEST_CLOCK_AHEAD'] === undefined ? 0 : AHEAD_MS;
Date.now = () => now() + aheadMs;
process.on('SIGUSR2', () => {
  aheadMs = AHEAD_MS - aheadMs;
});
