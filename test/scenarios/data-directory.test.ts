/** One server a data directory, whatever database it uses; `strata-admin` works beside it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admin, createAccount, startStrata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

test('a second server on a data directory is refused by name, and the first goes on', async (context) => {
  const shared = await sharedParts(context);
  const first = await startNode(context, shared);
  const { dataDir } = first;
  const second = startStrata(context, { dataDir, env: shared.env });
  // In one line: nothing of the program is broken.
  const refusal = new RegExp(
    `ready:\\nThe server with pid ${first.process.pid} runs on ${dataDir}. Stop it, or give this one another data directory`,
  );
  await assert.rejects(second, refusal);
  assert.equal((await fetch(`${first.url}/readyz`)).status, 200);
  await createAccount(first, 'ada');
  const again = await first.restart();
  assert.equal(await again.stop(), 0);
  await startStrata(context, { dataDir, env: shared.env });
});

test('on the embedded database too, beside which strata-admin works', async (context) => {
  const first = await startStrata(context);
  const ada = await createAccount(first, 'ada');
  const second = startStrata(context, { dataDir: first.dataDir });
  await assert.rejects(second, new RegExp(`The server with pid ${first.process.pid} runs on `));
  assert.equal(await first.stop(), 0);
  // Without a server it starts the database itself, and leaves the directory to the next.
  const { id } = (await admin(first, ['account', 'set-plan', '--username', 'ada', '--plan', 'PRO'])) as { id: string };
  assert.equal(id, ada.id);
  await first.restart();
});
