/**
 * Loaded into a server before its own modules (`node --import`): what it does every ten minutes or more rarely, such as its
 * sweeps, it does twice a second.
 *
 * Must stay true: what it does more often keeps its interval.
 */
const RARE_MS = 10 * 60_000;
const QUICK_MS = 500;

const { setInterval: slowly } = globalThis;

globalThis.setInterval = new Proxy(slowly, {
  apply: (target, self, [run, ms, ...more]: Parameters<typeof slowly>) =>
    Reflect.apply(target, self, [run, ms !== undefined && ms >= RARE_MS ? QUICK_MS : ms, ...more]),
});
