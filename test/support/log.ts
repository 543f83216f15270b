/** A log that keeps its lines, for tests that read them or want no output. */
import type { Log } from '../../core/ports/log.ts';

export interface KeptLog extends Log {
  readonly lines: { readonly level: string; readonly message: string; readonly fields: unknown }[];
}

export function keepLog(): KeptLog {
  const lines: { level: string; message: string; fields: unknown }[] = [];
  const keep = (level: string) => (fields: object, message: string) => {
    lines.push({ level, message, fields });
  };
  return { lines, debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') };
}
