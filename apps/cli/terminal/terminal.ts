/**
 * What the command writes to, and what that can show.
 *
 * Invariants: there are colours only on a terminal, and none with NO_COLOR (https://no-color.org). A secret that is
 * registered here is in no line that the command writes to standard error.
 */
import type { Environment } from '../client/proxy.ts';

export type Colour = 'red' | 'green' | 'yellow' | 'dim' | 'bold';

const CODES: Readonly<Record<Colour, readonly [on: number, off: number]>> = {
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  dim: [2, 22],
  bold: [1, 22],
};
const COLUMNS_OTHERWISE = 80;
/** The form of an access token, wherever it came from. */
const TOKEN = /strata_[0-9A-Za-z]{46}/g;

/** A stream of the process: standard output or standard error. */
export interface TextStream {
  write(text: string | Uint8Array): boolean;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface Terminal {
  /** Whether a person reads standard output. */
  readonly isInteractive: boolean;
  readonly columns: number;
  /** Colours a text for standard output. */
  coloured(text: string, colour: Colour): string;
  /** Writes results. */
  out(text: string | Uint8Array): void;
  /** Writes what is not a result: questions, progress, warnings. */
  say(line: string): void;
  warn(line: string): void;
  error(line: string): void;
  /** Keeps a text out of all that is written to standard error. */
  hide(secret: string): void;
}

export function createTerminal(stdout: TextStream, stderr: TextStream, environment: Environment): Terminal {
  const secrets = new Set<string>();
  const colours = (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
  const isInteractive = stdout.isTTY === true;
  const paint = (stream: TextStream, text: string, colour: Colour): string => {
    const [on, off] = CODES[colour];
    return colours && stream.isTTY === true && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text;
  };
  const note = (text: string): void => {
    let shown = text.replaceAll(TOKEN, 'strata_…');
    for (const secret of secrets) shown = shown.replaceAll(secret, '…');
    stderr.write(`${shown}\n`);
  };
  const columns = Number(environment['COLUMNS']);
  return {
    isInteractive,
    // A terminal that does not know its width says 0.
    columns: stdout.columns || (Number.isInteger(columns) && columns > 0 ? columns : COLUMNS_OTHERWISE),
    coloured: (text, colour) => paint(stdout, text, colour),
    out: (text) => void stdout.write(text),
    say: note,
    warn: (line) => note(`${paint(stderr, 'warning:', 'yellow')} ${line}`),
    error: (line) => note(`${paint(stderr, 'error:', 'red')} ${line}`),
    hide: (secret) => {
      if (secret.length >= 8) secrets.add(secret);
    },
  };
}
