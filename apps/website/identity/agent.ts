/** Short names of browsers, for the list of sessions. */

const BROWSERS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/Chrome\/|\bCriOS\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];
const SYSTEMS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bAndroid\b/, 'Android'],
  [/\biPhone\b|\biPad\b/, 'iOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
];
/** UTF-16 code units of a header that names no known browser. */
export const UNKNOWN_LENGTH_MAX = 60;

/** Returns `Firefox on Linux`, or the start of a header that names no known browser. */
export function agentText(agent: string): string {
  const browser = nameIn(BROWSERS, agent);
  const system = nameIn(SYSTEMS, agent);
  if (browser === null) return agent.length > UNKNOWN_LENGTH_MAX ? `${agent.slice(0, UNKNOWN_LENGTH_MAX)}…` : agent;
  return system === null ? browser : `${browser} on ${system}`;
}

function nameIn(names: typeof BROWSERS, agent: string): string | null {
  return names.find(([pattern]) => pattern.test(agent))?.[1] ?? null;
}
