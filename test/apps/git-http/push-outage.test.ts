/** An outage before, while and after a push is checked, as the real git shows it to its user. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { OUTAGES } from '../../../apps/front-door/texts/outages.ts';
import type { GitHttpContext } from '../../../apps/git-http/context.ts';
import { EventStoreError } from '../../../core/ports/event-store.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import { VaultError } from '../../../core/ports/vault.ts';
import { type ApiFixture, createApiFixture } from '../../support/api-fixture.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { startGit } from '../../support/git-fixture.ts';
import { type Finished, git, newWorkTree, tryGit } from '../../support/strata.ts';

/** Keep-alive packets are sent after 5 s. */
const CHECKED_LONG_MS = 5_500;

test('an outage is reported after the keep-alive packets of a long push', async (context) => {
  const fixture = await createApiFixture({
    objects: ({ database }) => ({
      ...database,
      receive: async ({ pack, onEndOfInput }) => {
        for await (const _ of pack);
        onEndOfInput?.();
        await sleep(CHECKED_LONG_MS);
        throw new ObjectDatabaseError('object-database-unavailable', 'secret words');
      },
    }),
  });
  cleanUp(context, () => fixture.close());
  const ada = await fixture.account('ada');
  await fixture.repository(ada, 'engine');
  const { secret } = await fixture.token(ada);
  const server = await startGit(fixture);
  cleanUp(context, () => server.close());
  const url = server.url.replace('://', `://ada:${secret}@`);
  const pushed = await tryGit(await newWorkTree(context), ['push', `${url}/r/ada/engine.git`, 'main']);
  assert.notEqual(pushed.code, 0);
  assert.ok(pushed.stderr.includes(`remote: ${OUTAGES['object-database-unavailable'].message}`), pushed.stderr);
  assert.doesNotMatch(pushed.stderr, /secret words/);
  assert.match(fixture.logged.join('\n'), /object-database-unavailable/);
  assert.equal(server.finished.at(-1)?.operation, 'push');
});

/** More than git sends in one piece, and than the buffers of a connection hold. */
const LARGE_FILE_BYTES = 8 * 1024 * 1024;

describe('A push that an outage ends', () => {
  for (const error of [
    new VaultError('vault-unavailable', 'secret words'),
    new ObjectDatabaseError('object-database-unavailable', 'secret words'),
  ]) {
    test(`with ${error.code} before its pack is read is told that nothing was changed, however large it is`, async (context) => {
      const fail = async (): Promise<never> => {
        throw error;
      };
      const url = await served(context, await createApiFixture(), (fixture) =>
        error instanceof VaultError
          ? { sourceAddressRef: fail }
          : { objects: { ...fixture.context.objects, receive: fail } },
      );
      const work = await newWorkTree(context);
      await writeFile(path.join(work, 'large'), randomBytes(LARGE_FILE_BYTES));
      await git(work, ['add', 'large']);
      await git(work, ['commit', '--quiet', '-m', 'Add a large file']);
      isTold(await tryGit(work, ['push', '--force', url, 'main']), error.code);
    });
  }

  for (const code of ['log-unavailable', 'clock-differs'] as const) {
    test(`with ${code} at its append is told that nothing was changed`, async (context) => {
      const fixture = await createApiFixture();
      const url = await served(context, fixture, ({ context: { events } }) => ({
        events: { ...events, append: async () => Promise.reject(new EventStoreError(code, 'secret words')) },
      }));
      isTold(await tryGit(await newWorkTree(context), ['push', url, ':main']), code);
    });
  }
});

/** Serves a repository with one branch; returns its URL. */
async function served(
  context: Ending,
  fixture: ApiFixture,
  parts: (fixture: ApiFixture) => Partial<GitHttpContext>,
): Promise<string> {
  cleanUp(context, () => fixture.close());
  const ada = await fixture.account('ada');
  const repository = await fixture.repository(ada, 'engine');
  const commit = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
  await fixture.push(repository, { 'refs/heads/main': commit });
  const { secret } = await fixture.token(ada);
  const server = await startGit(fixture, parts(fixture));
  cleanUp(context, () => server.close());
  return `${server.url.replace('://', `://ada:${secret}@`)}/r/ada/engine.git`;
}

function isTold({ code: exitCode, stderr }: Finished, code: keyof typeof OUTAGES): void {
  assert.notEqual(exitCode, 0);
  assert.ok(stderr.includes(`remote: ${OUTAGES[code].message}`), stderr);
  assert.match(stderr, /remote rejected\] .*main \(nothing was changed: try again later\)/);
  assert.doesNotMatch(stderr, /secret words/);
}
