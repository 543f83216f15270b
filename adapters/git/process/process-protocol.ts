/**
 * The messages between the server and its process helper: one JSON object a line, on the control connection.
 *
 * Invariants: the bytes of packs never travel on it. They use data connections, which the helper opens ahead of
 * need, announces by number, and hands to git as standard input or output.
 */

/** The first line of each connection the helper opens: `control`, or `data <number>`. */
export const CONTROL_HELLO = 'control';
export const DATA_HELLO = 'data ';

/** Data connections that are kept open for the next processes. */
export const IDLE_CONNECTIONS = 8;

/** Bytes kept of the start of a process's standard error, and as many of its end. */
export const STDERR_HALF_BYTES = 32 * 1024;
/** Bytes that a process whose output is collected may write. It is killed when it writes more. */
export const COLLECTED_OUTPUT_BYTES_MAX = 64 * 1024;

export interface SpawnRequest {
  readonly kind: 'spawn';
  readonly id: number;
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The whole environment: nothing is inherited. */
  readonly env: { readonly [name: string]: string };
  /** Number of the data connection that becomes standard input; null for an empty one. */
  readonly stdin: number | null;
  /** Number of the data connection that becomes standard output; null to collect it. */
  readonly stdout: number | null;
  /** Report the first NUL on standard error (git index-pack --report-end-of-input). */
  readonly reportNul: boolean;
  /** How far the process gives way to the helper and the server (nice(1)). */
  readonly niceness: number;
  /** The process is killed soon after its own memory (RssAnon of proc(5)) is larger; null: not watched. */
  readonly memoryBytesMax: number | null;
}

/** Kills, stops or continues a process and all it started. */
export interface SignalRequest {
  readonly kind: 'kill' | 'pause' | 'resume';
  readonly id: number;
}

export type HelperRequest = SpawnRequest | SignalRequest;

export type HelperReport =
  | { readonly kind: 'started'; readonly id: number; readonly pid: number }
  | { readonly kind: 'failed'; readonly id: number; readonly message: string }
  | { readonly kind: 'nul'; readonly id: number }
  | {
      readonly kind: 'exited';
      readonly id: number;
      readonly code: number | null;
      readonly signal: string | null;
      readonly stderr: string;
      /** The collected output; null when it was longer than `COLLECTED_OUTPUT_BYTES_MAX`. */
      readonly stdout: string | null;
      /** Whether it was killed for its memory. */
      readonly outgrown: boolean;
    };

/** Splits a stream of text: call the returned function with each chunk; `onLine` gets each line without its end. */
export function lineSplitter(onLine: (line: string) => void): (text: string) => void {
  let rest = '';
  return (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  };
}
