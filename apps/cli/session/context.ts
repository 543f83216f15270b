/** What every command gets: the environment, the terminal, and what was typed. */
import type { Environment } from '../client/proxy.ts';
import type { Terminal } from '../terminal/terminal.ts';

export interface Globals {
  readonly json: boolean;
  readonly debug: boolean;
  readonly baseUrl: string | null;
  readonly webUrl: string | null;
}

export interface Context {
  readonly version: string;
  /** The arguments of this process before the command's own, to start the same program again. */
  readonly program: readonly string[];
  readonly environment: Environment;
  /** The folder that relative paths start at. */
  readonly folder: string;
  readonly terminal: Terminal;
  readonly globals: Globals;
  /** Reads standard input to its end. */
  readonly readInput: () => Promise<string>;
  /** Asks the person at the terminal and returns the line that was typed; null if there is no terminal. */
  readonly ask: ((question: string) => Promise<string>) | null;
}

/** The arguments and options of one command, checked against its definition. */
export interface Given {
  /** An argument that the command requires. */
  argument(name: string): string;
  optionalArgument(name: string): string | undefined;
  /** The last argument, of which there may be several. */
  several(name: string): readonly string[];
  text(option: string): string | undefined;
  number(option: string): number | undefined;
  list(option: string): readonly string[] | undefined;
  flag(option: string): boolean;
}

export type Run = (context: Context, given: Given) => Promise<void>;
