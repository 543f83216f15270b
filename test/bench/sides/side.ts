/**
 * A side: a server with Git repositories over HTTP, as the scenarios use it.
 *
 * Invariants: every side gets the same repositories, the same credentials and the same requests.
 */
import { type ProcessGroup, readText } from '../processes.ts';
import type { Project } from '../project.ts';

export interface Repository {
  readonly name: string;
  /** The path of the repository's URL, such as `/r/bench/example.git`. */
  readonly path: string;
}

export interface RestAccess {
  /** The value of the Authorization header. */
  readonly authorization: string;
  /** Returns the path of the repository's resource, such as `/v1/repos/bench/example`. */
  pathOf(repository: Repository): string;
}

export interface Side {
  /** The name in the table. */
  readonly label: string;
  /** Only the product has targets. */
  readonly role: 'product' | 'peer';
  readonly group: ProcessGroup;
  readonly port: number;
  /** HTTP Basic credentials, of the same length on every side. */
  readonly username: string;
  readonly password: string;
  /** Null: this side has no REST API. */
  readonly rest: RestAccess | null;
  /** What an acknowledged push survives, in a few words; `durability.ts` verifies it where it can be measured. */
  readonly durability: string;
  /**
   * Makes a repository.
   * @param purpose unique among this side's repositories; the name may be longer.
   * @param content whose branches and tags it has, in one pack; null: it is empty.
   */
  createRepository(purpose: string, content: Project | null): Promise<Repository>;
  removeRepository(repository: Repository): Promise<void>;
  /** Returns the end of the server's log, for a failed run. */
  logTail(): string;
}

export interface SideContext {
  readonly project: Project;
  /** A folder for this side alone, removed at the end. */
  readonly folder: string;
  /** Its processes; its creator ends them, also when the side fails to start. */
  readonly group: ProcessGroup;
}

const LOG_CHARACTERS_SHOWN = 2_000;

/** Returns the end of a log file; '' when there is none. */
export function readLogTail(file: string): string {
  return readText(file).slice(-LOG_CHARACTERS_SHOWN);
}

export const BENCH_USERNAME = 'bench';

export function basicAuthorization(side: Pick<Side, 'username' | 'password'>): string {
  return `Basic ${Buffer.from(`${side.username}:${side.password}`).toString('base64')}`;
}
