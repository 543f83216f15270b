/** Returns the names that the server reads from its environment; it ignores every other setting without a message. */
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

/** Returns every setting of the server that a text names. */
export function settingsNamed(text: string): readonly string[] {
  return [...new Set(text.match(/\bSTRATA_[A-Z0-9_]*[A-Z0-9]/g) ?? [])];
}
