/**
 * What auditors ask, on a real server with real git: who could read a repository, who did, what was refused to whom,
 * and what the operator did to the account.
 */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  admin,
  api,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  tryAdmin,
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

interface Subjects {
  readonly subjects: readonly { readonly kind: string; readonly id: string }[];
}

interface Accesses {
  readonly accesses: readonly {
    readonly kind: string;
    readonly id: string;
    readonly reads: number;
    readonly pushes: number;
    readonly addresses: Readonly<Record<string, { readonly value: string }>>;
  }[];
}

interface SignIns {
  readonly today: {
    readonly refused_reads: readonly { readonly token_id: string; readonly reason: string; readonly count: number }[];
  };
}

interface Entries {
  readonly events: readonly {
    readonly entry: { readonly type: string; readonly actor: object; readonly request_id: string };
  }[];
}

test('the log answers who could read, who did, who was refused, and what the operator did', async (context) => {
  const shared = await sharedParts(context);
  let strata = await startNode(context, shared);
  const ada = await createAccount(strata, 'ada');
  const url = await createRepository(strata, ada, 'engine');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);
  const tokenWith = async (grant: string): Promise<{ readonly id: string; readonly token: string }> => {
    const wanted = { name: grant, scope: 'ALL_REPO', grants: [grant] };
    const { status, text, body } = await api(strata, ada.token, 'POST', '/v1/access-tokens', wanted);
    assert.equal(status, 201, text);
    return body as { readonly id: string; readonly token: string };
  };
  const reader = await tokenWith('GIT_HTTP_READ');
  const lister = await tokenWith('API_REPOS_READ');
  const as = (token: string, name = 'engine'): string => gitUrl(strata, { ...ada, token }, name);
  await git(work, ['clone', '--quiet', as(reader.token), 'copy']);
  const then = new Date().toISOString();
  assert.equal((await tryGit(work, ['ls-remote', as(reader.token, 'nothing')])).code, 128);
  assert.equal((await tryGit(work, ['ls-remote', as(lister.token)])).code, 128);
  assert.equal((await api(strata, ada.token, 'DELETE', `/v1/access-tokens/${reader.id}`)).status, 204);
  assert.equal((await tryGit(work, ['ls-remote', as(reader.token)])).code, 128);
  const changed = await tryAdmin(
    strata,
    ['account', 'reset-password', '--username', 'ada', '--password-stdin'],
    'x'.repeat(12),
  );
  assert.equal(changed.code, 0, changed.stderr);
  await admin(strata, ['account', 'set-plan', '--username', 'ada', '--plan', 'PRO']);
  // A server that stops writes what it counted to the log.
  await strata.stop();
  strata = await startNode(context, shared);

  const ask = async <Answer>(target: string): Promise<Answer> => {
    const { status, text, body } = await api(strata, ada.token, 'GET', target);
    assert.equal(status, 200, text);
    return body as Answer;
  };
  const could = async (query: string) => (await ask<Subjects>(`/v1/repos/ada/engine/access${query}`)).subjects;
  const isThere = (subjects: Subjects['subjects']): boolean => subjects.some(({ id }) => id === reader.id);
  assert.deepEqual([isThere(await could(`?at=${then}`)), isThere(await could(''))], [true, false]);
  const { accesses } = await ask<Accesses>('/v1/repos/ada/engine/accesses');
  const sumOf = (kind: 'reads' | 'pushes', id: string | null): number =>
    accesses.reduce((sum, one) => sum + (id === null || one.id === id ? one[kind] : 0), 0);
  assert.deepEqual([sumOf('reads', reader.id), sumOf('reads', lister.id), sumOf('pushes', null)], [1, 0, 1]);
  const from = accesses.flatMap(({ addresses }) => Object.values(addresses).map(({ value }) => value));
  assert.deepEqual(new Set(from), new Set(['127.0.0.1']));

  const { today } = await ask<SignIns>('/v1/account/sign-ins');
  const refused = today.refused_reads.map(({ token_id, reason }) => `${token_id} ${reason}`);
  assert.deepEqual(
    refused.toSorted(),
    [`${reader.id} repository-not-found`, `${lister.id} grant-missing`, `${reader.id} token-revoked`].toSorted(),
  );

  for (const [type, command] of [
    ['PasswordChanged', 'account reset-password'],
    ['PlanChanged', 'account set-plan'],
  ]) {
    const { events } = await ask<Entries>(`/v1/account/events?type=${type}`);
    const last = events.at(-1)?.entry;
    assert.deepEqual(last?.actor, { kind: 'admin', id: command });
    const ofRun = await ask<Entries>(`/v1/account/events?request_id=${last?.request_id}`);
    assert.deepEqual(
      ofRun.events.map(({ entry }) => entry.type),
      [type],
    );
  }
  const rebuilt = (await admin(strata, ['projections', 'rebuild', '--verify'])) as {
    readonly projections: readonly { readonly name: string; readonly differences: number }[];
  };
  assert.deepEqual(
    rebuilt.projections.filter(({ differences }) => differences > 0),
    [],
  );
});
