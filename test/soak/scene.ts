/**
 * The accounts of a soak, and the choices of its clients.
 *
 * Invariants: a person does one thing at a time, so an honest client is never in its own way. Every person has an
 * address of their own.
 */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { pino } from 'pino';
import { composeFoundation } from '../../apps/server/foundation.ts';
import { readSettings } from '../../apps/server/settings.ts';
import { newAccount, newToken } from '../support/accounts.ts';
import type { SiteBrowser } from '../support/form-browser.ts';
import type { Dice } from '../support/seeded.ts';
import { signIn } from '../support/site-browser.ts';
import { type Account, commitFile, createRepository, git, tryGit } from '../support/strata.ts';
import type { SoakServer } from './server.ts';

/** The last one fills the disk. */
const ACCOUNTS = 51;
/** The others are hostile. */
const HONEST = 40;
export const REPOSITORY = 'work';

export interface Person {
  readonly account: Account;
  readonly address: string;
  /** A working tree of the repository `work`. */
  readonly work: string;
  /** A folder for clones. */
  readonly folder: string;
  readonly browser: SiteBrowser;
  readonly url: string;
  /** Counts what the person has made, so that no name is used twice. */
  made: number;
}

export interface Scene {
  readonly server: SoakServer;
  readonly honest: readonly Person[];
  readonly hostile: readonly Person[];
  /** Has the plan FREE. */
  readonly filling: Person;
}

/** Makes 51 accounts, every second with the plan PRO, each with a repository of one push. */
export async function setScene(server: SoakServer, folder: string): Promise<Scene> {
  const people: Person[] = [];
  for (const [n, account] of (await makeAccounts(server)).entries()) {
    const own = path.join(folder, account.username);
    const work = path.join(own, 'work');
    await mkdir(work, { recursive: true });
    const address = `198.51.100.${n + 1}`;
    const browser = await signIn(server, account);
    const url = await createRepository(server, account, REPOSITORY);
    await git(work, ['init', '--quiet', '--initial-branch=main']);
    await commitFile(work, 'README.md', `# ${account.username}\n`);
    await git(work, ['push', '--quiet', url, 'main']);
    people.push({ account, address, work, folder: own, browser, url, made: 0 });
  }
  const filling = people.pop();
  if (filling === undefined) throw new RangeError('There are no accounts');
  return { server, honest: people.slice(0, HONEST), hostile: people.slice(HONEST), filling };
}

async function makeAccounts({ env }: SoakServer): Promise<readonly Account[]> {
  // Beside the server, which keeps the embedded database.
  const { STRATA_DATABASE_URL: _, ...joining } = env;
  const foundation = await composeFoundation(readSettings(joining, process.cwd()), pino({ level: 'silent' }), {
    besideServer: true,
    entitiesSizeBytesMax: 1024 * 1024,
    onFault: (what, cause) => {
      throw new Error(`A fault of ${what}`, { cause });
    },
  });
  try {
    await foundation.context.entities.barrier();
    const accounts: Account[] = [];
    for (let n = 0; n < ACCOUNTS; n += 1) {
      const username = `person-${n}`;
      const id = await newAccount(foundation.context, username, n % 2 === 0 ? 'FREE' : 'PRO');
      const { secret } = await newToken(foundation.context, id, { name: 'soak' });
      accounts.push({ id, username, token: secret });
    }
    return accounts;
  } finally {
    await foundation.close();
  }
}

/** The address of the person's repository in the API. */
export function repositoryPath({ account }: Person): string {
  return `/v1/repos/${account.username}/${REPOSITORY}`;
}

/** Its page. */
export function repositoryPage({ account }: Person): string {
  return `/${account.username}/${REPOSITORY}`;
}

/** Runs git as this person, from their address; throws when git fails. */
export async function gitAs({ address }: Person, cwd: string, args: readonly string[]): Promise<string> {
  const finished = await tryGit(cwd, ['-c', `http.extraHeader=X-Forwarded-For: ${address}`, ...args]);
  if (finished.code !== 0) throw new Error(`git ${args[0]} exited ${finished.code}: ${finished.stderr.slice(0, 500)}`);
  return finished.stdout;
}

/** Resolves with a person nobody else works as; the caller gives them back. */
export function createQueue(people: readonly Person[], dice: Dice) {
  const free = [...people];
  return {
    take: (): Person => {
      const [person] = free.splice(dice.below(free.length), 1);
      if (person === undefined) throw new RangeError('There are more workers than people');
      return person;
    },
    giveBack: (person: Person): void => void free.push(person),
  };
}
