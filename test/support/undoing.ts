/** What scenarios of undoing ask a running server, and what they see of it with real git. */
import path from 'node:path';
import type { TestContext } from 'vitest';
import { type Account, api, git, type Strata } from './strata.ts';
import { tempDir } from './temp-dir.ts';

/** A row of a repository's activity. */
export interface Change {
  readonly id: string;
  readonly ref: string;
  readonly before: string;
  readonly after: string;
  readonly kind: string;
}

/** The answer to a restoration. */
export interface Restored {
  readonly event_id: string | null;
  readonly updates: readonly Omit<Change, 'id'>[];
}

/** Asks for a restoration of the account's repository of that name. */
export function restore(strata: Strata, account: Account, name: string, body: object): ReturnType<typeof api> {
  return api(strata, account.token, 'POST', `/v1/repos/${account.username}/${name}/restore`, body);
}

/** Returns all changes of the refs, newest first. */
export async function activity(strata: Strata, account: Account, name: string): Promise<readonly Change[]> {
  const changes: Change[] = [];
  for (let page = 0; ; page += 1) {
    const url = `/v1/repos/${account.username}/${name}/activity?limit=100&page=${page}`;
    const { body } = await api(strata, account.token, 'GET', url);
    const listed = body as { readonly activity: readonly Change[]; readonly pagination: { has_more: boolean } };
    changes.push(...listed.activity);
    if (!listed.pagination.has_more) return changes;
  }
}

/** Mirrors the repository and checks the mirror; returns its refs, one a line. */
export async function mirror(context: TestContext, url: string): Promise<string> {
  const folder = path.join(await tempDir(context), 'mirror.git');
  await git(path.dirname(folder), ['clone', '--quiet', '--mirror', url, folder]);
  await git(folder, ['fsck', '--full', '--strict']);
  return git(folder, ['for-each-ref', '--format=%(objectname) %(refname)']);
}
