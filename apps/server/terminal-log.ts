/**
 * The server's log on a terminal: the lines of apps/server/logger.ts as a person reads them.
 *
 * Invariants: no field of a line can move the cursor, change colours or write to the clipboard. Error messages hold
 * texts that clients chose, and a terminal obeys control characters wherever they come from. Lines that are not for a
 * terminal stay JSON.
 */
import type { DestinationStream } from 'pino';
import { prettyFactory } from 'pino-pretty';

/** The escapes of JSON (RFC 8259, section 7), and characters that JSON leaves as they are but a terminal obeys. */
const ESCAPE_OR_CONTROL = /\\(u[0-9a-f]{4}|.)|[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/gi;

/** Makes every control character of the line's texts visible, such as `\u001b`, but for line breaks and tabs. */
function withoutControls(line: string): string {
  return line.replace(ESCAPE_OR_CONTROL, (found, escaped: string | undefined) => {
    if (escaped === undefined) return `\\\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`;
    return /^(u00[01]|u007f|u00[89]|[bfr])/i.test(escaped) ? `\\${found}` : found;
  });
}

export interface Terminal {
  write(text: string): unknown;
  hasColors(): boolean;
}

/** Returns a destination for `createLogger` that writes to the terminal, with colours if the terminal has any. */
export function createTerminalDestination(terminal: Terminal): DestinationStream {
  const pretty = prettyFactory({
    colorize: terminal.hasColors(),
    translateTime: 'SYS:HH:MM:ss',
    singleLine: true,
    errorLikeObjectKeys: ['err'],
  });
  return {
    write(line) {
      terminal.write(pretty(withoutControls(line)));
    },
  };
}
