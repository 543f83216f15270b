/**
 * The attack: after a restart a repository of another account answered in 331 ms, because all of it was loaded before
 * its owner was compared, and one that does not exist in 3 ms. So a stranger learned the names of private repositories.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { admitToRepository, type DenialPrecedence } from '../../../apps/front-door/admission.ts';
import type { AccountId, RepositoryId } from '../../../core/kernel/ids.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import type { Requirement } from '../../../core/use-cases/accounts/permission.ts';
import type { AccessTokenSettings } from '../../../core/access-token/commands.ts';
import { authenticate, newAccount, newRepository, newToken } from '../../support/accounts.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { startNode, type TestNode } from '../../support/node.ts';

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
