/**
 * The attack: after a restart a repository of another account answered in 331 ms, because all of it was loaded before
 * its owner was compared, and one that does not exist in 3 ms. So a stranger learned the names of private repositories.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { admitToRepository, type DenialPrecedence } from '../../../apps/front-door/admission.ts';
import type { AccessTokenSettings } from '../../../core/access-token/commands.ts';
import { type AccountId, plusMs, type RepositoryId } from '../../../core/kernel/ids.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { authenticate as authenticateRead, readSecret } from '../../../core/use-cases/callers/authenticate.ts';
import type { Requirement } from '../../../core/use-cases/callers/permission.ts';
import { changeRepository, deleteRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { revokeAccessToken, updateAccessToken } from '../../../core/use-cases/tokens/access-tokens.ts';
import { accepted, authenticate, newAccount, newRepository, newToken } from '../../support/accounts.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { CAUSE, startNode, type TestNode } from '../../support/node.ts';

const READ: Requirement = { grant: 'API_COMMITS_READ', scope: null, onItself: false };
const BY: readonly DenialPrecedence[] = ['permission', 'sight'];

interface Started {
  readonly ada: AccountId;
  readonly engine: RepositoryId;
  readonly hidden: RepositoryId;
  readonly first: TestNode;
  /** A node that has just started on the same log, and the streams that it read since `forget`. */
  restarted(): Promise<{ readonly node: TestNode; read(): readonly string[]; forget(): void }>;
}

async function started(): Promise<Started> {
  const events = createMemoryEventStore();
  const first = await startNode(events);
  const ada = await newAccount(first, 'ada');
  const bob = await newAccount(first, 'bob');
  const { id: engine } = await newRepository(first, ada, 'engine');
  const { id: hidden } = await newRepository(first, ada, 'hidden');
  await newRepository(first, bob, 'theirs');
  return {
    ada,
    engine,
    hidden,
    first,
    restarted: async () => {
      let read: string[] = [];
      const watched: EventStore = {
        ...events,
        readStream: (stream, options) => {
          read.push(stream);
          return events.readStream(stream, options);
        },
      };
      const node = await startNode(watched);
      return { node, read: () => [...new Set(read)], forget: () => void (read = []) };
    },
  };
}

describe('Admission to a repository, on a node that has just started', () => {
  test('reads nothing to deny what another account has, and answers as for what nobody has', async () => {
    const { ada, first, restarted } = await started();
    const { secret } = await newToken(first, ada);
    for (const precedence of BY) {
      for (const [username, name] of [
        ['bob', 'theirs'],
        ['bob', 'nothing'],
        ['nobody', 'theirs'],
        ['ada', 'nothing'],
        ['', ''],
      ] as const) {
        const { node, read, forget } = await restarted();
        const principal = await authenticate(node, secret);
        assert.ok(principal !== null);
        forget();
        const answer = await admitToRepository(node, principal, READ, { username, name }, precedence);
        assert.deepEqual(answer, { denied: 'repository-not-found' }, `${username}/${name}`);
        assert.deepEqual(read(), [], `${username}/${name}`);
      }
    }
  });

  test('reads nothing of a repository that the token does not select, or for which it lacks the grant', async () => {
    const { ada, engine, hidden, first, restarted } = await started();
    const deny = async (settings: Partial<AccessTokenSettings>, name: string, precedence: DenialPrecedence) => {
      const { secret } = await newToken(first, ada, settings);
      const { node, read, forget } = await restarted();
      const principal = await authenticate(node, secret);
      assert.ok(principal !== null);
      forget();
      const answer = await admitToRepository(node, principal, READ, { username: 'Ada', name }, precedence);
      return { answer: 'denied' in answer ? answer.denied : answer.id, read: read() };
    };
    const selected = { scope: 'SELECTED_REPO', repositoryIds: [engine] } as const;
    for (const precedence of BY) {
      assert.deepEqual(await deny(selected, 'hidden', precedence), { answer: 'repository-not-found', read: [] });
      assert.deepEqual(await deny(selected, 'ENGINE', precedence), { answer: engine, read: [`repository-${engine}`] });
      assert.deepEqual(await deny({}, 'hidden', precedence), { answer: hidden, read: [`repository-${hidden}`] });
    }
    const lacking = { grants: ['GIT_HTTP_READ'] } as const;
    assert.deepEqual(await deny(lacking, 'hidden', 'permission'), { answer: 'not-permitted', read: [] });
  });
});

/** What is in memory is judged in one step, so nothing that was decided before may take the place of judging it. */
describe('Admission on a node that has everything in memory', () => {
  async function known() {
    const { ada, engine, first } = await started();
    const origin = { account: ada, cause: CAUSE };
    accepted(await changeRepository(first, origin, engine, { defaultBranch: 'trunk' }));
    const admit = async (secret: string) => {
      const read = readSecret(first, secret);
      assert.ok(read !== null);
      // The first may read the token from the log.
      const principal = await authenticateRead(first, read);
      const again = authenticateRead(first, read);
      assert.deepEqual(again, principal);
      if (again === null || again instanceof Promise) return again === null ? 'not valid' : 'waits';
      const found = admitToRepository(first, again, READ, { username: 'ada', name: 'engine' }, 'permission');
      if (found instanceof Promise) return 'waits';
      return 'denied' in found ? found.denied : found.id;
    };
    /** One secret in 512 could be that of an exchanged token too, which is looked for in the log each time. */
    const token = async (settings: Partial<AccessTokenSettings> = {}): ReturnType<typeof newToken> => {
      const made = await newToken(first, ada, settings);
      return readSecret(first, made.secret)?.named === null ? made : token(settings);
    };
    return { origin, engine, node: first, token, admit };
  }

  test('waits for nothing', async () => {
    const { engine, token, admit } = await known();
    assert.equal(await admit((await token()).secret), engine);
  });

  test('takes immediately no token any more that is revoked, expired or short of a grant, and finds nothing that is deleted', async () => {
    const { node, engine, origin, token, admit } = await known();
    const [revoked, changed, kept] = [await token(), await token(), await token()];
    const expiring = await token({ expiresAt: plusMs(node.clock.now(), 60_000) });
    for (const { secret } of [revoked, changed, kept, expiring]) assert.equal(await admit(secret), engine);
    accepted(await revokeAccessToken(node, origin, revoked.id));
    assert.equal(await admit(revoked.secret), 'not valid');
    accepted(await updateAccessToken(node, origin, changed.id, { grants: ['GIT_HTTP_READ'] }));
    assert.equal(await admit(changed.secret), 'not-permitted');
    node.clock.advance(60_000);
    assert.equal(await admit(expiring.secret), 'not valid');
    assert.equal(await admit(kept.secret), engine);
    accepted(await deleteRepository(node, origin, engine));
    assert.equal(await admit(kept.secret), 'repository-not-found');
  });
});
