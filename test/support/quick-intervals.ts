/**
 * Loaded into a server before its own modules (`node --import`): periodic work that it does every ten minutes or more
 * rarely, such as its sweeps, it does twice a second, and the first time as soon; every `QUICK_INTERVALS_MS` where that
 * is set.
 *
 * Invariants: what it does more often keeps its interval, and what is not periodic work keeps its time, such as the
 * hour after which a git process is ended.
 */
const PERIODIC = '/apps/server/periodic.ts:';
const RARE_MS = 10 * 60_000;
const QUICK_MS = Number(process.env['QUICK_INTERVALS_MS'] ?? 500);

const { setInterval: interval, setTimeout: timeout } = globalThis;

function quick(ms: number | undefined): number | undefined {
  return ms !== undefined && ms >= RARE_MS && new Error().stack?.includes(PERIODIC) === true ? QUICK_MS : ms;
}

globalThis.setInterval = new Proxy(interval, {
  apply: (target, self, [run, ms, ...more]: Parameters<typeof interval>) =>
    Reflect.apply(target, self, [run, quick(ms), ...more]),
});
globalThis.setTimeout = new Proxy(timeout, {
  apply: (target, self, [run, ms, ...more]: Parameters<typeof timeout>) =>
    Reflect.apply(target, self, [run, quick(ms), ...more]),
});
