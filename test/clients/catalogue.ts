/**
 * The clients of `npm run clients`: how each is installed, what it does not offer, and what it shows of a refusal.
 *
 * Invariants: a client that answers `cannot` without a line here has failed, and so has one that does what its line
 * says it cannot, so that a new version shows itself.
 */
import type { DriverCommand } from './client.ts';
import { goDriver, javaDriver, nodeDriver, pythonDriver, rustDriver } from './installing.ts';
import type { Operation, Refusal } from './operations.ts';

export interface Client {
  readonly name: string;
  /** A part of its name in the table that its version does not tell. */
  readonly manner?: string;
  /** CI has what it is installed with, so there it may not be missing. */
  readonly isRequiredInCi: boolean;
  readonly cannot: readonly Operation['needs'][];
  /** Refusals of which it shows the status alone, or a text of its own for it, and not the server's words. */
  readonly showsStatusOf: readonly Refusal[];
  install(): Promise<DriverCommand>;
}

const ALL_BY_STATUS: readonly Refusal[] = ['wrong token', 'read-only token', 'unknown repository'];

export const CLIENTS: readonly Client[] = [
  {
    name: 'git',
    isRequiredInCi: true,
    cannot: [],
    showsStatusOf: [],
    install: () => nodeDriver('git'),
  },
  {
    name: 'git-protocol-1',
    manner: 'protocol 1',
    isRequiredInCi: true,
    cannot: [],
    showsStatusOf: [],
    install: () => nodeDriver('git', '--protocol=1'),
  },
  {
    name: 'git-protocol-0',
    manner: 'protocol 0, credential helper',
    isRequiredInCi: true,
    cannot: [],
    showsStatusOf: [],
    install: () => nodeDriver('git', '--protocol=0', '--credential-helper'),
  },
  {
    name: 'isomorphic-git',
    isRequiredInCi: true,
    cannot: [],
    showsStatusOf: [],
    install: () => nodeDriver('isomorphic-git'),
  },
  {
    name: 'dulwich',
    isRequiredInCi: true,
    cannot: [],
    showsStatusOf: ALL_BY_STATUS,
    install: () => pythonDriver('dulwich'),
  },
  {
    name: 'pygit2',
    isRequiredInCi: true,
    cannot: [],
    showsStatusOf: ALL_BY_STATUS,
    install: () => pythonDriver('pygit2'),
  },
  {
    name: 'gitpython',
    isRequiredInCi: true,
    cannot: [],
    // It drops the lines of a push that begin with `remote:`.
    showsStatusOf: ['read-only token'],
    install: () => pythonDriver('gitpython'),
  },
  {
    name: 'go-git',
    isRequiredInCi: false,
    // It fetches the rest and leaves the clone shallow.
    cannot: ['unshallow'],
    showsStatusOf: [],
    install: () => goDriver('go-git'),
  },
  {
    name: 'gix',
    isRequiredInCi: false,
    cannot: ['push', 'push outside branches and tags'],
    showsStatusOf: ALL_BY_STATUS,
    install: () => rustDriver('gix'),
  },
  {
    name: 'jgit',
    isRequiredInCi: false,
    cannot: [],
    showsStatusOf: ALL_BY_STATUS,
    install: () => javaDriver('jgit'),
  },
];

/** What the words of each refusal must hold: the server's own, and where a client shows only the status, that. */
export const NEEDED_WORDS: { readonly [Kind in Refusal]: { readonly server: RegExp; readonly status: RegExp } } = {
  'wrong token': { server: /unknown, expired or revoked/, status: /401|auth|token|credential/i },
  'read-only token': { server: /lacks the grant GIT_HTTP_WRITE/, status: /403|forbidden|not permitted|auth/i },
  'unknown repository': { server: /Repository not found/i, status: /404|not found|NotGitRepository/i },
  'reserved ref': { server: /refs\/strata\/ is reserved/, status: /refs\/strata/ },
};
