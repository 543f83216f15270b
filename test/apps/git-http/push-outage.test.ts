/** An outage while a push is checked, as the real git shows it to its user. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { OUTAGES } from '../../../apps/front-door/outages.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import { createApiFixture } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { startGit } from '../../support/git-fixture.ts';
import { newWorkTree, tryGit } from '../../support/strata.ts';

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
  const git = await startGit(fixture);
  cleanUp(context, () => git.close());
  const url = git.url.replace('://', `://ada:${secret}@`);
  const pushed = await tryGit(await newWorkTree(context), ['push', `${url}/r/ada/engine.git`, 'main']);
  assert.notEqual(pushed.code, 0);
  assert.ok(pushed.stderr.includes(`remote: ${OUTAGES['object-database-unavailable'].message}`), pushed.stderr);
  assert.doesNotMatch(pushed.stderr, /secret words/);
  assert.match(fixture.logged.join('\n'), /object-database-unavailable/);
  assert.equal(git.finished.at(-1)?.operation, 'push');
});
