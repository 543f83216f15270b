/** The names that the server reads of its environment: a setting that is none of them does nothing, in silence. */
import { readSettings } from '../../apps/server/settings.ts';

export function knownSettings(): ReadonlySet<string> {
  const names = new Set<string>();
  const environment: Readonly<Record<string, string | undefined>> = new Proxy(
    {},
    {
      get: (_target, name) => {
        if (typeof name === 'string') names.add(name);
        return undefined;
      },
    },
  );
  readSettings(environment, '/');
  return names;
}

/** Every setting of the server that a text names. */
export function settingsNamed(text: string): readonly string[] {
  return [...new Set(text.match(/\bSTRATA_[A-Z0-9_]*[A-Z0-9]/g) ?? [])];
}
