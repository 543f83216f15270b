/**
 * What is measured: a server that holds Git repositories over HTTP, as the scenarios see it.
 *
 * Must stay true: every side gets the same repositories, the same credentials and the same requests.
 */
import type { Project } from '../project.ts';
import { type ProcessGroup, readText } from '../processes.ts';

/** `project`: with the branches and tags of the project, in one pack. */
export type RepositoryContent = 'empty' | 'project';

export interface Repository {
  readonly name: string;
  /** Of the repository's URL, such as `/r/bench/example.git`. */
  readonly path: string;
}

export interface RestAccess {
  /** Value of the Authorization header. */
  readonly authorization: string;
  /** Path of the repository's resource, such as `/v1/repos/bench/example`. */
  pathOf(repository: Repository): string;
}

export interface Side {
  /** As in the table. */
  readonly label: string;
  /** Targets are the product's alone. */
  readonly role: 'product' | 'peer';
  readonly group: ProcessGroup;
  readonly port: number;
  /** HTTP Basic credentials, the same length on every side. */
  readonly username: string;
  readonly password: string;
  /** Null: this side has no REST interface. */
  readonly rest: RestAccess | null;
  /** What an acknowledged push has survived, in a few words; kept true by `durability.ts` where it can be measured. */
  readonly durability: string;
  /** @param purpose unique among this side's repositories; the name may have more. */
  createRepository(purpose: string, content: RepositoryContent): Promise<Repository>;
  removeRepository(repository: Repository): Promise<void>;
  /** The last lines that the server logged, for a failed run. */
  logTail(): string;
}

export interface SideContext {
  readonly project: Project;
  /** A folder of this side's own, removed at the end. */
  readonly folder: string;
  /** Its processes; ended by whoever made it, also when the side fails to start. */
  readonly group: ProcessGroup;
}

const LOG_CHARACTERS_SHOWN = 2_000;

/** The end of a log file; '' when there is none. */
export function readLogTail(file: string): string {
  return readText(file).slice(-LOG_CHARACTERS_SHOWN);
}

export const BENCH_USERNAME = 'bench';

export function basicAuthorization(side: Pick<Side, 'username' | 'password'>): string {
  return `Basic ${Buffer.from(`${side.username}:${side.password}`).toString('base64')}`;
}
